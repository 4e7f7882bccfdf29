// SPDX-License-Identifier: MIT
// Asks by signal: SIGURG, or the library's own signal where the program uses SIGURG. Invariant: a
// thread that has not taken its signal yet is sent no other. So a thread that blocks signals, or
// gets no processor, has only one pending, whatever it is asked for meanwhile, in this recording or
// the next. The agent's thread only. Signal-safe: no.
#include "engines/ask.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "engines/sigurg.h"
#include "life/small_stacks.h"
#include "threads/altstack.h"
#include "threads/own_signal.h"
#include "threads/threads.h"

enum {
  PATIENCE_NS = 1000000000,  // longer than a runnable thread waits for a processor
  CHECK_NS = 200000000,      // between two checks whether SIGURG is still ours
  ENOUGH = 20,               // signals, with which a quarter of them says something
  LONG_US = 10,              // less is not worth a sentence: a processor at work takes some 3 us
};
// What counts as an unanswered signal: a thread that sleeps with its signals blocked does not
// report its registers, but is sampled all the same.
#define SAMPLES (~(uint32_t)CS_ASKED_REGS)

static struct cs_wire_lost_signals lost_signals;
static uint64_t check_ns;
static bool reported;  // the command knows that there is no signal to ask with

static bool send_signal(const struct cs_thread *entry, uint32_t tid, bool urg) {
  siginfo_t info;
  memset(&info, 0, sizeof info);
  info.si_signo = urg ? SIGURG : cs_threads.signal_number;
  info.si_code = SI_QUEUE;
  info.si_pid = (pid_t)cs_load_relaxed(&cs_signal.pid);
  info.si_uid = getuid();
  info.si_value.sival_ptr = (void *)(uintptr_t)entry;
  return syscall(SYS_rt_tgsigqueueinfo, info.si_pid, tid, info.si_signo, &info) == 0;
}

uint64_t cs_ask_signal_bit(void) {
  return UINT64_C(1) << ((cs_sigurg_is_taken() ? SIGURG : cs_threads.signal_number) - 1);
}

// A thread in a handler of ours blocks the signal as well, but not those of faults. A thread that
// blocks neither is found later, if it is asked in vain (sampling/blocked.c).
bool cs_ask_is_blocked_now(struct cs_agent_thread *t) {
  uint64_t blocked, pending;
  bool is_blocked = cs_thread_signals(t->tid, &blocked, &pending) &&
                    (blocked & cs_ask_signal_bit()) != 0 && (blocked & CS_FAULT_SIGNALS) != 0;
  t->blocks |= is_blocked;
  return is_blocked;
}

bool cs_ask_is_blocked(struct cs_agent_thread *t) {
  enum { MASK_MS = 5000 };
  uint64_t now = cs_clock_now_ns();
  if (t->blocks || now - t->mask_ns < MASK_MS * 1000000ull) return t->blocks;
  t->mask_ns = now;
  return cs_ask_is_blocked_now(t);
}

static bool may_be_signalled(const struct cs_thread *entry) {
  // install_altstacks.c counts the time that a thread without its larger stack is not sampled.
  if (!cs_thread_may_be_signalled(entry) || cs_thread_room(entry) != CS_ROOM_ENOUGH) return false;
  return cs_signals_are_safe();
}

// Returns false if the program uses both signals itself.
static bool have_signal(bool urg) {
  struct cs_error why;
  if (urg || cs_own_signal_ensure(&why)) return true;
  if (!reported) cs_producer_add_note(&cs_agent.wire, why.text);
  reported = true;
  return false;
}

static bool is_pending(const struct cs_thread *entry, enum cs_asked what) {
  return (cs_load_acquire(&entry->asked) & what) != 0;
}

bool cs_ask_may_report(const struct cs_thread *entry) {
  return may_be_signalled(entry) && !is_pending(entry, CS_ASKED_REGS);
}

bool cs_ask_sample(struct cs_agent_thread *t, struct cs_thread *entry, enum cs_asked what,
                   uint64_t weight) {
  if (!may_be_signalled(entry) || cs_ask_is_blocked(t)) return false;
  // From here on, a program that has begun to use SIGURG is sent none.
  if (cs_sigurg_is_taken() && cs_sigurg_is_lost()) cs_asks_end();
  bool urg = cs_sigurg_is_taken();
  if (is_pending(entry, what) || !have_signal(urg)) return false;
  if (what == CS_ASKED_SCAN) entry->asked_weight = weight;
  if (cs_load_acquire(&entry->asked) == 0)
    cs_store_relaxed(&entry->asked_cpu_ns, cs_cpu_ns_of(t->tid));
  uint32_t before = cs_or_seq(&entry->asked, (uint32_t)what);
  if ((before & SAMPLES) == 0) cs_store_relaxed(&t->asked_ns, cs_clock_now_ns());
  if (before != 0) return true;  // the signal is on its way
  if (send_signal(entry, t->tid, urg)) return true;
  cs_store_release(&entry->asked, 0u);
  if (errno == EAGAIN) lost_signals.unsent++;  // else it has ended
  return false;
}

