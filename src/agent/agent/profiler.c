// SPDX-License-Identifier: MIT
// The profiler object, which the runtime calls. Callbacks pass events on to the library (snapshot)
// and to the components below; what takes time is left to the agent's thread.
//
// Invariant: whatever goes wrong here, the program runs on. A refusal is a failed load and one line
// of output, never an exception, a signal or an endless wait. Threads: the runtime's, several at a
// time. Signal-safe: no.
#include <stdlib.h>
#include <string.h>

#include "agent/loop.h"
#include "agent/program_start.h"
#include "agent/start.h"
#include "agent/stragglers.h"
#include "base/log.h"
#include "clr/clr.h"
#include "contract/contract.h"
#include "events/events.h"
#include "events/lock_waits.h"
#include "life/start.h"
#include "reporting/awaits.h"
#include "reporting/lock_types.h"
#include "reporting/type_names.h"
#include "reporting/unload.h"
#include "sampling/thread_life.h"
#include "sampling/wall.h"

static ICorProfilerCallback11Vtbl vtbl;

// Without a recording: logs whether the library can serve this runtime.
static HRESULT check_only(void) {
  static struct cs_layout layout;
  struct cs_error err = {""};
  if (cs_contract_read(&layout, NULL, &err)) {
    cs_log("%s is not set: loaded as a library only", CS_WIRE_ENV);
    return S_OK;
  }
  cs_log_important("%s; the program runs on without being profiled", err.text);
  return CORPROF_E_PROFILER_CANCEL_ACTIVATION;
}

static HRESULT start(IUnknown *info, const struct cs_agent_start_options *options) {
  struct cs_runtime_version version;
  if (!cs_runtime_version_get(info, &version)) {
    if (!options->attached)
      cs_log_important("the runtime does not give its version; it runs on without being profiled");
    return CORPROF_E_PROFILER_CANCEL_ACTIVATION;
  }
  cs_log("%s: .NET %u.%u.%u", options->attached ? "InitializeForAttach" : "Initialize",
         version.major, version.minor, version.build);
  bool wanted =
      options->attached ? options->size != 0 : options->path != NULL && options->path[0] != '\0';
  if (!wanted) return check_only();
  return cs_agent_start(info, options);
}

static HRESULT initialize(ICorProfilerCallback11 *self, IUnknown *info) {
  (void)self;
  return start(info, &(struct cs_agent_start_options){.path = getenv(CS_WIRE_ENV)});
}

// An attaching command cannot set our environment; it sends an invitation as client data.
static HRESULT initialize_for_attach(ICorProfilerCallback11 *self, IUnknown *info, void *data,
                                     UINT len) {
  (void)self;
  return start(info, &(struct cs_agent_start_options){
                         .attached = true, .invitation = data, .size = data != NULL ? len : 0});
}

static HRESULT attach_complete(ICorProfilerCallback11 *self) {
  (void)self;
  if (!cs_agent_is_active()) return S_OK;
  cs_library_adopt_threads();
  cs_threads_adopt();
  cs_loop_note_attached();
  return S_OK;
}

static HRESULT shutdown(ICorProfilerCallback11 *self) {
  (void)self;
  cs_agent_stop();
  return S_OK;
}

static HRESULT thread_created(ICorProfilerCallback11 *self, ThreadID id) {
  (void)self;
  clrsnap_thread_created(id);
  return S_OK;
}

static HRESULT thread_assigned(ICorProfilerCallback11 *self, ThreadID id, DWORD tid) {
  (void)self;
  clrsnap_thread_assigned(id, tid);
  cs_threads_assigned(id, tid);
  return S_OK;
}

static HRESULT thread_destroyed(ICorProfilerCallback11 *self, ThreadID id) {
  (void)self;
  clrsnap_thread_destroyed(id);  // calls cs_threads_destroyed first
  return S_OK;
}

static HRESULT thread_renamed(ICorProfilerCallback11 *self, ThreadID id, ULONG units,
                              WCHAR name[]) {
  (void)self;
  cs_threads_renamed(id, name, units);
  return S_OK;
}

