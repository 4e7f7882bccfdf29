// SPDX-License-Identifier: MIT
// What /proc says about another process. Invariant: a process may end between two reads, so each
// result may be missing. One thread. Signal-safe: no.
#include "process/proc.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

char *cs_proc_read(pid_t pid, const char *name, size_t *size) {
  char path[64], chunk[4096];
  char *text = NULL;
  (void)snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
  FILE *in = fopen(path, "re"), *out = in != NULL ? open_memstream(&text, size) : NULL;
  for (size_t n; out != NULL && (n = fread(chunk, 1, sizeof chunk, in)) > 0;)
    (void)fwrite(chunk, 1, n, out);
  if (out != NULL) (void)fclose(out);
  if (in != NULL) (void)fclose(in);
  return text;
}

bool cs_proc_name(pid_t pid, char *out, size_t size) {
  size_t length = 0;
  char *text = cs_proc_read(pid, "comm", &length);
  if (text != NULL) (void)snprintf(out, size, "%.*s", (int)strcspn(text, "\n"), text);
  free(text);
  return length > 0;
}

char *cs_proc_command_line(pid_t pid) {
  char name[64];
  size_t size = 0;
  char *text = cs_proc_read(pid, "cmdline", &size);
  if (text != NULL && size > 0) {
    for (size_t i = 0; i + 1 < size; i++)
      if (text[i] == '\0') text[i] = ' ';
    return text;
  }
  free(text);
  return cs_proc_name(pid, name, sizeof name) ? strdup(name) : NULL;
}

char *cs_proc_variable(pid_t pid, const char *name) {
  size_t size = 0, length = strlen(name);
  char *all = cs_proc_read(pid, "environ", &size), *found = NULL;
  for (char *p = all; p != NULL && found == NULL && p < all + size; p += strlen(p) + 1)
    if (strncmp(p, name, length) == 0 && p[length] == '=') found = strdup(p + length + 1);
  free(all);
  return found;
}

bool cs_proc_is_zero(pid_t pid, const char *name) {
  char *value = cs_proc_variable(pid, name);
  bool zero = value != NULL && strcmp(value, "0") == 0;
  free(value);
  return zero;
}

// Mapped as code: a process that only reads the file, for its symbols, is not a .NET program.
bool cs_proc_maps_coreclr(pid_t pid) {
  size_t size = 0;
  char *maps = cs_proc_read(pid, "maps", &size), *rest = maps;
  bool found = false;
  for (char *line; !found && maps != NULL && (line = strsep(&rest, "\n")) != NULL;) {
    const char *access = strchr(line, ' ');
    found = access != NULL && strlen(access) > 4 && access[3] == 'x' &&
            strstr(line, "/libcoreclr.so") != NULL;
  }
  free(maps);
  return found;
}

static bool field_of_stat(pid_t pid, int wanted, unsigned long long *out) {
  size_t size = 0;
  char *stat = cs_proc_read(pid, "stat", &size);
  char *p = stat != NULL ? strrchr(stat, ')') : NULL;  // the name in field 2 may contain anything
  for (int field = 2; p != NULL && field < wanted; field++) p = strchr(p + 1, ' ');
  if (p != NULL) *out = strtoull(p + 1, NULL, 10);
  free(stat);
  return p != NULL;
}

bool cs_proc_start_time(pid_t pid, unsigned long long *out) {
  return field_of_stat(pid, 22, out);
}

pid_t cs_proc_parent(pid_t pid) {
  unsigned long long parent = 0;
  return field_of_stat(pid, 4, &parent) ? (pid_t)parent : 0;
}

bool cs_proc_stack(pid_t pid, unsigned long long *out) {
  return field_of_stat(pid, 28, out) && *out > 1;
}

// Before a process becomes a zombie, it loses its memory, which takes a while, and then its root
// directory; the kernel's flags say so earlier than either.
bool cs_proc_has_ended(pid_t pid) {
  enum { FLAGS = 9, EXITING = 4 };  // the field of stat, and PF_EXITING
  unsigned long long flags;
  char path[32], link[8];
  if (field_of_stat(pid, FLAGS, &flags) && (flags & EXITING) != 0) return true;
  (void)snprintf(path, sizeof path, "/proc/%d/root", (int)pid);
  return readlink(path, link, sizeof link) < 0 && (errno == ENOENT || errno == ESRCH);
}

bool cs_proc_is_stopped(pid_t pid) {
  size_t size = 0;
  char *status = cs_proc_read(pid, "status", &size);
  const char *line = status != NULL ? strstr(status, "\nState:\t") : NULL;
  bool stopped = line != NULL && (line[8] == 'T' || line[8] == 't');
  free(status);
  return stopped;
}

int cs_proc_own_pid(pid_t pid) {
  size_t size = 0;
  int number = (int)pid;
  char *status = cs_proc_read(pid, "status", &size);
  char *line = status != NULL ? strstr(status, "\nNSpid:") : NULL;
  char *end = line != NULL ? strchr(line + 1, '\n') : NULL;
  if (end != NULL) {
    *end = '\0';
    char *last = strrchr(line + 1, '\t');
    if (last != NULL) number = atoi(last + 1);
  }
  free(status);
  return number;
}

// ---- Its own clock ----

// The name of a namespace, such as "time:[4026531834]".
static bool namespace_of(const char *process, const char *kind, char *out, size_t size) {
  char path[64];
  (void)snprintf(path, sizeof path, "/proc/%s/ns/%s", process, kind);
  ssize_t length = readlink(path, out, size - 1);
  if (length > 0) out[length] = '\0';
  return length > 0;
}

