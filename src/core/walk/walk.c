// SPDX-License-Identifier: MIT
// The heart of clrsnap: from a thread's registers and stack to its frames, leaf first, with a
// reason for the walk's end. It only reads memory that the walked thread itself keeps alive.
// Signal-safe: yes.
//
// Each iteration looks up the code that contains the ip, returns that frame, and (in the next
// iteration) steps to its caller: managed code by its unwind data, native code by its .eh_frame
// rows, a stub by its pushed return address, and native code without a rule by the runtime's
// explicit Frames. Invariant: the stack pointer strictly grows, is aligned, and stays on the
// thread's stack. The one exception is the step from the alternate signal stack back to the
// thread's own, through the kernel's signal frame.
#include "walk/walk.h"

#include "codemap/collectible.h"
#include "images/images.h"
#include "unwind/sites.h"
#include "walk/bridge.h"

CS_ISLAND static bool on_alternate(const struct cs_stack *stack, uint64_t sp) {
  return sp >= stack->alt_lo && sp < stack->alt_hi;
}

// Called after the registers have been taken: by then the loader has counted every library whose
// code is on the stack.
CS_ISLAND static void check_loader(struct cs_walk *walk) {
  const struct cs_world *world = walk->world;
  const struct cs_images *images = cs_load_acquire(&world->images);
  uint64_t now = world->loader != NULL ? cs_loader_now(world->loader) : CS_LOADER_UNSETTLED;
  walk->loaded = now;
  walk->settled = world->loader == NULL || (images != NULL && now != CS_LOADER_UNSETTLED &&
                                            cs_load_acquire(&images->loaded) == now);
  walk->sites_valid =
      walk->settled && world->sites != NULL && cs_sites_are_for(world->sites, world, now);
  walk->verified_image = NULL;
}

CS_ISLAND void cs_walk_begin(struct cs_walk *walk, const struct cs_world *world,
                             const struct cs_regs *regs, const struct cs_stack *stack,
                             uint64_t clr_thread, uint32_t max_depth) {
  walk->world = world;
  walk->stack = *stack;
  walk->regs = *regs;
  walk->clr_thread = clr_thread;
  walk->next_frame = 0;
  walk->depth = 0;
  walk->max_depth = max_depth != 0 ? max_depth : CS_WALK_DEFAULT_DEPTH;
  walk->flags = CS_FRAME_EXACT;
  walk->near = (struct cs_near){0};
  walk->site = 0;
  walk->fast = false;
  walk->again = NULL;
  walk->faults = walk->fault_flags = 0;
  walk->limit_ns = walk->tick_rate = walk->cpu_until = 0;
  walk->gaps = 0;
  walk->late = false;
  walk->done = false;
  walk->stop = CS_STOP_NONE;
  walk->stop_ip = 0;
  check_loader(walk);
  if (clr_thread != 0 &&
      !cs_mem_u64(&world->mem, clr_thread + world->layout.thread.frame, &walk->next_frame))
    walk->next_frame = 0;
}

CS_ISLAND void cs_walk_leave(struct cs_walk *walk) {
  cs_collectible_release(&walk->near);
}

CS_ISLAND static bool end(struct cs_walk *walk, enum cs_stop stop) {
  cs_walk_leave(walk);
  walk->done = true;
  walk->stop = walk->late ? CS_STOP_TIME : stop;
  walk->stop_ip = walk->regs.r[CS_IP];
  return false;
}

// Restores the return address of a managed frame that the runtime has replaced by
// OnHijackTripThread, to stop the thread for a collection. The true address is in the Thread,
// beside the address of the slot. While OnHijackTripThread itself runs, the slot contains neither
// of the two, until the runtime has written the true one.
CS_ISLAND static bool undo_hijack(const struct cs_walk *walk, struct cs_regs *regs) {
  const struct cs_layout *layout = &walk->world->layout;
  uint64_t slot, address;
  if (layout->hijack.hijack_slot == 0 || walk->clr_thread == 0) return false;
  if (!cs_mem_u64(&walk->world->mem, walk->clr_thread + layout->hijack.hijack_slot, &slot) ||
      !cs_bridge_is_slot(walk, regs, slot))
    return false;
  // The fields keep their values after a hijack, so it is in effect only if the slot contains no
  // return address. OnHijackTripThread's own address, that of a function's first instruction, is
  // not one.
  if (cs_is_return_address(walk->world, regs->r[CS_IP])) return false;
  if (!cs_mem_u64(&walk->world->mem, walk->clr_thread + layout->hijack.hijack_return_address,
                  &address) ||
      !cs_is_return_address(walk->world, address))
    return false;
  regs->r[CS_IP] = address;
  return true;
}

