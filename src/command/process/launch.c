// SPDX-License-Identifier: MIT
// Starts the program. Invariant: another profiler that is already named in the environment stays
// the main profiler, and ours is added to the notification profilers. One thread. Signal-safe: no
// (the child is forked from a single-threaded process, so it may use libc).
#include "process/launch.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arch.h"
#include "process/label_hook.h"
#include "process/profiler_env.h"
#include "wire/wire.h"

#define AGENT_NAME "libclrsnap.so"

static char *beside_binary(const char *relative) {
  char exe[4096];
  ssize_t len = readlink("/proc/self/exe", exe, sizeof exe - 1);
  if (len <= 0) return NULL;
  exe[len] = '\0';
  char *slash = strrchr(exe, '/');
  if (slash == NULL) return NULL;
  *slash = '\0';
  char *joined = NULL, *path = NULL;
  if (asprintf(&joined, "%s/%s/" AGENT_NAME, exe, relative) >= 0) path = realpath(joined, NULL);
  free(joined);
  return path;
}

// Returns false if the file ends before its table of sections, which is the last part of it: it is
// being copied, or has been copied in part. A program that loads such a library ends with SIGBUS.
static bool is_whole(const char *path, struct cs_error *err) {
  Elf64_Ehdr head;
  struct stat status;
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  bool read_head =
      fd >= 0 && fstat(fd, &status) == 0 && pread(fd, &head, sizeof head, 0) == sizeof head;
  if (fd >= 0) (void)close(fd);
  if (!read_head || memcmp(head.e_ident, ELFMAG, SELFMAG) != 0) return true;  // it is not loaded
  uint64_t size = (uint64_t)status.st_size, rest = (uint64_t)head.e_shnum * head.e_shentsize;
  return (head.e_shoff <= size && rest <= size - head.e_shoff) ||
         cs_error_set(err, "%s is not whole: it is being replaced, or was copied in part", path);
}

static char *find_file(struct cs_error *err) {
  static const char *const places[] = {"../lib", "../lib/" CS_ARCH "-linux-gnu", "../lib64",
                                       "../lib/clrsnap", "."};
  const char *named = getenv("CLRSNAP_LIB");
  if (named != NULL && named[0] != '\0') {
    // Absolute, because the program may change its directory before the runtime loads it.
    char *path = realpath(named, NULL);
    if (path == NULL) (void)cs_error_set(err, "CLRSNAP_LIB=%s: %m", named);
    return path;
  }
  for (size_t i = 0; i < CS_COUNT(places); i++) {
    char *path = beside_binary(places[i]);
    if (path != NULL) return path;
  }
  (void)cs_error_set(
      err, AGENT_NAME " is not in ../lib beside this command; set CLRSNAP_LIB to its path");
  return NULL;
}

char *cs_find_agent(struct cs_error *err) {
  char *path = find_file(err);
  if (path == NULL || is_whole(path, err)) return path;
  free(path);
  return NULL;
}

char *cs_join_words(char **argv) {
  char *text = NULL;
  size_t len = 0;
  FILE *out = open_memstream(&text, &len);
  if (out == NULL) return NULL;
  for (size_t i = 0; argv[i] != NULL; i++) (void)fprintf(out, "%s%s", i > 0 ? " " : "", argv[i]);
  (void)fclose(out);
  return text;
}

static const char *env(const char *name) {
  const char *value = getenv(name);
  return value != NULL ? value : "";
}

static bool put(const char *name, const char *value) {
  return setenv(name, value, 1) == 0;
}

bool cs_demote_agent(struct cs_error *err) {
  const char *agent = env("CORECLR_PROFILER_PATH");
  if (env(CS_WIRE_ENV)[0] == '\0' || strtoul(env("CORECLR_ENABLE_PROFILING"), NULL, 16) == 0 ||
      strcasecmp(env("CORECLR_PROFILER"), CS_AGENT_CLSID) != 0)
    return true;
  if (strchr(agent, ';') != NULL)
    return cs_error_set(err, "%s: a path with ';' cannot be in a list of profilers", agent);
  return (cs_profiler_put_notified(CS_AGENT_CLSID, agent) && unsetenv("CORECLR_PROFILER") == 0) ||
         cs_error_set(err, "out of memory");
}

static bool put_namespace(void) {
  char number[24];
  struct stat st;
  if (stat("/proc/self/ns/pid", &st) != 0) return unsetenv(CS_WIRE_NAMESPACE_ENV) == 0;
  (void)snprintf(number, sizeof number, "%ju", (uintmax_t)st.st_ino);
  return put(CS_WIRE_NAMESPACE_ENV, number);
}

// In the child: becomes the program, or sends errno to the parent.
_Noreturn static void run_program(char **argv, const char *agent, const char *hook, const char *shm,
                                  const sigset_t *mask, int to_parent) {
  char *other = cs_profiler_named(0, true, CS_AGENT_CLSID);
  bool ok = put(CS_WIRE_ENV, shm) && put_namespace() &&
            (other != NULL ? cs_profiler_put_notified(CS_AGENT_CLSID, agent)
                           : cs_profiler_put(CS_AGENT_CLSID, agent));
  ok = ok && (hook == NULL || cs_label_hook_put(hook));
  if (ok) {
    (void)signal(SIGPIPE, SIG_DFL);
    (void)signal(SIGXFSZ, SIG_DFL);
    (void)sigprocmask(SIG_SETMASK, mask, NULL);
    (void)execvp(argv[0], argv);
  }
  int error = errno;
  (void)!write(to_parent, &error, sizeof error);
  _exit(CS_EXIT_NOT_FOUND);
}

int cs_exec_failed(const char *program, int error, struct cs_error *err) {
  bool missing = error == ENOENT || error == ENOTDIR;
  (void)cs_error_set(err, missing ? "program not found: %s" : "cannot execute %s: %s", program,
                     strerror(error));
  return missing ? CS_EXIT_NOT_FOUND : CS_EXIT_NOT_EXECUTABLE;
}

pid_t cs_launch(char **argv, const char *agent, const char *hook, const char *shm,
                const sigset_t *mask, int *exit_code, struct cs_error *err) {
  int tell[2];
  *exit_code = 1;
  char *other = cs_profiler_named(0, true, CS_AGENT_CLSID);
  bool beside = other != NULL;
  free(other);
  if (beside && strchr(agent, ';') != NULL) {
    (void)cs_error_set(err, "%s: a path with ';' cannot be in a list of profilers", agent);
    return 0;
  }
  if (pipe2(tell, O_CLOEXEC) != 0) {
    (void)cs_error_set(err, "cannot make a pipe: %m");
    return 0;
  }
  pid_t pid = fork();
  if (pid == 0) run_program(argv, agent, hook, shm, mask, tell[1]);
  int fork_error = errno;
  (void)close(tell[1]);
  if (pid < 0) {
    (void)close(tell[0]);
    (void)cs_error_set(err, "cannot start a process: %s", strerror(fork_error));
    return 0;
  }
  int error = 0;
  ssize_t got;
  // End of file means that exec has closed the other end.
  while ((got = read(tell[0], &error, sizeof error)) < 0 && errno == EINTR) {
  }
  (void)close(tell[0]);
  if (got != (ssize_t)sizeof error) return pid;
  *exit_code = cs_exec_failed(argv[0], error, err);
  return 0;
}
