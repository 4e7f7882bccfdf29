// SPDX-License-Identifier: MIT
// perf_event_open, and why it is refused. Any thread. Signal-safe: no.
#include "base/perf.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/base.h"
#include "base/rights.h"

// Not here: context-switches, whose signal would wake each thread from the very sleep that is
// counted, and cpu-migrations, which are rare.
static const struct cs_perf_kind kinds[CS_PERF_KINDS] = {
    {"cpu-time", "CPU time", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK, 0},
    {"page-faults", "page faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, 100},
    {"minor-faults", "minor page faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MIN, 100},
    {"major-faults", "major page faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MAJ, 1},
    {"cycles", "cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, 5000000},
    {"ref-cycles", "reference cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_REF_CPU_CYCLES, 5000000},
    {"bus-cycles", "bus cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BUS_CYCLES, 500000},
    {"instructions", "instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, 5000000},
    {"branches", "branches", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS, 1000000},
    {"branch-misses", "branch misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES, 50000},
    {"cache-references", "cache references", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_REFERENCES,
     500000},
    {"cache-misses", "cache misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES, 50000},
    {"stalled-cycles-frontend", "stalled cycles (frontend)", PERF_TYPE_HARDWARE,
     PERF_COUNT_HW_STALLED_CYCLES_FRONTEND, 1000000},
    {"stalled-cycles-backend", "stalled cycles (backend)", PERF_TYPE_HARDWARE,
     PERF_COUNT_HW_STALLED_CYCLES_BACKEND, 1000000},
};

const struct cs_perf_kind *cs_perf_kind(uint32_t number) {
  return number < CS_COUNT(kinds) ? &kinds[number] : NULL;
}

uint32_t cs_perf_kind_by_name(const char *name, size_t len) {
  for (uint32_t i = 1; i < CS_COUNT(kinds); i++)
    if (strlen(kinds[i].name) == len && memcmp(kinds[i].name, name, len) == 0) return i;
  return 0;
}

void cs_perf_attr(struct perf_event_attr *attr, uint32_t kind, uint64_t period, bool kernel) {
  memset(attr, 0, sizeof *attr);
  attr->type = kinds[kind].type;
  attr->size = PERF_ATTR_SIZE_VER5;  // that of Linux 4.1: later members are not used
  attr->config = kinds[kind].config;
  attr->sample_period = period;
  attr->disabled = 1;
  attr->exclude_kernel = !kernel;
  attr->exclude_hv = 1;
  attr->read_format = PERF_FORMAT_TOTAL_TIME_ENABLED;
}

int cs_perf_open(const struct perf_event_attr *attr, pid_t tid) {
  return (int)syscall(SYS_perf_event_open, attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

bool cs_perf_refused(int error, uint32_t kind, bool kernel, struct cs_error *why) {
  long paranoid = cs_number_in("/proc/sys/kernel/perf_event_paranoid", "");
  long allowed = kernel ? 1 : 2;
  // The error depends on whether all counters are missing, this one, or its interrupt.
  bool missing = error == ENOENT || error == EOPNOTSUPP || error == ENODEV || error == EINVAL;
  if (missing && kinds[kind].type == PERF_TYPE_HARDWARE)
    return cs_error_set(why,
                        "this machine has no counter for %s: most virtual machines have none at "
                        "all, unless their host gives them a PMU",
                        kinds[kind].words);
  if (error == ENOSYS)
    return cs_error_set(why, "this kernel, or a seccomp filter, has no perf_event_open");
  // The kernel itself returns EACCES.
  if (error == EPERM && cs_number_in("/proc/self/status", "Seccomp:") > 0)
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

bool cs_perf_probe(uint32_t kind, bool kernel, struct cs_error *why) {
  struct perf_event_attr attr;
  cs_perf_attr(&attr, kind, 1000000, kernel);
  int fd = cs_perf_open(&attr, 0);
  if (fd < 0) return cs_perf_refused(errno, kind, kernel, why);
  (void)close(fd);
  return true;
}

uint32_t cs_perf_most_hz(void) {
  long hz = cs_number_in("/proc/sys/kernel/perf_event_max_sample_rate", "");
  return hz > 0 && hz < UINT32_MAX ? (uint32_t)hz : 0;
}

uint16_t cs_perf_most_frames(uint16_t most) {
  long allowed = cs_number_in("/proc/sys/kernel/perf_event_max_stack", "");
  return allowed > 0 && allowed < most ? (uint16_t)allowed : most;
}