// The agent's thread may release SIGURG at the same time, and then clears what has been asked for;
// if it does so before the signal is sent, the signal is ignored.
void cs_ask_straggler(struct cs_agent_thread *t, uint32_t type) {
  struct cs_thread *entry = t->thread;
  struct cs_error why;
  cs_store_relaxed(&entry->asked_type, type);
  bool urg = cs_sigurg_is_taken();
  if (!may_be_signalled(entry) || t->blocks ||
      (urg ? cs_sigurg_is_lost() : !cs_own_signal_ensure(&why)))
    return;
  if (cs_or_seq(&entry->asked, (uint32_t)CS_ASKED_STRAGGLER) != 0) return;
  cs_store_relaxed(&t->asked_ns, cs_clock_now_ns());
  if (!send_signal(entry, t->tid, urg) || urg != cs_sigurg_is_taken())
    cs_store_release(&entry->asked, 0u);
}

// Once SIGURG is no longer ours, threads never take the signals that are pending.
static void forget_all(void) {
  for (uint32_t i = 0; i < cs_registry_count(); i++)
    cs_store_release(&cs_registry_at(i)->asked, 0u);
}

void cs_asks_begin(void) {
  const uint32_t signalled = CS_WIRE_TIMED_MODES | CS_WIRE_MODE_BIT(CS_WIRE_MODE_GC) |
                             CS_WIRE_MODE_BIT(CS_WIRE_MODE_HOLDERS);
  struct cs_error why = {""};
  memset(&lost_signals, 0, sizeof lost_signals);
  check_ns = 0;
  reported = false;
  if ((cs_options.modes & signalled) != 0 && !cs_sigurg_take(&why))
    cs_log("signal %d for samples: %s", cs_threads.signal_number, why.text);
}

void cs_asks_end(void) {
  if (!cs_sigurg_is_taken()) return;
  cs_sigurg_release();
  forget_all();
}

void cs_asks_check(uint64_t now_ns) {
  if (now_ns < check_ns || !cs_sigurg_is_taken()) return;
  check_ns = now_ns + CHECK_NS;
  if (cs_sigurg_is_lost()) cs_asks_end();
}

static bool count_unanswered(struct cs_agent_thread *t, void *data) {
  uint64_t now = *(const uint64_t *)data;
  uint64_t asked = cs_load_relaxed(&t->asked_ns);
  if ((cs_load_acquire(&t->thread->asked) & SAMPLES) == 0 || now - asked < PATIENCE_NS || t->blocks)
    return true;  // the time of a thread that blocks signals is recorded (sampling/blocked.h)
  uint64_t since = asked > cs_agent.start_ns ? asked : cs_agent.start_ns;
  lost_signals.silent++;
  lost_signals.silent_ns += now - since;
  return true;
}

void cs_asks_count_unanswered(uint64_t now_ns) {
  cs_threads_visit(count_unanswered, &now_ns);
}

// What a quarter of the threads exceed: the others may have made a system call soon, in which a
// signal is taken. Within a count of cs_sample_ring.ran_on, times are taken for evenly distributed.
static double quarter_ran_on_us(void) {
  uint64_t count[CS_RAN_ON_COUNT], all = 0, before = 0;
  unsigned i = 0;
  for (unsigned k = 0; k < CS_RAN_ON_COUNT; k++)
    all += count[k] = cs_load_relaxed(&cs_agent.ring.ran_on[k]);
  if (all < ENOUGH) return 0;
  while (4 * (before + count[i]) < 3 * all) before += count[i++];
  double least = i == 0 ? 0 : (double)(512u << i), most = (double)(1024u << i);
  double part = ((double)all * 3 / 4 - (double)before) / (double)count[i];
  return (least + (most - least) * part) / 1000;
}

double cs_ask_ran_on_us(void) {
  double us = quarter_ran_on_us();
  return us < LONG_US ? 0 : us;
}

void cs_ask_forget_ran_on(void) {
  for (unsigned k = 0; k < CS_RAN_ON_COUNT; k++) cs_store_relaxed(&cs_agent.ring.ran_on[k], 0u);
}

bool cs_ask_ran_on(char *text, size_t size) {
  double us = cs_ask_ran_on_us();
  text[0] = '\0';
  if (us == 0) return false;
  (void)snprintf(text, size,
                 "a quarter of the threads ran on for %.0f us or more until they took the signal "
                 "for a sample: what runs for less than that before a system call is shown as the "
                 "call",
                 us);
  return true;
}

bool cs_asks_report(void) {
  char text[CS_RAN_ON_BYTES];
  if (cs_wants(CS_WIRE_MODE_WALL) && cs_ask_ran_on(text, sizeof text))
    cs_producer_add_note(&cs_agent.wire, text);
  return (lost_signals.unsent == 0 && lost_signals.silent == 0) ||
         cs_send(CS_WIRE_LOST_SIGNALS, &lost_signals, sizeof lost_signals);
}
