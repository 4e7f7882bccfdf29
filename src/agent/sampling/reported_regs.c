// SPDX-License-Identifier: MIT
// Why registers may be used again after the thread has run: they belong to a call that slept at the
// same ip and sp, and the walk reads return addresses from the current stack. Only where the size
// of a function's frame differs from call to call (alloca), ip and sp do not determine the frame,
// and then a stale frame pointer leads elsewhere. So the registers are given up as soon as a walk
// by them finds other frames than the first one did.
//
// Invariant: a thread that keeps running is not asked more than once in the time between two
// requests, which doubles with each one. The signal may end its call with EINTR: that is why the
// handler's registers are kept, and not its walk. The agent's thread only. Signal-safe: no.
#include "sampling/reported_regs.h"

#include "base/clock.h"
#include "base/hash.h"
#include "engines/ask.h"

#define FIRST_PAUSE_NS 50000000ull
#define LONGEST_PAUSE_NS 1000000000ull

static struct cs_reported_walks *walks_of(const struct cs_pinned *d) {
  return &d->agent->reported;
}

bool cs_reported_regs_use(const struct cs_pinned *d, struct cs_regs *regs) {
  struct cs_reported_walks *walks = walks_of(d);
  const struct cs_reported_regs *reported = &d->thread->reported;
  uint32_t times = cs_load_acquire(&reported->times);
  if (times != walks->times) {
    walks->times = times;
    walks->misfit = false;
    walks->frames = 0;
  }
  uint64_t ip = reported->regs.r[CS_IP];
  if (times == 0 || walks->misfit || reported->regs.r[CS_SP] != regs->r[CS_SP] ||
      (ip != regs->r[CS_IP] && ip + CS_SYSCALL_BYTES != regs->r[CS_IP]))
    return false;
  for (unsigned i = 0; i < CS_REG_COUNT; i++)
    if (i != CS_IP && (CS_REGS_PRESERVED & CS_REG_BIT(i)) != 0) regs->r[i] = reported->regs.r[i];
  regs->known = CS_REGS_PRESERVED;
  return true;
}

bool cs_reported_regs_fit(const struct cs_pinned *d, const struct cs_sample *s) {
  struct cs_reported_walks *walks = walks_of(d);
  bool complete = s->stop == CS_STOP_BASE;
  uint64_t frames = cs_hash_bytes(s->frames, s->frame_count * sizeof *s->frames) | 1;
  if (walks->frames == 0 && complete) walks->frames = frames;
  walks->misfit = walks->frames != 0 && walks->frames != frames;
  return !walks->misfit;
}

bool cs_reported_regs_may_ask(const struct cs_pinned *d) {
  return cs_clock_now_ns() >= walks_of(d)->ask_from && cs_ask_may_report(d->thread);
}

bool cs_reported_regs_ask(const struct cs_pinned *d, enum cs_stop stop) {
  struct cs_reported_walks *walks = walks_of(d);
  if (stop == CS_STOP_DEPTH || stop == CS_STOP_BUFFER || stop == CS_STOP_TIME ||
      !cs_reported_regs_may_ask(d) || !cs_ask_sample(d->agent, d->thread, CS_ASKED_REGS, 0))
    return false;
  walks->pause_ns *= 2;
  if (walks->pause_ns < FIRST_PAUSE_NS) walks->pause_ns = FIRST_PAUSE_NS;
  if (walks->pause_ns > LONGEST_PAUSE_NS) walks->pause_ns = LONGEST_PAUSE_NS;
  walks->ask_from = cs_clock_now_ns() + walks->pause_ns;
  return true;
}
