// SPDX-License-Identifier: MIT
// The engine "clock", for where the kernel's perf events are refused: the agent's thread wakes at
// random moments, and asks the threads that were running at that moment for a sample. A thread was
// running if its CPU clock advances between two readings (it runs on another processor), or if this
// very scan preempted it on this processor. A thread that only waits for a processor, or has gone
// to sleep, used its time elsewhere than where it is now, and is left alone.
//
// On another processor, a thread runs on until the signal arrives, and may have made a system call
// meanwhile. Where that takes long, scans go from processor to processor, chosen at random, and ask
// only the thread that they have preempted there, which stands for those on the other processors.
//
// What a sample stands for does not depend on its own moment, so each moment of CPU time counts the
// same, however long its thread lives. It is the mean time between two scans, times a factor: the
// CPU time that threads have used lately, for each sample, including what scans have missed. A gap
// much longer than usual says little about what comes after it. So the time used in it does not
// change the factor, but is a debt, as is all that the samples' sum lacks. A small part of the debt
// is added to each sample: it is paid once, and raises what comes next by little.
//
// Invariant: the moments depend neither on the program nor on the tick. A scan that comes late does
// depend on them, and is dropped unless nearly all are late. What a scan costs depends on what the
// program does at that moment, so only the average cost decides how far apart scans are. The
// agent's thread only, except for begin, start and stop. Signal-safe: no.
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/random.h"
#include "engines/ask.h"
#include "engines/engine.h"
#include "engines/kept_files.h"
#include "engines/processors.h"
#include "life/seccomp.h"
#include "threads/sleeper.h"

#define OFTEN 0.2     // if more of the last scans were interrupted, they do not choose a processor
#define HOPELESS 0.9  // if more of the last scans were late, late ones are not dropped

enum {
  LATE_NS = 150000,   // a scan that is later than this was woken by the tick, not by its timer
  SAME_NS = 20000,    // at most, from a thread's last moment on a processor to our first there
  SLICE_NS = 100000,  // requested from the scheduler, which grants a short slice sooner
  REST = 49,          // scans take at most a fiftieth of a processor or the program's CPU time
  PART = 64,          // the part of a difference that the next sample makes up for
  MEMORY = 32,        // scans in the averages of `lateness` and `interrupted`
  COSTS = 64,         // scans in the averages of `cost_ns` and `busy`
  FIRST = 16,         // scans with which averages are initialised, and below which they say nothing
  PRIOR = 16,         // samples of one time between two scans each, with which the factor begins
  LATELY = 256,       // scans that the factor remembers
  LONGEST = 3,        // a gap of more times the usual one is much longer
  MOST_PINNED = 64,
  WORTH_US = 5,  // for each processor: below, it is better that scans see all of them
};

// Between two scans, half a period to one and a half pass. So when a scan finds a thread running,
// the thread's samples so far stand, on average, for this part of a period less than it has used.
#define LEAD 0.46

// What the factor is at most. Beyond, scans find too little of what the program does.
#define MOST_FACTOR 4.0

// The least part of a processor that a program is assumed to use.
#define LEAST_BUSY 0.25

static struct {
  double used, found;  // lately: CPU time, in mean times between two scans; samples
  double all_ns;       // CPU time since the recording began
  double missing_ns;   // the CPU time that no samples stand for; negative: samples stand for too
                       // much
  double usual_ns;     // what the samples of this scan stand for
  uint64_t ended_ns;   // CPU time of threads that have ended since the last scan. Atomic
} account;

