// SPDX-License-Identifier: MIT
// The startup hook that labels need, and the choice of a trace. Invariant: a program is never told
// of a hook that is not there, because a runtime ends when it cannot load one. One thread.
// Signal-safe: no.
#include "process/label_hook.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "process/diag.h"

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
                       "--labels needs %s, which is not there: it is built where the SDK of .NET "
                       "10 is; install that and build clrsnap again",
                       path);
  else if (!listed)
    (void)cs_error_set(err, "%s: a path with ':' cannot stand in a list of startup hooks", path);
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

// Exactly `count` bytes, as hexadecimal digits; answers what is behind them, NULL: they are not.
static const char *take_hex(const char *text, uint8_t *bytes, size_t count) {
  for (size_t i = 0; i < count; i++, text += 2) {
    char digits[3] = {text[0], text[0] != '\0' ? text[1] : '\0', '\0'};
    if (!isxdigit((unsigned char)digits[0]) || !isxdigit((unsigned char)digits[1])) return NULL;
    bytes[i] = (uint8_t)strtoul(digits, NULL, 16);
  }
  return text;
}

bool cs_parse_trace(const char *text, struct cs_label_choice *out, struct cs_error *err) {
  *out = (struct cs_label_choice){.any_span = true};
  const char *at = take_hex(text, out->label.trace, sizeof out->label.trace);
  if (at != NULL && *at == ':') {
    out->any_span = false;
    at = take_hex(at + 1, out->label.span, sizeof out->label.span);
  }
  static const struct cs_label none;
  return (at != NULL && *at == '\0' && memcmp(&out->label, &none, sizeof none) != 0) ||
         cs_error_set(err,
                      "--trace wants a trace id of 32 hexadecimal digits, or that, ':' and a span "
                      "id of 16, not '%s'",
                      text);
}

bool cs_label_is_chosen(const struct cs_label_choice *choice, const struct cs_label *label) {
  return memcmp(choice->label.trace, label->trace, sizeof label->trace) == 0 &&
         (choice->any_span || memcmp(choice->label.span, label->span, sizeof label->span) == 0);
}
