// SPDX-License-Identifier: MIT
// What works with one process. Invariant: the process is queried and read, but neither changed nor
// stopped. One thread. Signal-safe: no.
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/path.h"
#include "cli/doctor.h"
#include "cli/options.h"
#include "contract/supported.h"
#include "metadata/lines.h"
#include "process/launch.h"
#include "process/proc.h"
#include "process/process.h"
#include "process/profiler_env.h"
#include "remote/remote.h"
#include "session/attach_agent.h"
#include "session/hand_over.h"

// Some of the switches that refuse an attach refuse profilers at the start, too. So do other
// runtimes, which check_runtime reports.
static const char *cure_of_port(const struct cs_process *p) {
  pid_t pid = p->pid;
  if (p->runtime != NULL && !cs_runtime_is_accepted(strtoul(p->runtime, NULL, 10))) return NULL;
  if (cs_proc_is_zero(pid, "DOTNET_EnableDiagnostics") ||
      cs_proc_is_zero(pid, "COMPlus_EnableDiagnostics"))
    return "start it without EnableDiagnostics=0: that forbids profilers at a start, too";
  if (cs_proc_is_stopped(pid)) return "let it run (kill -CONT, or its debugger)";
  return "it cannot be attached to; start it with clrsnap record -- instead";
}

// Returns false if the other checks are pointless.
static bool check_port(struct cs_doctor *d, struct cs_process *p, pid_t pid) {
  if (!cs_process_inspect(p, pid)) {
    cs_doctor_note(d, CS_FINDING_FAULT, "process", "clrsnap ps lists the .NET processes", "%s",
                   p->why.text);
    return false;
  }
  cs_doctor_note(d, CS_FINDING_GOOD, "process", NULL, "%s",
                 p->command != NULL ? p->command : "(no command line)");
  cs_doctor_note(d, p->responds ? CS_FINDING_GOOD : CS_FINDING_FAULT, "diagnostics port",
                 p->responds ? NULL : cure_of_port(p), "%s",
                 p->responds ? "responds" : p->why.text);
  return true;
}

// Reads the runtime's layout from outside, as the walk does.
static void check_runtime(struct cs_doctor *d, const struct cs_process *p) {
  struct cs_error err = {""};
  struct cs_remote *remote = cs_remote_open(p->pid, &err);
  bool tried = p->runtime == NULL || strtoul(p->runtime, NULL, 10) != CS_PREPARED_RUNTIME;
  if (remote != NULL)
    cs_doctor_note(d, tried ? CS_FINDING_GOOD : CS_FINDING_NOTE, "runtime", NULL, ".NET %s %s",
                   p->runtime != NULL ? p->runtime : "(of an unknown version)",
                   tried ? "is supported" : "is prepared for, and has not been tried");
  else
    cs_doctor_note(d, CS_FINDING_FAULT, "runtime", NULL, "%s", err.text);
  if (remote != NULL) cs_remote_close(remote);
}

static void check_files(struct cs_doctor *d, pid_t pid) {
  struct cs_error err = {""};
  char *agent = cs_find_agent(&err);
  if (agent != NULL) {
    char *folder = NULL;
    bool good = cs_hand_over_check(pid, agent, &folder, &err);
    cs_doctor_note(d, good ? CS_FINDING_GOOD : CS_FINDING_FAULT, "agent's file", NULL, "%s%s",
                   !good            ? err.text
                   : folder == NULL ? "the process sees it"
                                    : "the process does not see it; an attach copies it into ",
                   folder != NULL ? folder : "");
    free(folder);
  }
  free(agent);
  static const char what[] = "its shared memory";
  bool good = cs_attach_check_memory(pid, CS_DEFAULT_BUFFER, CS_WIRE_TIMED_MODES, &err);
  bool events = good && cs_attach_check_memory(pid, CS_DEFAULT_BUFFER, CS_WIRE_AGENT_MODES, &err);
  if (events)
    cs_doctor_note(d, CS_FINDING_GOOD, what, NULL, "can be shared with it");
  else if (good)
    cs_doctor_note(d, CS_FINDING_NOTE, what, NULL,
                   "can be shared with it, in the modes cpu and wall only: %s", err.text);
  else
    cs_doctor_note(d, CS_FINDING_FAULT, what, NULL, "%s", err.text);
}

// In a child process, whose end detaches from the process; PTRACE_SEIZE does not stop it.
static void check_ptrace(struct cs_doctor *d, pid_t pid) {
  int status = 0;
  pid_t child = fork();
  if (child == 0) _exit(ptrace(PTRACE_SEIZE, pid, NULL, NULL) == 0 ? 0 : errno);
  if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status)) return;
  int error = WEXITSTATUS(status);
  if (error == 0)
    cs_doctor_note(d, CS_FINDING_GOOD, "stack", NULL, "clrsnap stack may stop and read it");
  else
    cs_doctor_note(d, CS_FINDING_FAULT, "stack",
                   "a debugger may be attached, or ptrace is restricted; record is not affected",
                   "clrsnap stack is refused: %s", strerror(error));
}