static struct {
  uint64_t random;
  uint64_t begin_ns, due_ns;
  uint64_t weight_ns;  // the mean time until the next scan
  uint64_t taken, late;
  bool prompt;
  double lateness;                // the share of late ones among the last scans
  double cost_ns;                 // the average CPU time of the last scans
  double busy_ns, lasted_ns;      // the program's recent CPU time, and the wall time of that
  uint64_t taken_ns;              // when the last scan was
  double gap_ns;                  // the usual time from one to the next, with those left out
  struct cs_pinned_list stopped;  // threads that have run since the last scan but do not now
  struct cs_pinned_list running;  // with `chosen`: threads that run on others
  double chosen;     // the probability with which the next scan's processor was chosen; 0: it asks
                     // the threads on all processors
  double ran_on_us;  // why it was chosen
  unsigned choice;   // among so many
  bool decided;      // once for a recording: whether it is to be chosen at all
  double interrupted;  // the share of scans during which another thread had this processor
} scans;

// ---- Moments ----

// The next scan comes half a period to one and a half after this one. That range is a whole period,
// so nothing that recurs with that period, or a fraction of it, is in step with the scans. After a
// late one, whose moment the scheduler chose, it comes anywhere in the next period.
static void plan(uint64_t now_ns, bool late) {
  double busy = scans.busy_ns / scans.lasted_ns;
  busy = busy < LEAST_BUSY ? LEAST_BUSY : busy < 1 ? busy : 1;
  uint64_t period = cs_load_acquire(&cs_agent.period_ns),
           rest_ns = (uint64_t)(scans.cost_ns * REST / busy);
  if (period < rest_ns) period = rest_ns;
  scans.weight_ns = period;
  scans.due_ns = now_ns + (late ? 0 : period / 2) + cs_random_next(&scans.random) % (period + 1);
}

// Chooses the processor of the next scan, if signals to others take long: the more processors there
// are, the fewer of the running threads are on the one that is chosen. But where the scheduler
// gives the processor to others during scans, that depends on which thread was preempted, so one of
// them cannot stand for all.
static void choose_processor(void) {
  if (scans.interrupted > OFTEN) {
    if (scans.chosen > 0) cs_processors_end();
    scans.chosen = 0;
    return;
  }
  if (scans.chosen == 0) {
    double us = scans.decided ? 0 : cs_ask_ran_on_us();
    if (us == 0) return;
    scans.decided = true;
    scans.choice = cs_processors_begin();
    if (scans.choice < 2 || us < WORTH_US * scans.choice) return;
    scans.ran_on_us = us;
    cs_ask_forget_ran_on();
  }
  scans.chosen = cs_processors_move(cs_random_next(&scans.random));
}

// By default, the kernel may wake a thread some 50 us late to save power, and then lets it wait for
// the next tick rather than preempt another thread. Both can be changed without privileges; where
// they cannot, more scans are late.
static void request_prompt_wakeups(void) {
  struct {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
  } wanted = {.size = sizeof wanted, .policy = SCHED_OTHER, .runtime = SLICE_NS};
  (void)prctl(PR_SET_TIMERSLACK, 1ul);
  errno = 0;
  wanted.nice = (int32_t)getpriority(PRIO_PROCESS, 0);  // as before
  if (errno == 0 && sched_getscheduler(0) == SCHED_OTHER && cs_seccomp_survives(CS_CALL_SETATTR))
    (void)syscall(SYS_sched_setattr, 0, &wanted, 0u);
}

// ---- The thread that was preempted ----

// Returns when the thread last ran, by its processor's clock, or 0 if this kernel does not report
// it.
static uint64_t last_ran(uint32_t id, uint32_t tid) {
  char text[512], *point;
  if (!cs_kept_read(id, tid, CS_KEPT_SCHED, text, sizeof text)) return 0;
  const char *at = strchr(text, '\n');  // after the thread's name
  if (at != NULL) at = strstr(at, "se.exec_start");
  if (at != NULL) at = strchr(at, ':');
  if (at == NULL) return 0;
  uint64_t ms = strtoull(at + 1, &point, 10);
  return *point == '.' ? ms * 1000000u + strtoull(point + 1, NULL, 10) : 0;
}

