// SPDX-License-Identifier: MIT
// A library whose constructor raises a signal: its handler runs while dlopen holds the loader's
// lock.
#include <signal.h>

__attribute__((constructor)) static void on_load(void) {
  (void)raise(SIGUSR2);
}
