// SPDX-License-Identifier: MIT
// A walk into a capture: physical frames, and what else the logical view needs. Signal-safe: yes;
// memory reads and nothing else.
#include "signal/capture.h"

#include "contract/layout.h"
#include "signal/signal.h"

CS_ISLAND static void record(struct cs_record *out, const struct cs_frame *frame) {
  for (unsigned i = 0; i < CS_PRESERVED_COUNT; i++)
    out->preserved[i] = frame->regs.r[cs_preserved_register[i]];
  out->known = frame->regs.known;
  out->kind = (uint8_t)frame->code.kind;
  out->flags = (uint8_t)frame->flags;
  out->function_id = frame->code.function_id;
  out->method_start = frame->code.method_start;
  out->funclet = frame->code.funclet;
  out->collectible = frame->code.collectible;
  out->call_ip = 0;
  out->resolved = false;
  out->fp_at = 0;
}

// A managed frame that has called native code by P/Invoke holds an InlinedCallFrame, from which
// CoreCLR's own walk takes the return address. In ReadyToRun code that is the instruction after the
// helper that links the Frame, some bytes before the call. `*chain` moves past younger Frames.
CS_ISLAND static uint64_t inlined_call_ip(const struct cs_world *world,
                                          const struct cs_stack *stack, uint64_t sp,
                                          uint64_t *chain) {
  const struct cs_layout *l = &world->layout;
  uint64_t next, id, call_sp, ip;
  while (*chain < sp) {
    if ((*chain & 7) != 0 || !cs_stack_u64(&world->mem, stack, *chain + l->frame.next, &next) ||
        next <= *chain)
      return 0;
    *chain = next;
  }
  uint64_t at = *chain;
  if ((at & 7) != 0 || !cs_stack_u64(&world->mem, stack, at, &id) ||
      id != l->frame_ids.inlined_call ||
      !cs_stack_u64(&world->mem, stack, at + l->inlined_call_frame.call_site_sp, &call_sp) ||
      call_sp != sp ||
      !cs_stack_u64(&world->mem, stack, at + l->inlined_call_frame.caller_return_address, &ip))
    return 0;
  return ip;
}

// Replaces the first `gone` of the noted calls by `calls` others.
CS_ISLAND static void note_calls(struct cs_again *last, uint32_t gone, const uint16_t *call,
                                 uint32_t calls) {
  uint32_t stay = last->calls - gone;
  if (calls + stay > CS_AGAIN_CALLS) {
    last->count = last->calls = 0;
    return;
  }
  if (calls <= gone)
    for (uint32_t i = 0; i < stay; i++) last->call[calls + i] = last->call[gone + i];
  else
    for (uint32_t i = stay; i-- != 0;) last->call[calls + i] = last->call[gone + i];
  for (uint32_t i = 0; i < calls; i++) last->call[i] = call[i];
  last->calls = calls + stay;
}

// Sets call_ip of the managed frames that called native ones, and of the leaf. Which frames these
// are is noted, so those shared with the last walk are not searched for again.
CS_ISLAND static void add_call_ips(struct cs_capture *capture, uint32_t count,
                                   const struct cs_world *world, const struct cs_stack *stack,
                                   uint64_t chain) {
  struct cs_again *last = &capture->last;
  uint16_t call[CS_AGAIN_CALLS];
  bool above_is_native = true;
  uint32_t calls = 0, known = 0, fresh = capture->fresh < count ? capture->fresh + 1 : count;
  for (uint32_t i = 0; i < fresh; i++) {
    struct cs_record *record = &capture->records[i];
    bool managed = cs_record_is_managed(record);
    record->call_ip = 0;
    if (managed && above_is_native) {
      if (chain != 0) record->call_ip = inlined_call_ip(world, stack, cs_record_sp(record), &chain);
      if (calls < CS_AGAIN_CALLS) call[calls] = (uint16_t)(count - i);
      calls++;
    }
    above_is_native = !managed;
  }
  if (!capture->again) return;
  while (known < last->calls && (fresh == count || last->call[known] > count - fresh)) known++;
  for (uint32_t k = known; k < last->calls; k++) {
    struct cs_record *record = &capture->records[count - last->call[k]];
    record->call_ip = chain == 0 ? 0 : inlined_call_ip(world, stack, cs_record_sp(record), &chain);
  }
  note_calls(last, known, call, calls);
}

// Which frames the exception under way has unwound already. They stay on the stack, below the
// funclets that run meanwhile, until the catch handler is done. Where these fields come from:
// docs/runtime-offsets.md. Implausible values are not used.
enum {
  EXINFO_BYTES = 192,  // it has more
  FLAG_UNWIND_HAS_STARTED = 4,
};

CS_ISLAND static bool exceptions_are_known(const struct cs_layout *l) {
  return l->thread.exception_tracker != 0 && l->exception_info.flags != CS_NO_FIELD &&
         l->exception_info.unwound_lo != CS_NO_FIELD && l->exception_info.unwound_hi != CS_NO_FIELD;
}

