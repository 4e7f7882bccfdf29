// SPDX-License-Identifier: MIT
// The startup hook that labels need. Invariant: a program is never given the path of a hook that
// does not exist, because a runtime that cannot load a hook terminates. One thread. Signal-safe:
// no.
#include "process/label_hook.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "process/diag.h"
#include "process/proc.h"
#include "process/target.h"

#define HOOK_NAME "ClrsnapLabels.dll"
#define HOOKS_ENV "DOTNET_STARTUP_HOOKS"

char *cs_label_hook_find(const char *agent, struct cs_error *err) {
  const char *slash = strrchr(agent, '/');
  char *path = NULL;
  if (asprintf(&path, "%.*s/" HOOK_NAME, (int)(slash - agent), agent) < 0) {
    (void)cs_error_set(err, "out of memory");
    return NULL;
  }
  bool there = access(path, R_OK) == 0, listed = strchr(path, ':') == NULL;
  if (!there)
    (void)cs_error_set(err,
                       "--labels needs %s, which does not exist: it is built if the SDK of .NET "
                       "10 is installed; install that and build clrsnap again",
                       path);
  else if (!listed)
    (void)cs_error_set(err, "%s: a path with ':' cannot be in a list of startup hooks", path);
  if (there && listed) return path;
  free(path);
  return NULL;
}

bool cs_label_hook_put(const char *hook) {
  const char *others = getenv(HOOKS_ENV);
  char *all = NULL;
  bool more = others != NULL && others[0] != '\0';
  if (asprintf(&all, "%s%s%s", hook, more ? ":" : "", more ? others : "") < 0) return false;
  bool put = setenv(HOOKS_ENV, all, 1) == 0;
  free(all);
  return put;
}

// The runtime loads one assembly of a name.
char *cs_label_hook_other(pid_t pid, const char *hook) {
  size_t size = 0;
  struct cs_target *target = cs_target_of(pid);
  char *maps = cs_proc_read(pid, "maps", &size), *other = NULL, *rest;
  char *line = maps != NULL ? strtok_r(maps, "\n", &rest) : NULL;
  for (; line != NULL && other == NULL; line = strtok_r(NULL, "\n", &rest)) {
    const char *seen = strchr(line, '/');
    const char *path = seen != NULL ? cs_target_path(target, seen) : NULL;
    if (path != NULL && strstr(path, "/" HOOK_NAME) != NULL && strcmp(path, hook) != 0)
      other = strdup(path);
  }
  free(maps);
  cs_target_free(target);
  return other;
}

bool cs_label_hook_call(pid_t pid, const char *hook, struct cs_error *err) {
  HRESULT refusal = 0;
  struct cs_diag_payload *payload = calloc(1, sizeof *payload);
  if (payload == NULL) return cs_error_set(err, "out of memory");
  cs_diag_put_text(payload, hook);
  bool called = cs_diag_command(pid, CS_DIAG_PROCESS, CS_DIAG_APPLY_STARTUP_HOOK, payload, payload,
                                &refusal, err);
  free(payload);
  if (called || refusal == 0) return called;
  return cs_error_set(err,
                      "process %d does not run the startup hook that labels need (0x%08x): is it "
                      "built without startup hooks? Record it without --labels",
                      (int)pid, (unsigned)refusal);
}