// Only a return address in the runtime's own text can be that of OnHijackTripThread.
CS_ISLAND static bool may_be_hijacked(const struct cs_walk *walk, const struct cs_regs *regs) {
  const struct cs_layout *layout = &walk->world->layout;
  return regs->r[CS_IP] >= layout->coreclr_begin && regs->r[CS_IP] < layout->coreclr_end;
}

// Steps by the rule that was derived when this walk first reached the return address, if there is
// one.
CS_ISLAND static enum cs_stop unwind_managed(const struct cs_walk *walk, const struct cs_code *code,
                                             struct cs_regs *regs) {
  bool exact = (walk->flags & CS_FRAME_EXACT) != 0;
  if (!exact && code->collectible) {
    const struct cs_collectible_frame *known = cs_collectible_find(&walk->near, regs->r[CS_IP]);
    if (known != NULL && known->has_rule)
      return cs_rule_apply(&known->rule, &walk->world->mem, &walk->stack, regs);
  }
  return cs_unwind_managed(walk->world, code, &walk->stack, exact, regs);
}

CS_ISLAND static enum cs_stop step_managed(const struct cs_walk *walk, const struct cs_code *code,
                                           struct cs_regs *regs, uint32_t *flags) {
  enum cs_stop stop = unwind_managed(walk, code, regs);
  if (stop == CS_STOP_NONE && may_be_hijacked(walk, regs) && undo_hijack(walk, regs))
    *flags |= CS_FRAME_HIJACKED;
  return stop;
}

// Steps by the cached call site, without looking anything up.
CS_ISLAND static enum cs_stop step_by_site(const struct cs_walk *walk, struct cs_regs *regs,
                                           uint32_t *flags) {
  const struct cs_world *world = walk->world;
  if (CS_SITE_IS_BASE(walk->site)) return CS_STOP_BASE;
  enum cs_stop stop = cs_site_apply(world->sites, walk->site, &world->mem, &walk->stack, regs);
  if (stop == CS_STOP_NONE && may_be_hijacked(walk, regs) && undo_hijack(walk, regs))
    *flags |= CS_FRAME_HIJACKED;
  return stop;
}

// The bytes at the ip may look like an epilog by chance, so the address to which they return must
// be a return address.
CS_ISLAND static bool is_return_by_epilog(const struct cs_walk *walk, const struct cs_code *code,
                                          struct cs_regs *regs) {
  struct cs_regs caller = *regs;
  if (!cs_unwind_native_epilog(walk->world, code, &walk->stack, &caller) ||
      !cs_is_return_address(walk->world, caller.r[CS_IP]))
    return false;
  *regs = caller;
  return true;
}

// Returns whether unknown code may be one of the runtime's stubs that are in no map. Managed code
// runs them in cooperative mode, although a fault in one may have changed the mode since. Other
// unknown code was generated by someone else's compiler, and its frames may contain anything.
CS_ISLAND static bool may_be_stub(const struct cs_walk *walk) {
  return walk->clr_thread != 0 &&
         (walk->faults != 0 || cs_is_cooperative(walk->world, walk->clr_thread));
}

// While the set of libraries is unsettled, the code may also belong to one that was just loaded.
CS_ISLAND static enum cs_stop step_unknown(const struct cs_walk *walk, struct cs_regs *regs) {
  if (!may_be_stub(walk)) return CS_STOP_UNKNOWN_CODE;
  enum cs_stop stop =
      walk->settled ? cs_bridge_stub(walk, regs) : cs_bridge_called_stub(walk, regs);
  return stop == CS_STOP_NONE ? CS_STOP_NONE : CS_STOP_UNKNOWN_CODE;
}

