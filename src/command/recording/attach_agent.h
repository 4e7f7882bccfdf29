// SPDX-License-Identifier: MIT
// Having a running .NET program load our agent, and meeting it in the memory that it makes.
#ifndef CS_RECORDING_ATTACH_AGENT_H
#define CS_RECORDING_ATTACH_AGENT_H

#include "recording/session.h"

// Could the process share so much memory with us, as far as its limits and our rights go?
bool cs_attach_check_memory(pid_t pid, uint64_t bytes, struct cs_error *err);

// Has the process of the session load our agent, `library`, which makes the memory for the
// session's consumer and begins to record into it at once. Ends early when the session is
// interrupted.
bool cs_attach_agent(struct cs_session *session, const char *library,
                     const struct cs_consumer_opts *opts, struct cs_error *err);

#endif
