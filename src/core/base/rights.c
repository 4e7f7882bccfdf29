// SPDX-License-Identifier: MIT
// cs_rights_lacking applies the kernel's rules for access to another process (ptrace(2), "Ptrace
// access mode checking"), in the kernel's order, to what /proc shows of both processes. Invariant:
// it only explains; the kernel has already decided. One thread. Signal-safe: no.
#include "base/rights.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct rights {
  unsigned user[4], group[4];  // real, effective, saved, file system
  uint64_t capabilities;
};

static bool read_rights(const char *path, struct rights *out) {
  char line[256];
  int found = 0;
  FILE *in = fopen(path, "re");
  *out = (struct rights){0};
  while (in != NULL && fgets(line, sizeof line, in) != NULL) {
    unsigned *u = out->user, *g = out->group;
    found += sscanf(line, "Uid: %u %u %u %u", &u[0], &u[1], &u[2], &u[3]) == 4;
    found += sscanf(line, "Gid: %u %u %u %u", &g[0], &g[1], &g[2], &g[3]) == 4;
    found += sscanf(line, "CapPrm: %" SCNx64, &out->capabilities) == 1;
  }
  if (in != NULL) (void)fclose(in);
  return found == 3;
}

static bool all_are(const unsigned ids[4], unsigned id) {
  return ids[0] == id && ids[1] == id && ids[2] == id;
}

bool cs_rights_lacking(int pid, struct cs_error *why) {
  char path[64];
  struct rights target, self;
  (void)snprintf(path, sizeof path, "/proc/%d/status", pid);
  if (!read_rights(path, &target) || !read_rights("/proc/self/status", &self))
    return cs_error_set(why, "this takes its user and group, or CAP_SYS_PTRACE");
  if (!all_are(target.user, self.user[1]) || !all_are(target.group, self.group[1]))
    return cs_error_set(why,
                        "it runs as user %u, group %u, and this command as user %u, group %u: run "
                        "it as that user and group, or with CAP_SYS_PTRACE",
                        target.user[1], target.group[1], self.user[1], self.group[1]);
  if ((target.capabilities & ~self.capabilities) != 0)
    return cs_error_set(why,
                        "it has capabilities that this command lacks: run this command with the "
                        "same ones, or with CAP_SYS_PTRACE");
  return cs_error_set(why,
                      "its user namespace, a security module (ptrace_scope, AppArmor, SELinux) or "
                      "the program itself (PR_SET_DUMPABLE) forbids it; CAP_SYS_PTRACE may help");
}

long cs_number_in(const char *path, const char *label) {
  char line[256];
  long value = -1;
  FILE *in = fopen(path, "re");
  if (in == NULL) return -1;
  while (value < 0 && fgets(line, sizeof line, in) != NULL)
    if (strncmp(line, label, strlen(label)) == 0 && sscanf(line + strlen(label), "%ld", &value) < 1)
      value = -1;
  (void)fclose(in);
  return value;
}
