// SPDX-License-Identifier: MIT
// A recording's beginning and end. Invariants: a process has one recording at a time; the thread
// that has claimed the shared memory writes a last record into it, a refusal or CS_WIRE_END.
// Threads: Initialize's, the one that ends the process, and the agent's, which ends by itself.
// Signal-safe: no.
//
// After a recording, the profiler asks to be detached, so that its callbacks no longer cost
// anything and its place among the runtime's 32 is free; the library stays mapped. The next
// recording is a new attach, which finds it mapped.
#include "agent/start.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/loop.h"
#include "agent/program_start.h"
#include "base/futex.h"
#include "base/libc.h"
#include "base/log.h"
#include "base/own_thread.h"
#include "base/path.h"
#include "base/perf.h"
#include "base/prefix.h"
#include "base/sealed.h"
#include "contract/runtime.h"
#include "contract/supported.h"
#include "events/allocations.h"
#include "events/events.h"
#include "events/holders.h"
#include "events/sessions.h"
#include "life/function.h"
#include "life/library.h"
#include "life/start.h"
#include "reporting/awaits.h"
#include "reporting/drain.h"
#include "reporting/frames.h"
#include "reporting/images.h"
#include "reporting/lock_types.h"
#include "reporting/methods.h"
#include "reporting/modules.h"
#include "reporting/type_names.h"
#include "reporting/unload.h"
#include "reporting/wait_names.h"
#include "sampling/blocked.h"
#include "sampling/thread_life.h"
#include "sampling/wall.h"
#include "snapshot/api.h"
#include "state/label_slots.h"

enum {
  STOP_TIMEOUT_S = 2,
  COMMAND_TIMEOUT_S = 5,  // the command checks every few milliseconds
  LEAVE_TIMEOUT_S = 3,
  // After this, the runtime checks whether all callbacks have returned. It accepts no attach until
  // then, and treats smaller values as 300.
  DETACH_MS = 300,
};

static const IUnknown *client;  // what the library was started with; NULL: it was not
static uint32_t command_pid;    // of the command that records, in its own PID namespace
static uint32_t exiting;        // atomic. 1: the process ends, and nothing is freed any more
static bool walks_ended;        // no handler can write to the ring any more

// Waits until the state is `wanted`, or PASSIVE. Returns false if it is neither after so many
// seconds.
static bool wait_for_state(enum cs_agent_state wanted, unsigned seconds) {
  uint64_t until = cs_clock_now_ns() + seconds * 1000000000ull;
  for (;;) {
    uint32_t state = cs_load_acquire(&cs_agent.state);
    if (state == (uint32_t)wanted || state == CS_AGENT_PASSIVE) return true;
    if (cs_clock_now_ns() >= until) return false;
    cs_futex_wait_until(&cs_agent.state, state, until);
  }
}

// Frees what a recording uses, each part after everything that refers to it. No callback uses any
// of it: the state is OVER, or never was WAITING.
static void free_recording(void) {
  cs_labels_end();
  cs_threads_free_all();
  cs_on_thread_end(NULL);
  if (client != NULL) cs_library_stop(client);
  client = NULL;
  cs_frames_forget();
  cs_function_ids_free();
  cs_methods_free();
  cs_wait_names_free();
  cs_image_ids_free();
  cs_modules_free();
  cs_drain_free();
  cs_wall_free();
  cs_blocked_free();
  cs_holders_free();
  cs_lock_types_free();
  cs_type_names_free();
  // Handlers that have not ended may still write to it: a leak of 4 MiB is better than a crash.
  if (walks_ended) {
    cs_sample_ring_close(&cs_agent.ring);
    cs_events_free();
    cs_awaits_free();
  }
  cs_producer_close(&cs_agent.wire);
}

// In a program that a command attaches to, nothing is printed: the command gets the reason through
// the shared memory or the runtime's reply.
static bool attaching;

static HRESULT refuse(const char *sentence) {
  if (attaching)
    cs_log("%s; the recording is given up", sentence);
  else
    cs_log_important("%s; the program runs on without being profiled", sentence);
  if (cs_agent.wire.header != NULL) cs_producer_refuse(&cs_agent.wire, sentence);
  cs_library_deaths_are_reported(false);
  if (cs_agent.info != NULL) (void)cs_agent.info->lpVtbl->Release(cs_agent.info);
  cs_agent.info = NULL;
  walks_ended = true;  // none has begun
  free_recording();
  cs_agent_set_state(CS_AGENT_PASSIVE);
  return CORPROF_E_PROFILER_CANCEL_ACTIVATION;
}

