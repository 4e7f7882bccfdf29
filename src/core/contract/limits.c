// SPDX-License-Identifier: MIT
// The limits of a layout. Invariant: a layout that has passed never makes a read leave the copy of
// a structure, even if the descriptor, which may be that of another process, is hostile. Any
// thread. Signal-safe: no.
#include "contract/descriptor.h"

struct member {
  const char *name;
  size_t at;              // the uint32_t in struct cs_layout
  uint32_t bytes, whole;  // of the member, and of the structure's copy
};
#define M(name, member, bytes, whole) \
  { name, offsetof(struct cs_layout, member), bytes, whole }
// clang-format off
static const struct member members[] = {
    M("RangeSectionFragment.Next", range_fragment.next, 8, CS_MEMBERS_BYTES),
    M("RangeSectionFragment.RangeBegin", range_fragment.range_begin, 8, CS_MEMBERS_BYTES),
    M("RangeSectionFragment.RangeEndOpen", range_fragment.range_end_open, 8, CS_MEMBERS_BYTES),
    M("RangeSectionFragment.RangeSection", range_fragment.range_section, 8, CS_MEMBERS_BYTES),
    M("RangeSection.RangeBegin", range_section.range_begin, 8, CS_MEMBERS_BYTES),
    M("RangeSection.RangeEndOpen", range_section.range_end_open, 8, CS_MEMBERS_BYTES),
    M("RangeSection.Flags", range_section.flags, 8, CS_MEMBERS_BYTES),
    M("RangeSection.JitManager", range_section.jit_manager, 8, CS_MEMBERS_BYTES),
    M("RangeSection.R2RModule", range_section.r2r_module, 8, CS_MEMBERS_BYTES),
    M("RangeSection.HeapList", range_section.heap_list, 8, CS_MEMBERS_BYTES),
    M("CodeHeapListNode.StartAddress", heap_node.start_address, 8, CS_MEMBERS_BYTES),
    M("CodeHeapListNode.EndAddress", heap_node.end_address, 8, CS_MEMBERS_BYTES),
    M("CodeHeapListNode.MapBase", heap_node.map_base, 8, CS_MEMBERS_BYTES),
    M("CodeHeapListNode.HeaderMap", heap_node.header_map, 8, CS_MEMBERS_BYTES),
    M("RealCodeHeader.MethodDesc", code_header.method_desc, 8, CS_MEMBERS_BYTES),
    M("RealCodeHeader.NumUnwindInfos", code_header.num_unwind_infos, 4, CS_MEMBERS_BYTES),
    M("RuntimeFunction.BeginAddress", runtime_function.begin, 4, CS_RUNTIME_FUNCTION_BYTES),
    CS_MACHINE_MEMBERS,
    M("RuntimeFunction.UnwindData", runtime_function.unwind_data, 4, CS_RUNTIME_FUNCTION_BYTES),
    M("MethodDesc.ChunkIndex", method_desc.chunk_index, 1, CS_METHOD_DESC_BYTES),
    M("MethodDesc.Flags", method_desc.flags, 2, CS_METHOD_DESC_BYTES),
    M("MethodDesc.Flags3AndTokenRemainder", method_desc.remainder, 2, CS_METHOD_DESC_BYTES),
};
// clang-format on
#undef M

static bool refuse(const char *name, uint32_t value, struct cs_error *err) {
  return cs_error_set(err,
                      "the runtime's data contract descriptor has %s at %u, which is out of range",
                      name, value);
}

static uint32_t value_of(const struct cs_layout *layout, const struct member *m) {
  return *(const uint32_t *)((const char *)layout + m->at);
}

bool cs_descriptor_check_limits(const struct cs_layout *layout, struct cs_error *err) {
  if (layout->runtime_function.size != CS_RUNTIME_FUNCTION_BYTES)
    return refuse("RuntimeFunction's end", layout->runtime_function.size, err);
  if (layout->method_desc.size > CS_METHOD_DESC_BYTES)
    return refuse("MethodDesc's end", layout->method_desc.size, err);
  for (size_t i = 0; i < CS_COUNT(members); i++) {
    const struct member *m = &members[i];
    uint32_t value = value_of(layout, m);
    uint32_t whole = m->whole == CS_METHOD_DESC_BYTES ? layout->method_desc.size : m->whole;
    bool words = m->whole == CS_RUNTIME_FUNCTION_BYTES;  // read as an array of words
    if (value + m->bytes > whole || (words && value % 4 != 0)) return refuse(m->name, value, err);
  }
  return true;
}