// Native code without a working rule is crossed by an explicit Frame, if there is one.
CS_ISLAND static enum cs_stop step_native(struct cs_walk *walk, const struct cs_code *code,
                                          struct cs_regs *regs, uint32_t *flags) {
  bool signal_frame = false, exact = (walk->flags & CS_FRAME_EXACT) != 0;
  enum cs_stop stop = CS_STOP_UNKNOWN_CODE;
  if (code->kind == CS_CODE_NATIVE) {
    stop = cs_unwind_native(walk->world, code, &walk->stack, exact, regs, &signal_frame);
    // The frame may be that of OnHijackTripThread, whose slot may not contain the true address yet.
    // Code that was interrupted by a fault has no slot, although there may once have been one at
    // that address.
    if (stop == CS_STOP_NONE && !signal_frame && code->image->is_coreclr && undo_hijack(walk, regs))
      *flags |= CS_FRAME_HIJACKED;
  }
  if (code->kind != CS_CODE_NATIVE && exact) stop = step_unknown(walk, regs);
  if (stop == CS_STOP_NO_NATIVE_RULE && exact) stop = cs_bridge_unruled(walk, regs);
  if (stop == CS_STOP_NATIVE_RULE && exact && is_return_by_epilog(walk, code, regs))
    stop = CS_STOP_NONE;
  // At the first instruction of OnHijackTripThread the slot has just been popped.
  if (stop == CS_STOP_NATIVE_RULE && exact && code->image->is_coreclr && undo_hijack(walk, regs)) {
    regs->known &= CS_REGS_PRESERVED;
    *flags |= CS_FRAME_HIJACKED;
    stop = CS_STOP_NONE;
  }
  if (signal_frame) {
    *flags |= CS_FRAME_EXACT;
    cs_bridge_fault(walk, regs);
  }
  if (stop == CS_STOP_NONE || stop == CS_STOP_BASE) return stop;
  struct cs_regs across;
  if (!cs_bridge_explicit(walk, &across, &exact)) return stop;
  *regs = across;
  *flags |= CS_FRAME_BRIDGED | (exact ? CS_FRAME_EXACT : 0u);
  return CS_STOP_NONE;
}

// Returns whether the caller of a frame whose sp is `now` can have the sp `next`.
CS_ISLAND static bool sp_is_above(const struct cs_walk *walk, uint64_t now, uint64_t next) {
  if ((next & 7) != 0) return false;
  bool was_alternate = on_alternate(&walk->stack, now);
  if (was_alternate != on_alternate(&walk->stack, next))
    return was_alternate && next >= walk->stack.lo && next <= walk->stack.hi;
  // In interrupted code (a leaf, or below a signal frame) sp may stay the same: code that is about
  // to jump elsewhere already has the sp of that place, and OnHijackTripThread starts with its
  // caller's.
  bool exact = (walk->flags & CS_FRAME_EXACT) != 0;
  return (next > now || (next == now && exact)) && cs_stack_holds(&walk->stack, next, 0);
}

// A site leads nowhere if its CFA is relative to rbp, and rbp is unknown, as in a sleeping thread
// that is walked from outside, or is no frame pointer. The code is then looked up after all, since
// an explicit Frame may lead further.
CS_ISLAND static enum cs_stop drop_site(struct cs_walk *walk) {
  walk->site = 0;
  return cs_codemap_find(walk->world, walk->regs.r[CS_IP] - 1, &walk->code);
}

CS_ISLAND static enum cs_stop step_by_code(struct cs_walk *walk, struct cs_regs *regs,
                                           uint32_t *flags) {
  const struct cs_code *code = &walk->code;
  if (cs_code_is_managed(code)) return step_managed(walk, code, regs, flags);
  if (code->kind == CS_CODE_STUB) return cs_bridge_stub(walk, regs);
  return step_native(walk, code, regs, flags);
}

CS_ISLAND static enum cs_stop step(struct cs_walk *walk) {
  struct cs_regs regs = walk->regs;
  uint32_t flags = 0;
  enum cs_stop stop = CS_STOP_NONE;
  if (walk->site != 0) {
    stop = step_by_site(walk, &regs, &flags);
    if (CS_UNLIKELY(stop != CS_STOP_NONE && stop != CS_STOP_BASE)) {
      stop = drop_site(walk);
      regs = walk->regs;
    }
  }
  if (walk->site == 0 && stop == CS_STOP_NONE) stop = step_by_code(walk, &regs, &flags);
  if (stop != CS_STOP_NONE) return stop;
  if (!sp_is_above(walk, walk->regs.r[CS_SP], regs.r[CS_SP])) return CS_STOP_BAD_SP;
  // No code returns to 0, so this is the base; but a call through NULL can be interrupted at 0.
  if (regs.r[CS_IP] == 0 && !(flags & CS_FRAME_EXACT)) return CS_STOP_BASE;
  walk->regs = regs;
  walk->flags = flags;
  return CS_STOP_NONE;
}