// Returns whether the thread sleeps in a system call. Most threads that have run since the last
// scan do. This costs a fifth of runs_on, which costs a third of last_ran.
static bool sleeps(struct cs_thread *thread) {
  struct cs_sleeper spare, *sleeper = cs_sleeper_open(thread, &spare);
  uint64_t sp, ip;
  bool yes = sleeper != NULL && cs_sleeper_where(sleeper, &sp, &ip) == CS_SLEEP_BLOCKED;
  cs_sleeper_close(sleeper, &spare);
  return yes;
}

static int runs_on(const struct cs_agent_thread *t) {
  char text[512];
  return cs_kept_read(t->id, t->tid, CS_KEPT_STAT, text, sizeof text) ? cs_processor_in(text) : -1;
}

// Returns the thread that this one has preempted: the last one that ran on this processor, and, by
// the processor's clock, just before us. Where the kernel does not report when threads ran, it is
// the only candidate, or NULL.
static const struct cs_pinned *find_preempted(uint64_t began_ns) {
  int processor = sched_getcpu();
  uint64_t since = 0, latest = 0;
  const struct cs_pinned *found = NULL;
  bool asked = false;
  for (size_t i = 0; i < scans.stopped.count; i++) {
    const struct cs_pinned *p = &scans.stopped.at[i];
    if (sleeps(p->thread) || runs_on(p->agent) != processor) continue;
    uint64_t own = asked ? 0 : last_ran(0, cs_load_relaxed(&cs_agent.tid));
    // `own` is later than `began_ns` if a tick has come meanwhile.
    if (own != 0) since = own - SAME_NS - (cs_clock_now_ns() - began_ns);
    asked = true;
    uint64_t ran = since != 0 ? last_ran(p->agent->id, p->agent->tid) : 0;
    if (ran < since) continue;
    if (since == 0 && found != NULL) return NULL;
    if (found == NULL || ran > latest) found = p;
    if (ran > latest) latest = ran;
  }
  return found;
}

// ---- A scan ----

// Returns a weight corrected by a part of what is missing, or in excess (negative); between half
// and twice the usual weight.
static double corrected(double usual, double part) {
  return usual + (part < -usual / 2 ? -usual / 2 : part > usual ? usual : part);
}

static void account_for(uint64_t used_ns) {
  account.all_ns += (double)used_ns;
  account.missing_ns += (double)used_ns;
}

// Returns for how many threads that ran at that moment, on average, a sample stands.
static double stands_for(void) {
  return scans.chosen > 0 ? 1 / scans.chosen : 1;
}

static uint64_t weight_of(const struct cs_agent_thread *t) {
  double used = (double)(t->clock_to - t->clock_from);
  double missing = used - (double)t->represented_ns - LEAD * account.usual_ns;
  return (uint64_t)corrected(account.usual_ns * stands_for(), missing / PART);
}

// A thread that has not taken its last signal yet is not sent another; then its next sample stands
// for this one, too.
static void ask(struct cs_agent_thread *t, struct cs_thread *thread) {
  uint64_t weight = weight_of(t);
  t->represented_ns += weight;
  t->owed_scan_ns += weight;
  if (cs_ask_sample(t, thread, CS_ASKED_SCAN, t->owed_scan_ns)) t->owed_scan_ns = 0;
  account.found += stands_for();
  account.missing_ns -= (double)weight;
}

static bool scan_thread(struct cs_agent_thread *t, void *data) {
  (void)data;
  if (t->engine != &cs_engine_clock) return true;
  uint64_t clock = cs_cpu_ns_of(t->tid);
  if (clock == 0 || clock == t->clock_to) return true;
  uint64_t before = t->clock_to;
  t->clock_to = cs_cpu_ns_of(t->tid);
  if (t->clock_to == 0) t->clock_to = clock;  // it has just ended
  account_for(t->clock_to - before);
  bool runs = t->clock_to > clock;
  struct cs_pinned_list *list = runs ? &scans.running : &scans.stopped;
  if (runs && scans.chosen == 0)
    ask(t, t->thread);
  else if (list->count < MOST_PINNED)
    (void)cs_pinned_add(list, t);
  return true;
}

