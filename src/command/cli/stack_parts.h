// SPDX-License-Identifier: MIT
// Parts of the output of `clrsnap stack` that have files of their own, and what `clrsnap async`
// shares of it. One thread.
#pragma once

#include "stack/outside.h"
#include "util/json.h"

// All of it, as text (stack_text.c). each: threads that have the same stack are not grouped.
void cs_stack_print(const struct cs_outside *outside, bool managed_only, bool each);
// Which process it was, with which runtime, and the time: "Process 12: dotnet App.dll" and the line
// after it, to which the caller adds. `command` may be NULL.
void cs_stack_print_process(int pid, const char *command, const char *version);

// The thread pool (stack_pool.c), as text and as a member of the JSON object.
void cs_stack_print_pool(const struct cs_outside_pool *pool);
void cs_stack_put_pool(struct cs_json_writer *j, const struct cs_outside_pool *pool);

// Where workers wait: "Task.Wait at Shop.Cart.Load (Cart.cs:12)".
void cs_stack_wait_place(const struct cs_outside_wait *wait, char *text, size_t cap);

// A line for each deadlock (stack_locks.c).
void cs_stack_print_deadlocks(FILE *out, const struct cs_outside *outside);
void cs_stack_put_deadlocks(struct cs_json_writer *j, const struct cs_outside *outside);
// Which lock the thread waits for, which thread holds it, and where that thread is.
void cs_stack_print_lock(FILE *out, const struct cs_outside *outside,
                         const struct cs_outside_thread *thread);
void cs_stack_put_lock(struct cs_json_writer *j, const struct cs_outside *outside,
                       const struct cs_outside_thread *thread);
