// SPDX-License-Identifier: MIT
// Attaches another profiler: the runtime loads libclrsnap.so as the profiler's class, with client
// data that consists of the drop-in's settings and the profiler's own client data. One thread.
// Signal-safe: no.
#include "guest/attach.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "process/attach.h"
#include "session/hand_over.h"

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

// The drop-in's settings, an empty one that ends them, and the profiler's own client data.
static bool put_client_data(struct cs_diag_payload *data, const struct cs_profiler_options *o,
                            const char *profiler, struct cs_error *err) {
  const char *names[4];
  put_setting(data, "CLRSNAP_PROFILER_PATH", profiler);
  for (const char **name = cs_profiler_switches(o, names); *name != NULL; name++)
    put_setting(data, *name, "1");
  cs_diag_put(data, "", 1);
  return o->data == NULL || put_file(data, o->data, err);
}

bool cs_profiler_attach(const struct cs_profiler_options *o, const char *library,
                        const char *profiler, struct cs_error *err) {
  HRESULT refusal;
  struct cs_handed handed = {0};
  struct cs_diag_payload *data = calloc(1, sizeof *data);
  struct cs_attach attach = {o->attach, &o->clsid, NULL, data};
  bool good = data != NULL
                  ? cs_diag_find(o->attach, err) && put_client_data(data, o, profiler, err) &&
                        cs_attach_check_file(o->attach, profiler, err) &&
                        cs_hand_over(o->attach, library, NULL, NULL, &handed, err)
                  : cs_error_set(err, "out of memory");
  attach.library = handed.agent;
  good = good && cs_attach(&attach, &refusal, err);
  cs_handed_free(&handed);
  free(data);
  return good;
}