static void begin_scan(void) {
  double factor = (account.used + PRIOR) / (account.found + PRIOR);
  if (factor > MOST_FACTOR) factor = MOST_FACTOR;
  account.usual_ns = corrected((double)scans.weight_ns * factor, account.missing_ns / PART);
  account.used -= account.used / LATELY;
  account.found -= account.found / LATELY;
}

static void end_scan(double used_ns, double gap_ns) {
  double longest_ns = LONGEST * scans.gap_ns;
  double counted_ns = gap_ns < longest_ns ? gap_ns : longest_ns;
  account.used += used_ns * (counted_ns / gap_ns) / (double)scans.weight_ns;
  scans.gap_ns += (counted_ns - scans.gap_ns) / FIRST;
  scans.busy_ns += used_ns - scans.busy_ns / COSTS;
  scans.lasted_ns += gap_ns - scans.lasted_ns / COSTS;
}

// One of the threads that run elsewhere is enough: another scan will look at the others.
static void note_processors(bool ran_here) {
  if (ran_here) cs_processors_add(sched_getcpu(), 1);
  size_t count = scans.running.count;
  if (count == 0) return;
  size_t at = cs_random_next(&scans.random) % count;
  cs_processors_add(runs_on(scans.running.at[at].agent), (double)count);
}

// Returns how often other threads have taken the processor from the caller.
static long interruptions(void) {
  struct rusage usage;
  return getrusage(RUSAGE_THREAD, &usage) == 0 ? usage.ru_nivcsw : 0;
}

// Asks the thread that this one has preempted, unless others have run here since.
static void ask_preempted(uint64_t began_ns, long interruptions_before) {
  const struct cs_pinned *preempted = find_preempted(began_ns);
  bool interrupted = interruptions() != interruptions_before;
  scans.interrupted += ((interrupted ? 1.0 : 0.0) - scans.interrupted) / MEMORY;
  if (scans.chosen > 0) note_processors(preempted != NULL);
  if (preempted != NULL && !(interrupted && scans.chosen > 0))
    ask(preempted->agent, preempted->thread);
}

static void scan(uint64_t now_ns) {
  long interruptions_before = interruptions();
  double before = account.all_ns, gap_ns = (double)(now_ns - scans.taken_ns) + 1;
  scans.taken++;
  scans.taken_ns = now_ns;
  begin_scan();
  account_for(cs_take_seq(&account.ended_ns, 0));
  cs_threads_visit(scan_thread, NULL);
  end_scan(account.all_ns - before, gap_ns);
  ask_preempted(now_ns, interruptions_before);
  cs_pinned_unpin(&scans.stopped);
  cs_pinned_unpin(&scans.running);
}

static void scan_and_time(uint64_t now_ns) {
  uint64_t began = cs_thread_cpu_ns();
  scan(now_ns);
  double took = (double)(cs_thread_cpu_ns() - began);
  uint64_t among = scans.taken + FIRST < COSTS ? scans.taken + FIRST : COSTS;
  scans.cost_ns += (took - scans.cost_ns) / (double)among;
}

// ---- The engine ----

// Checks what a sandbox may refuse. A signal of number 0 is checked, but not sent.
static bool is_allowed(struct cs_error *why) {
  static const char in_profile[] = "in the container's seccomp profile";
  pid_t self = (pid_t)syscall(SYS_gettid);
  siginfo_t none = {.si_code = SI_QUEUE};
  errno = 0;
  if (cs_cpu_ns_of((uint32_t)self) == 0)
    return cs_error_set(why,
                        "the CPU clock of a thread cannot be read: %s (allow clock_gettime %s)",
                        strerror(errno), in_profile);
  if (!cs_kept_is_allowed())
    return cs_error_set(why, "/proc/self/task cannot be read: %s (%s)", strerror(errno),
                        errno == EMFILE ? "raise ulimit -n" : "mount /proc");
  if (syscall(SYS_rt_tgsigqueueinfo, getpid(), self, 0, &none) != 0)
    return cs_error_set(why, "threads cannot be sent signals: %s (allow rt_tgsigqueueinfo %s)",
                        strerror(errno), in_profile);
  return true;
}

