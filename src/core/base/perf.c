// SPDX-License-Identifier: MIT
// perf_event_open and the reasons why it is refused. Any thread. Signal-safe: no.
#include "base/perf.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

void cs_perf_task_clock(struct perf_event_attr *attr, uint64_t period_ns, bool kernel) {
  memset(attr, 0, sizeof *attr);
  attr->type = PERF_TYPE_SOFTWARE;
  attr->size = PERF_ATTR_SIZE_VER5;  // of Linux 4.1: later members are not used
  attr->config = PERF_COUNT_SW_TASK_CLOCK;
  attr->sample_period = period_ns;
  attr->disabled = 1;
  attr->exclude_kernel = !kernel;
  attr->exclude_hv = 1;
}

int cs_perf_open(const struct perf_event_attr *attr, pid_t tid) {
  return (int)syscall(SYS_perf_event_open, attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

// The first number behind `label` in a file; -1: there is none.
static long number_in(const char *path, const char *label) {
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

bool cs_perf_refused(int error, bool kernel, struct cs_error *why) {
  long paranoid = number_in("/proc/sys/kernel/perf_event_paranoid", "");
  long allowed = kernel ? 1 : 2;
  if (error == ENOSYS)
    return cs_error_set(why, "this kernel, or a seccomp filter, has no perf_event_open");
  // The kernel itself answers EACCES.
  if (error == EPERM && number_in("/proc/self/status", "Seccomp:") > 0)
    return cs_error_set(why,
                        "a seccomp filter refuses perf_event_open: allow it (in a container: a "
                        "seccomp profile with it, or --cap-add PERFMON)");
  if ((error == EACCES || error == EPERM) && paranoid > allowed)
    return cs_error_set(why,
                        "kernel.perf_event_paranoid is %ld: %sset it to %ld, or give the program "
                        "CAP_PERFMON",
                        paranoid, kernel ? "time in the kernel is not to be seen; " : "", allowed);
  if (error == EMFILE || error == ENFILE)
    return cs_error_set(why, "no file descriptor for its event: %s; raise ulimit -n",
                        strerror(error));
  return cs_error_set(why, "perf_event_open is refused: %s", strerror(error));
}

bool cs_perf_probe(bool kernel, struct cs_error *why) {
  struct perf_event_attr attr;
  cs_perf_task_clock(&attr, 1000000, kernel);
  int fd = cs_perf_open(&attr, 0);
  if (fd < 0) return cs_perf_refused(errno, kernel, why);
  (void)close(fd);
  return true;
}
