// SPDX-License-Identifier: MIT
// Finds the box of a stack's innermost async method, on the thread that is sampled. Signal-safe:
// yes; memory reads and nothing else, bounded.
//
// Invariants. (1) Objects do not move while this runs: `stops` was even before the first read of an
// object, or of a stack that refers to one, and is unchanged after the last one. A stack that is
// read as a copy was read when it was copied. The suspension callbacks increment it when all
// threads are stopped, before anything moves, and again before they run on; a chain that was read
// across a stop is discarded. (2) The box is a value in its own frame, and the only one there with
// the class of the frame's method. The method still needs `this` after the call that it has made,
// so `this` is in a callee-saved register that the method has saved and uses, or in a slot of the
// frame. The saved values themselves are the caller's, and may be stale. The same goes for a Task
// whose delegate runs, except that any Task will do there. (3) Values that may not be objects are
// read guarded; so is everything on a thread in preemptive mode, for which a collection does not
// wait.
#include "signal/await_box.h"

#include <sys/syscall.h>
#include <sys/uio.h>

#include "signal/await_chain.h"
#include "unwind/sites.h"
#include "walk/record.h"

enum {
  PROBES = 16,
  SLOTS = 48,   // in a frame; a box's MoveNext has about ten
  VALUES = 24,  // in slots and registers, that may be addresses
  BASES = 8,
  MOST_DERIVED = 1,  // levels by which a box's class may be derived from its method's
  FIRST_ADDRESS = 0x10000,
  CANONICAL_IS_ELSEWHERE = 1,  // lowest bit of EEClassOrCanonMT: it is a MethodTable
};
#define LAST_ADDRESS (1ull << CS_ADDRESS_BITS)

// ---- The tables ----

CS_ISLAND static struct cs_await_site *find_site(struct cs_awaits *awaits, uint64_t ip) {
  uint32_t at = cs_await_slot(ip, CS_AWAIT_SITES);
  for (int i = 0; i < PROBES; i++, at = (at + 1) & (CS_AWAIT_SITES - 1)) {
    uint64_t found = cs_load_acquire(&awaits->sites[at].ip);
    if (found == 0) return NULL;
    if (found == ip) return &awaits->sites[at];
  }
  return NULL;
}

// Finds the innermost frame of a box: the frames further out are not its async callers. The same
// goes for a Task's delegate if it runs on an idle thread or because another Task has completed;
// otherwise the thread that waits for the Task runs it inline.
CS_ISLAND static struct cs_await_site *find_box_frame(struct cs_awaits *awaits,
                                                      const uint64_t *frames, uint32_t count,
                                                      uint32_t *at) {
  struct cs_await_site *task = NULL;
  for (uint32_t i = 1; i < count; i++) {
    enum cs_code_kind kind = CS_FRAME_WORD_KIND(frames[i]);
    if ((kind != CS_CODE_JIT && kind != CS_CODE_R2R) || (frames[i] & CS_FRAME_WORD_EXACT) != 0)
      continue;
    struct cs_await_site *site = find_site(awaits, CS_FRAME_WORD_IP(frames[i]));
    if (site == NULL) continue;
    uint64_t class = cs_load_acquire(&site->class);
    if (class == CS_AWAIT_DISPATCHES && task != NULL && i - *at <= CS_AWAIT_DISPATCH_FRAMES)
      return task;
    if (class == CS_AWAIT_DISPATCHES) continue;
    *at = i;
    if (class != CS_AWAIT_TASK_RUNS) return site;
    task = site;
  }
  return NULL;
}

// Makes a consistent copy. Returns false if the site has just been given to another ip.
CS_ISLAND static bool copy_site(const struct cs_await_site *site, uint64_t ip,
                                struct cs_await_site *copy) {
  copy->ip = ip;
  copy->class = cs_load_acquire(&site->class);
  copy->places = cs_load_acquire(&site->places);
  copy->last_class = cs_load_acquire(&site->last_class);
  return cs_load_acquire(&site->ip) == ip;
}

// ---- The box's frame ----

struct box_frame {
  uint64_t ip, sp, end;           // end: its caller's sp
  uint64_t saved[CS_SITE_SAVED];  // its callee-saved registers, in the order of sites
  cs_regmask known;
};

CS_ISLAND static void take_frame(struct box_frame *out, const struct cs_regs *regs) {
  for (unsigned i = 0; i < CS_SITE_SAVED; i++) out->saved[i] = regs->r[cs_slot_register[i]];
  out->ip = regs->r[CS_IP];
  out->sp = regs->r[CS_SP];
  out->known = regs->known;
}

