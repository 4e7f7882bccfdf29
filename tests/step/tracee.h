// SPDX-License-Identifier: MIT
// The program under test and the one thread of it that is traced.
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

struct tracee {
  pid_t pid, tid;
};

enum tracee_event {
  TRACEE_STEPPED,  // it has executed an instruction, or stands at a handler's first one
  TRACEE_SIGNAL,   // it is about to get `*signal`; nothing was executed
  TRACEE_ENDED,
};

// Starts the program, and waits until its thread has announced itself (step_attach). Returns false
// with `err` set.
bool tracee_start(struct tracee *tracee, char *const argv[], struct cs_error *err);
// Lets the thread run until its next int3; signals are delivered.
enum tracee_event tracee_run_to_mark(const struct tracee *tracee);
// Executes one instruction; `signal` is delivered first if it is not 0.
enum tracee_event tracee_step(const struct tracee *tracee, int *signal);
// The program may save the flags of a thread that is being stepped, and restore them later. If they
// include the trap flag, they cause traps that no step has asked for, and new threads inherit them.
// Must be called after the flags have been loaded.
void tracee_clear_trap_flag(const struct tracee *tracee);
// Runs until the thread is at `ip` with the stack pointer `sp` (a hardware breakpoint), or at an
// int3 if that comes first.
enum tracee_event tracee_run_to(const struct tracee *tracee, uint64_t ip, uint64_t sp);
// After TRACEE_ENDED: the program's exit code, or 128 + the signal.
int tracee_wait(const struct tracee *tracee);
