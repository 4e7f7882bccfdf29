// SPDX-License-Identifier: MIT
// Methods on the stack, which the wire must have before their first sample. The CLR is asked once
// about each. Invariant: questions about collectible code are asked between cs_unload_begin_naming
// and _end_naming. The agent's thread only. Signal-safe: no.
#include "reporting/methods.h"

#include <string.h>

#include "reporting/awaits.h"
#include "reporting/inlines.h"
#include "reporting/modules.h"
#include "reporting/unload.h"
#include "reporting/wait_names.h"
#include "snapshot/il.h"
#include "state/state.h"

// The runtime's exception dispatch: an id for each method, and for each of its codes.
static uint32_t dispatch_ids[64], dispatch_count;

// ReadyToRun code has no header that names its method. GetFunctionFromIP3 knows dynamic methods,
// too; where it is not available, GetFunctionFromIP is enough for ReadyToRun code.
static FunctionID function_at(uint64_t start) {
  ICorProfilerInfo15 *info = cs_agent.info;
  FunctionID function = 0;
  ReJITID rejit = 0;
  LPCBYTE ip = (LPCBYTE)(uintptr_t)start;
  if (info->lpVtbl->GetFunctionFromIP3(info, ip, &function, &rejit) == S_OK) return function;
  if (info->lpVtbl->GetFunctionFromIP(info, ip, &function) == S_OK) return function;
  return 0;
}

// Those of the last two are inlined, except where the runtime's own methods are jitted as well.
static bool dispatches(const struct cs_method_name *name) {
  if (strcmp(name->space, "System.Runtime.ExceptionServices") == 0)
    return strcmp(name->type, "InternalCalls") == 0;
  return strcmp(name->space, "System.Runtime") == 0 &&
         (strcmp(name->type, "EH") == 0 || strcmp(name->type, "StackFrameIterator") == 0);
}

static void note_dispatch(uint32_t id, const struct cs_method_name *name) {
  if (!dispatches(name)) return;
  if (dispatch_count < CS_COUNT(dispatch_ids)) dispatch_ids[dispatch_count++] = id;
}

bool cs_method_is_dispatch(uint32_t id) {
  for (uint32_t i = 0; i < dispatch_count; i++)
    if (dispatch_ids[i] == id) return true;
  return false;
}

// Was the method edited while the program runs (hot reload), or its IL replaced by a profiler? Then
// the PDB has no lines for it: they would be those of other instructions. The IL of a method that
// was edited lies outside of its module's image.
static bool is_rewritten(FunctionID function, uint64_t start, const struct cs_method_name *name) {
  ICorProfilerInfo15 *info = cs_agent.info;
  LPCBYTE ip = (LPCBYTE)(uintptr_t)start, body = NULL;
  FunctionID same;
  ReJITID rejit = 0;
  ModuleID module;
  mdToken token;
  ULONG size;
  HRESULT hr = info->lpVtbl->GetFunctionFromIP3(info, ip, &same, &rejit);
  if (SUCCEEDED(hr) && rejit != 0) return true;
  return SUCCEEDED(info->lpVtbl->GetFunctionInfo(info, function, NULL, &module, &token)) &&
         SUCCEEDED(info->lpVtbl->GetILFunctionBody(info, module, token, &body, &size)) &&
         body != NULL && !cs_module_contains(name, (uint64_t)(uintptr_t)body);
}

static bool put_il_map(uint32_t id, uint64_t start, bool rewritten) {
  static struct cs_il_map map;
  static struct {
    struct cs_wire_il_map head;
    struct cs_wire_il_range ranges[CS_IL_MAP_RANGES];
  } record;
  _Static_assert(sizeof record.ranges[0] == sizeof map.ranges[0], "copied as it is");
  if (rewritten) {
    map.count = 0;
    map.result = CS_WIRE_E_IL_REPLACED;
  } else {
    cs_il_map_read(cs_agent.info, start, &map);
  }
  record.head = (struct cs_wire_il_map){id, map.count, map.result};
  size_t size = map.count * sizeof map.ranges[0];
  // A map that would fill the wire's ring is left out, since it would keep the method's samples
  // out.
  if (size > cs_agent.wire.capacity / 4) {
    record.head = (struct cs_wire_il_map){id, 0, CS_E_IL_MAP_TOO_LARGE};
    size = 0;
  }
  memcpy(record.ranges, map.ranges, size);
  return cs_send(CS_WIRE_IL_MAP, &record, sizeof record.head + size);
}

// Sends all records about a method, before its samples.
static bool put_method(const struct cs_method_at *method, uint32_t id) {
  static struct cs_method_name name;
  FunctionID function = method->function_id != 0 ? method->function_id : function_at(method->start);
  (void)cs_function_name(function, &name);
  if (cs_options.lines && name.kind == CS_NAME_METHOD &&
      (!put_il_map(id, method->start, is_rewritten(function, method->start, &name)) ||
       !cs_module_to_wire(&name)))
    return false;
  if (cs_options.inlined && !cs_inlines_to_wire(method, id)) return false;
  if (!cs_function_put(id, &name)) return false;
  note_dispatch(id, &name);
  if (cs_wants(CS_WIRE_MODE_WAIT) && !cs_wait_name_note(id, &name)) return false;
  cs_awaits_note_method(id, &name, cs_awaits_box_class(function, &name));
  return true;
}

bool cs_method_at_to_wire(const struct cs_method_at *method, uint32_t *id) {
  if (!cs_function_reserve()) return false;
  if (cs_function_find(method->start, method, id)) return true;
  // The code may have been unloaded before its name was known.
  if (method->collectible && !cs_unload_begin_naming(method->generation))
    return cs_unloaded_to_wire(id);
  *id = cs_function_new_id();
  bool sent = put_method(method, *id);
  if (method->collectible) cs_unload_end_naming();
  if (sent) cs_function_remember(method->start, method, *id);
  return sent;
}

void cs_methods_free(void) {
  dispatch_count = 0;
}