// Walks again, up to the caller of frame `index`, with all registers, which the first walk did not
// keep. Not inlined, so that its variables are off the stack when the box is searched for.
__attribute__((noinline)) CS_ISLAND static bool find_frame(const struct cs_sampled *from,
                                                           uint32_t index, struct box_frame *out) {
  struct cs_walk walk;
  struct cs_frame frame;
  cs_walk_begin(&walk, from->world, from->regs, from->stack, from->thread->clr_thread, index + 2);
  walk.fast = true;
  cs_walk_limit(&walk, from->limit_ns, cs_signal.ticks_of_ns);
  for (uint32_t at = 0; cs_walk_next(&walk, &frame); at++) {
    if (at == index) take_frame(out, &frame.regs);
    if (at > index) {
      cs_walk_leave(&walk);
      out->end = frame.regs.r[CS_SP];
      return true;
    }
    if (at + 1 < index) at += cs_walk_skip(&walk, index - at - 1);
  }
  return false;
}

// ---- Reading ----

// Reads the words at these addresses, 0 for those that cannot be read, in as few system calls as
// possible: each costs about 1 us.
CS_ISLAND static void read_all(const struct cs_mem *mem, const uint64_t *at, uint64_t *out,
                               uint32_t count) {
  struct iovec remote[VALUES], local;
  for (uint32_t i = 0; i < count; i++) {
    remote[i] = (struct iovec){(void *)(uintptr_t)at[i], 8};
    out[i] = 0;
  }
  for (uint32_t i = 0; i < count;) {
    long got;
    if (mem->read != NULL) {
      got = cs_mem_read_guarded(mem, at[i], &out[i], 8) ? 8 : 0;
    } else {
      local = (struct iovec){&out[i], (count - i) * 8ull};
      got = cs_syscall6(SYS_process_vm_readv, mem->pid, (long)(uintptr_t)&local, 1,
                        (long)(uintptr_t)&remote[i], count - i, 0);
    }
    // The call stops at the first address that cannot be read.
    i += got > 0 ? (uint32_t)got / 8 : 0;
    if (i < count && (mem->read == NULL || got != 8)) out[i++] = 0;
  }
}

// ---- The box ----

CS_ISLAND static bool may_be_address(uint64_t value) {
  return (value & 7) == 0 && value >= FIRST_ADDRESS && value < LAST_ADDRESS;
}

// The values in a frame that may be addresses. `places` has a bit for each place that holds the
// value: first the registers, in the order of sites, then the slots, from the return address down.
struct values {
  uint32_t count;
  uint64_t value[VALUES], places[VALUES];
};

// Returns false if there are too many.
CS_ISLAND static bool add_value(const struct cs_stack *stack, uint64_t value, unsigned place,
                                struct values *values) {
  if (!may_be_address(value) || cs_stack_holds(stack, value, 0)) return true;
  uint32_t i = 0;
  while (i < values->count && values->value[i] != value) i++;
  if (i == VALUES) return false;
  if (i == values->count) values->places[values->count++] = 0;
  values->value[i] = value;
  values->places[i] |= 1ull << place;
  return true;
}

CS_ISLAND static unsigned place_of(const struct box_frame *frame, uint64_t at) {
  return CS_SITE_SAVED + (unsigned)((frame->end - 16 - at) / 8);
}

CS_ISLAND static bool is_saved(const struct cs_site_rule *rule, uint64_t end, uint64_t at) {
  for (unsigned i = 0; i < CS_SITE_SAVED; i++)
    if (rule->saved[i] != 0 && end + (uint64_t)(rule->saved[i] * 8ll) == at) return true;
  return false;
}

// Collects the values that may be the method's own from the places that are `left`.
CS_ISLAND static bool collect(const struct cs_sampled *from, const struct box_frame *frame,
                              uint64_t left, struct values *values) {
  const struct cs_sites *sites = from->world->sites;
  cs_site site = sites != NULL ? cs_sites_find(sites, frame->ip) : 0;
  if (site == 0 || frame->end <= frame->sp || frame->end - frame->sp > SLOTS * 8u) return false;
  const struct cs_site_rule *rule = &sites->rules[CS_SITE_RULE(site)];
  values->count = 0;
  for (unsigned i = 0; i < CS_SITE_SAVED; i++) {
    if (rule->saved[i] == 0 || (left >> i & 1) == 0) continue;
    if ((frame->known & CS_REG_BIT(cs_slot_register[i])) == 0 ||
        !add_value(from->stack, frame->saved[i], i, values))
      return false;
  }
  for (uint64_t at = frame->sp; at < frame->end - 8; at += 8) {
    uint64_t value;
    unsigned place = place_of(frame, at);
    if ((left >> place & 1) == 0 || is_saved(rule, frame->end, at)) continue;
    if (!cs_stack_u64(&from->world->mem, from->stack, at, &value) ||
        !add_value(from->stack, value, place, values))
      return false;
  }
  return true;
}