static bool begin(struct cs_error *why) {
  cs_kept_begin();
  if (!is_allowed(why)) return false;
  memset(&scans, 0, sizeof scans);
  scans.random = cs_tsc() | 1;
  scans.begin_ns = scans.taken_ns = cs_clock_now_ns();
  scans.gap_ns = (double)cs_load_acquire(&cs_agent.period_ns);
  scans.busy_ns = scans.lasted_ns = FIRST * (double)cs_load_acquire(&cs_agent.period_ns);
  memset(&account, 0, sizeof account);
  plan(scans.begin_ns, true);
  return true;
}

static void end(void) {
  cs_kept_end();
  cs_pinned_free(&scans.stopped);
  cs_pinned_free(&scans.running);
  cs_processors_end();
}

static bool start(struct cs_agent_thread *t, struct cs_error *why) {
  (void)why;
  t->represented_ns = t->owed_scan_ns = 0;
  cs_store_relaxed(&t->thread->cooldown.owed, 0u);
  return t->clock_from != 0;
}

static void stop(struct cs_agent_thread *t) {
  uint64_t clock = cs_cpu_ns_of(t->tid);  // 0: it has ended unnoticed
  if (clock > t->clock_to) cs_add_relaxed(&account.ended_ns, clock - t->clock_to);
}

static uint64_t interval(void) {
  return (uint64_t)(account.usual_ns * stands_for());
}

// What scans have found since the thread was last asked.
static uint64_t overdue(struct cs_agent_thread *t, bool take) {
  uint64_t ns = t->owed_scan_ns;
  if (take) t->owed_scan_ns = 0;
  return ns;
}

static bool poll(const struct cs_engine *self, uint64_t now_ns, uint64_t *next_ns,
                 struct cs_error *why) {
  (void)self;
  (void)why;
  if (!scans.prompt) request_prompt_wakeups();
  scans.prompt = true;
  *next_ns = scans.due_ns;
  if (now_ns < scans.due_ns) return true;
  bool late = now_ns - scans.due_ns > LATE_NS;
  scans.lateness += ((late ? 1.0 : 0.0) - scans.lateness) / MEMORY;
  scans.late += late;
  if (!late || scans.lateness > HOPELESS) scan_and_time(now_ns);
  uint64_t began = cs_clock_now_ns();
  choose_processor();
  plan(now_ns + cs_clock_now_ns() - began, late);
  *next_ns = scans.due_ns;
  return true;
}

static const char *unseen(void) {
  static char text[200 + CS_RAN_ON_BYTES];
  char why[CS_RAN_ON_BYTES] = "";
  double seconds = (double)(cs_clock_now_ns() - scans.begin_ns) / 1e9;
  if (scans.taken + scans.late < FIRST) return "";  // not known yet
  if (scans.chosen > 0)
    (void)snprintf(why, sizeof why,
                   "each sees one of %u processors, because a quarter of the threads on others ran "
                   "on for %.0f us or more",
                   scans.choice, scans.ran_on_us);
  else
    (void)cs_ask_ran_on(why, sizeof why);
  (void)snprintf(text, sizeof text,
                 "%.0f scans a second at random moments%s; %.1f %% of them were late and left out"
                 "%s%s",
                 (double)scans.taken / seconds, scans.lateness > HOPELESS ? ", but most late" : "",
                 100.0 * (double)scans.late / (double)(scans.taken + scans.late + 1),
                 why[0] != '\0' ? "; " : "", why);
  return text;
}

const struct cs_engine cs_engine_clock = {
    .kind = CS_WIRE_ENGINE_CLOCK,
    .unseen = unseen,
    .begin = begin,
    .end = end,
    .start = start,
    .stop = stop,
    .interval = interval,
    .overdue = overdue,
    .poll = poll,
};
