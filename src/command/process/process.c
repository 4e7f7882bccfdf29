// SPDX-License-Identifier: MIT
// .NET processes: those that map libcoreclr.so or have a diagnostics port. Invariant: each field
// was just read from the process or its port, or it is NULL. One thread. Signal-safe: no.
#include "process/process.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/bytes.h"
#include "base/utf16.h"
#include "process/proc.h"

// ---- The port's response ----

// A count of UTF-16 units, which includes the NUL, and the units. Returns NULL if there is none
// left.
static char *take_text(struct cs_bytes *from) {
  uint32_t units;
  if (!cs_take(from, &units, sizeof units) || units > CS_DIAG_PAYLOAD / 2) return NULL;
  // The payload's units are not aligned; each takes at most three bytes of UTF-8.
  uint16_t *wide = malloc(units * sizeof *wide + 1);
  char *text = malloc(units * 3ull + 1);
  if (wide != NULL && text != NULL && cs_take(from, wide, units * sizeof *wide)) {
    (void)cs_utf16_to_utf8(text, units * 3ull + 1, wide, units, NULL);
  } else {
    free(text);
    text = NULL;
  }
  free(wide);
  return text;
}

// ProcessInfo2: PID (8 bytes), cookie (16), command line, system, machine, main assembly, version.
static void take_response(struct cs_process *p, const struct cs_diag_payload *response) {
  struct cs_bytes from = {response->bytes, response->size};
  if (!cs_take(&from, NULL, 24)) return;
  for (int i = 0; i < 3; i++) free(take_text(&from));
  p->assembly = take_text(&from);
  p->product = take_text(&from);
  if (p->assembly != NULL && p->assembly[0] == '\0') {
    free(p->assembly);
    p->assembly = NULL;
  }
  // "10.0.12-servicing.26411.1+1a2b3c"
  if (p->product != NULL && p->product[0] != '\0')
    p->runtime = strndup(p->product, strspn(p->product, "0123456789."));
}

static void ask(struct cs_process *p) {
  HRESULT refusal;
  struct cs_diag_payload *payload = calloc(1, sizeof *payload);
  if (payload == NULL) {
    (void)cs_error_set(&p->why, "out of memory");
    return;
  }
  p->responds =
      cs_diag_command(p->pid, CS_DIAG_PROCESS, CS_DIAG_INFO, payload, payload, &refusal, &p->why);
  if (p->responds) take_response(p, payload);
  free(payload);
}

// ---- The process ----

// A shared runtime's directory is named after its version.
static char *version_of_folder(pid_t pid) {
  size_t size = 0;
  char *maps = cs_proc_read(pid, "maps", &size), *version = NULL;
  char *end = maps != NULL ? strstr(maps, "/libcoreclr.so") : NULL;
  if (end != NULL) {
    *end = '\0';
    char *slash = strrchr(maps, '/');
    size_t digits = slash != NULL ? strspn(slash + 1, "0123456789.") : 0;
    if (digits >= 5) version = strndup(slash + 1, digits);
  }
  free(maps);
  return version;
}

bool cs_process_inspect(struct cs_process *p, pid_t pid) {
  char path[32];
  struct stat st;
  *p = (struct cs_process){.pid = pid};
  (void)snprintf(path, sizeof path, "/proc/%d", (int)pid);
  if (pid <= 0 || stat(path, &st) != 0)
    return cs_error_set(&p->why, "there is no process %d", (int)pid);
  p->uid = st.st_uid;
  p->has_coreclr = cs_proc_maps_coreclr(pid);
  if (!p->has_coreclr && !cs_diag_has_port(pid)) {
    if (cs_diag_check(pid, &p->why))
      (void)cs_error_set(
          &p->why, "process %d is not a .NET program, or its runtime has not started", (int)pid);
    return false;
  }
  ask(p);
  p->command = cs_proc_command_line(pid);
  if (p->runtime == NULL) p->runtime = version_of_folder(pid);
  return true;
}

void cs_process_free(struct cs_process *p) {
  free(p->command);
  free(p->runtime);
  free(p->product);
  free(p->assembly);
  *p = (struct cs_process){0};
}

static int by_number(const struct dirent **a, const struct dirent **b) {
  long x = strtol((*a)->d_name, NULL, 10), y = strtol((*b)->d_name, NULL, 10);
  return (x > y) - (x < y);
}

static int is_number(const struct dirent *entry) {
  return entry->d_name[0] >= '1' && entry->d_name[0] <= '9';
}

bool cs_processes_visit(void (*visit)(const struct cs_process *p, void *data), void *data,
                        struct cs_error *err) {
  struct dirent **entries;
  int count = scandir("/proc", &entries, is_number, by_number);
  if (count < 0) return cs_error_set(err, "cannot read /proc: %m");
  for (int i = 0; i < count; i++) {
    struct cs_process p;
    if (cs_process_inspect(&p, (pid_t)strtol(entries[i]->d_name, NULL, 10))) visit(&p, data);
    cs_process_free(&p);
    free(entries[i]);
  }
  free(entries);
  return true;
}
