// SPDX-License-Identifier: MIT
// Sends profiles to a server: a queue and a thread that empties it, so that recording never waits
// for the network. A failed request is repeated, after longer and longer pauses or when the server
// asks for it. What does not fit into the queue meanwhile is lost, the oldest first, and counted.
#pragma once

#include "base/error.h"
#include "profile/profile.h"
#include "push/options.h"

// The limits of the queue; a single profile may be larger.
#define CS_PUSH_MAX_PROFILES 32
#define CS_PUSH_MAX_BYTES (16u << 20)

struct cs_push;

// Checks what the command line says of it. Returns false, with the reason in *err.
bool cs_push_check(const struct cs_push_options *options, struct cs_error *err);
// Prepares the push; nothing is sent yet, and there is no thread. Returns NULL, with the reason in
// *err.
struct cs_push *cs_push_open(const struct cs_push_options *options, struct cs_error *err);
void cs_push_add(struct cs_push *push, const struct cs_profile *profile);
// Sends what is left, for some seconds at most or until SIGINT or SIGTERM is pending, and reports
// how many profiles arrived and were lost. Returns whether all have arrived.
bool cs_push_finish(struct cs_push *push);
void cs_push_close(struct cs_push *push);
