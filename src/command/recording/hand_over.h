// SPDX-License-Identifier: MIT
// The files of ours that a running process is to load, by paths that it can open.
#ifndef CS_RECORDING_HAND_OVER_H
#define CS_RECORDING_HAND_OVER_H

#include "process/give.h"
#include "recording/session.h"

struct cs_handed {
  char *agent;  // as the process calls them
  char *hook;   // NULL: there is none
  struct cs_given given;
};

// The process sees our very files, and its user may read them: their paths. Else: copies in its
// temporary folder, /tmp, /var/tmp or /dev/shm, which stay until cs_hand_back. `hook` may be NULL;
// `session` (may be NULL): whose interruption ends the wait. False: *err says why, and what to do.
bool cs_hand_over(pid_t pid, const char *agent, const char *hook, struct cs_session *session,
                  struct cs_handed *out, struct cs_error *err);
// To be called as soon as the process has loaded them, and in any case. Keeps the paths.
void cs_hand_back(struct cs_handed *handed);
void cs_handed_free(struct cs_handed *handed);

// Would it work? Nothing is made. *folder: where the copies would be, NULL: none are needed; the
// caller frees it.
bool cs_hand_over_check(pid_t pid, const char *agent, char **folder, struct cs_error *err);

#endif
