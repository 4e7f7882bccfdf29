// SPDX-License-Identifier: MIT
// The copy over which a blocked thread is walked. Any thread; not for handlers: it makes system
// calls, and the first walk maps memory.
//
// Invariants: a byte of the copy is used only after the thread's run count has been found unchanged
// since before its registers were read; so it belongs to those registers, whatever the thread does
// meanwhile. The kernel copies the stack: it is never loaded directly, which could fault. Only a
// thread in preemptive mode is walked: it has left managed code through its innermost explicit
// Frame, as the collector itself relies on (docs/signal-safety.md).
#include "threads/asleep.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "threads/stackmap.h"

enum {
  FIRST = 16 * 1024,  // of the stack at once: 2.9 us, a page 2.1; blocked stacks have 2 to 8 KiB
  KEPT = 64 * 1024,   // of the memory for copies
};

// ---- Reading ----

static struct cs_asleep *of_mem(const struct cs_mem *mem) {
  _Static_assert(offsetof(struct cs_asleep, world) == 0 && offsetof(struct cs_world, mem) == 0,
                 "a walk's memory is found by its address");
  return (struct cs_asleep *)(uintptr_t)mem;
}

static bool copy_in(const struct cs_asleep *a, const struct iovec *local,
                    const struct iovec *remote, size_t parts, size_t bytes) {
  return process_vm_readv(a->world.mem.pid, local, parts, remote, parts, 0) == (ssize_t)bytes;
}

// Copies more of the stack, at least up to `end`. It belongs to the rest if the thread has not run.
static bool extend(struct cs_asleep *a, uint64_t end) {
  uint64_t to = a->to + (a->to - a->from);
  if (to < end) to = end;
  if (to > a->stack.hi) to = a->stack.hi;
  if (to > a->from + CS_ASLEEP_MOST) to = a->from + CS_ASLEEP_MOST;
  if (a->moved || to < end) return false;
  size_t bytes = (size_t)(to - a->to);
  struct iovec local = {a->bytes + (a->to - a->from), bytes};
  struct iovec remote = {(void *)(uintptr_t)a->to, bytes};
  if (!copy_in(a, &local, &remote, 1, bytes)) return false;
  struct cs_sleeper *s = a->sleeper;
  if (!cs_sleeper_is_still(s, a->runs, a->regs.r[CS_SP], a->regs.r[CS_IP])) {
    a->moved = true;
    return false;
  }
  a->to = to;
  return true;
}

enum where { IN_COPY, UNREADABLE, ELSEWHERE };

static enum where read_thread(struct cs_asleep *a, uint64_t addr, void *dst, size_t len) {
  if (addr >= a->stack.lo && addr < a->stack.hi) {
    if (addr < a->from || len > a->stack.hi - addr) return UNREADABLE;
    if (addr + len > a->to && !extend(a, addr + len)) return UNREADABLE;
    memcpy(dst, a->bytes + (addr - a->from), len);
    return IN_COPY;
  }
  if (a->clr_thread == 0 || addr < a->clr_thread || addr >= a->clr_thread + CS_ASLEEP_OBJECT)
    return ELSEWHERE;
  uint64_t offset = addr - a->clr_thread;
  if (offset > a->object_bytes || len > a->object_bytes - offset) return UNREADABLE;
  memcpy(dst, a->object + offset, len);
  return IN_COPY;
}

static bool read_plain(const struct cs_mem *mem, uint64_t addr, void *dst, size_t len) {
  enum where where = read_thread(of_mem(mem), addr, dst, len);
  if (where == ELSEWHERE) memcpy(dst, (const void *)(uintptr_t)addr, len);
  return where != UNREADABLE;
}

static bool read_guarded(const struct cs_mem *mem, uint64_t addr, void *dst, size_t len) {
  struct cs_asleep *a = of_mem(mem);
  enum where where = read_thread(a, addr, dst, len);
  if (where != ELSEWHERE) return where == IN_COPY;
  a->beyond = true;
  return cs_mem_read_guarded(a->process, addr, dst, len);
}

// ---- The copy ----

