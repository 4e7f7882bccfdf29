// SPDX-License-Identifier: MIT
// Preloaded (attach_asleep.sh): the runtime's handler of SIGSEGV blocks no signal, as where other
// code has put its own handler in front of it.
#include <dlfcn.h>
#include <signal.h>
#include <stddef.h>

__attribute__((visibility("default"))) int sigaction(int signo, const struct sigaction *action,
                                                     struct sigaction *old) {
  static int (*next)(int, const struct sigaction *, struct sigaction *);
  struct sigaction changed;
  if (next == NULL) *(void **)&next = dlsym(RTLD_NEXT, "sigaction");
  if (signo == SIGSEGV && action != NULL) {
    changed = *action;
    (void)sigemptyset(&changed.sa_mask);
    action = &changed;
  }
  return next(signo, action, old);
}
