// SPDX-License-Identifier: MIT
// The command that makes a runtime load a profiler, and the reasons for which it refuses.
// Invariant: success is reported only if the runtime has confirmed it. One thread. Signal-safe: no.
#include "process/attach.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "base/clock.h"
#include "process/launch.h"
#include "process/proc.h"
#include "process/target.h"

// How long the runtime may wait for a concurrent collection to end.
enum { RUNTIME_WAITS_MS = 10000 };
// CS_AGENT_CLSID
static const CLSID agent_class = {
    0x8F3E6C1A, 0x5B2D, 0x4E7F, {0x9A, 0x41, 0xC6, 0xD0, 0xE2, 0xB7, 0xF5, 0x19}};

static const char *in_words(HRESULT hr) {
  static const struct {
    HRESULT hr;
    const char *words;
  } known[] = {
      {CORPROF_E_PROFILER_ALREADY_ACTIVE, "it has a profiler already, and a runtime takes one"},
      {HRESULT_MOD_NOT_FOUND, "a library cannot be loaded; its standard error says which and why"},
      {CLRSNAP_HRESULT(0x8007007Fu), "the library is not a profiler (no DllGetClassObject)"},
      {CLASS_E_CLASSNOTAVAILABLE, "the profiler has no such class: --clsid is not the profiler's"},
      {E_NOTIMPL, "the profiler cannot be attached, only started with a program"},
      {CORPROF_E_PROFILER_NOT_ATTACHABLE, "the profiler cannot be attached"},
      {CORPROF_E_UNSUPPORTED_FOR_ATTACHING_PROFILER,
       "the profiler needs events that are only available from the start of a program"},
      {CORPROF_E_PROFILER_CANCEL_ACTIVATION, "the profiler has decided not to run"},
      {CORPROF_E_NOT_YET_AVAILABLE, "its runtime is still starting; try again"},
      {CORPROF_E_RUNTIME_UNINITIALIZED, "its runtime is still starting; try again"},
      {CORPROF_E_PROFILER_DETACHING,
       "a profiler is just being detached from it; try again in some seconds"},
      {CORPROF_E_TIMEOUT_WAITING_FOR_CONCURRENT_GC,
       "its collector was busy for too long; try again"},
      {COR_E_NOTSUPPORTED, "its runtime does not support profilers"},
      {CORDIAGIPC_E_UNKNOWN_COMMAND, "its runtime does not know how to attach profilers"},
      {E_INVALIDARG, "it has refused an argument; its standard error may say which"},
  };
  for (size_t i = 0; i < CS_COUNT(known); i++)
    if (known[i].hr == hr) return known[i].words;
  return "the profiler or the runtime gives no other reason";
}

bool cs_attach_check_file(pid_t pid, const char *path, struct cs_error *err) {
  struct cs_error why;
  struct cs_target *target = cs_target_of(pid);
  int fd = cs_target_open(target, path, &why);
  cs_target_free(target);
  if (fd >= 0) (void)close(fd);
  return fd >= 0 || cs_error_set(err,
                                 "process %d cannot open %s (%s): it sees other files than this "
                                 "command, as in a container; put it there, too, with what it "
                                 "needs (docker cp)",
                                 (int)pid, path, why.text);
}

static bool send_attach(const struct cs_attach *a, struct cs_diag_payload *message,
                        HRESULT *refusal, struct cs_error *err) {
  const CLSID *clsid = a->clsid != NULL ? a->clsid : &agent_class;
  cs_diag_put_u32(message, RUNTIME_WAITS_MS);
  cs_diag_put(message, clsid, sizeof *clsid);
  cs_diag_put_text(message, a->library);
  cs_diag_put_u32(message, (uint32_t)a->data->size);
  cs_diag_put(message, a->data->bytes, a->data->size);
  if (a->data->too_long || message->too_long)
    return cs_error_set(err,
                        "the client data is too long: with the names of the files, the "
                        "runtime takes 65535 bytes");
  if (cs_diag_command(a->pid, CS_DIAG_PROFILER, CS_DIAG_ATTACH, message, message, refusal, err))
    return true;
  if (*refusal == 0) return false;
  return cs_error_set(err, "process %d refuses the profiler (0x%08x): %s", (int)a->pid,
                      (unsigned)*refusal, in_words(*refusal));
}

static bool try_attach(const struct cs_attach *attach, HRESULT *refusal, struct cs_error *err) {
  struct cs_diag_payload *message = calloc(1, sizeof *message);
  *refusal = 0;
  bool good = message != NULL ? send_attach(attach, message, refusal, err)
                              : cs_error_set(err, "out of memory");
  free(message);
  return good;
}

// A runtime opens its port some milliseconds before it can load a profiler.
bool cs_attach(const struct cs_attach *attach, HRESULT *refusal, struct cs_error *err) {
  enum { STARTING_MS = 3000, AGAIN_MS = 20 };
  const struct cs_diag_meanwhile *m = &cs_diag_meanwhile;
  uint64_t until = cs_clock_now_ns() + STARTING_MS * 1000000ull;
  while (!try_attach(attach, refusal, err)) {
    if (*refusal != CORPROF_E_RUNTIME_UNINITIALIZED || cs_clock_now_ns() >= until) return false;
    if (m->poll != NULL && !m->poll(m->context)) return false;
    (void)usleep(AGAIN_MS * 1000);
  }
  return true;
}

bool cs_attach_check_inlined(pid_t pid, struct cs_error *err) {
  char *value = cs_proc_variable(pid, CS_RICH_DEBUG_INFO);
  bool kept = value != NULL && strtoul(value, NULL, 16) != 0;  // as the runtime reads it
  free(value);
  return kept || cs_error_set(err,
                              "process %d was started without " CS_RICH_DEBUG_INFO
                              "=1, so its runtime keeps nothing of inlined methods; start it with "
                              "that, or leave --inlined out",
                              (int)pid);
}
