// SPDX-License-Identifier: MIT
// Our files that a running process loads, by paths that it can open.
#pragma once

#include "process/copies.h"
#include "session/session.h"

struct cs_handed {
  char *agent;  // both as the process calls them
  char *hook;   // NULL: none
  struct cs_copies copies;
};

// If the process sees our files and its user may read them, their paths. Otherwise copies in its
// temporary directory, /tmp, /var/tmp or /dev/shm, which stay until cs_handed_free. `hook` may be
// NULL; `session` (may be NULL) is the session whose interruption ends the wait. Returns false,
// with the reason in *err, and what to do.
bool cs_hand_over(pid_t pid, const char *agent, const char *hook, struct cs_session *session,
                  struct cs_handed *out, struct cs_error *err);
// Removes the copies: to be called as soon as the process has loaded them, and in any case.
void cs_handed_free(struct cs_handed *handed);

// Checks whether it would work; makes nothing. *folder: where the copies would be, NULL: none
// are needed; the caller frees it.
bool cs_hand_over_check(pid_t pid, const char *agent, char **folder, struct cs_error *err);
