// SPDX-License-Identifier: MIT
// The engine clock on threads of this program, without a runtime.
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/engine_run.h"

// ---- Where a sandbox refuses what it needs ----

static bool refuse(unsigned call) {
  struct sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog program = {sizeof code / sizeof code[0], code};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

static int is_told(unsigned call, const char *what) {
  open_recording(999, CS_WIRE_ENGINE_CLOCK);
  if (!refuse(call)) return 1;
  if (cs_engines_begin(&err)) return 2;
  if (strstr(err.text, "Operation not permitted") == NULL) return 3;
  return strstr(err.text, what) != NULL ? 0 : 4;
}

static int no_clocks(void) {
  return is_told(SYS_clock_gettime, "allow clock_gettime");
}

static int no_files(void) {
  return is_told(SYS_openat, "mount /proc");
}

static int no_signals(void) {
  return is_told(SYS_rt_tgsigqueueinfo, "allow rt_tgsigqueueinfo");
}

static void what_is_refused_is_told(void **state) {
  (void)state;
  in_child(no_clocks);
  in_child(no_files);
  in_child(no_signals);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_is_refused_is_told),
  };
  return cmocka_run_group_tests(tests, setup, NULL);
}
