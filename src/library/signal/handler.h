// SPDX-License-Identifier: MIT
// handler: the signal handlers. All are installed with SA_SIGINFO | SA_RESTART, never with
// SA_ONSTACK. Signal-safe: yes.
#pragma once

#include <signal.h>

#include "base/base.h"

// The handler of the real-time signal.
CS_ISLAND void cs_signal_handler(int signo, siginfo_t *info, void *ucontext);
// The handler of SIGURG: for threads that are asked for samples, and for perf events.
CS_ISLAND void cs_urg_handler(int signo, siginfo_t *info, void *ucontext);
// The handler of the runtime's own signal (threads/activation.h): for threads without a larger
// alternate stack.
CS_ISLAND void cs_activation_handler(int signo, siginfo_t *info, void *ucontext);
