// SPDX-License-Identifier: MIT
// What /proc says about another process. Invariant: a process may end between two reads, so each
// result may be missing. One thread. Signal-safe: no.
#include "process/proc.h"

#include <errno.h>
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

char *cs_proc_command_line(pid_t pid) {
  size_t size = 0;
  char *text = cs_proc_read(pid, "cmdline", &size);
  if (text != NULL && size > 0) {
    for (size_t i = 0; i + 1 < size; i++)
      if (text[i] == '\0') text[i] = ' ';
    return text;
  }
  free(text);
  text = cs_proc_read(pid, "comm", &size);
  if (text != NULL) text[strcspn(text, "\n")] = '\0';
  return text;
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

// Mapped as code: a process that only reads the file, for its symbols, is no .NET program.
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

bool cs_proc_start_time(pid_t pid, unsigned long long *out) {
  size_t size = 0;
  char *stat = cs_proc_read(pid, "stat", &size);
  char *p = stat != NULL ? strrchr(stat, ')') : NULL;  // the name in field 2 may contain anything
  for (int field = 2; p != NULL && field < 22; field++) p = strchr(p + 1, ' ');
  if (p != NULL) *out = strtoull(p + 1, NULL, 10);
  free(stat);
  return p != NULL;
}

// A process loses its root directory a little before it becomes a zombie.
bool cs_proc_has_ended(pid_t pid) {
  char path[32], link[8];
  (void)snprintf(path, sizeof path, "/proc/%d/root", (int)pid);
  return readlink(path, link, sizeof link) < 0 && (errno == ENOENT || errno == ESRCH);
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
