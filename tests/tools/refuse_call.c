// SPDX-License-Identifier: MIT
// refuse_call ACTION CALL COMMAND...: runs COMMAND under a seccomp filter for one system call: in
// which it fails with an error (ACTION is the error's number), as in containers, or ends the
// process ("kill") or raises SIGSYS ("trap"), as in services with a strict one.
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static const struct {
  const char *name;
  unsigned number;
} calls[] = {{"perf_event_open", SYS_perf_event_open},
             {"process_vm_readv", SYS_process_vm_readv},
             {"rt_tgsigqueueinfo", SYS_rt_tgsigqueueinfo},
             {"sched_setattr", SYS_sched_setattr},
             {"clone", SYS_clone}};

static unsigned number_of(const char *name) {
  for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
    if (strcmp(calls[i].name, name) == 0) return calls[i].number;
  (void)fprintf(stderr, "refuse_call: no call '%s'\n", name);
  exit(2);
}

static unsigned action_of(const char *text) {
  if (strcmp(text, "kill") == 0) return SECCOMP_RET_KILL_PROCESS;
  if (strcmp(text, "trap") == 0) return SECCOMP_RET_TRAP;
  return SECCOMP_RET_ERRNO | ((unsigned)strtoul(text, NULL, 10) & SECCOMP_RET_DATA);
}

int main(int argc, char **argv) {
  if (argc < 4) return 2;
  struct sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number_of(argv[2]), 0, 1),
      BPF_STMT(BPF_RET | BPF_K, action_of(argv[1])),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog program = {sizeof code / sizeof code[0], code};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
    perror("refuse_call");
    return 77;
  }
  (void)execvp(argv[3], argv + 3);
  perror(argv[3]);
  return 127;
}