// Returns whether the second pass is between two handlers; false where the field is not known.
CS_ISLAND static bool is_between_handlers(const struct cs_world *world,
                                          const struct cs_stack *stack, uint64_t info) {
  uint32_t at = world->layout.exception_info.handler_entered;
  uint64_t words;
  return at != CS_NO_FIELD && cs_stack_u64(&world->mem, stack, info + at - 4, &words) &&
         words >> 32 == 0;
}

// Notes the enclosing exceptions, too: a handler of one may have thrown the next.
CS_ISLAND static void note_exceptions(struct cs_capture *capture, const struct cs_world *world,
                                      const struct cs_stack *stack, uint64_t info) {
  uint64_t flags, next;
  uint32_t n = 0;
  while (n < CS_EXCEPTIONS && (info & 7) == 0 && cs_stack_holds(stack, info, EXINFO_BYTES) &&
         cs_stack_u64(&world->mem, stack, info + world->layout.exception_info.flags, &flags) &&
         cs_stack_u64(&world->mem, stack, info + world->layout.exception_info.previous_nested,
                      &next)) {
    capture->exceptions[n++] = (struct cs_exception){info, (flags & FLAG_UNWIND_HAS_STARTED) == 0};
    if (next <= info) break;
    info = next;
  }
  capture->exception_count = n;
}

// .NET 9: the sp of the frame that the second pass has reached; 0 until it has reached one. Beyond
// a handler of an enclosing exception are the frames of that exception's dispatch, which the pass
// does not unwind: it continues at the frame whose handler it was.
CS_ISLAND static uint64_t pass_position(const struct cs_world *world, const struct cs_stack *stack,
                                        uint64_t info) {
  const struct cs_layout *l = &world->layout;
  uint64_t method, sp, handler, next = info;
  if (!cs_stack_u64(&world->mem, stack, info + l->exception_info.method_to_leave, &method) ||
      method == 0 || !cs_stack_u64(&world->mem, stack, info + l->exception_info.iterator_sp, &sp))
    return 0;
  for (int i = 0; i < CS_EXCEPTIONS; i++, info = next) {
    if (!cs_stack_u64(&world->mem, stack, info + l->exception_info.previous_nested, &next) ||
        next <= info || (next & 7) != 0 || sp < info ||
        !cs_stack_u64(&world->mem, stack, next + l->exception_info.handler_callers_sp, &handler))
      break;
    if (sp >= handler && sp < next) {
      (void)cs_stack_u64(&world->mem, stack, next + l->exception_info.unwound_hi, &sp);
      break;
    }
  }
  return sp;
}

// Reads the upper end of what has been unwound. .NET 9 moves it only when it calls a handler.
CS_ISLAND static bool unwound_up_to(const struct cs_world *world, const struct cs_stack *stack,
                                    uint64_t info, uint64_t *hi) {
  const struct cs_layout *l = &world->layout;
  if (!cs_stack_u64(&world->mem, stack, info + l->exception_info.unwound_hi, hi)) return false;
  if (l->exception_info.iterator_sp == CS_NO_FIELD) return true;
  uint64_t sp = pass_position(world, stack, info);
  if (sp > *hi) *hi = sp;
  return true;
}

CS_ISLAND static void read_exception(struct cs_capture *capture, const struct cs_world *world,
                                     const struct cs_stack *stack, uint64_t clr_thread) {
  const struct cs_layout *l = &world->layout;
  uint64_t info, lo, hi, flags;
  capture->unwound_lo = capture->unwound_hi = 0;
  capture->in_unwind = false;
  capture->exception_count = 0;
  if (clr_thread == 0 || !exceptions_are_known(l) ||
      !cs_mem_u64(&world->mem, clr_thread + l->thread.exception_tracker, &info) ||
      (info & 7) != 0 || !cs_stack_holds(stack, info, EXINFO_BYTES) ||
      !cs_stack_u64(&world->mem, stack, info + l->exception_info.unwound_lo, &lo) ||
      !unwound_up_to(world, stack, info, &hi) ||
      !cs_stack_u64(&world->mem, stack, info + l->exception_info.flags, &flags))
    return;
  note_exceptions(capture, world, stack, info);
  if ((flags & FLAG_UNWIND_HAS_STARTED) == 0) return;  // the first pass: nothing is unwound yet
  capture->in_unwind = is_between_handlers(world, stack, info);
  if (lo <= info || lo > hi || hi >= stack->hi) return;
  capture->unwound_lo = lo;
  capture->unwound_hi = hi;
}

