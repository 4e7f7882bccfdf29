// SPDX-License-Identifier: MIT
// Profiles on their way to a server: a queue and a thread that empties it, so that recording never
// waits for a network. A failed request is repeated, later and later, or when the server says; what
// does not fit into the queue meanwhile is lost, the oldest first, and counted.
#ifndef CS_PUSH_PUSH_H
#define CS_PUSH_PUSH_H

#include "base/error.h"
#include "profile/profile.h"

// What waits at most; one profile may be larger if it is alone.
#define CS_PUSH_MAX_PROFILES 32
#define CS_PUSH_MAX_BYTES (16u << 20)

#define CS_PUSH_MAX_HEADERS 32

// What the user asks for; the environment (OTEL_*) adds to it.
struct cs_push_wish {
  const char *url;                           // NULL: nothing is pushed
  const char *service;                       // NULL: by the environment, else the program's name
  const char *headers[CS_PUSH_MAX_HEADERS];  // "NAME: VALUE"
  size_t header_count;
  bool live;  // on the machine that is recorded
};

struct cs_push;

// Nothing is sent yet and there is no thread. NULL: *err says why.
struct cs_push *cs_push_open(const struct cs_push_wish *wish, struct cs_error *err);
void cs_push_add(struct cs_push *push, const struct cs_profile *profile);
// Sends what is left, for some seconds at most, or until SIGINT or SIGTERM waits to be taken, and
// says what became of all. True: everything has arrived.
bool cs_push_finish(struct cs_push *push);
void cs_push_close(struct cs_push *push);

#endif