static void check_other_profilers(struct cs_doctor *d, const struct cs_process *p) {
  size_t size = 0;
  unsigned long major = p->runtime != NULL ? strtoul(p->runtime, NULL, 10) : 0;
  bool read = major == 0 || major >= CS_DOTNET_NAMES_RUNTIME;
  char *other = cs_profiler_named(p->pid, read, CS_AGENT_CLSID);
  char *ignored = other == NULL ? cs_profiler_named(p->pid, true, CS_AGENT_CLSID) : NULL;
  char *maps = cs_proc_read(p->pid, "maps", &size);
  const char *loaded = maps != NULL && strstr(maps, "/libclrsnap.so") != NULL
                           ? "; clrsnap's library is loaded already"
                           : "";
  if (other != NULL)
    cs_doctor_note(d, CS_FINDING_NOTE, "other profilers", NULL,
                   "it was started with the profiler %s; record works beside it%s", other, loaded);
  else if (ignored != NULL)
    cs_doctor_note(d, CS_FINDING_NOTE, "other profilers", NULL,
                   "DOTNET_PROFILER names %s, which .NET %lu does not load%s", ignored, major,
                   loaded);
  else
    cs_doctor_note(d, CS_FINDING_GOOD, "other profilers", NULL, "none in its environment%s",
                   loaded);
  free(other);
  free(ignored);
  free(maps);
}

// What prevents the perf engine in the process: it needs SIGURG, and a descriptor for each thread.
static void check_engine(struct cs_doctor *d, pid_t pid) {
  size_t size = 0;
  char *limits = cs_proc_read(pid, "limits", &size), *status = cs_proc_read(pid, "status", &size);
  uint64_t most = cs_proc_number(limits, "Max open files", 10);
  uint64_t used = cs_proc_number(status, "\nFDSize:", 10);  // at most
  uint64_t threads = cs_proc_number(status, "\nThreads:", 10);
  uint64_t caught = cs_proc_number(status, "\nSigCgt:", 16);
  uint64_t seccomp = cs_proc_number(status, "\nSeccomp:", 10);
  bool room = most == UINT64_MAX || used >= most || threads <= (most - used) / 2;
  const char *why = caught != UINT64_MAX && (caught >> (SIGURG - 1) & 1) != 0
                        ? "it uses SIGURG itself (or is being recorded)"
                    : !room ? "it has too few file descriptors left: raise its ulimit -n"
                    : seccomp != 0 && seccomp != UINT64_MAX
                        ? "it has a seccomp filter, which may refuse perf_event_open"
                        : NULL;
  if (why == NULL)
    cs_doctor_note(d, CS_FINDING_GOOD, "engine", NULL,
                   "nothing in the process prevents perf, for its %" PRIu64 " threads", threads);
  else
    cs_doctor_note(d, CS_FINDING_NOTE, "engine", why,
                   "perf may not be available there; record says which engine was used");
  free(limits);
  free(status);
}

// ---- Symbols ----

struct symbols {
  unsigned modules, found;
  char missing[320];
};

static void count_symbols(const char *module, enum cs_symbols symbols, void *data) {
  struct symbols *s = data;
  s->modules++;
  if (symbols == CS_SYMBOLS_FOUND) {
    s->found++;
    return;
  }
  size_t used = strlen(s->missing);
  (void)snprintf(s->missing + used, sizeof s->missing - used, "%s%s", used > 0 ? ", " : "",
                 cs_file_of(module));
}

// The program's own assemblies; the framework comes without symbols.
static bool is_program_module(const char *path) {
  size_t length = strlen(path);
  return length > 4 && strcmp(path + length - 4, ".dll") == 0 &&
         strstr(path, "/shared/Microsoft.") == NULL;
}

static void check_symbols(struct cs_doctor *d, pid_t pid) {
  size_t size = 0;
  struct symbols s = {0};
  struct cs_target *target = cs_target_of(pid);
  struct cs_lines *lines = cs_lines_new(target);
  char *maps = cs_proc_read(pid, "maps", &size), *rest = maps;
  for (char *line; maps != NULL && (line = strsep(&rest, "\n")) != NULL;) {
    const char *seen = strchr(line, '/');
    if (seen == NULL || !is_program_module(seen)) continue;
    const char *path = cs_target_path(target, seen);
    cs_lines_add_file(lines, path);
    (void)cs_lines_of_module(lines, path);
  }
  cs_lines_visit(lines, count_symbols, &s);
  if (s.modules > 0)
    cs_doctor_note(d, s.found > 0 ? CS_FINDING_GOOD : CS_FINDING_NOTE, "symbols",
                   s.found > 0 ? NULL : "--lines needs the portable PDBs beside the assemblies",
                   "PDBs of %u of the %u assemblies that are not .NET's own%s%s", s.found,
                   s.modules, s.missing[0] != '\0' ? "; none of " : "", s.missing);
  cs_lines_free(lines);
  cs_target_free(target);
  free(maps);
}

void cs_doctor_process(struct cs_doctor *d, pid_t pid) {
  struct cs_process p;
  if (check_port(d, &p, pid)) {
    check_runtime(d, &p);
    check_files(d, pid);
    check_other_profilers(d, &p);
    check_engine(d, pid);
    check_ptrace(d, pid);
    check_symbols(d, pid);
  }
  cs_process_free(&p);
}