static uint32_t last_field(const struct cs_layout *l) {
  const uint32_t fields[] = {l->thread.preemptive_gc_disabled, l->thread.frame,
                             l->thread.exception_tracker, l->hijack.hijack_return_address,
                             l->hijack.hijack_slot};
  uint32_t last = 0;
  for (size_t i = 0; i < CS_COUNT(fields); i++)
    if (fields[i] > last) last = fields[i];
  return last;
}

static bool have_memory(struct cs_asleep *a) {
  if (a->bytes != NULL) return true;
  void *at = mmap(NULL, CS_ASLEEP_MOST, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) return false;
  a->bytes = at;
  return true;
}

static void give_back_memory(const struct cs_asleep *a) {
  if (a->to - a->from > KEPT) (void)madvise(a->bytes + KEPT, CS_ASLEEP_MOST - KEPT, MADV_DONTNEED);
}

static bool find_stack(struct cs_asleep *a, const struct cs_thread *thread, uint64_t sp) {
  struct cs_sleeper *s = a->sleeper;
  a->stack = (struct cs_stack){.lo = thread->stack.lo};
  a->stack.hi = cs_load_acquire(&thread->stack.hi);
  if (a->stack.hi == 0) {  // the thread was there before the library: by the process' mappings
    if (cs_load_acquire(&s->stack_hi) == 0 && cs_stack_around(sp, &a->stack)) {
      s->stack_lo = a->stack.lo;
      cs_store_release(&s->stack_hi, a->stack.hi);
    }
    a->stack = (struct cs_stack){.hi = cs_load_acquire(&s->stack_hi)};
    a->stack.lo = s->stack_lo;
  }
  return sp >= a->stack.lo && sp < a->stack.hi && (sp & 7) == 0;
}

// Copies its stack from the sp on, and the part of the runtime's Thread that walks read.
static bool copy_thread(struct cs_asleep *a) {
  uint64_t sp = a->regs.r[CS_SP];
  a->from = sp - a->stack.lo > CS_RED_ZONE ? sp - CS_RED_ZONE : a->stack.lo;
  a->to = a->stack.hi - a->from > FIRST ? a->from + FIRST : a->stack.hi;
  size_t bytes = (size_t)(a->to - a->from), parts = 1;
  struct iovec local[2] = {{a->bytes, bytes}}, remote[2] = {{(void *)(uintptr_t)a->from, bytes}};
  a->object_bytes = 0;
  if (a->clr_thread != 0) {
    uint32_t wanted = last_field(&a->world.layout) + 8;
    if (wanted > CS_ASLEEP_OBJECT) return false;
    a->object_bytes = wanted;
    local[1] = (struct iovec){a->object, wanted};
    remote[1] = (struct iovec){(void *)(uintptr_t)a->clr_thread, wanted};
    parts = 2;
  }
  return copy_in(a, local, remote, parts, bytes + a->object_bytes);
}

static enum cs_asleep_answer locate(struct cs_asleep *a, const struct cs_thread *thread) {
  uint64_t sp, ip;
  bool restless = a->sleeper == &a->spare || cs_load_relaxed(&a->sleeper->restless) != 0;
  // It probably runs again, which one file says.
  if (restless && cs_sleeper_where(a->sleeper, &sp, &ip) == CS_SLEEP_RUNNING)
    return CS_ASLEEP_RESTLESS;
  if (a->runs == 0 && !cs_sleeper_runs(a->sleeper, &a->runs)) return CS_ASLEEP_NO;
  if (!cs_sleeper_recall(a->sleeper, a->runs, &sp, &ip)) {
    enum cs_sleep sleep = cs_sleeper_where(a->sleeper, &sp, &ip);
    if (sleep == CS_SLEEP_RUNNING) return restless ? CS_ASLEEP_RESTLESS : CS_ASLEEP_RUNNING;
    if (sleep != CS_SLEEP_BLOCKED) return CS_ASLEEP_NO;
  }
  if (!find_stack(a, thread, sp)) return CS_ASLEEP_NO;
  a->regs = (struct cs_regs){.known = CS_REG_BIT(CS_SP) | CS_REG_BIT(CS_IP)};
  a->regs.r[CS_SP] = sp;
  a->regs.r[CS_IP] = ip;
  return CS_ASLEEP_YES;
}

