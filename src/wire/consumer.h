// SPDX-License-Identifier: MIT
// The command's side of the shared memory: comes by it, and takes records out of its ring. The
// producer is a process that may die at any instruction or be broken, so nothing that it wrote is
// believed: a record is copied out first and checked then, and the ring's geometry is our own copy.
// One thread. Signal-safe: no.
#ifndef CS_WIRE_CONSUMER_H
#define CS_WIRE_CONSUMER_H

#include <sys/types.h>

#include "base/error.h"
#include "wire/wire.h"

struct cs_consumer_opts {
  uint64_t capacity;  // bytes of the ring: a power of two, at least 64 KiB
  uint32_t modes;     // CS_WIRE_MODE_BITs
  uint32_t hz, max_depth;
  bool lines;    // IL maps are wanted
  bool inlined;  // and what was inlined
  bool async_callers;
  uint32_t budget_ppm;     // as in the header; 0: no limit
  uint32_t engine;         // enum cs_wire_engine_kind
  bool labels;             // of Activities, on samples
  uint32_t walk_limit_us;  // as in the header
  uint32_t event_rate;     // as in the header
  uint64_t alloc_interval;
  bool kernel;            // with the kernel's frames
  uint32_t event;         // as in the header
  uint64_t event_period;  // as in the header
};

struct cs_consumer {
  struct cs_wire_header *header;  // shared
  const uint8_t *ring;            // shared
  uint64_t capacity;              // our own copy
  uint64_t tail;                  // our own copy; the shared one is only ever written by us
  char path[64];                  // where a program that is started finds it
  int shown;                      // the descriptor behind that path; -1: it leads nowhere any more
  int fd;                         // holds a lock on the file, by which the agent sees that we live
  uint8_t *record;                // the copy of the record that was answered last
  uint64_t broken_records;        // heads that could not be; each costs all that was committed then
  uint64_t broken_bytes;
};

// For a program that is started: makes the memory, all of it reserved, and maps it.
bool cs_consumer_create(struct cs_consumer *c, const struct cs_consumer_opts *opts,
                        struct cs_error *err);
// Has the path of another one lead to this one, and that one have none from then on: there is no
// moment at which it leads nowhere.
bool cs_consumer_take_place(struct cs_consumer *c, struct cs_consumer *from, struct cs_error *err);
// Its path leads nowhere from now on; whoever has it mapped keeps it. May be called again.
void cs_consumer_hide(struct cs_consumer *c);

// For a process that runs: what the agent there is to be told. There is no memory yet.
bool cs_consumer_invite(struct cs_consumer *c, const struct cs_consumer_opts *opts,
                        struct cs_wire_invitation *invitation, struct cs_error *err);
// Takes the memory that the process has made upon the invitation. False: not (yet); *err says why.
bool cs_consumer_take(struct cs_consumer *c, pid_t pid, const struct cs_wire_invitation *invitation,
                      struct cs_error *err);
void cs_consumer_destroy(struct cs_consumer *c);

// The next committed record other than a pad: a private copy, valid until the next call, 8-aligned,
// `size` bytes long. NULL: there is none at the moment.
const struct cs_wire_record *cs_consumer_next(struct cs_consumer *c);

uint32_t cs_consumer_agent_pid(const struct cs_consumer *c);
// NONE, too, while there is no memory.
enum cs_wire_agent_state cs_consumer_agent_state(const struct cs_consumer *c);
// The agent's sentence, terminated, control characters replaced.
void cs_consumer_message(const struct cs_consumer *c, char *out, size_t cap);
void cs_consumer_stop(struct cs_consumer *c);  // asks the agent to end
// Tells the agent what the command has used of processors, for its budget.
void cs_consumer_tell_cpu(struct cs_consumer *c);
bool cs_consumer_has_label_hooks(const struct cs_consumer *c);
uint64_t cs_consumer_lost(const struct cs_consumer *c);

#endif
