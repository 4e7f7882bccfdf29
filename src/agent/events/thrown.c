// SPDX-License-Identifier: MIT
// The event of a throw has the name of the exception's type, but no id of it. It comes in
// cooperative mode, in which no collection moves the object, while the thread's ExInfo has a handle
// of it. A program may throw hundreds of thousands a second, so nothing is asked, and no read is
// guarded.
//
// Invariant: what is read is alive: the Thread is the caller's own; its ExInfo counts only if it is
// on the caller's stack, where the dispatch has it; the handle keeps the object, and the object its
// class. Whether it is the event's own exception is seen from the name (reporting/type_names.h).
// The thread that throws. Signal-safe: no.
#include "events/thrown.h"

#include "contract/supported.h"
#include "signal/signal.h"

static bool is_word(uint64_t address) {
  return address != 0 && address % 8 == 0;
}

// Returns whether an ExInfo there is that of the dispatch that reports the throw: not far above.
// The bounds of the stack need not be known for that.
static bool is_in_caller(uint64_t address) {
  enum { FAR = 64 << 10 };
  uint64_t here = (uintptr_t)__builtin_frame_address(0);
  return is_word(address) && address > here && address - here < FAR;
}

uint64_t cs_thrown_class(const struct cs_thread *thread) {
  enum { MARKS = 7 };  // bits that a collection uses
  const struct cs_world *world = cs_load_acquire(&cs_signal.world);
  if (thread == NULL || world == NULL) return 0;
  const struct cs_layout *l = &world->layout;
  uint64_t info, handle, object, class;
  if (!cs_objects_are_measured(l->runtime_major) || l->exception_info.thrown == CS_NO_FIELD ||
      !cs_is_cooperative(world, thread->clr_thread) ||
      !cs_mem_u64(&world->mem, thread->clr_thread + l->thread.exception_tracker, &info) ||
      !is_in_caller(info) || !cs_mem_u64(&world->mem, info + l->exception_info.thrown, &handle) ||
      !is_word(handle) || !cs_mem_u64(&world->mem, handle, &object) || !is_word(object) ||
      !cs_mem_u64(&world->mem, object, &class))
    return 0;
  return class & ~(uint64_t)MARKS;
}
