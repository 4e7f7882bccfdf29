// SPDX-License-Identifier: MIT
// Wall mode: with every tick a signal to each managed thread, whether it runs or waits. Native
// threads are left out: the runtime's own sleep mostly, and foreign ones may take EINTR badly. The
// agent's thread only. Signal-safe: no.
//
// A thread has one signal on its way at most, so that none pile up for one that gets no processor;
// what it misses is in the weight of its next sample. A signal that was never answered (its sample
// was lost, or the thread blocks the signal) is given up after a while.
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/agent.h"

enum { GIVE_UP_NS = 1000000000 };

static bool tick(struct cs_agent_thread *t, void *data) {
  uint64_t now = *(const uint64_t *)data;
  if (t->clr_thread == 0 || t->tid == 0) return true;
  if (t->pending_ns != 0 && now - t->pending_ns < GIVE_UP_NS) return true;
  siginfo_t info;
  memset(&info, 0, sizeof info);
  info.si_signo = cs_core.signal_number;
  info.si_code = SI_QUEUE;
  info.si_pid = getpid();
  info.si_uid = getuid();
  info.si_value.sival_ptr = t->thread;
  if (syscall(SYS_rt_tgsigqueueinfo, getpid(), t->tid, cs_core.signal_number, &info) == 0)
    t->pending_ns = now;
  return true;
}

void cs_wall_tick(uint64_t now_ns) {
  cs_threads_visit(tick, &now_ns);
}
