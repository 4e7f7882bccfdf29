// SPDX-License-Identifier: MIT
// Translates the descriptor's JSON into struct cs_layout. Invariant: on success every field of the
// tables below was present, by name, with a plausible value. Nothing has a default, except what the
// tables of optional fields and globals name: CS_NO_FIELD, CS_NO_FRAME or 0. Fields that the tables
// do not name are ignored, so a runtime may add some. Any thread. Signal-safe: no.
#include "contract/descriptor.h"

#include <string.h>

#include "contract/json.h"

// No structure is larger, so a larger offset is refused before it is used.
#define MAX_OFFSET 65536u

struct contract {
  const char *name;
  const char *version;
};
// The versions of the algorithms that this code implements. In another version the same fields may
// mean something else. It knows two versions of ExecutionManager: in version 1, that of .NET 8 and
// 9, the map of a code heap has no pointers.
static const struct contract contracts[] = {
    {"ExecutionManager", "2"}, {"StackWalk", "1"}, {"Thread", "1"},
    {"Exception", "1"},        {"Loader", "1"},
};
static const struct contract code_map_without_pointers = {"ExecutionManager", "1"};

struct field {
  const char *type, *name;  // "!" is the type's size
  size_t at;                // the uint32_t in struct cs_layout
};
#define F(type, name, member) \
  { type, name, offsetof(struct cs_layout, member) }
