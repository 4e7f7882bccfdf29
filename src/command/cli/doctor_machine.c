// SPDX-License-Identifier: MIT
// What works on this machine for this user. Invariant: the checks leave nothing behind. One thread.
// Signal-safe: no.
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/arch.h"
#include "base/perf.h"
#include "base/rights.h"
#include "cli/doctor.h"
#include "cli/options.h"
#include "process/label_hook.h"
#include "process/launch.h"
#include "process/proc.h"
#include "wire/consumer.h"

#ifndef AT_MINSIGSTKSZ
#define AT_MINSIGSTKSZ 51
#endif

void cs_doctor_note(struct cs_doctor *d, enum cs_finding_state state, const char *name,
                    const char *cure, const char *format, ...) {
  va_list args;
  if (d->count == CS_MAX_FINDINGS) return;
  struct cs_finding *f = &d->findings[d->count++];
  *f = (struct cs_finding){.name = name, .state = state};
  va_start(args, format);
  (void)vsnprintf(f->text, sizeof f->text, format, args);
  va_end(args);
  (void)snprintf(f->cure, sizeof f->cure, "%s", cure != NULL ? cure : "");
}

bool cs_doctor_has_fault(const struct cs_doctor *d) {
  for (unsigned i = 0; i < d->count; i++)
    if (d->findings[i].state == CS_FINDING_FAULT) return true;
  return false;
}

static void check_system(struct cs_doctor *d) {
  struct utsname name;
  if (uname(&name) != 0) return;
  bool good = strcmp(name.machine, CS_ARCH) == 0;
  cs_doctor_note(d, good ? CS_FINDING_GOOD : CS_FINDING_FAULT, "system",
                 good ? NULL : "this clrsnap is for " CS_ARCH_NAME, "%s %s on %s", name.sysname,
                 name.release, name.machine);
}

static void check_agent(struct cs_doctor *d) {
  struct cs_error err = {""};
  char *path = cs_find_agent(&err);
  cs_doctor_note(d, path != NULL ? CS_FINDING_GOOD : CS_FINDING_FAULT, "agent", NULL, "%s",
                 path != NULL ? path : err.text);
  free(path);
}

// Only record --labels needs this, and has the same message.
static void check_labels(struct cs_doctor *d) {
  struct cs_error err = {""};
  char *agent = cs_find_agent(&err);
  char *hook = agent != NULL ? cs_label_hook_find(agent, &err) : NULL;
  if (agent != NULL)
    cs_doctor_note(d, hook != NULL ? CS_FINDING_GOOD : CS_FINDING_NOTE, "labels", NULL, "%s",
                   hook != NULL ? hook : err.text);
  free(hook);
  free(agent);
}

static void check_shared_memory(struct cs_doctor *d) {
  struct cs_error err = {""};
  struct cs_consumer consumer;
  struct cs_consumer_opts opts = {.capacity = CS_DEFAULT_BUFFER,
                                  .modes = CS_WIRE_MODE_BIT(CS_WIRE_MODE_CPU)};
  bool good = cs_consumer_create(&consumer, &opts, &err);
  if (good) cs_consumer_destroy(&consumer);
  cs_doctor_note(d, good ? CS_FINDING_GOOD : CS_FINDING_FAULT, "shared memory", NULL, "%s",
                 good ? "sealed memory of 16 MiB is available" : err.text);
}

// What a program of the same user can use; a program in a container, or with a seccomp filter, may
// have less.
static void check_engine(struct cs_doctor *d) {
  enum { MOST_HZ = 10000 };  // of --frequency
  struct cs_error why = {""};
  uint32_t most = cs_perf_most_hz();
  bool works = cs_perf_probe(0, true, &why);
  if (works && most != 0 && most < MOST_HZ) {
    cs_doctor_note(d, CS_FINDING_NOTE, "cpu mode", "raise kernel.perf_event_max_sample_rate",
                   "engine perf: no more than %u samples per second of CPU time, whatever "
                   "--frequency asks for",
                   most);
    return;
  }
  if (works) {
    cs_doctor_note(d, CS_FINDING_GOOD, "cpu mode", NULL,
                   "engine perf: any rate up to 10,000 samples per second of CPU time");
    return;
  }
  cs_doctor_note(d, CS_FINDING_NOTE, "cpu mode", why.text,
                 "engine clock: samples the running threads at random moments");
}

static void check_own_memory(struct cs_doctor *d) {
  int from = 1, to = 0;
  struct iovec local = {&to, sizeof to}, remote = {&from, sizeof from};
  bool good = process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == (ssize_t)sizeof to;
  cs_doctor_note(d, good ? CS_FINDING_GOOD : CS_FINDING_FAULT, "guarded reads",
                 good ? NULL : "allow process_vm_readv in the container's seccomp profile",
                 good ? "a process may read itself through the kernel"
                      : "process_vm_readv is refused: stacks with dynamic code are cut, sleeping "
                        "threads are woken, and stack does not work");
}

static bool can_read(const char *name) {
  size_t size = 0;
  char *text = cs_proc_read(getpid(), name, &size);
  free(text);
  return size > 0;
}

static void check_sleepers(struct cs_doctor *d) {
  bool good = can_read("syscall") && (can_read("schedstat") || can_read("status"));
  cs_doctor_note(d, good ? CS_FINDING_GOOD : CS_FINDING_NOTE, "wall mode", NULL,
                 good ? "threads that sleep are read without being woken"
                      : "/proc/PID/syscall cannot be read: threads that sleep are woken for a "
                        "sample, and native code in poll or usleep may see EINTR");
}

static void check_permissions(struct cs_doctor *d) {
  long scope = cs_number_in("/proc/sys/kernel/yama/ptrace_scope", "");
  bool good = scope <= 0 || (scope < 3 && geteuid() == 0);
  cs_doctor_note(d, good ? CS_FINDING_GOOD : CS_FINDING_FAULT, "ptrace",
                 good ? NULL : "run clrsnap stack as root, or sysctl kernel.yama.ptrace_scope=0",
                 scope < 0 ? "not restricted%s" : "kernel.yama.ptrace_scope restricts it%s",
                 good ? "" : ": clrsnap stack is refused; record is not affected");
}

static void check_seccomp(struct cs_doctor *d) {
  bool none = cs_number_in("/proc/self/status", "Seccomp:") <= 0;
  cs_doctor_note(d, none ? CS_FINDING_GOOD : CS_FINDING_NOTE, "seccomp", NULL,
                 none ? "no filter"
                      : "a filter is set: what clrsnap needs has been tried here, but a "
                        "program's own filter may refuse more");
}

static void check_alternate_stacks(struct cs_doctor *d) {
  cs_doctor_note(d, CS_FINDING_GOOD, "signal frames", NULL,
                 "a frame has up to %lu bytes on this processor; the agent gives threads alternate "
                 "stacks of 64 KiB and one frame more, instead of the runtime's",
                 getauxval(AT_MINSIGSTKSZ));
}

void cs_doctor_machine(struct cs_doctor *d) {
  check_system(d);
  check_agent(d);
  check_labels(d);
  check_shared_memory(d);
  check_engine(d);
  check_sleepers(d);
  check_own_memory(d);
  check_permissions(d);
  check_seccomp(d);
  check_alternate_stacks(d);
}
