// SPDX-License-Identifier: MIT
// A recording's beginning and end. Invariants: one recording a process; who has claimed the shared
// memory writes a last word into it, a refusal or CS_WIRE_END. Threads: Initialize's, and whoever
// ends the recording. Signal-safe: no.
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "agent/agent.h"
#include "base/clock.h"
#include "base/log.h"

enum { STOP_TIMEOUT_S = 2 };

struct cs_agent cs_agent;

static pthread_t agent_thread;
static pthread_mutex_t stop_lock = PTHREAD_MUTEX_INITIALIZER;
static bool agent_joined;

static HRESULT refuse(const char *sentence) {
  cs_log_important("%s; the program runs on without being profiled", sentence);
  if (cs_agent.wire.header != NULL) cs_producer_refuse(&cs_agent.wire, sentence);
  cs_producer_close(&cs_agent.wire);
  cs_sample_ring_close(&cs_agent.ring);
  cs_store_release(&cs_agent.state, (uint32_t)CS_AGENT_OVER);
  return CORPROF_E_PROFILER_CANCEL_ACTIVATION;
}

// A process that was started by the one that is recorded has the same environment. It is not
// recorded, and says nothing about it.
static bool is_for_somebody_else(const char *path) {
  if (access(path, F_OK) == 0 || errno != ENOENT) return false;
  cs_log("%s is gone: another process is being recorded", path);
  return true;
}

static bool read_wishes(struct cs_error *err) {
  const struct cs_wire_header *h = cs_agent.wire.header;
  cs_agent.mode = h->mode;
  cs_agent.hz = h->hz;
  cs_agent.lines = h->lines != 0;
  if (cs_agent.mode != CS_WIRE_MODE_CPU && cs_agent.mode != CS_WIRE_MODE_WALL)
    return cs_error_set(err, "the command asks for a mode that this library does not know: %u",
                        cs_agent.mode);
  if (cs_agent.hz == 0 || cs_agent.hz > 100000)
    return cs_error_set(err, "the command asks for %u samples a second: 1 to 100,000 can be had",
                        cs_agent.hz);
  cs_agent.period_ns = 1000000000u / cs_agent.hz;
  return true;
}

static bool set_event_mask(struct cs_error *err) {
  ICorProfilerInfo15 *info = cs_agent.info;
  DWORD low =
      COR_PRF_ENABLE_STACK_SNAPSHOT | COR_PRF_MONITOR_THREADS | COR_PRF_MONITOR_MODULE_LOADS;
  HRESULT hr =
      info->lpVtbl->SetEventMask2(info, low, COR_PRF_HIGH_MONITOR_DYNAMIC_FUNCTION_UNLOADS);
  if (hr == S_OK) return true;
  return cs_error_set(err, "the runtime refuses to tell of threads and unloaded code (0x%08x)",
                      (unsigned)hr);
}

// With all signals blocked, so that no handler of the program ever runs on our thread.
static bool start_thread(struct cs_error *err) {
  sigset_t all, before;
  (void)sigfillset(&all);
  (void)pthread_sigmask(SIG_SETMASK, &all, &before);
  int failed = pthread_create(&agent_thread, NULL, cs_agent_main, NULL);
  (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (failed == 0) return true;
  return cs_error_set(err, "no thread for the recording: %s", strerror(failed));
}

HRESULT cs_agent_start(IUnknown *info, const char *path) {
  struct cs_error err = {""};
  if (cs_load_acquire(&cs_agent.state) != CS_AGENT_PASSIVE || is_for_somebody_else(path))
    return CORPROF_E_PROFILER_CANCEL_ACTIVATION;
  if (!cs_producer_open(&cs_agent.wire, path, &err)) return refuse(err.text);
  if (!cs_producer_claim(&cs_agent.wire)) {
    cs_log("%s: another process is being recorded", path);
    cs_producer_close(&cs_agent.wire);
    return CORPROF_E_PROFILER_CANCEL_ACTIVATION;
  }
  if (!read_wishes(&err)) return refuse(err.text);
  struct clrsnap_opts opts = {.size = sizeof opts, .max_depth = cs_agent.wire.header->max_depth};
  if (FAILED(cs_core_start(info, &opts, &err))) return refuse(err.text);
  // The library may be another profiler's too, and then runs on that one's ICorProfilerInfo.
  cs_agent.client = info;
  (void)info->lpVtbl->QueryInterface(info, &IID_ICorProfilerInfo8, (void **)&cs_agent.info);
  cs_store_release(&cs_core.thread_ends, cs_threads_destroyed);
  if (!cs_sample_ring_open(&cs_agent.ring, CS_SAMPLE_RING_BYTES, cs_core.opts.max_depth))
    return refuse("no memory for the ring of samples (4 MiB)");
  if (!cs_drain_init(&err) || !set_event_mask(&err)) return refuse(err.text);
  cs_store_release(&cs_agent.state, (uint32_t)CS_AGENT_WAITING);
  return start_thread(&err) ? S_OK : refuse(err.text);
}

bool cs_agent_is_active(void) {
  uint32_t state = cs_load_acquire(&cs_agent.state);
  return (state == CS_AGENT_WAITING || state == CS_AGENT_RECORDING) &&
         getpid() == cs_agent.wire.pid;
}

// Bounded, because it runs in the program's way out: a thread of ours that hangs in the CLR must
// not keep the program from ending.
static void join(void) {
  struct timespec until;
  (void)clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += STOP_TIMEOUT_S;
  if (pthread_timedjoin_np(agent_thread, NULL, &until) != 0)
    cs_log("the recording's thread did not end within %d s", STOP_TIMEOUT_S);
  agent_joined = true;
}

void cs_agent_stop(void) {
  if (cs_load_acquire(&cs_agent.state) == CS_AGENT_PASSIVE || cs_agent.wire.header == NULL ||
      getpid() != cs_agent.wire.pid)
    return;
  cs_store_release(&cs_agent.stop, 1u);
  cs_agent_wake();
  (void)pthread_mutex_lock(&stop_lock);
  if (!agent_joined) join();
  (void)pthread_mutex_unlock(&stop_lock);
}

// exit() without the runtime's own shutdown: what has been sampled is still written.
__attribute__((destructor)) static void at_exit(void) {
  cs_agent_stop();
}
