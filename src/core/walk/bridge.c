// SPDX-License-Identifier: MIT
// The way across native code that has no unwind rule: the chain of explicit Frames, which the
// runtime links where managed code calls into it. Signal-safe: yes.
//
// Only the thread itself links and unlinks its Frames, so the chain does not change while the
// thread is interrupted; but the thread may be in the middle of linking or unlinking one. So a
// Frame is used only if it is plausible: it is on the stack above the sp, its return address is in
// managed code and follows a call, and the sp that it leads to is above the current one.
#include "walk/bridge.h"

enum {
  MAX_FRAMES = 1 << 16,    // of one chain, so that a walk over a chain with a loop ends
  MAX_SKIPPED = 64 << 10,  // bytes of stack that are searched for managed callers
};

// P/Invokes and QCalls: the call site is in the Frame. rbx and r12 to r15 are not, but a method
// with such a Frame saves them in its prolog, so its callers get theirs back.
CS_ISLAND static bool from_inlined_call(const struct cs_walk *walk, uint64_t frame,
                                        struct cs_regs *regs) {
  const struct cs_layout *l = &walk->world->layout;
  uint64_t ip, sp, fp;
  if (!cs_bridge_get(walk, frame + l->inlined_call_frame.caller_return_address, &ip) || ip == 0 ||
      !cs_bridge_get(walk, frame + l->inlined_call_frame.call_site_sp, &sp) ||
      !cs_bridge_get(walk, frame + l->inlined_call_frame.callee_saved_fp, &fp))
    return false;
  cs_bridge_set(regs, CS_IP, cs_bridge_call_in_progress(walk, ip, sp));
  cs_bridge_set(regs, CS_SP, sp);
  cs_bridge_set(regs, CS_FP, fp);
  return true;
}

CS_ISLAND static bool from_transition_block(const struct cs_walk *walk, uint64_t frame,
                                            struct cs_regs *regs) {
  const struct cs_layout *l = &walk->world->layout;
  uint64_t block, ip;
  if (!cs_bridge_get(walk, frame + l->framed_method_frame.transition_block_ptr, &block) ||
      !cs_bridge_get(walk, block + l->transition_block.return_address, &ip))
    return false;
  cs_bridge_set(regs, CS_IP, ip);
  cs_bridge_set(regs, CS_SP, block + l->transition_block.size);
  return cs_bridge_callee_saved(walk, block + l->transition_block.callee_saved_registers, regs);
}

CS_ISLAND static bool from_hijack(const struct cs_walk *walk, uint64_t frame,
                                  struct cs_regs *regs) {
  const struct cs_layout *l = &walk->world->layout;
  uint64_t args, ip;
  if (!cs_bridge_get(walk, frame + l->hijack_frame.return_address, &ip) ||
      !cs_bridge_get(walk, frame + l->hijack_frame.hijack_args_ptr, &args))
    return false;
  cs_bridge_set(regs, CS_IP, ip);
  cs_bridge_set(regs, CS_SP, args + l->hijack_args.size);
  return cs_bridge_callee_saved(walk, args + l->hijack_args.callee_saved_registers, regs);
}

CS_ISLAND static void note_fault(struct cs_walk *walk, uint64_t context) {
  if (cs_bridge_context_flags(walk, context, &walk->fault_flags)) walk->faults++;
}

// Reads the registers to which the Frame leads. Returns false for the kinds that lead nowhere.
CS_ISLAND static bool read_frame(struct cs_walk *walk, uint64_t frame, uint64_t id,
                                 struct cs_regs *regs, bool *exact) {
  const struct cs_layout *l = &walk->world->layout;
  const struct cs_frame_ids *ids = &l->frame_ids;
  uint64_t context;
  *exact = false;
  if (id == ids->inlined_call) return from_inlined_call(walk, frame, regs);
  if (id == ids->prestub_method || id == ids->stub_dispatch || id == ids->external_method ||
      id == ids->call_counting_helper || id == ids->dynamic_helper || id == ids->pinvoke_calli)
    return from_transition_block(walk, frame, regs);
  if (id == ids->hijack) return from_hijack(walk, frame, regs);
  if (id == ids->software_exception)
    return cs_bridge_context(walk, frame + l->software_exception_frame.target_context, regs);
  *exact = true;  // the other kinds were made where the thread was stopped
  if (id == ids->faulting_exception) {
    note_fault(walk, frame + l->faulting_exception_frame.target_context);
    return cs_bridge_context(walk, frame + l->faulting_exception_frame.target_context, regs);
  }
  if (id == ids->resumable || id == ids->redirected_thread)
    return cs_bridge_get(walk, frame + l->resumable_frame.target_context_ptr, &context) &&
           cs_bridge_context(walk, context, regs);
  return false;
}

