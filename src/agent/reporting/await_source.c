// SPDX-License-Identifier: MIT
// Some async methods have their awaiter not in a Task, but in a ManualResetValueTaskSourceCore. The
// compiler puts that of an async iterator into the iterator's state machine, which is an object of
// its own; the iterator's box is a Task that nothing awaits. That of a method with a pooled box is
// in the box. Invariants: every offset is looked up by the member's name; if one is not as
// expected, the box has no source. The agent's thread only, while the class is known to be alive.
// Signal-safe: no.
#include "reporting/await_source.h"

#include <string.h>

#include "base/log.h"
#include "state/state.h"

#define SERVICES "System.Runtime.CompilerServices."
#define POOLED SERVICES "PoolingAsyncValueTaskMethodBuilder`1+StateMachineBox"

enum { MOST_OFFSET = 0xFFF };

// Where the source is, and the type of its result.
struct place {
  uint32_t holder, offset;
  ClassID result;
};

static bool is_core_class(ClassID id, const char *name, struct cs_class *out) {
  return id != 0 && cs_class_read(cs_agent.info, id, out) && out->core &&
         strcmp(out->name, name) == 0;
}

// The result of an iterator's source, a Boolean, is whether there is a value.
static bool find_in_iterator(const struct cs_class *box, struct place *place) {
  ICorProfilerInfo15 *info = cs_agent.info;
  struct cs_class machine, other;
  if (box->arg_count == 0 || !cs_class_read(info, box->args[box->arg_count - 1], &machine) ||
      !is_core_class(machine.parent, "System.Object", &other) ||
      !cs_class_field(info, &machine, u"<>v__promiseOfValueOrEnd", &place->offset) ||
      !cs_class_field(info, box, u"StateMachine", &place->holder) ||
      !cs_class_named(info, box->module, u"System.Boolean", NULL, 0, &other))
    return false;
  place->result = other.id;
  return true;
}

static bool find_in_pooled(const struct cs_class *box, struct place *place) {
  struct cs_class base;
  place->holder = 0;
  if (box->arg_count == 0 || !is_core_class(box->parent, POOLED, &base) ||
      !cs_class_field(cs_agent.info, &base, u"_valueTaskSource", &place->offset))
    return false;
  place->result = box->args[0];
  return true;
}

static bool find_member(const struct cs_class *core, const WCHAR *name, uint32_t origin,
                        uint32_t align, const struct place *place, uint16_t *out) {
  uint32_t offset;
  if (!cs_class_field(cs_agent.info, core, name, &offset) || offset < origin) return false;
  offset += place->offset - origin;
  *out = (uint16_t)offset;
  return offset <= MOST_OFFSET && offset % align == 0;
}

static bool find_members(ModuleID module, struct place *place, struct cs_await_source *out) {
  static const WCHAR name[] = u"System.Threading.Tasks.Sources.ManualResetValueTaskSourceCore`1";
  ICorProfilerInfo15 *info = cs_agent.info;
  struct cs_class core;
  uint32_t origin;
  out->holder = (uint16_t)place->holder;
  return place->holder <= MOST_OFFSET && place->holder % 8 == 0 &&
         cs_class_named(info, module, name, &place->result, 1, &core) &&
         cs_class_origin(info, &core, &origin) &&
         find_member(&core, u"_continuation", origin, 8, place, &out->continuation) &&
         find_member(&core, u"_continuationState", origin, 8, place, &out->state) &&
         find_member(&core, u"_completed", origin, 1, place, &out->completed);
}

bool cs_await_is_pooled_box(const struct cs_class *class) {
  return class->core && strcmp(class->name, POOLED "`1") == 0;
}

bool cs_await_is_resumer(const struct cs_class *class) {
  static const char *const names[] = {
      "System.Threading.ThreadPool+<>c", SERVICES "ValueTaskAwaiter+<>c",
      "System.Threading.Tasks.ValueTask+ValueTaskSourceAsTask+<>c",
      "System.Threading.Tasks.ValueTask`1+ValueTaskSourceAsTask+<>c"};
  for (size_t i = 0; class->core && i < CS_COUNT(names); i++)
    if (strcmp(class->name, names[i]) == 0) return true;
  return false;
}

bool cs_await_find_source(const struct cs_class *box, struct cs_await_source *out,
                          uint32_t *target) {
  ICorProfilerInfo15 *info = cs_agent.info;
  struct place place;
  struct cs_class delegate;
  if (!(cs_await_is_pooled_box(box) ? find_in_pooled(box, &place) : find_in_iterator(box, &place)))
    return false;
  if (find_members(box->module, &place, out) &&
      cs_class_named(info, box->module, u"System.Delegate", NULL, 0, &delegate) &&
      cs_class_field(info, &delegate, u"_target", target) && *target <= MOST_OFFSET)
    return true;
  cs_log("class 0x%lx, %s: the members of its ManualResetValueTaskSourceCore are not found",
         (unsigned long)box->id, box->name);
  return false;
}
