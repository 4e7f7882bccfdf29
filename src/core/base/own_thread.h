// SPDX-License-Identifier: MIT
// A thread of our own in somebody else's program: detached, and with all signals blocked, so that
// no handler of the program ever runs on it. Any thread. Signal-safe: no.
#ifndef CS_BASE_OWN_THREAD_H
#define CS_BASE_OWN_THREAD_H

// Runs `main` with NULL. 0: it runs; else the errno for which there is none.
int cs_own_thread_start(void *(*main)(void *unused));

#endif
