// SPDX-License-Identifier: MIT
// The command's side of the shared memory: obtains it, and takes records out of its ring. The
// producer is a process that may die at any instruction, or be broken, so nothing that it wrote is
// trusted: a record is copied before it is checked, and the geometry of the ring is a private copy.
// One thread. Signal-safe: no.
#pragma once

#include <sys/types.h>

#include "base/error.h"
#include "wire/wire.h"

struct cs_consumer_opts {
  uint64_t capacity;  // bytes of the ring: a power of two, at least 64 KiB
  uint32_t modes;     // CS_WIRE_MODE_BITs
  uint32_t hz, max_depth;
  bool lines;    // IL maps are wanted
  bool inlined;  // inlined methods are wanted
  bool async_callers;
  uint32_t budget_ppm;     // as in the header; 0: no limit
  uint32_t engine;         // enum cs_wire_engine_kind
  bool labels;             // of Activities, on samples
  uint32_t walk_limit_us;  // as in the header
  uint32_t event_rate;     // as in the header
  uint64_t alloc_interval;
  bool kernel;            // the kernel's frames are wanted
  uint32_t event;         // as in the header
  uint64_t event_period;  // as in the header
};

struct cs_consumer {
  struct cs_wire_header *header;  // shared
  const uint8_t *ring;            // shared
  uint64_t capacity;              // private copy
  uint64_t tail;                  // private copy; only the consumer writes the shared one
  char path[64];                  // by which a program that is started finds it
  int shown;                      // the descriptor to which the path leads; -1: none
  int fd;                         // holds a lock on the file while the command lives
  uint8_t *record;                // copy of the record that was returned last
  uint64_t broken_records;        // invalid heads; each loses everything that was committed by then
  uint64_t broken_bytes;
};

// For a program that is started: makes the memory, reserves all of it, and maps it.
bool cs_consumer_create(struct cs_consumer *c, const struct cs_consumer_opts *opts,
                        struct cs_error *err);
// Makes the path of `from` lead to `c`, after which `from` has no path. The path leads to one of
// them at every moment.
bool cs_consumer_take_place(struct cs_consumer *c, struct cs_consumer *from, struct cs_error *err);
// Removes its path; processes that have mapped the memory keep it. May be called more than once.
void cs_consumer_hide(struct cs_consumer *c);

// For a running process: fills in an invitation for the agent. There is no memory yet.
bool cs_consumer_invite(struct cs_consumer *c, const struct cs_consumer_opts *opts,
                        struct cs_wire_invitation *invitation, struct cs_error *err);
// Opens the memory that the process has made in response to the invitation. Returns false, with the
// reason in *err, if there is none (yet).
bool cs_consumer_take(struct cs_consumer *c, pid_t pid, const struct cs_wire_invitation *invitation,
                      struct cs_error *err);
void cs_consumer_destroy(struct cs_consumer *c);

// Returns the next committed record other than a pad, as a private copy of `size` bytes, aligned to
// 8 and valid until the next call. Returns NULL if there is none at the moment.
const struct cs_wire_record *cs_consumer_next(struct cs_consumer *c);

uint32_t cs_consumer_agent_pid(const struct cs_consumer *c);
// Returns CS_WIRE_AGENT_NONE also while there is no memory.
enum cs_wire_agent_state cs_consumer_agent_state(const struct cs_consumer *c);
// Copies the agent's message, terminated, with control characters replaced.
void cs_consumer_message(const struct cs_consumer *c, char *out, size_t cap);
void cs_consumer_stop(struct cs_consumer *c);  // asks the agent to end
// Publishes the CPU time of the command, for the agent's budget.
void cs_consumer_publish_cpu(struct cs_consumer *c);
bool cs_consumer_has_label_hooks(const struct cs_consumer *c);
uint64_t cs_consumer_lost(const struct cs_consumer *c);