// Returns whether this kind of Frame is known. An unknown one may stand for managed callers, which
// would be missing without a reason.
CS_ISLAND static bool is_known(const struct cs_frame_ids *ids, uint64_t id) {
  const uint64_t *all = (const uint64_t *)(const void *)ids;
  for (size_t i = 0; i < sizeof *ids / sizeof *all; i++)
    if (all[i] == id) return true;
  return false;
}

CS_ISLAND static bool is_plausible(struct cs_walk *walk, const struct cs_regs *regs, bool exact) {
  uint64_t sp = regs->r[CS_SP], ip = regs->r[CS_IP];
  struct cs_code code;
  if ((sp & 7) != 0 || sp <= walk->regs.r[CS_SP] || !cs_stack_holds(&walk->stack, sp, 8))
    return false;
  if (cs_codemap_find_managed_near(walk->world, exact ? ip : ip - 1, &walk->near, &code) !=
          CS_STOP_NONE ||
      !cs_code_is_managed(&code))
    return false;
  return exact || cs_is_return_address(walk->world, ip);
}

// Returns whether there may be a managed frame without a Frame of its own between the sp and the
// Frame. In preemptive mode there is none, since managed code has left through the innermost Frame.
// In cooperative mode there may be one, since helpers (allocation, casts, write barriers) are
// called without a Frame. Then every word up to the call site is inspected, and the Frame is not
// used if one of them is a return address in managed code.
CS_ISLAND static bool may_skip_managed(struct cs_walk *walk, const struct cs_regs *regs) {
  const struct cs_world *world = walk->world;
  uint64_t end = regs->r[CS_SP];
  uint32_t cooperative;
  struct cs_code code;
  if (!cs_mem_u32(&world->mem, walk->clr_thread + world->layout.thread.preemptive_gc_disabled,
                  &cooperative))
    return true;
  if (cooperative == 0) return false;
  if (end - walk->regs.r[CS_SP] > MAX_SKIPPED) return true;
  for (uint64_t at = walk->regs.r[CS_SP]; at < end; at += 8) {
    uint64_t word;
    if (cs_walk_is_late(walk) || !cs_bridge_get(walk, at, &word)) return true;
    if (word == regs->r[CS_IP]) continue;  // the copies in the Frame and of the call
    if (cs_codemap_find_managed_near(world, word - 1, &walk->near, &code) == CS_STOP_NONE &&
        cs_code_is_managed(&code) && cs_is_return_address(world, word))
      return true;
  }
  return false;
}

CS_ISLAND bool cs_bridge_explicit(struct cs_walk *walk, struct cs_regs *regs, bool *exact) {
  const struct cs_layout *l = &walk->world->layout;
  uint64_t frame = walk->next_frame;
  for (int i = 0; i < MAX_FRAMES && frame != CS_END_OF_CHAIN && frame != 0; i++) {
    uint64_t id, next;
    if ((frame & 7) != 0 || !cs_stack_holds(&walk->stack, frame, 16) ||
        !cs_mem_u64(&walk->world->mem, frame, &id) ||
        !cs_mem_u64(&walk->world->mem, frame + l->frame.next, &next))
      return false;
    if (next != CS_END_OF_CHAIN && next <= frame) return false;  // the chain must lead up the stack
    walk->next_frame = next;
    if (frame >= walk->regs.r[CS_SP]) {
      *regs = (struct cs_regs){.known = 0};
      if (read_frame(walk, frame, id, regs, exact) && is_plausible(walk, regs, *exact))
        return !may_skip_managed(walk, regs);
      if (!is_known(&l->frame_ids, id)) return false;
    }
    frame = next;
  }
  return false;
}

CS_ISLAND void cs_bridge_fault(struct cs_walk *walk, struct cs_regs *regs) {
  const struct cs_layout *l = &walk->world->layout;
  uint64_t frame = walk->next_frame;
  for (int i = 0; i < MAX_FRAMES && frame != 0 && frame < regs->r[CS_SP]; i++) {
    uint64_t id, next, context = frame + l->faulting_exception_frame.target_context;
    struct cs_regs fault = {.known = 0};
    bool in_caller;
    if ((frame & 7) != 0 || !cs_stack_holds(&walk->stack, frame, 16) ||
        !cs_mem_u64(&walk->world->mem, frame, &id) ||
        !cs_mem_u64(&walk->world->mem, frame + l->frame.next, &next) || next <= frame)
      return;
    if (id == l->frame_ids.faulting_exception && cs_bridge_context(walk, context, &fault) &&
        cs_bridge_is_fault_at(walk, &fault, regs, &in_caller)) {
      note_fault(walk, context);
      if (in_caller) {  // such a helper preserves the callee-saved registers
        fault.r[CS_IP] = regs->r[CS_IP];
        fault.r[CS_SP] = regs->r[CS_SP];
      }
      *regs = fault;
      return;
    }
    frame = next;
  }
}
