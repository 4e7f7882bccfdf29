// SPDX-License-Identifier: MIT
// An attach: the runtime is told to load libclrsnap.so as the profiler's class, with client data
// that begins with what the drop-in is to know and goes on with the profiler's own. Invariant: a
// refusal is told in words; nothing is said to have worked that the runtime has not confirmed.
// One thread. Signal-safe: no.
#include "cli/profiler_attach.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "cli/diag.h"

// How long the runtime may wait for a concurrent collection to end.
enum { RUNTIME_WAITS_MS = 10000 };

static const char *in_words(HRESULT hr) {
  static const struct {
    HRESULT hr;
    const char *words;
  } known[] = {
      {CORPROF_E_PROFILER_ALREADY_ACTIVE, "it has a profiler already, and a runtime takes one"},
      {HRESULT_MOD_NOT_FOUND, "a library cannot be loaded; its standard error says which and why"},
      {CLRSNAP_HRESULT(0x8007007Fu), "the library is no profiler (no DllGetClassObject)"},
      {CLASS_E_CLASSNOTAVAILABLE, "the profiler has no such class: --clsid is not the profiler's"},
      {E_NOTIMPL, "the profiler cannot be attached, only started with a program"},
      {CORPROF_E_PROFILER_NOT_ATTACHABLE, "the profiler cannot be attached"},
      {CORPROF_E_UNSUPPORTED_FOR_ATTACHING_PROFILER,
       "the profiler wants events that only one started with the program can have"},
      {CORPROF_E_PROFILER_CANCEL_ACTIVATION, "the profiler has decided not to run"},
      {CORPROF_E_NOT_YET_AVAILABLE, "its runtime is still starting; try again"},
      {CORPROF_E_RUNTIME_UNINITIALIZED, "its runtime is still starting; try again"},
      {CORPROF_E_PROFILER_DETACHING, "a profiler is just leaving it; try again in some seconds"},
      {CORPROF_E_TIMEOUT_WAITING_FOR_CONCURRENT_GC,
       "its collector was busy for too long; try again"},
      {COR_E_NOTSUPPORTED, "its runtime does not take profilers"},
      {CORDIAGIPC_E_UNKNOWN_COMMAND, "its runtime does not know how to attach profilers"},
      {E_INVALIDARG, "an argument is refused; its standard error may say which"},
  };
  for (size_t i = 0; i < CS_COUNT(known); i++)
    if (known[i].hr == hr) return known[i].words;
  return "the profiler or the runtime gives no other reason";
}

static void put_setting(struct cs_diag_payload *data, const char *name, const char *value) {
  cs_diag_put(data, name, strlen(name));
  cs_diag_put(data, "=", 1);
  cs_diag_put(data, value, strlen(value) + 1);
}

static bool put_file(struct cs_diag_payload *data, const char *path, struct cs_error *err) {
  FILE *file = fopen(path, "re");
  if (file == NULL) return cs_error_set(err, "cannot read %s: %m", path);
  char chunk[4096];
  for (size_t n; !data->too_long && (n = fread(chunk, 1, sizeof chunk, file)) > 0;)
    cs_diag_put(data, chunk, n);
  bool good = ferror(file) == 0;
  (void)fclose(file);
  return good || cs_error_set(err, "cannot read %s", path);
}

// For the drop-in, an empty setting, and what is the profiler's own.
static bool put_client_data(struct cs_diag_payload *data, const struct cs_profiler_options *o,
                            const char *profiler, struct cs_error *err) {
  const char *names[4];
  put_setting(data, "CLRSNAP_PROFILER_PATH", profiler);
  for (const char **name = cs_profiler_switches(o, names); *name != NULL; name++)
    put_setting(data, *name, "1");
  cs_diag_put(data, "", 1);
  return o->data == NULL || put_file(data, o->data, err);
}

static bool check_files(pid_t pid, const char *library, const char *profiler,
                        struct cs_error *err) {
  const char *missing = !cs_diag_sees_file(pid, library)    ? library
                        : !cs_diag_sees_file(pid, profiler) ? profiler
                                                            : NULL;
  return missing == NULL ||
         cs_error_set(err,
                      "process %d has no file %s: it sees other files than this command, as "
                      "in a container; put it there, too",
                      (int)pid, missing);
}

static bool send_attach(const struct cs_profiler_options *o, const char *library,
                        const struct cs_diag_payload *data, struct cs_diag_payload *message,
                        struct cs_error *err) {
  HRESULT refusal;
  cs_diag_put_u32(message, RUNTIME_WAITS_MS);
  cs_diag_put(message, &o->clsid, sizeof o->clsid);
  cs_diag_put_text(message, library);
  cs_diag_put_u32(message, (uint32_t)data->size);
  cs_diag_put(message, data->bytes, data->size);
  if (data->too_long || message->too_long)
    return cs_error_set(err,
                        "the client data is too long: with the names of the files, the "
                        "runtime takes 65535 bytes");
  if (cs_diag_command(o->attach, CS_DIAG_PROFILER, CS_DIAG_ATTACH, message, message, &refusal, err))
    return true;
  if (refusal == 0) return false;
  return cs_error_set(err, "process %d refuses the profiler (0x%08x): %s", (int)o->attach,
                      (unsigned)refusal, in_words(refusal));
}

bool cs_profiler_attach(const struct cs_profiler_options *o, const char *library,
                        const char *profiler, struct cs_error *err) {
  struct cs_diag_payload *data = calloc(1, sizeof *data), *message = calloc(1, sizeof *message);
  bool good = data != NULL && message != NULL
                  ? cs_diag_check(o->attach, err) && put_client_data(data, o, profiler, err) &&
                        check_files(o->attach, library, profiler, err) &&
                        send_attach(o, library, data, message, err)
                  : cs_error_set(err, "out of memory");
  free(data);
  free(message);
  return good;
}