// The kernel shows the offsets for children: a process that has made a namespace for them, and is
// not in it itself, has others, which cannot be read.
static bool offset_of(const char *process, int64_t *ns) {
  char path[64], own[64], children[64], line[96];
  long long seconds, rest;
  bool found = false;
  if (!namespace_of(process, "time", own, sizeof own) ||
      !namespace_of(process, "time_for_children", children, sizeof children) ||
      strcmp(own, children) != 0)
    return false;
  (void)snprintf(path, sizeof path, "/proc/%s/timens_offsets", process);
  FILE *in = fopen(path, "re");
  while (in != NULL && !found && fgets(line, sizeof line, in) != NULL)
    found = sscanf(line, "boottime %lld %lld", &seconds, &rest) == 2;
  if (in != NULL) (void)fclose(in);
  if (found) *ns = seconds * 1000000000 + rest;
  return found;
}

// Both numbers are rounded down to ticks, so an offset that is no multiple of one may make one more
// of the difference.
unsigned cs_proc_own_start_times(pid_t pid, unsigned long long out[CS_OWN_START_TIMES]) {
  char process[16], here[64], there[64];
  int64_t own = 0, its = 0, tick = 1000000000 / sysconf(_SC_CLK_TCK);
  if (!cs_proc_start_time(pid, &out[0])) return 0;
  (void)snprintf(process, sizeof process, "%d", (int)pid);
  if (!namespace_of("self", "time", here, sizeof here) ||
      !namespace_of(process, "time", there, sizeof there) || strcmp(here, there) == 0 ||
      !offset_of("self", &own) || !offset_of(process, &its))
    return 1;
  int64_t shift = its - own, ticks = shift / tick - (shift % tick < 0 ? 1 : 0);
  out[0] += (unsigned long long)ticks;
  out[1] = out[0] + 1;
  return shift % tick != 0 ? 2 : 1;
}

// ---- What a number stands for ----

uint64_t cs_proc_number(const char *text, const char *label, int base) {
  const char *at = text != NULL ? strstr(text, label) : NULL;
  if (at == NULL) return UINT64_MAX;
  at += strlen(label) + strspn(at + strlen(label), " \t");
  return *at >= '0' && *at <= 'f' && *at != 'u' ? strtoull(at, NULL, base) : UINT64_MAX;
}

// Returns the name in /proc/PID/status, or "?".
static const char *name_in(char *status) {
  char *name = status != NULL ? strstr(status, "Name:\t") : NULL;
  if (name == NULL) return "?";
  name += strlen("Name:\t");
  name[strcspn(name, "\n")] = '\0';
  return name;
}

// Some process of another PID namespace that has this number there; 0: none.
static pid_t namesake(pid_t pid) {
  const struct dirent *entry;
  pid_t found = 0;
  DIR *proc = opendir("/proc");
  while (proc != NULL && found == 0 && (entry = readdir(proc)) != NULL) {
    pid_t other = (pid_t)strtol(entry->d_name, NULL, 10);
    if (other > 0 && other != pid && cs_proc_own_pid(other) == (int)pid) found = other;
  }
  if (proc != NULL) (void)closedir(proc);
  return found;
}

static bool explain_missing(pid_t pid, struct cs_error *err) {
  if (pid > 0 && (kill(pid, 0) == 0 || errno == EPERM))
    return cs_error_set(err,
                        "process %d is not shown in /proc, which is mounted with hidepid: only its "
                        "user and root may attach to it",
                        (int)pid);
  pid_t other = pid > 0 ? namesake(pid) : 0;
  if (other == 0) return cs_error_set(err, "there is no process %d", (int)pid);
  size_t size;
  char *status = cs_proc_read(other, "status", &size);
  (void)cs_error_set(err,
                     "there is no process %d here; in a PID namespace of its own, %d (%s) has that "
                     "number: 'clrsnap ps' lists processes by the numbers that they have here",
                     (int)pid, (int)other, name_in(status));
  free(status);
  return false;
}

// Field 9 of /proc/PID/stat, the flags, has this bit for a thread of the kernel.
static bool is_of_kernel(pid_t pid) {
  enum { FLAGS = 9, KERNEL_THREAD = 0x00200000 };
  unsigned long long flags;
  return field_of_stat(pid, FLAGS, &flags) && (flags & KERNEL_THREAD) != 0;
}

bool cs_proc_check(pid_t pid, struct cs_error *err) {
  size_t size = 0;
  char *status = pid > 0 ? cs_proc_read(pid, "status", &size) : NULL;
  if (status == NULL) return explain_missing(pid, err);
  pid_t process = (pid_t)cs_proc_number(status, "\nTgid:", 10);
  pid_t parent = (pid_t)cs_proc_number(status, "\nPPid:", 10);
  bool zombie = strstr(status, "\nState:\tZ") != NULL, good = false;
  if (process > 0 && process != pid)
    (void)cs_error_set(err, "%d is a thread ('%s') of process %d: give the process's number",
                       (int)pid, name_in(status), (int)process);
  else if (zombie)
    (void)cs_error_set(err,
                       "process %d has ended: it is a zombie, for which its parent, process %d, "
                       "has not waited yet",
                       (int)pid, (int)parent);
  else if (is_of_kernel(pid))
    (void)cs_error_set(err, "%d (%s) is a thread of the kernel, not a process", (int)pid,
                       name_in(status));
  else
    good = true;
  free(status);
  return good;
}