// clang-format off
static const struct field fields[] = {
    F("Thread", "Id", thread.id),
    F("Thread", "OSId", thread.os_id),
    F("Thread", "State", thread.state),
    F("Thread", "PreemptiveGCDisabled", thread.preemptive_gc_disabled),
    F("Thread", "Frame", thread.frame),
    F("Thread", "LinkNext", thread.link_next),
    F("Thread", "ExceptionTracker", thread.exception_tracker),
    F("ThreadStore", "FirstThreadLink", thread_store_fields.first_link),
    F("RangeSectionMap", "TopLevelData", range_section_map.top_level_data),
    F("RangeSectionFragment", "Next", range_fragment.next),
    F("RangeSectionFragment", "RangeBegin", range_fragment.range_begin),
    F("RangeSectionFragment", "RangeEndOpen", range_fragment.range_end_open),
    F("RangeSectionFragment", "RangeSection", range_fragment.range_section),
    F("RangeSection", "RangeBegin", range_section.range_begin),
    F("RangeSection", "RangeEndOpen", range_section.range_end_open),
    F("RangeSection", "Flags", range_section.flags),
    F("RangeSection", "JitManager", range_section.jit_manager),
    F("RangeSection", "R2RModule", range_section.r2r_module),
    F("RangeSection", "HeapList", range_section.heap_list),
    F("CodeHeapListNode", "Next", heap_node.next),
    F("CodeHeapListNode", "StartAddress", heap_node.start_address),
    F("CodeHeapListNode", "EndAddress", heap_node.end_address),
    F("CodeHeapListNode", "MapBase", heap_node.map_base),
    F("CodeHeapListNode", "HeaderMap", heap_node.header_map),
    F("RealCodeHeader", "MethodDesc", code_header.method_desc),
    F("RealCodeHeader", "GCInfo", code_header.gc_info),
    F("RealCodeHeader", "NumUnwindInfos", code_header.num_unwind_infos),
    F("RealCodeHeader", "UnwindInfos", code_header.unwind_infos),
    F("RuntimeFunction", "!", runtime_function.size),
    F("RuntimeFunction", "BeginAddress", runtime_function.begin),
    F("RuntimeFunction", "UnwindData", runtime_function.unwind_data),
    F("Module", "ReadyToRunInfo", module.ready_to_run_info),
    F("Module", "Base", module.base),
    F("ReadyToRunInfo", "ReadyToRunHeader", r2r_info.header),
    F("ReadyToRunInfo", "CompositeInfo", r2r_info.composite_info),
    F("ReadyToRunInfo", "RuntimeFunctions", r2r_info.runtime_functions),
    F("ReadyToRunInfo", "NumRuntimeFunctions", r2r_info.num_runtime_functions),
    F("ReadyToRunInfo", "HotColdMap", r2r_info.hot_cold_map),
    F("ReadyToRunInfo", "NumHotColdMap", r2r_info.num_hot_cold_map),
    F("ReadyToRunInfo", "DelayLoadMethodCallThunks", r2r_info.delay_load_thunks),
    F("ReadyToRunInfo", "EntryPointToMethodDescMap", r2r_info.entry_points),
    F("HashMap", "Buckets", hash_map.buckets),
    F("Bucket", "!", bucket.size),
    F("Bucket", "Keys", bucket.keys),
    F("Bucket", "Values", bucket.values),
    F("MethodDesc", "!", method_desc.size),
    F("MethodDesc", "ChunkIndex", method_desc.chunk_index),
    F("MethodDesc", "Flags", method_desc.flags),
    F("MethodDesc", "Flags3AndTokenRemainder", method_desc.remainder),
    F("MethodDescChunk", "!", method_desc_chunk.size),
    F("MethodDescChunk", "MethodTable", method_desc_chunk.method_table),
    F("MethodDescChunk", "FlagsAndTokenRange", method_desc_chunk.token_range),
    F("MethodTable", "Module", method_table.module),
    F("ImageDataDirectory", "VirtualAddress", image_data_directory.begin),
    F("ImageDataDirectory", "Size", image_data_directory.size),
    F("Frame", "Next", frame.next),
    F("InlinedCallFrame", "!", inlined_call_frame.size),
    F("InlinedCallFrame", "CallSiteSP", inlined_call_frame.call_site_sp),
    F("InlinedCallFrame", "CallerReturnAddress", inlined_call_frame.caller_return_address),
    F("InlinedCallFrame", "CalleeSavedFP", inlined_call_frame.callee_saved_fp),
    F("FaultingExceptionFrame", "TargetContext", faulting_exception_frame.target_context),
    F("ResumableFrame", "TargetContextPtr", resumable_frame.target_context_ptr),
    F("HijackFrame", "ReturnAddress", hijack_frame.return_address),
    F("HijackFrame", "HijackArgsPtr", hijack_frame.hijack_args_ptr),
    F("HijackArgs", "!", hijack_args.size),
    F("FramedMethodFrame", "TransitionBlockPtr", framed_method_frame.transition_block_ptr),
    F("TransitionBlock", "!", transition_block.size),
    F("TransitionBlock", "ReturnAddress", transition_block.return_address),
    F("TransitionBlock", "CalleeSavedRegisters", transition_block.callee_saved_registers),
    F("CalleeSavedRegisters", "!", callee_saved.size),
    CS_MACHINE_FIELDS,
    F("ExceptionInfo", "PreviousNestedInfo", exception_info.previous_nested),
};
// Required if the runtime has such Frames, which .NET 8 and 9 do not.
static const struct field software_exception_fields[] = {
    F("SoftwareExceptionFrame", "TargetContext", software_exception_frame.target_context),
    F("SoftwareExceptionFrame", "ReturnAddress", software_exception_frame.return_address),
};
// Without these, names, states or lines are missing. A field that a later runtime has renamed is
// listed by both names.
static const struct field optional_fields[] = {
    F("Module", "Path", module.path),
    F("DynamicMethodDesc", "MethodName", dynamic_method_desc.name),
    F("Thread", "GCHandle", thread.exposed_object),
    F("Thread", "ExposedObject", thread.exposed_object), // .NET 11
    F("ExceptionInfo", "ThrownObject", exception_info.thrown),
    F("ExceptionInfo", "ExceptionFlags", exception_info.flags), // .NET 11, as the next two
    F("ExceptionInfo", "StackLowBound", exception_info.unwound_lo),
    F("ExceptionInfo", "StackHighBound", exception_info.unwound_hi),
    F("ExceptionInfo", "MethodToLeave", exception_info.method_to_leave), // .NET 9, as the next two
    F("ExceptionInfo", "IteratorSP", exception_info.iterator_sp),
    F("ExceptionInfo", "HandlerCallersSP", exception_info.handler_callers_sp),
    F("String", "m_StringLength", string.length),
    F("String", "m_FirstChar", string.first_char),
    F("Array", "!", array.size),
    F("Array", "m_NumComponents", array.count),
    F("Module", "TypeDefToMethodTableMap", module.types),
    F("ModuleLookupMap", "TableData", lookup_map.table),
    F("ModuleLookupMap", "Next", lookup_map.next),
    F("ModuleLookupMap", "Count", lookup_map.count),
    F("MethodTable", "EEClassOrCanonMT", method_table.canonical),
    F("MethodTable", "ParentMethodTable", method_table.parent),
    F("MethodTable", "MTFlags2", method_table.flags2),
    F("MethodTable", "AuxiliaryData", method_table.auxiliary),
    F("EEClass", "FieldDescList", ee_class.fields),
    F("DynamicStaticsInfo", "!", statics.size),
    F("DynamicStaticsInfo", "GCStatics", statics.gc),
    F("ThreadStore", "DeadCount", thread_store_fields.dead_count),
    F("MethodTable", "MTFlags", objects.flags),
    F("MethodTable", "BaseSize", objects.base_size),
    F("MethodTable", "PerInstInfo", objects.element),
    F("Thread", "ThreadLocalDataPtr", objects.thread_data),
    F("ThreadLocalData", "InFlightData", objects.in_flight),
    F("SyncTableEntry", "!", objects.sync_size),
    F("SyncTableEntry", "SyncBlock", objects.sync_block),
    F("EEClass", "MethodTable", ee_class.method_table),
    F("EEClass", "NumInstanceFields", ee_class.field_count),
    F("EEClass", "NumStaticFields", ee_class.static_count),
    F("GenericsDictInfo", "NumDicts", generics.dictionaries),
    F("GenericsDictInfo", "NumTypeArgs", generics.arguments),
    F("InstantiatedMethodDesc", "PerInstInfo", generics.method_dictionary),
    F("InstantiatedMethodDesc", "NumGenericArgs", generics.method_arguments),
    F("Exception", "_message", exception.message),
    F("Thread", "RuntimeThreadLocals", thread.locals),
    F("RuntimeThreadLocals", "AllocContext", allocation.context),
    F("EEAllocContext", "GCAllocationContext", allocation.gc_context),
    F("GCAllocContext", "Pointer", allocation.pointer),
    F("GCAllocContext", "Limit", allocation.limit),
};
#undef F

