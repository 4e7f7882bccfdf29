// SPDX-License-Identifier: MIT
// What /proc tells of another process. Strings are the caller's to free.
#ifndef CS_PROCESS_PROC_H
#define CS_PROCESS_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

// All of a small file /proc/PID/NAME, with a NUL behind it. NULL: it cannot be read.
char *cs_proc_read(pid_t pid, const char *name, size_t *size);
// A variable that the process was started with. NULL: it has none, or may not be asked.
char *cs_proc_variable(pid_t pid, const char *name);
bool cs_proc_is_zero(pid_t pid, const char *name);  // such a variable is "0"
bool cs_proc_maps_coreclr(pid_t pid);
// When it was started, in clock ticks since the machine's start.
bool cs_proc_start_time(pid_t pid, unsigned long long *out);
// Its number in its own namespace of numbers.
int cs_proc_own_pid(pid_t pid);
// Its command line, words with blanks between them; its name, if it has none. NULL: it is gone.
char *cs_proc_command_line(pid_t pid);

#endif
