// SPDX-License-Identifier: MIT
// What /proc says about another process. The caller frees strings.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

// The content of the small file /proc/PID/NAME, with a NUL after it. Returns NULL if it cannot be
// read.
char *cs_proc_read(pid_t pid, const char *name, size_t *size);
// Returns the number after a label in such a text (which may be NULL), or UINT64_MAX if it is
// unlimited, or there is none.
uint64_t cs_proc_number(const char *text, const char *label, int base);
// A variable of the environment that the process was started with. Returns NULL if it is not set,
// or cannot be read.
char *cs_proc_variable(pid_t pid, const char *name);
bool cs_proc_is_zero(pid_t pid, const char *name);  // the variable is "0"
bool cs_proc_maps_coreclr(pid_t pid);
// The time at which it was started, in clock ticks since the machine's start.
bool cs_proc_start_time(pid_t pid, unsigned long long *out);
// The same as the process itself reads it: in a time namespace of its own, the clock of the
// machine's start has an offset. Fills in the values that it may have, the likeliest first, and
// returns how many; 0: it has ended.
enum { CS_OWN_START_TIMES = 2 };
unsigned cs_proc_own_start_times(pid_t pid, unsigned long long out[CS_OWN_START_TIMES]);
// The process that has started it, or that waits for its end now; 0 if it has ended.
pid_t cs_proc_parent(pid_t pid);
// Where its first stack begins, at random: execve gives it another one. Returns false if that
// cannot be read.
bool cs_proc_stack(pid_t pid, unsigned long long *out);
// Returns whether the number is that of a process with a memory of its own. If it is a thread's, a
// zombie's, a thread of the kernel, or nobody's, *err says so, and which process may have been
// meant.
bool cs_proc_check(pid_t pid, struct cs_error *err);
// It has ended, or is so far in its end that it may have no memory any more.
bool cs_proc_has_ended(pid_t pid);
bool cs_proc_is_stopped(pid_t pid);
#define CS_PROC_STOPPED "is stopped, by a signal or a debugger"  // what that means
// Its PID in its own PID namespace.
int cs_proc_own_pid(pid_t pid);
// Its name, of 15 bytes at most, which execve replaces. It is there until its parent has waited for
// it. Returns false if it cannot be read.
bool cs_proc_name(pid_t pid, char *out, size_t size);
// Its command line, words with blanks between them, or its name if it has no command line. Returns
// NULL if it has ended.
char *cs_proc_command_line(pid_t pid);