enum form { VALUE, ADDRESS, EITHER };
struct global {
  const char *name;
  size_t at; // the uint64_t in struct cs_layout
  enum form form;
};
#define G(name, member, form) {name, offsetof(struct cs_layout, member), form}
// A Frame of .NET 8 and 9 is identified by its table of virtual functions, an address.
#define ID(name, member) G(name "FrameIdentifier", frame_ids.member, EITHER)
static const struct global globals[] = {
    G("ExecutionManagerCodeRangeMapAddress", code_range_map, ADDRESS),
    G("ThreadStore", thread_store, ADDRESS),
    G("HashMapSlotsPerBucket", hash_slots, VALUE),
    G("HashMapValueMask", hash_value_mask, VALUE),
    G("MethodDescAlignment", method_desc_alignment, VALUE),
    G("MethodDescTokenRemainderBitCount", token_remainder_bits, VALUE),
    G("StubCodeBlockLast", stub_code_block_last, VALUE),
    ID("InlinedCall", inlined_call),
    ID("Resumable", resumable),
    ID("RedirectedThread", redirected_thread),
    ID("FaultingException", faulting_exception),
    ID("Hijack", hijack),
};
// Not every version has these kinds of Frames. A walk ends at a Frame of an unknown kind.
static const struct global optional_frames[] = {
    ID("SoftwareException", software_exception),
    ID("FuncEval", func_eval),
    ID("PInvokeCalli", pinvoke_calli),
    ID("PrestubMethod", prestub_method),
    ID("CallCountingHelper", call_counting_helper),
    ID("StubDispatch", stub_dispatch),
    ID("ExternalMethod", external_method),
    ID("DynamicHelper", dynamic_helper),
    ID("ProtectValueClass", protect_value_class),
    ID("DebuggerClassInitMark", debugger_class_init_mark),
    ID("DebuggerExit", debugger_exit),
    ID("DebuggerU2MCatchHandler", debugger_u2m_catch),
    ID("ExceptionFilter", exception_filter),
};
#undef ID
static const struct global optional_globals[] = {
    G("EEJitManagerAddress", jit_manager, ADDRESS), // .NET 11
    G("GCThread", suspension_thread, ADDRESS),
    G("FinalizerThread", landmarks.finalizer_thread, ADDRESS),
    G("AppDomain", landmarks.app_domain, ADDRESS),
    G("SystemDomain", landmarks.system_domain, ADDRESS),
    G("ThinlockThreadIdDispenser", landmarks.thread_ids, ADDRESS),
    G("ObjectMethodTable", landmarks.object_class, ADDRESS),
    G("SyncTableEntries", sync_table, ADDRESS),
    G("ExceptionMethodTable", exception_class, ADDRESS),
    G("FreeObjectMethodTable", free_object_class, ADDRESS),
};
#undef G
// clang-format on

