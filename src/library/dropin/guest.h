// SPDX-License-Identifier: MIT
// Private to component dropin: the guest, another vendor's unmodified profiler, and its state.
// Not for handlers, except for DoStackSnapshot (info.c).
#pragma once

#include <limits.h>

#include "base/error.h"
#include "dropin/wrap.h"
#include "life/start.h"
#include "snapshot/snapshot.h"

// ---- Options (options.c) ----
#define CS_PROFILER_PATH "CLRSNAP_PROFILER_PATH"
struct cs_guest_options {
  char path[PATH_MAX];  // of the guest's library; "": not given
  bool hold;            // CLRSNAP_HOLD=1: targets are held until the last callback has returned
  bool dynamic;         // CLRSNAP_DYNAMIC=1: methods without metadata are reported, too
  bool elide_suspend;   // CLRSNAP_ELIDE_SUSPEND=1: SuspendRuntime stops nothing
};
void cs_guest_options_from_environment(struct cs_guest_options *options);
// Reads them from the client data of an attach: NUL-terminated "NAME=VALUE" strings, ended by an
// empty one. The guest's own data begins at *used. Returns false if CLRSNAP_PROFILER_PATH is
// missing, the strings have no end, or an option is unknown.
bool cs_guest_options_from_data(struct cs_guest_options *options, const char *data, size_t size,
                                size_t *used, struct cs_error *err);

// ---- The guest ----
struct cs_guest {
  struct cs_guest_options options;
  CLSID clsid;
  void *library;              // dlopen's
  uint32_t version;           // the newest ICorProfilerCallback that it implements
  const IUnknown *client;     // the library was started with it; NULL: it was not started
  ICorProfilerInfo15 *info;   // the runtime's, not wrapped
  bool first;                 // the library had not been started before
  bool walks;                 // DoStackSnapshot is ours
  bool detaching;             // RequestProfilerDetach has succeeded
  bool detached;              // ProfilerDetachSucceeded has been called
  int references;             // the runtime's, to the guest's objects
  DWORD low_mask, high_mask;  // the events that it has asked for
  uint32_t suspended;         // elided: 1 between SuspendRuntime and ResumeRuntime (a futex)
  uint32_t suspender;         // the tid of the thread that called SuspendRuntime
  uint32_t deaths;            // cs_registry_deaths() at that call
  struct cs_callback *proxy;  // in the guest's place until an attach's client data names the guest
};

// ---- Loading (load.c) ----
// Gets the guest's class object from the guest's library. Logs why it failed.
HRESULT cs_guest_load(struct cs_guest *guest, REFIID iid, void **out);
// Closes the guest's library: after a detach, when the last reference has been released.
void cs_guest_unload(struct cs_guest *guest);

// ---- The library on behalf of a guest (life.c) ----
// Called before the guest's Initialize, which it does not delay: decides whether the library
// supports this runtime, and starts a thread that makes the unwind tables. If the runtime is not
// supported, the guest keeps the runtime's own walk, and the log says so.
void cs_guest_begin(struct cs_guest *guest, IUnknown *info);
void cs_guest_end(struct cs_guest *guest);
// Called in callbacks that may provide something new to verify the runtime's layout with: verifies
// the layout, unless that has been done. If the unwind tables are not ready, waits for them
// (`wait`) or does nothing.
void cs_guest_verify_layout(struct cs_guest *guest, bool wait);
// Called on an attach, for the threads that exist already: before the first ThreadCreated, and in
// ProfilerAttachComplete.
void cs_guest_attaches(struct cs_guest *guest);
void cs_guest_attached(struct cs_guest *guest);

// ---- Wrapped objects ----
void *cs_wrap_callback(struct cs_guest *guest, IUnknown *callback);  // callback.c
void *cs_wrap_info(struct cs_guest *guest, IUnknown *info);          // info.c

// ---- An attach, whose client data names the guest (attach.c) ----
// A class factory for objects whose guest is not known yet.
HRESULT cs_attach_class_object(REFCLSID clsid, REFIID iid, void **out);
// Loads the guest that the client data names, into a wrapper that the runtime already has. *used:
// the size of clrsnap's own part of the data.
HRESULT cs_attach_load(struct cs_wrapped *callback, const void *data, size_t size, size_t *used);
// Takes over the callbacks that an older guest has only in an older form.
void cs_attach_take_over(ICorProfilerCallback11Vtbl *vtbl);

// ---- Event masks (mask.c) ----
// Adds the library's events to the guest's, after the guest's Initialize.
bool cs_mask_settle(struct cs_guest *guest, struct cs_error *err);
void cs_mask_take_over(ICorProfilerInfo15Vtbl *vtbl);

// ---- Elided suspension (elide.c) ----
void cs_elide_take_over(ICorProfilerInfo15Vtbl *vtbl);
bool cs_elides(const struct cs_guest *guest);
// Called in callbacks that end an ID of code or of a type: waits until no suspension is elided.
void cs_elide_wait(struct cs_guest *guest);
// Takes over calls that name a thread, which may end during an elided suspension (ids.c).
void cs_ids_take_over(ICorProfilerInfo15Vtbl *vtbl);