// Replaces each class by its canonical class, the same for all classes that share code.
CS_ISLAND static void read_canonical(const struct cs_awaits *awaits, const struct cs_mem *mem,
                                     uint64_t *classes, uint32_t count) {
  uint64_t at[VALUES];
  at[0] = 0;
  for (uint32_t i = 0; i < count; i++) {
    at[i] = may_be_address(classes[i]) ? classes[i] + awaits->canonical : 0;
  }
  read_all(mem, at, classes, count);
  for (uint32_t i = 0; i < count; i++)
    classes[i] =
        (classes[i] & CANONICAL_IS_ELSEWHERE) != 0 ? classes[i] - CANONICAL_IS_ELSEWHERE : 0;
}

// Replaces each class by its base.
CS_ISLAND static void read_bases(const struct cs_awaits *awaits, const struct cs_mem *mem,
                                 uint64_t *classes, uint32_t count) {
  uint64_t at[VALUES];
  at[0] = 0;
  for (uint32_t i = 0; i < count; i++)
    at[i] = may_be_address(classes[i]) ? classes[i] + awaits->parent : 0;
  read_all(mem, at, classes, count);
}

CS_ISLAND static bool has_class(const uint64_t *classes, uint32_t count, uint64_t wanted) {
  uint64_t has = 0;
  for (uint32_t i = 0; i < count; i++) has |= classes[i] == wanted ? 1 : 0;
  return has != 0;
}

CS_ISLAND static void keep_class(uint64_t *classes, uint32_t count, uint64_t wanted) {
  for (uint32_t i = 0; i < count; i++)
    if (classes[i] != wanted) classes[i] = 0;
}

// Replaces by 0 each class that is neither Task nor derived from it.
CS_ISLAND static void keep_tasks(const struct cs_awaits *awaits, const struct cs_mem *mem,
                                 uint64_t *classes, uint32_t count) {
  uint64_t at[VALUES], base[VALUES], task = cs_load_acquire(&awaits->task), left = 0;
  for (uint32_t i = 0; i < count; i++) {
    base[i] = may_be_address(classes[i]) ? classes[i] : 0;
    if (base[i] != 0) left |= 1ull << i;
  }
  for (int level = 0; level < BASES && left != 0; level++) {
    for (uint32_t i = 0; i < count; i++) {
      if (base[i] == task || !may_be_address(base[i])) left &= ~(1ull << i);
      at[i] = (left >> i & 1) != 0 ? base[i] + awaits->parent : 0;
    }
    if (left == 0) break;
    uint64_t next[VALUES];
    read_all(mem, at, next, count);
    for (uint32_t i = 0; i < count; i++)
      if ((left >> i & 1) != 0) base[i] = next[i];
  }
  for (uint32_t i = 0; i < count; i++)
    if (base[i] != task || task == 0) classes[i] = 0;
}

// Replaces by 0 each class that is known not to be a box's.
CS_ISLAND static void keep_unless_known(const struct cs_awaits *awaits, uint64_t *classes,
                                        uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    uint32_t slot;
    uint64_t type = cs_await_type(awaits, classes[i], &slot);
    enum cs_await_kind kind = CS_AWAIT_TYPE_KIND(type);
    if (type != 0 && kind != CS_AWAIT_BOX && kind != CS_AWAIT_SOURCE) classes[i] = 0;
  }
}

// Replaces by 0 each class that is not the wanted one.
CS_ISLAND static void keep_wanted(const struct cs_awaits *awaits, const struct cs_mem *mem,
                                  const struct cs_await_site *site, uint64_t *classes,
                                  uint32_t count) {
  uint64_t before[VALUES], wanted = site->class;
  // The only value has the class of the last box that was found at this site.
  if (count == 1 && site->last_class != 0 && classes[0] == site->last_class) return;
  if (wanted == CS_AWAIT_ANY_BOX || wanted == CS_AWAIT_TASK_RUNS) {
    if (wanted == CS_AWAIT_ANY_BOX) keep_unless_known(awaits, classes, count);
    keep_tasks(awaits, mem, classes, count);
    return;
  }
  // The class itself, its canonical class, its base (the runtime may derive a class from a box's),
  // or the base's canonical class.
  for (int level = 0; !has_class(classes, count, wanted); level++) {
    for (uint32_t i = 0; i < count; i++) before[i] = classes[i];
    read_canonical(awaits, mem, classes, count);
    if (level == MOST_DERIVED || has_class(classes, count, wanted)) break;
    for (uint32_t i = 0; i < count; i++) classes[i] = before[i];
    read_bases(awaits, mem, classes, count);
  }
  keep_class(classes, count, wanted);
}