static enum cs_asleep_answer begin(struct cs_asleep *a, const struct cs_thread *thread) {
  enum cs_asleep_answer answer = locate(a, thread);
  if (answer != CS_ASLEEP_YES) return answer;
  uint64_t sp = a->regs.r[CS_SP], ip = a->regs.r[CS_IP];
  bool copied = copy_thread(a);
  if (!cs_sleeper_is_still(a->sleeper, a->runs, sp, ip)) return CS_ASLEEP_MOVED;
  if (!copied) return CS_ASLEEP_NO;
  cs_sleeper_note(a->sleeper, a->runs, sp, ip);
  cs_store_relaxed(&a->sleeper->restless, 0);
  return cs_is_cooperative(&a->world, a->clr_thread) ? CS_ASLEEP_NO : CS_ASLEEP_YES;
}

enum cs_asleep_answer cs_asleep_begin(struct cs_asleep *a, struct cs_thread *thread,
                                      uint64_t runs) {
  const struct cs_world *world = cs_load_acquire(&cs_signal.world);
  if (world == NULL || !world->mem.guard_works || !have_memory(a)) return CS_ASLEEP_NO;
  a->sleeper = cs_sleeper_open(thread, &a->spare);
  if (a->sleeper == NULL) return CS_ASLEEP_NO;
  a->world = *world;
  a->process = &world->mem;
  a->world.images = cs_load_acquire(&world->images);
  a->world.code_generation = cs_load_acquire(&world->code_generation);
  a->world.mem.read = read_plain;
  a->world.mem.read_guarded = read_guarded;
  a->clr_thread = thread->clr_thread;
  a->runs = runs;
  a->beyond = a->moved = false;
  enum cs_asleep_answer answer = begin(a, thread);
  if (answer != CS_ASLEEP_YES) cs_sleeper_close(a->sleeper, &a->spare);
  return answer;
}

// A thread that ran managed code when the runtime was suspended is blocked by a function of the
// runtime that has linked a Frame for that alone: where a return address was replaced, or a signal
// has interrupted the thread. All that is read is in the copy.
bool cs_asleep_is_suspended(const struct cs_asleep *a) {
  const struct cs_frame_ids *ids = &a->world.layout.frame_ids;
  const struct cs_mem *mem = &a->world.mem;
  uint64_t top, id;
  if (a->clr_thread == 0 ||
      !cs_mem_read_guarded(mem, a->clr_thread + a->world.layout.thread.frame, &top, 8) ||
      top < a->stack.lo || top >= a->stack.hi || !cs_mem_read_guarded(mem, top, &id, 8))
    return false;
  return id == ids->resumable || id == ids->redirected_thread || id == ids->hijack;
}

bool cs_asleep_end(struct cs_asleep *a) {
  uint64_t sp = a->regs.r[CS_SP], ip = a->regs.r[CS_IP];
  bool valid = !a->moved && (!a->beyond || cs_sleeper_is_still(a->sleeper, a->runs, sp, ip));
  cs_sleeper_close(a->sleeper, &a->spare);
  give_back_memory(a);
  return valid;
}

void cs_asleep_read_beyond(struct cs_asleep *a) {
  a->beyond = true;
}

bool cs_asleep_stays(const struct cs_thread *thread, uint64_t runs) {
  struct cs_sleeper *sleeper = cs_load_acquire(&thread->sleeper);
  uint64_t now;
  // A count of switches is the same while the thread runs.
  if (cs_sleeper_counts_by() != CS_RUNS_SCHEDSTAT) return false;
  bool read = sleeper != NULL ? cs_sleeper_runs(sleeper, &now)
                              : cs_sleeper_runs_once(cs_load_acquire(&thread->tid), &now);
  return read && now == runs;
}

void cs_asleep_give_up(struct cs_thread *thread) {
  struct cs_sleeper *sleeper = cs_load_acquire(&thread->sleeper);
  if (sleeper != NULL) cs_add_relaxed(&sleeper->restless, 1);
}