// Gives the reason to a command other than the one that records.
static HRESULT refuse_second(const struct cs_agent_start_options *options, bool abandoned) {
  struct cs_producer other;
  struct cs_error err = {""}, busy = {""};
  (void)cs_error_set(&busy,
                     abandoned ? "process %d is still ending the recording of a clrsnap that was "
                                 "killed (process %u): try again"
                               : "process %d is being recorded already, by another clrsnap "
                                 "(process %u)",
                     (int)getpid(), command_pid);
  cs_log("%s", busy.text);
  (void)cs_producer_make(&other, options->invitation, options->size, &err);
  if (other.header != NULL && cs_producer_wait_for_command(&other, COMMAND_TIMEOUT_S))
    cs_producer_refuse(&other, busy.text);
  cs_producer_close(&other);
  return CORPROF_E_PROFILER_CANCEL_ACTIVATION;
}

// Returns whether this process is in another PID namespace than the command.
static bool is_elsewhere(void) {
  struct stat st;
  const char *ours = getenv(CS_WIRE_NAMESPACE_ENV);
  return ours != NULL && stat("/proc/self/ns/pid", &st) == 0 &&
         strtoull(ours, NULL, 10) != st.st_ino;
}

// Such processes can be recorded by attach, because then the process makes the memory.
static void explain_reach(const char *path, struct cs_error *err) {
  if (access(path, F_OK) == 0) return;
  if (errno == EACCES)
    (void)cs_error_set(err,
                       "user %u may not open the memory of clrsnap record, which is of another "
                       "user or user namespace: record it by its number instead (clrsnap record "
                       "PID)",
                       (unsigned)geteuid());
  else if (errno == ENOENT && is_elsewhere())
    (void)cs_error_set(err,
                       "this process is in another PID namespace than clrsnap record: record it "
                       "by its number instead (clrsnap record PID)");
}

// A child of the recorded process has the same environment. It is not recorded, and prints nothing
// about that. By then, the command has closed the descriptor, and its number may be another file's.
static bool is_for_other_process(const char *path) {
  static const char own[] = CS_SEALED_LINK_BEGIN "clrsnap" CS_SEALED_LINK_END;
  char link[sizeof own];
  ssize_t n = readlink(path, link, sizeof link);
  bool other = n >= 0 && cs_has_prefix(path, "/proc/") &&
               ((size_t)n != sizeof own - 1 || memcmp(link, own, sizeof own - 1) != 0);
  bool gone = n < 0 && errno == ENOENT;
  if (!(other || gone) || is_elsewhere()) return false;
  cs_log("%s is gone: another process is being recorded", path);
  return true;
}

// Maps and claims the file. With --children, there is soon another file, for the next process.
enum open_result { OPEN_OURS, OPEN_TAKEN, OPEN_FAILED };
static enum open_result find_wire(const char *path, struct cs_error *err) {
  enum { TRIES = 200, NAP_US = 5000 };
  for (int i = 0; i < TRIES; i++) {
    if (!cs_producer_open(&cs_agent.wire, path, err)) return OPEN_FAILED;
    if (cs_producer_claim(&cs_agent.wire)) return OPEN_OURS;
    cs_producer_close(&cs_agent.wire);
    if (getenv(CS_WIRE_CHILDREN_ENV) == NULL) return OPEN_TAKEN;
    (void)usleep(NAP_US);
    if (is_for_other_process(path)) return OPEN_TAKEN;
  }
  return OPEN_TAKEN;
}

// Makes the memory, and waits for the command to open it.
static enum open_result make_wire(const struct cs_agent_start_options *options,
                                  struct cs_error *err) {
  bool made = cs_producer_make(&cs_agent.wire, options->invitation, options->size, err);
  if (cs_agent.wire.header == NULL) return OPEN_FAILED;
  if (!cs_producer_wait_for_command(&cs_agent.wire, COMMAND_TIMEOUT_S))
    made =
        cs_error_set(err, "no command has come for the recording within %d s", COMMAND_TIMEOUT_S);
  return made && cs_producer_claim(&cs_agent.wire) ? OPEN_OURS : OPEN_FAILED;
}

