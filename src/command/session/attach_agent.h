// SPDX-License-Identifier: MIT
// Makes a running .NET program load our agent, and opens the memory that the agent creates.
#pragma once

#include "session/session.h"

// Returns how much of a program's address space a recording of these modes takes at most, with
// shared memory of so many bytes.
uint64_t cs_attach_address_space(uint64_t bytes, uint32_t modes);
// The same of its memory that is not shared, which RLIMIT_DATA bounds.
uint64_t cs_attach_private_memory(uint32_t modes);
// Checks that the process can share so much memory with us, and has the address space and the
// private memory for a recording of these modes, as far as its limits and our rights show.
bool cs_attach_check_memory(pid_t pid, uint64_t bytes, uint32_t modes, struct cs_error *err);

// Makes the session's process load the agent's library `library`. The agent creates the memory for
// the session's consumer and begins to record into it at once. Ends early when the session is
// interrupted.
bool cs_attach_agent(struct cs_session *session, const char *library,
                     const struct cs_consumer_opts *opts, struct cs_error *err);
