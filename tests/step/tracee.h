// SPDX-License-Identifier: MIT
// The program under test and the one thread of it that is traced.
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

struct tracee {
  pid_t pid, tid;
  uint64_t mark;  // the address of a mark's trap; 0 before the first mark
};

enum tracee_event {
  TRACEE_STEPPED,  // it has executed an instruction, or stands at a handler's first one
  TRACEE_SIGNAL,   // it is about to get `*signal`; nothing was executed
  TRACEE_ENDED,
};

// Starts the program, and waits until its thread has announced itself (step_attach). Returns false
// with `err` set.
bool tracee_start(struct tracee *tracee, char *const argv[], struct cs_error *err);
// Lets the thread run until its next mark; signals are delivered.
enum tracee_event tracee_run_to_mark(struct tracee *tracee);
// Executes one instruction; `signal` is delivered first if it is not 0.
enum tracee_event tracee_step(const struct tracee *tracee, int *signal);
// After TRACEE_ENDED: the program's exit code, or 128 + the signal.
int tracee_wait(const struct tracee *tracee);

// ---- For arch/ARCHITECTURE/tracee_machine.c ----
// Waits for the next stop.
enum tracee_event tracee_wait_stop(const struct tracee *tracee, int *signal);
// Lets the thread run until its next trap.
enum tracee_event tracee_run(const struct tracee *tracee);

// ---- There ----
// The thread has come to a mark: notes its address, and has the thread continue after it.
void tracee_note_mark(struct tracee *tracee);
// The program may save the flags of a thread that is being stepped, and restore them later. If they
// include the trap flag, they cause traps that no step has asked for, and new threads inherit them.
// Must be called after the flags have been loaded.
void tracee_clear_trap_flag(const struct tracee *tracee);
// x86-64: executes the system call that the thread stands at, without the trap flag, which a new
// thread would inherit. Nothing is executed if a signal comes first.
enum tracee_event tracee_system_call(const struct tracee *tracee, int *signal);
// x86-64: runs until the function returns whose return address is the `ip` in `slot`. Meanwhile a
// mark's address is in that slot: a breakpoint in the code would stop other threads as well, and a
// virtual machine may miss one in a debug register. Returns with the thread elsewhere if it has
// come to another trap first. An exception must not pass the slot.
enum tracee_event tracee_return(const struct tracee *tracee, uint64_t slot, uint64_t ip);
// arm64: runs until the thread is at one of these addresses.
enum { TRACEE_EXITS = 4 };
enum tracee_event tracee_run_to(const struct tracee *tracee, const uint64_t *at, unsigned count,
                                int *signal);