bool cs_descriptor_check_head(const struct cs_descriptor_head *head, struct cs_error *err) {
  if (head->magic != CS_DESCRIPTOR_MAGIC) {
    return cs_error_set(err, "the runtime's data contract descriptor has the wrong magic 0x%016llx",
                        (unsigned long long)head->magic);
  }
  if ((head->flags & 3) != 1) {
    return cs_error_set(err,
                        "the runtime's data contract descriptor has the flags 0x%x, not those "
                        "of a 64-bit process",
                        head->flags);
  }
  if (head->json == 0 || head->json_bytes == 0 || head->json_bytes > CS_DESCRIPTOR_MAX_JSON ||
      head->pointers == 0 || head->pointer_count > CS_DESCRIPTOR_MAX_POINTERS) {
    return cs_error_set(err,
                        "the runtime's data contract descriptor has impossible sizes (%u bytes "
                        "of JSON, %u pointers)",
                        head->json_bytes, head->pointer_count);
  }
  return true;
}

// A version is a number (.NET 10) or a string (.NET 11): "c2" of CoreCLR, "n1" of Native AOT.
static bool is_version(const struct contract *want, const char *version) {
  return strcmp(version + (version[0] == 'c'), want->version) == 0;
}

static bool check_contracts(const struct cs_json *json, struct cs_layout *out,
                            struct cs_error *err) {
  int root = cs_json_member(json, 0, "contracts");
  for (size_t i = 0; i < CS_COUNT(contracts); i++) {
    const struct contract *want = &contracts[i];
    char version[16];
    if (!cs_json_scalar(json, cs_json_member(json, root, want->name), version, sizeof version)) {
      return cs_error_set(err, "the runtime's data contract descriptor does not describe %s",
                          want->name);
    }
    if (version[0] == 'n') {
      return cs_error_set(err,
                          "the runtime's data contract %s has version %s, that of Native AOT, "
                          "which is not supported",
                          want->name, version);
    }
    if (want == &contracts[0]) out->nibbles_only = is_version(&code_map_without_pointers, version);
    if (!is_version(want, version) && !(want == &contracts[0] && out->nibbles_only)) {
      return cs_error_set(err,
                          "the runtime's data contract %s has version %s, and this clrsnap knows "
                          "version %s; a newer clrsnap may know it",
                          want->name, version, want->version);
    }
  }
  return true;
}