static bool read_options(struct cs_error *err) {
  const struct cs_wire_header *h = cs_agent.wire.header;
  bool labels = h->labels != 0;
  cs_options = (struct cs_options){
      .modes = h->modes,
      .hz = h->hz,
      .engine =
          h->engine < CS_WIRE_ENGINES ? (enum cs_wire_engine_kind)h->engine : CS_WIRE_ENGINE_AUTO,
      .kernel = h->kernel != 0,
      .event = h->event,
      .event_period = h->event_period,
      .lines = (h->lines & CS_WIRE_LINES_IL) != 0,
      .inlined = (h->lines & CS_WIRE_LINES_INLINED) != 0,
      .async_callers = h->async_callers != 0,
      .budget_ppm = h->budget_ppm,
      .event_rate = h->event_rate,
      .alloc_interval = h->alloc_interval,
  };
  if (cs_options.modes == 0 || (cs_options.modes & ~CS_WIRE_AGENT_MODES) != 0)
    return cs_error_set(err, "the command asks for modes that this library does not know: 0x%x",
                        cs_options.modes);
  if (cs_options.hz == 0 || cs_options.hz > 100000)
    return cs_error_set(err, "the command asks for %u samples a second: 1 to 100,000 can be had",
                        cs_options.hz);
  if (cs_perf_kind(cs_options.event) == NULL ||
      (cs_options.event != 0 && cs_options.event_period == 0))
    return cs_error_set(err, "the command asks for an event that this library does not know: %u",
                        cs_options.event);
  cs_agent.period_ns = 1000000000u / cs_options.hz;
  command_pid = h->command_pid;
  if (!cs_producer_command_lives(&cs_agent.wire))
    return cs_error_set(err, "the command that wanted a recording has ended");
  if (labels) cs_labels_begin();
  return true;
}

static uint64_t walk_limit_ns(uint32_t us) {
  if (us == CS_WIRE_NO_LIMIT) return 0;
  return (us != 0 ? us : CS_WIRE_WALK_LIMIT_US) * 1000ull;
}

// The runtime for musl crashes now and then while it reports events to a profiler.
static bool are_events_safe(struct cs_error *err) {
  if (!cs_wants_events() || !cs_libc_is_musl()) return true;
  return cs_error_set(err,
                      "with musl only the cpu and wall modes are recorded, because programs that "
                      "report events may crash there");
}

static bool set_event_mask(struct cs_error *err) {
  ICorProfilerInfo15 *info = cs_agent.info;
  DWORD low =
      COR_PRF_ENABLE_STACK_SNAPSHOT | COR_PRF_MONITOR_THREADS | COR_PRF_MONITOR_MODULE_LOADS;
  if (cs_options.async_callers || cs_wants(CS_WIRE_MODE_GC) || cs_wants(CS_WIRE_MODE_HOLDERS))
    low |= COR_PRF_MONITOR_SUSPENDS;
  DWORD high = COR_PRF_HIGH_MONITOR_DYNAMIC_FUNCTION_UNLOADS;
  if (cs_wants_events()) high |= COR_PRF_HIGH_MONITOR_EVENT_PIPE;
  if (cs_allocations_have_ticks()) high |= COR_PRF_HIGH_MONITOR_LARGEOBJECT_ALLOCATED;
  HRESULT hr = info->lpVtbl->SetEventMask2(info, low, high);
  if (hr == S_OK) {
    cs_library_deaths_are_reported(true);
    return true;
  }
  return cs_error_set(err, "the runtime refuses to report threads and unloaded code (0x%08x)",
                      (unsigned)hr);
}

// Once the mask is empty, no callback comes, except those that are under way. The runtime deletes
// `info` some time after it has been asked to detach, so that request comes last.
static void leave(void) {
  ICorProfilerInfo15 *info = cs_agent.info;
  cs_library_deaths_are_reported(false);
  (void)info->lpVtbl->SetEventMask2(info, 0, 0);
  cs_agent.info = NULL;
  free_recording();
  (void)info->lpVtbl->Release(info);
  HRESULT hr =
      cs_sessions_are_stuck() ? E_FAIL : info->lpVtbl->RequestProfilerDetach(info, DETACH_MS);
  cs_log("the recording is over; the runtime %s (0x%08x)",
         hr == S_OK ? "detaches the profiler" : "keeps the profiler, which does nothing",
         (unsigned)hr);
  cs_agent_set_state(CS_AGENT_PASSIVE);
}

static void *main_of_thread(void *unused) {
  (void)unused;
  (void)prctl(PR_SET_NAME, ".clrsnap");
  cs_store_release(&cs_agent.tid, (uint32_t)gettid());
  walks_ended = cs_loop_run();
  cs_agent_set_state(CS_AGENT_OVER);
  cs_unload_drained();  // wakes callbacks that wait, to find that the recording is over
  if (cs_load_acquire(&exiting) == 0) leave();
  return NULL;
}

