// SPDX-License-Identifier: MIT
// Threads of the library's own: detached, and with all signals blocked, so that no handler of the
// host program ever runs on one. Any thread. Signal-safe: no.
#ifndef CS_BASE_OWN_THREAD_H
#define CS_BASE_OWN_THREAD_H

// Starts a thread that runs `main` with NULL. Returns 0, or the errno of pthread_create.
int cs_own_thread_start(void *(*main)(void *unused));

#endif