// A field is its offset, or [offset, "type"].
static bool read_field(const struct cs_json *json, int types, const struct field *field,
                       struct cs_layout *out, struct cs_error *err) {
  int type = cs_json_member(json, types, field->type);
  int value = cs_json_member(json, type, field->name);
  if (cs_json_is_array(json, value)) value = cs_json_element(json, value, 0);
  uint64_t offset;
  if (!cs_json_u64(json, value, &offset)) {
    return cs_error_set(err, "the runtime's data contract descriptor lacks %s.%s", field->type,
                        field->name);
  }
  if (offset > MAX_OFFSET) {
    return cs_error_set(err, "the runtime's data contract descriptor has %s.%s at the offset %llu",
                        field->type, field->name, (unsigned long long)offset);
  }
  *(uint32_t *)((char *)out + field->at) = (uint32_t)offset;
  return true;
}

// A global is its value, [value, "type"], or [[index], "type"]: the address pointers[index].
static bool read_global(const struct cs_json *json, int root, const struct global *global,
                        const uint64_t *pointers, uint32_t count, struct cs_layout *out,
                        struct cs_error *err) {
  int value = cs_json_member(json, root, global->name);
  if (cs_json_is_array(json, value)) value = cs_json_element(json, value, 0);
  bool indexed = cs_json_is_array(json, value);
  if (global->form != EITHER && indexed != (global->form == ADDRESS)) value = -1;
  if (indexed) value = cs_json_element(json, value, 0);
  uint64_t number;
  if (!cs_json_u64(json, value, &number)) {
    return cs_error_set(err, "the runtime's data contract descriptor lacks the global %s",
                        global->name);
  }
  if (indexed) {
    if (number >= count || pointers[number] == 0) {
      return cs_error_set(err, "the runtime's data contract descriptor has no pointer %llu for %s",
                          (unsigned long long)number, global->name);
    }
    number = pointers[number];
  }
  *(uint64_t *)((char *)out + global->at) = number;
  return true;
}

// The runtime's CONTEXT is the last member of a SoftwareExceptionFrame, so the frame's size gives
// its size: 3,232 on .NET 10 (3,520 - 288). No field names it, except in clrsnap's own description
// of a runtime without such Frames.
static bool read_context_size(const struct cs_json *json, int types, struct cs_layout *out,
                              struct cs_error *err) {
  bool is_frame = out->frame_ids.software_exception != CS_NO_FRAME;
  const char *name = is_frame ? "SoftwareExceptionFrame" : "Context";
  int type = cs_json_member(json, types, name);
  uint64_t size, at = is_frame ? out->software_exception_frame.target_context : 0;
  if (!cs_json_u64(json, cs_json_member(json, type, "!"), &size)) {
    return cs_error_set(err, "the runtime's data contract descriptor lacks %s's size", name);
  }
  if (size < at + CS_CONTEXT_MIN || size - at > 16384 || (size - at) % 16 != 0) {
    return cs_error_set(err,
                        "the runtime's data contract descriptor makes CONTEXT %lld bytes large",
                        (long long)(size - at));
  }
  out->context_size = (uint32_t)(size - at);
  return true;
}

static void read_optional(const struct cs_json *json, int types, int root, const uint64_t *pointers,
                          uint32_t count, struct cs_layout *out) {
  for (size_t i = 0; i < CS_COUNT(optional_fields); i++)
    *(uint32_t *)((char *)out + optional_fields[i].at) = CS_NO_FIELD;
  for (size_t i = 0; i < CS_COUNT(optional_fields); i++)
    (void)read_field(json, types, &optional_fields[i], out, NULL);
  for (size_t i = 0; i < CS_COUNT(optional_frames); i++) {
    if (!read_global(json, root, &optional_frames[i], pointers, count, out, NULL))
      *(uint64_t *)((char *)out + optional_frames[i].at) = CS_NO_FRAME;
  }
  for (size_t i = 0; i < CS_COUNT(optional_globals); i++) {
    if (!read_global(json, root, &optional_globals[i], pointers, count, out, NULL))
      *(uint64_t *)((char *)out + optional_globals[i].at) = 0;
  }
}