struct box {
  uint64_t object;  // 0: none, or more than one
  uint64_t places;  // of all values that could be it
};

__attribute__((noinline)) CS_ISLAND static void find_box(const struct cs_awaits *awaits,
                                                         const struct cs_sampled *from,
                                                         const struct box_frame *frame,
                                                         const struct cs_await_site *site,
                                                         struct box *box) {
  struct values values;
  uint64_t classes[VALUES];
  const struct cs_mem *mem = &from->world->mem;
  uint32_t found = 0;
  *box = (struct box){0};
  if (!collect(from, frame, site->places & CS_AWAIT_PLACES, &values)) return;
  read_all(mem, values.value, classes, values.count);
  keep_wanted(awaits, mem, site, classes, values.count);
  for (uint32_t i = 0; i < values.count; i++) {
    if (classes[i] == 0) continue;
    box->places |= values.places[i];
    box->object = values.value[i];
    found++;
  }
  if (found != 1) box->object = 0;
}

// ---- The chain ----

// `stops` begins as 1: it is not known whether the runtime was suspended when the recording began.
// A thread that runs in cooperative mode proves that it is not, and all later stops are counted.
CS_ISLAND static uint32_t stops_now(struct cs_awaits *awaits, bool runs) {
  uint32_t stops = cs_load_acquire(&awaits->stops), unknown = 1;
  if (stops == 1 && runs && cs_cas(&awaits->stops, &unknown, 2)) stops = 2;
  return stops;
}

CS_ISLAND static enum cs_await_state read_chain(const struct cs_awaits *awaits,
                                                const struct cs_sampled *from, bool cooperative,
                                                const struct cs_await_site *site, struct box *box,
                                                struct cs_await_chain *chain) {
  struct cs_await_reader reader = {&from->world->mem,
                                   !cooperative || from->world->mem.read != NULL};
  struct box_frame frame = {0};
  if (!find_frame(from, chain->at, &frame) || frame.ip != site->ip) return CS_AWAITS_AMBIGUOUS;
  find_box(awaits, from, &frame, site, box);
  if (box->object == 0) return CS_AWAITS_AMBIGUOUS;
  return cs_await_follow(awaits, &reader, box->object, site->class == CS_AWAIT_TASK_RUNS, chain);
}

// Rules out the places that had no box, unless another thread has changed them meanwhile.
CS_ISLAND static void strike_out(struct cs_await_site *site, const struct cs_await_site *copy,
                                 uint64_t places) {
  uint64_t old = copy->places;
  if (places != 0 && (old & (places | ~CS_AWAIT_PLACES)) != old)
    (void)cs_cas(&site->places, &old, old & (places | ~CS_AWAIT_PLACES));
}

CS_ISLAND void cs_awaits_find(struct cs_awaits *awaits, const struct cs_sampled *from,
                              const uint64_t *frames, uint32_t count,
                              struct cs_await_chain *chain) {
  struct cs_await_site copy, *site;
  struct box box = {0};
  chain->state = CS_AWAITS_NONE;
  chain->count = 0;
  if (!from->world->mem.guard_works && from->world->mem.read == NULL) return;
  site = find_box_frame(awaits, frames, count, &chain->at);
  if (site == NULL || !copy_site(site, CS_FRAME_WORD_IP(frames[chain->at]), &copy) ||
      copy.class == CS_AWAIT_DISPATCHES)
    return;
  enum cs_code_kind leaf = CS_FRAME_WORD_KIND(frames[0]);
  bool cooperative = cs_is_cooperative(from->world, from->thread->clr_thread);
  bool at_work = from->at_work || leaf == CS_CODE_JIT || leaf == CS_CODE_R2R;
  uint32_t stops = from->copied ? from->stops : stops_now(awaits, cooperative && at_work);
  if ((stops & 1) == 0) chain->state = read_chain(awaits, from, cooperative, &copy, &box, chain);
  __atomic_thread_fence(__ATOMIC_ACQUIRE);
  if ((stops & 1) == 0 && cs_load_acquire(&awaits->stops) == stops) {
    strike_out(site, &copy, box.places);
    return;
  }
  chain->state = CS_AWAITS_STOPPED;
  chain->count = 0;
}
