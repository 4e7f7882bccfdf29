// SPDX-License-Identifier: MIT
// The offsets of the running CoreCLR's structures, by the names in its data contract descriptor:
// members are named after its "Type.Field", and are byte offsets unless stated otherwise. An offset
// marked as optional is CS_NO_FIELD if it is unknown. Filled in once at start
// (contract/contract.c), then read-only. Plain data. Signal-safe: yes.
#pragma once

#include "base/base.h"
#include "contract/machine.h"

// The first words of explicit Frames, which identify their kinds. CS_NO_FRAME: the runtime has no
// Frames of that kind.
struct cs_frame_ids {
  uint64_t inlined_call, resumable, redirected_thread, faulting_exception, software_exception;
  uint64_t func_eval, pinvoke_calli, hijack, prestub_method, call_counting_helper;
  uint64_t stub_dispatch, external_method, dynamic_helper, protect_value_class;
  uint64_t debugger_class_init_mark, debugger_exit, debugger_u2m_catch, exception_filter;
};

struct cs_layout {
  // Addresses, from the descriptor's indexed globals.
  uint64_t code_range_map;     // the RangeSectionMap itself (ExecutionManagerCodeRangeMapAddress)
  uint64_t thread_store;       // address of the variable that points to the ThreadStore
  uint64_t suspension_thread;  // address of the Thread that has suspended the others; 0: unknown
  // Addresses that identify entries of the runtime's table for its debugger; 0: unknown.
  struct {
    uint64_t finalizer_thread, app_domain, system_domain, thread_ids, object_class;
  } landmarks;
  // Addresses of the variables that point to these classes; 0: unknown.
  uint64_t exception_class, free_object_class;
  uint64_t coreclr_begin, coreclr_end;   // libcoreclr.so's mapping, [begin, end)
  uint64_t hash_slots, hash_value_mask;  // the runtime's HashMap: slots per bucket, bits of a value
  uint64_t method_desc_alignment, token_remainder_bits;
  uint64_t sync_table;   // address of the variable that points to the sync table; 0: unknown
  uint64_t jit_manager;  // address of the variable that points to jitted code's manager; 0: unknown
  bool nibbles_only;     // the map of a code heap is version 1 (codemap/jit.c)
  uint64_t stub_code_block_last;  // a code header word up to this value is a kind of stub

