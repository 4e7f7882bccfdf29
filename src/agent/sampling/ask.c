// SPDX-License-Identifier: MIT
// A thread is asked to take a sample of itself, by a signal: SIGURG (urg.c), or the library's own
// where the program uses that. Invariant: a thread that has not taken its signal yet is sent no
// other one; so one that blocks signals, or gets no processor, has one on its way, whatever it is
// asked for meanwhile, in this recording or the next. The agent's thread only. Signal-safe: no.
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "sampling/agent.h"

enum {
  PATIENCE_NS = 1000000000,  // longer than a thread that can run waits for a processor
  TURN_NS = 200000000,       // between two looks whether SIGURG is still ours
};

static struct cs_wire_asks asks;
static uint64_t turn_ns;
static bool told;  // that there is no signal to ask with

static bool send_signal(const struct cs_thread *entry, uint32_t tid) {
  siginfo_t info;
  struct cs_error why;
  if (!cs_urg_is_had() && !cs_own_signal_is_there(&why)) {
    if (!told) cs_producer_say(&cs_agent.wire, why.text);
    told = true;
    errno = EBUSY;
    return false;
  }
  memset(&info, 0, sizeof info);
  info.si_signo = cs_urg_is_had() ? SIGURG : cs_threads.signal_number;
  info.si_code = SI_QUEUE;
  info.si_pid = (pid_t)cs_load_relaxed(&cs_signal.pid);
  info.si_uid = getuid();
  info.si_value.sival_ptr = (void *)(uintptr_t)entry;
  return syscall(SYS_rt_tgsigqueueinfo, info.si_pid, tid, info.si_signo, &info) == 0;
}

void cs_ask(struct cs_agent_thread *t, struct cs_thread *entry, enum cs_asked what,
            uint64_t weight) {
  if (!cs_thread_is_equipped(entry)) return;  // equip.c counts what it misses
  if (cs_thread_room(entry) != CS_ROOM_ENOUGH) return;
  // A program that has begun to use SIGURG is sent none from then on.
  if (cs_urg_is_had() && cs_urg_is_lost()) cs_asks_end();
  // A library that has just come may be one beside which no signal may be sent (signal-safety.md).
  if (cs_load_acquire(&cs_signal.small_stacks) != 0 || cs_library_images_are_old()) return;
  if ((cs_load_acquire(&entry->asked) & what) != 0) return;
  if (what == CS_ASKED_LOOK) entry->asked_weight = weight;
  if (cs_or_seq(&entry->asked, (uint32_t)what) != 0) return;  // the signal is on its way
  t->asked_ns = cs_clock_now_ns();
  if (send_signal(entry, t->tid)) return;
  cs_store_release(&entry->asked, 0u);
  if (errno == EAGAIN) asks.unsent++;  // else it has ended
}

// Of a signal that its thread will never take: SIGURG that is not ours any more.
static void forget_all(void) {
  for (uint32_t i = 0; i < cs_registry_count(); i++)
    cs_store_release(&cs_registry_at(i)->asked, 0u);
}

void cs_asks_begin(void) {
  struct cs_error why = {""};
  memset(&asks, 0, sizeof asks);
  turn_ns = 0;
  told = false;
  if ((cs_agent.modes & CS_WIRE_TIMED_MODES) != 0 && !cs_urg_take(&why))
    cs_log("signal %d for samples: %s", cs_threads.signal_number, why.text);
}

void cs_asks_end(void) {
  if (!cs_urg_is_had()) return;
  cs_urg_give_back();
  forget_all();
}

void cs_asks_turn(uint64_t now_ns) {
  if (now_ns < turn_ns || !cs_urg_is_had()) return;
  turn_ns = now_ns + TURN_NS;
  if (cs_urg_is_lost()) cs_asks_end();
}

static bool look_at(struct cs_agent_thread *t, void *data) {
  uint64_t now = *(const uint64_t *)data;
  if (cs_load_acquire(&t->thread->asked) == 0 || now - t->asked_ns < PATIENCE_NS) return true;
  uint64_t since = t->asked_ns > cs_agent.start_ns ? t->asked_ns : cs_agent.start_ns;
  asks.silent++;
  asks.silent_ns += now - since;
  return true;
}

void cs_asks_count(uint64_t now_ns) {
  cs_threads_visit(look_at, &now_ns);
}

bool cs_asks_tell(void) {
  if (asks.unsent == 0 && asks.silent == 0) return true;
  return cs_producer_put(&cs_agent.wire, CS_WIRE_ASKS, &asks, sizeof asks, NULL, 0);
}