static bool start_thread(struct cs_error *err) {
  int failed = cs_own_thread_start(main_of_thread);
  return failed == 0 || cs_error_set(err, "no thread for the recording: %s", strerror(failed));
}

// Another command may take over if the one that records was killed.
static bool is_abandoned(void) {
  return cs_load_acquire(&cs_agent.state) != CS_AGENT_PASSIVE && cs_loop_is_abandoned();
}

// The runtime loads its compiler when it first needs it, after the program has begun. The
// compiler's code would then be unknown until the tables have been made, and samples in it would be
// cut. So it is loaded now, for good, in the same way as the runtime does. A runtime with another
// compiler, or with a built-in one, has no libclrjit.so beside it.
static void load_compiler(void) {
  struct cs_runtime runtime;
  char path[sizeof runtime.path + 16];
  if (!cs_runtime_find(&runtime) || runtime.single_file) return;
  int folder = (int)(cs_file_of(runtime.path) - runtime.path);
  (void)snprintf(path, sizeof path, "%.*slibclrjit.so", folder, runtime.path);
  if (dlopen(path, RTLD_LAZY) == NULL) cs_log("%s is not loaded before it is needed", path);
}

HRESULT cs_agent_start(IUnknown *info, const struct cs_agent_start_options *options) {
  struct cs_error err = {""};
  bool attached = options->attached;
  if (!attached && is_for_other_process(options->path)) return CORPROF_E_PROFILER_CANCEL_ACTIVATION;
  bool abandoned = attached && is_abandoned();
  if (abandoned || cs_load_acquire(&cs_agent.state) == CS_AGENT_OVER)
    (void)wait_for_state(CS_AGENT_PASSIVE, LEAVE_TIMEOUT_S);
  if (cs_load_acquire(&cs_agent.state) != CS_AGENT_PASSIVE)
    return attached ? refuse_second(options, abandoned) : CORPROF_E_PROFILER_CANCEL_ACTIVATION;
  attaching = attached;
  cs_loop_prepare(attached);
  cs_program_start_prepare(!attached);
  enum open_result opened = attached ? make_wire(options, &err) : find_wire(options->path, &err);
  if (opened == OPEN_FAILED && !attached) explain_reach(options->path, &err);
  if (opened == OPEN_FAILED) return refuse(err.text);
  if (opened == OPEN_TAKEN) {
    cs_log("%s: another process is being recorded", options->path);
    return CORPROF_E_PROFILER_CANCEL_ACTIVATION;
  }
  if (!read_options(&err) || !are_events_safe(&err)) return refuse(err.text);
  if (!attached) load_compiler();
  struct clrsnap_opts opts = {.size = sizeof opts, .max_depth = cs_agent.wire.header->max_depth};
  if (FAILED(cs_library_start(info, &opts, &err))) return refuse(err.text);
  // The library may be serving another profiler, too, and then uses that one's ICorProfilerInfo.
  client = info;
  (void)info->lpVtbl->QueryInterface(info, &IID_ICorProfilerInfo8, (void **)&cs_agent.info);
  cs_on_thread_end(cs_threads_destroyed);
  cs_threads_start();
  if (!cs_sample_ring_open(&cs_agent.ring, CS_SAMPLE_RING_BYTES, cs_library.opts.max_depth))
    return refuse("no memory for the ring of samples (4 MiB)");
  cs_agent.ring.walk_limit_ns = walk_limit_ns(cs_agent.wire.header->walk_limit_us);
  if (!cs_drain_init(&err) || !cs_awaits_start(attached, &err) || !set_event_mask(&err))
    return refuse(err.text);
  cs_agent_set_state(CS_AGENT_WAITING);
  return start_thread(&err) ? S_OK : refuse(err.text);
}

// The wait is bounded, because a thread of ours that hangs in the CLR must not prevent the program
// from ending.
void cs_agent_stop(void) {
  cs_store_release(&exiting, 1u);
  if (!cs_agent_is_active()) return;
  cs_loop_stop();
  if (!wait_for_state(CS_AGENT_OVER, STOP_TIMEOUT_S))
    cs_log("the recording's thread did not end within %d s", STOP_TIMEOUT_S);
}

// Samples are written even if exit() is called without the runtime's shutdown.
__attribute__((destructor)) static void at_exit(void) {
  cs_agent_stop();
}