  struct {
    uint32_t id, os_id, state, preemptive_gc_disabled, frame, link_next, exception_tracker;
    uint32_t exposed_object;  // optional: handle of the managed Thread
    uint32_t locals;          // optional
  } thread;
  // Optional: the way from a thread's locals to its allocation context.
  struct {
    uint32_t context, gc_context, pointer, limit;
  } allocation;
  struct {
    uint32_t length, first_char;  // optional
  } string;
  struct {
    uint32_t size;   // optional: of an array, up to its elements
    uint32_t count;  // optional: the number of its elements
  } array;
  struct {
    uint32_t first_link;  // of a list through thread.link_next
    uint32_t dead_count;  // optional
  } thread_store_fields;
  // The hijacked return address, and the address of its stack slot, in the Thread. No descriptor
  // has them: they are found in a new thread (docs/runtime-offsets.md), and 0 until then.
  struct {
    uint32_t hijack_return_address, hijack_slot;
  } hijack;
  struct {
    uint32_t top_level_data;
  } range_section_map;
  struct {
    uint32_t next, range_begin, range_end_open, range_section;
  } range_fragment;
  struct {
    uint32_t range_begin, range_end_open, flags, jit_manager, r2r_module, heap_list;
  } range_section;
  struct {
    uint32_t next, start_address, end_address, map_base, header_map;
  } heap_node;
  struct {
    uint32_t method_desc, gc_info, num_unwind_infos, unwind_infos;
  } code_header;
  struct cs_runtime_function runtime_function;
  struct {
    uint32_t ready_to_run_info, base;
    uint32_t path;   // optional
    uint32_t types;  // optional: lookup_map by mdTypeDef
  } module;
  // Optional, like the next two.
  struct {
    uint32_t table, next, count;
  } lookup_map;
  struct {
    uint32_t fields, method_table, field_count, static_count;
  } ee_class;
  struct {
    uint32_t size, gc;  // they precede a class's auxiliary data
  } statics;
  struct {
    uint32_t name;  // optional
  } dynamic_method_desc;
  struct {
    uint32_t header, composite_info, runtime_functions, num_runtime_functions;
    uint32_t hot_cold_map, num_hot_cold_map, delay_load_thunks, entry_points;
  } r2r_info;
  struct {
    uint32_t buckets;
  } hash_map;
  struct {
    uint32_t size, keys, values;
  } bucket;
  struct {
    uint32_t size, chunk_index, flags, remainder;
  } method_desc;
  struct {
    uint32_t size, method_table, token_range;
  } method_desc_chunk;
  struct {
    uint32_t module;
    uint32_t canonical;  // optional: the class, or the canonical MethodTable | 1
    uint32_t parent;     // optional
    uint32_t flags2;     // optional; the highest 24 bits are the class's mdTypeDef
    uint32_t auxiliary;  // optional
  } method_table;
  // Optional: types of arrays and generic arguments, and locks (command/objects,
  // codemap/monitor.c).
  struct cs_object_layout {
    uint32_t flags, base_size, element;  // of MethodTable
    uint32_t thread_data;                // of Thread: its ThreadLocalData
    uint32_t in_flight;                  // of ThreadLocalData
    uint32_t sync_size, sync_block;      // of an entry of the sync table
  } objects;
  // Optional. The first two precede the word to which objects.element leads; the others are in the
  // MethodDesc of a generic method.
  struct {
    uint32_t dictionaries, arguments;
    uint32_t method_dictionary, method_arguments;
  } generics;
  struct {
    uint32_t message;  // optional
  } exception;
  struct {
    uint32_t begin, size;
  } image_data_directory;  // VirtualAddress, Size
  struct {
    uint32_t next;
  } frame;
  struct {
    uint32_t size, call_site_sp, caller_return_address, callee_saved_fp;
  } inlined_call_frame;
  struct {
    uint32_t target_context, return_address;
  } software_exception_frame;
  struct {
    uint32_t target_context;
  } faulting_exception_frame;
  struct {
    uint32_t target_context_ptr;
  } resumable_frame;
  struct {
    uint32_t return_address, hijack_args_ptr;
  } hijack_frame;
  struct {
    uint32_t size, callee_saved_registers;
  } hijack_args;
  struct {
    uint32_t transition_block_ptr;
  } framed_method_frame;
  struct {
    uint32_t size, return_address, callee_saved_registers;
  } transition_block;
  struct cs_callee_saved callee_saved;
  struct {
    uint32_t previous_nested;
    uint32_t thrown;  // optional: handle of the exception's object
    // Optional: no descriptor of .NET 10 has them (docs/runtime-offsets.md).
    uint32_t flags, handler_entered, unwound_lo, unwound_hi;
    // Only on .NET 9, which does not move unwound_hi with each frame.
    uint32_t method_to_leave, iterator_sp, handler_callers_sp;
  } exception_info;
  struct cs_frame_ids frame_ids;

  uint32_t context_size;  // bytes of the runtime's own CONTEXT: 3,232 on .NET 10
  uint16_t runtime_major, runtime_minor, runtime_build;
};

// The value of a missing field. Only fields that names, async callers and walks of the heap need
// may be missing.
#define CS_NO_FIELD UINT32_MAX
#define CS_NO_FRAME UINT64_MAX

// Sizes of the copies of structures that are read as a whole. Offsets of members index these
// copies, so a layout with an offset outside of its copy is refused (contract/limits.c).
#define CS_MEMBERS_BYTES 96u
#define CS_METHOD_DESC_BYTES 64u

// RangeSection.flags.
enum {
  CS_RANGE_COLLECTIBLE = 1,
  CS_RANGE_CODE_HEAP = 2,
  CS_RANGE_RANGE_LIST = 4,
  CS_RANGE_INTERPRETER = 8,
};