// Keeps collectible code that has no site (because its unloading is not reported, for example) for
// the rest of this walk.
CS_ISLAND static void keep_collectible(struct cs_walk *walk, uint64_t ip) {
  struct cs_collectible_frame *frame = cs_collectible_slot(&walk->near, ip);
  if (frame == NULL || !walk->code.collectible || !cs_code_is_managed(&walk->code) ||
      cs_collectible_find(&walk->near, ip) != NULL)
    return;
  frame->code = walk->code;
  frame->has_rule = cs_rule_of_managed(walk->world, &walk->code, &walk->near, ip, &frame->rule);
  cs_collectible_keep(&walk->near, frame, ip);
}

// Collectible code is looked up once for each return address of a walk.
CS_ISLAND static enum cs_stop look_up(struct cs_walk *walk, uint64_t at) {
  uint64_t ip = walk->regs.r[CS_IP];
  const struct cs_collectible_frame *known = at != ip ? cs_collectible_find(&walk->near, ip) : NULL;
  if (known != NULL) {
    walk->code = known->code;
    return CS_STOP_NONE;
  }
  return cs_codemap_find_near(walk->world, at, &walk->near, &walk->code);
}

CS_ISLAND static enum cs_stop find_code(struct cs_walk *walk, uint64_t at) {
  enum cs_stop stop = look_up(walk, at);
  const struct cs_image *image = walk->code.image;
  if (CS_LIKELY(walk->settled) || stop != CS_STOP_NONE || walk->code.kind != CS_CODE_NATIVE ||
      image == walk->verified_image)
    return stop;
  if (!cs_image_is_mapped(&walk->world->mem, image))
    return cs_codemap_find_managed(walk->world, at, &walk->code);
  walk->verified_image = image;
  return CS_STOP_NONE;
}

// ---- Frame by frame ----

CS_ISLAND bool cs_walk_next(struct cs_walk *walk, struct cs_frame *frame) {
  if (walk->done) return false;
  if (walk->depth == 0) {
    if (walk->stack.hi == 0) return end(walk, CS_STOP_NO_BOUNDS);
    if (!cs_stack_holds(&walk->stack, walk->regs.r[CS_SP], 8)) return end(walk, CS_STOP_BAD_SP);
  } else {
    if (cs_walk_is_late(walk)) return end(walk, CS_STOP_TIME);
    enum cs_stop stop = step(walk);
    if (stop != CS_STOP_NONE) return end(walk, stop);
  }
  if (walk->depth >= walk->max_depth) return end(walk, CS_STOP_DEPTH);
  uint64_t ip = walk->regs.r[CS_IP];
  bool exact = (walk->flags & CS_FRAME_EXACT) != 0;
  bool by_site = walk->fast && !exact && walk->sites_valid && ip >> CS_SITE_IP_BITS == 0;
  walk->site = by_site ? cs_sites_find(walk->world->sites, ip) : 0;
  if (CS_UNLIKELY(walk->site == 0) && by_site)
    walk->site = cs_sites_find_collectible(walk->world, ip);
  if (walk->site != 0) {
    walk->code = (struct cs_code){.kind = CS_SITE_KIND(walk->site)};
  } else {
    enum cs_stop stop = find_code(walk, exact ? ip : ip - 1);
    if (stop != CS_STOP_NONE) return end(walk, stop);
    if (by_site) walk->site = cs_sites_learn(walk->world, ip, &walk->code, &walk->near);
    if (walk->site == 0 && !exact) keep_collectible(walk, ip);
  }
  frame->regs = walk->regs;
  frame->code = walk->code;
  frame->flags = walk->flags;
  walk->depth++;
  return true;
}

CS_ISLAND bool cs_is_cooperative(const struct cs_world *world, uint64_t clr_thread) {
  uint32_t disabled;
  if (clr_thread == 0) return false;
  return cs_mem_u32(&world->mem, clr_thread + world->layout.thread.preemptive_gc_disabled,
                    &disabled) &&
         disabled != 0;
}
