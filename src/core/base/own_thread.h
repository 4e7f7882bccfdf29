// SPDX-License-Identifier: MIT
// Threads of the library's own, with all signals blocked, so that no handler of the host program
// ever runs on one, and with a stack that does not depend on the C library (musl's default is 128
// KiB) or on the program's limits. Any thread. Signal-safe: no.
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

enum { CS_OWN_STACK = 2 << 20 };

// Starts a thread that runs `main`, to be joined. Returns 0, or the errno of pthread_create.
int cs_own_thread_begin(pthread_t *thread, void *(*main)(void *data), void *data);
// Starts a detached thread that runs `main`. Returns 0, or the errno of pthread_create.
int cs_own_thread_start(void *(*main)(void *unused));
// Returns whether that thread is one of these. True until a sweep finds that the thread is gone,
// because the thread exists for a while after `main` has returned.
bool cs_own_thread_is(uint32_t tid);
// Returns false only if that thread, which has been seen, is none of these. True for every thread
// while one of these is starting, whose id is not known yet.
bool cs_own_thread_may_be(uint32_t tid);
// Forgets those that are gone. Called from time to time, before their ids are used again.
void cs_own_threads_sweep(void);