static bool read_all(const struct cs_json *json, const uint64_t *pointers, uint32_t count,
                     struct cs_layout *out, struct cs_error *err) {
  if (!check_contracts(json, out, err)) return false;
  int types = cs_json_member(json, 0, "types");
  for (size_t i = 0; i < CS_COUNT(fields); i++) {
    if (!read_field(json, types, &fields[i], out, err)) return false;
  }
  int root = cs_json_member(json, 0, "globals");
  for (size_t i = 0; i < CS_COUNT(globals); i++) {
    if (!read_global(json, root, &globals[i], pointers, count, out, err)) return false;
  }
  read_optional(json, types, root, pointers, count, out);
  bool has_software = out->frame_ids.software_exception != CS_NO_FRAME;
  for (size_t i = 0; has_software && i < CS_COUNT(software_exception_fields); i++) {
    if (!read_field(json, types, &software_exception_fields[i], out, err)) return false;
  }
  return read_context_size(json, types, out, err) && cs_descriptor_check_limits(out, err);
}

bool cs_descriptor_parse(const char *text, size_t len, const uint64_t *pointers, uint32_t count,
                         struct cs_layout *out, struct cs_error *err) {
  struct cs_json json;
  if (!cs_json_parse(&json, text, len)) {
    return cs_error_set(err, "the runtime's data contract descriptor is not JSON");
  }
  bool ok = read_all(&json, pointers, count, out, err);
  cs_json_free(&json);
  return ok;
}

// ---- Comparison of two sources ----

static bool report_difference(const char *type, const char *name, uint64_t theirs, uint64_t ours,
                              struct cs_error *err) {
  return cs_error_set(
      err,
      "the runtime's data contract descriptor has %s%s%s at 0x%llx, where clrsnap's "
      "description of this version has 0x%llx",
      type, type[0] != '\0' ? "." : "", name, (unsigned long long)theirs, (unsigned long long)ours);
}

static bool compare_fields(const struct cs_json *json, const struct field *rows, size_t count,
                           const struct cs_layout *layout, struct cs_error *err) {
  int types = cs_json_member(json, 0, "types");
  for (size_t i = 0; i < count; i++) {
    struct cs_layout theirs;
    uint32_t ours = *(const uint32_t *)((const char *)layout + rows[i].at);
    if (ours == CS_NO_FIELD || !read_field(json, types, &rows[i], &theirs, NULL)) continue;
    uint32_t value = *(uint32_t *)((char *)&theirs + rows[i].at);
    if (value != ours) return report_difference(rows[i].type, rows[i].name, value, ours, err);
  }
  return true;
}

static bool compare_globals(const struct cs_json *json, const struct global *rows,
                            size_t rows_count, const uint64_t *pointers, uint32_t count,
                            const struct cs_layout *layout, struct cs_error *err) {
  int root = cs_json_member(json, 0, "globals");
  for (size_t i = 0; i < rows_count; i++) {
    struct cs_layout theirs;
    uint64_t ours = *(const uint64_t *)((const char *)layout + rows[i].at);
    if (ours == 0 || !read_global(json, root, &rows[i], pointers, count, &theirs, NULL)) continue;
    uint64_t value = *(uint64_t *)((char *)&theirs + rows[i].at);
    if (value != ours) return report_difference("", rows[i].name, value, ours, err);
  }
  return true;
}

bool cs_descriptor_compare(const char *text, size_t len, const uint64_t *pointers, uint32_t count,
                           struct cs_layout *layout, struct cs_error *err) {
  struct cs_json json;
  if (!cs_json_parse(&json, text, len))
    return cs_error_set(err, "the runtime's data contract descriptor is not JSON");
  bool same = compare_fields(&json, fields, CS_COUNT(fields), layout, err) &&
              compare_fields(&json, optional_fields, CS_COUNT(optional_fields), layout, err) &&
              compare_globals(&json, globals, CS_COUNT(globals), pointers, count, layout, err) &&
              compare_globals(&json, optional_globals, CS_COUNT(optional_globals), pointers, count,
                              layout, err);
  cs_json_free(&json);
  return same;
}