// Returns whether the chain has a Frame of a call under way. A method keeps its InlinedCallFrame
// linked between its calls; CoreCLR's walk skips those, and fails when there is nothing else.
CS_ISLAND static bool has_active_frame(const struct cs_world *world, const struct cs_stack *stack,
                                       uint64_t frame) {
  const struct cs_layout *l = &world->layout;
  enum { MOST = 4096 };
  uint64_t id, next, address;
  for (int i = 0; i < MOST && frame != CS_END_OF_CHAIN; i++, frame = next) {
    if (!cs_stack_u64(&world->mem, stack, frame, &id) ||
        !cs_stack_u64(&world->mem, stack, frame + l->frame.next, &next))
      return true;
    if (id == l->frame_ids.debugger_class_init_mark || id == l->frame_ids.debugger_exit ||
        id == l->frame_ids.debugger_u2m_catch || id == l->frame_ids.protect_value_class ||
        id == l->frame_ids.exception_filter)
      continue;
    if (id != l->frame_ids.inlined_call) return true;
    if (!cs_stack_u64(&world->mem, stack, frame + l->inlined_call_frame.caller_return_address,
                      &address) ||
        address != 0)
      return true;
  }
  return false;
}

// The walk's frame after the first `passed` ones is record `at` of the last walk, and so is each
// frame from there to the base. Puts the first `passed` records, which are new, before that one.
CS_ISLAND static uint32_t join(struct cs_capture *capture, uint32_t passed, uint32_t at) {
  struct cs_again *last = &capture->last;
  struct cs_record *kept = last->records + last->start + at;
  kept->fp_at = capture->records[passed].fp_at;
  capture->records = kept - passed;
  cs_copy(capture->records, capture->memory, passed * sizeof *kept);
  last->count = last->count - at + passed;
  last->start = last->start + at - passed;
  capture->fresh = passed;
  return last->count;
}

// Returns whether the walk's frame, after `passed` others, matches one of the last walk, and so
// does the rest of the stack.
CS_ISLAND static bool matches_last(struct cs_walk *walk, uint32_t passed) {
  struct cs_again_search *search = walk->again;
  if (search == NULL) return false;
  search->before = passed + 1;
  return walk->flags == 0 && (walk->regs.known & CS_REG_BIT(CS_FP)) != 0 &&
         cs_again_match(search, walk->regs.r[CS_IP], walk->regs.r[CS_SP], walk->regs.r[CS_FP],
                        passed) == 0;
}

CS_ISLAND static uint32_t walk_on(struct cs_capture *capture, struct cs_walk *walk) {
  struct cs_again_search search = {.again = NULL};
  struct cs_frame frame;
  uint32_t count = 0, from = 0, faults = 0;
  if (capture->again) {
    cs_again_begin(&search, &capture->last, walk);
    walk->again = &search;
  }
  while (cs_walk_next(walk, &frame)) {
    if (count == capture->capacity) {
      cs_walk_leave(walk);
      walk->stop = CS_STOP_BUFFER;
      walk->stop_ip = frame.regs.r[CS_IP];
      break;
    }
    if (walk->faults != faults && capture->fault_count < CS_FAULTS) {
      capture->faults[capture->fault_count++] = (struct cs_fault){count, walk->fault_flags};
      faults = walk->faults;
    }
    from = count;
    record(&capture->records[count++], &frame);
    if (matches_last(walk, from)) break;
    struct cs_record *next = &capture->records[count];
    uint32_t room = capture->capacity - count;
    count += capture->plain ? cs_walk_run_plain(walk, next, room) : cs_walk_run(walk, next, room);
    if (search.matched) break;
  }
  capture->fresh = count;
  if (search.matched) {
    cs_walk_leave(walk);
    count = join(capture, count - 1, search.at);
    capture->last.from = from;
    walk->stop = CS_STOP_BASE;
    walk->stop_ip = cs_record_ip(&capture->records[count - 1]);
  } else if (capture->again) {
    cs_again_note(&capture->last, walk, count, from);
  }
  return count;
}

CS_ISLAND void cs_capture_walk(struct cs_capture *capture, const struct cs_world *world,
                               const struct cs_regs *regs, const struct cs_stack *stack,
                               uint64_t clr_thread, uint32_t max_depth) {
  struct cs_walk walk;
  capture->generation = cs_load_acquire(&world->code_generation);
  capture->fault_count = 0;
  capture->resolved = false;
  cs_walk_begin(&walk, world, regs, stack, clr_thread, max_depth);
  if (capture->at_call) walk.flags = 0;
  cs_walk_limit(&walk, capture->limit_ns, cs_signal.ticks_of_ns);
  walk.fast = true;
  uint64_t chain = walk.next_frame;
  capture->no_explicit_frames = !has_active_frame(world, stack, chain);
  read_exception(capture, world, stack, clr_thread);
  capture->count = walk_on(capture, &walk);
  if (chain != 0 || capture->again) add_call_ips(capture, capture->count, world, stack, chain);
  capture->stop = walk.stop;
  capture->stop_ip = walk.stop_ip;
}