static HRESULT module_load_finished(ICorProfilerCallback11 *self, ModuleID module, HRESULT status) {
  (void)self, (void)module, (void)status;
  cs_program_start_await();
  return S_OK;
}

static HRESULT module_unload_started(ICorProfilerCallback11 *self, ModuleID module) {
  (void)self, (void)module;
  if (!cs_unload(true)) return S_OK;
  cs_awaits_forget();
  cs_lock_types_forget();
  cs_type_names_forget();
  return S_OK;
}

static HRESULT dynamic_method_unloaded(ICorProfilerCallback11 *self, FunctionID function) {
  (void)self, (void)function;
  (void)cs_unload(false);
  return S_OK;
}

static HRESULT suspend_started(ICorProfilerCallback11 *self, COR_PRF_SUSPEND_REASON reason) {
  (void)self;
  cs_wall_suspending((uint32_t)reason);
  cs_stragglers_suspending((uint32_t)reason);
  return S_OK;
}

static HRESULT suspend_aborted(ICorProfilerCallback11 *self) {
  (void)self;
  cs_stragglers_suspended();
  cs_wall_resumed();
  return S_OK;
}

static HRESULT resume_finished(ICorProfilerCallback11 *self) {
  (void)self;
  cs_wall_resumed();
  return S_OK;
}

static HRESULT suspend_finished(ICorProfilerCallback11 *self) {
  (void)self;
  cs_stragglers_suspended();
  cs_awaits_suspended();
  cs_lock_objects_may_move();
  return S_OK;
}

static HRESULT resume_started(ICorProfilerCallback11 *self) {
  (void)self;
  cs_awaits_resuming();
  cs_lock_objects_stay();
  return S_OK;
}

static void destroy(struct cs_callback *self) {
  free(self);
}

static HRESULT event_delivered(ICorProfilerCallback11 *self, EVENTPIPE_PROVIDER provider, DWORD id,
                               DWORD version, ULONG metadata_size, LPCBYTE metadata, ULONG size,
                               LPCBYTE data, LPCGUID activity, LPCGUID related, ThreadID thread,
                               ULONG frame_count, UINT_PTR frames[]) {
  (void)self, (void)provider, (void)version, (void)metadata_size, (void)metadata, (void)activity;
  (void)related, (void)thread, (void)frame_count, (void)frames;
  cs_events_take(id, data, size);
  return S_OK;
}

static HRESULT object_allocated(ICorProfilerCallback11 *self, ObjectID object, ClassID class) {
  (void)self;
  cs_events_take_large(object, class);
  return S_OK;
}

// Creates an object for each attach: the runtime may not have released the previous one yet.
HRESULT cs_profiler_create(const GUID *iid, void **out) {
  if (vtbl.QueryInterface == NULL) cs_callback_defaults(&vtbl);
  vtbl.Initialize = initialize;
  vtbl.InitializeForAttach = initialize_for_attach;
  vtbl.ProfilerAttachComplete = attach_complete;
  vtbl.Shutdown = shutdown;
  vtbl.ThreadCreated = thread_created;
  vtbl.ThreadAssignedToOSThread = thread_assigned;
  vtbl.ThreadDestroyed = thread_destroyed;
  vtbl.ThreadNameChanged = thread_renamed;
  vtbl.ModuleLoadFinished = module_load_finished;
  vtbl.ModuleUnloadStarted = module_unload_started;
  vtbl.DynamicMethodUnloaded = dynamic_method_unloaded;
  vtbl.EventPipeEventDelivered = event_delivered;
  vtbl.ObjectAllocated = object_allocated;
  vtbl.RuntimeSuspendStarted = suspend_started;
  vtbl.RuntimeSuspendAborted = suspend_aborted;
  vtbl.RuntimeResumeFinished = resume_finished;
  vtbl.RuntimeSuspendFinished = suspend_finished;
  vtbl.RuntimeResumeStarted = resume_started;
  struct cs_callback *profiler = malloc(sizeof *profiler);
  if (profiler == NULL) return E_OUTOFMEMORY;
  *profiler = (struct cs_callback){{&vtbl}, 1, destroy};
  HRESULT hr = vtbl.QueryInterface(&profiler->base, iid, out);
  (void)vtbl.Release(&profiler->base);
  return hr;
}
