// SPDX-License-Identifier: MIT
// Reads and sets the variables that name profilers. Invariant: after cs_profiler_put only the
// CORECLR_ form is left, so every runtime loads the same profiler. A list of notification profilers
// keeps its entries, in each form that is set. One thread. Signal-safe: no.
#include "process/profiler_env.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "process/proc.h"

static const char *const forms[] = {"DOTNET_", "CORECLR_"};
enum { DOTNET, CORECLR };

struct name {
  char text[64];
};

static struct name name_of(int form, const char *variable) {
  struct name name;
  (void)snprintf(name.text, sizeof name.text, "%s%s", forms[form], variable);
  return name;
}

static char *value_of(pid_t pid, int form, const char *variable) {
  struct name name = name_of(form, variable);
  if (pid != 0) return cs_proc_variable(pid, name.text);
  const char *value = getenv(name.text);
  return value != NULL ? strdup(value) : NULL;
}

// The runtime parses this variable as a hexadecimal number.
static bool is_on(pid_t pid, int form) {
  char *value = value_of(pid, form, "ENABLE_PROFILING");
  bool on = value != NULL && strtoul(value, NULL, 16) != 0;
  free(value);
  return on;
}

char *cs_profiler_named(pid_t pid, bool dotnet, const char *except) {
  int first = dotnet ? DOTNET : CORECLR;
  bool on = false;
  for (int form = first; form <= CORECLR; form++) on = on || is_on(pid, form);
  for (int form = first; on && form <= CORECLR; form++) {
    char *class = value_of(pid, form, "PROFILER");
    if (class != NULL && class[0] != '\0' && strcasecmp(class, except) != 0) return class;
    free(class);
  }
  return NULL;
}

static bool put(int form, const char *variable, const char *value) {
  return setenv(name_of(form, variable).text, value, 1) == 0;
}

bool cs_profiler_put(const char *class, const char *library) {
  static const char *const all[] = {"ENABLE_PROFILING", "PROFILER", "PROFILER_PATH",
                                    "PROFILER_PATH_64"};
  for (size_t i = 0; i < CS_COUNT(all); i++) (void)unsetenv(name_of(DOTNET, all[i]).text);
  (void)unsetenv("CORECLR_PROFILER_PATH_64");  // would win over CORECLR_PROFILER_PATH
  return put(CORECLR, "ENABLE_PROFILING", "1") && put(CORECLR, "PROFILER", class) &&
         put(CORECLR, "PROFILER_PATH", library);
}

static bool is_set(int form, const char *variable) {
  const char *value = getenv(name_of(form, variable).text);
  return value != NULL && value[0] != '\0';
}

static bool join_list(int form, const char *class, const char *library) {
  const char *variable = is_set(form, "NOTIFICATION_PROFILERS_64") ? "NOTIFICATION_PROFILERS_64"
                                                                   : "NOTIFICATION_PROFILERS";
  char *joined, *list = value_of(0, form, variable);
  size_t len = list != NULL ? strlen(list) : 0;
  // .NET 9 and 10 ignore an entry that is not followed by ';'.
  if (asprintf(&joined, "%s%s%s=%s;", list != NULL ? list : "",
               len > 0 && list[len - 1] != ';' ? ";" : "", library, class) < 0)
    joined = NULL;
  free(list);
  bool ok = joined != NULL && put(form, variable, joined);
  free(joined);
  return ok;
}

// Sets the DOTNET_ form only where an existing one would hide the other.
bool cs_profiler_put_notified(const char *class, const char *library) {
  bool listed =
      is_set(DOTNET, "NOTIFICATION_PROFILERS") || is_set(DOTNET, "NOTIFICATION_PROFILERS_64");
  bool switched = is_set(DOTNET, "ENABLE_NOTIFICATION_PROFILERS");
  return put(CORECLR, "ENABLE_NOTIFICATION_PROFILERS", "1") && join_list(CORECLR, class, library) &&
         (!switched || put(DOTNET, "ENABLE_NOTIFICATION_PROFILERS", "1")) &&
         (!listed || join_list(DOTNET, class, library));
}
