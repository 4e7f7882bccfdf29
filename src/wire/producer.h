// SPDX-License-Identifier: MIT
// The agent's side of the shared memory: maps or makes it, and puts records into its ring. One
// thread at a time, and only in the process that has claimed it. Not for handlers.
#ifndef CS_WIRE_PRODUCER_H
#define CS_WIRE_PRODUCER_H

#include <sys/types.h>

#include "base/error.h"
#include "wire/wire.h"

struct cs_producer {
  struct cs_wire_header *header;  // shared; NULL: not open
  uint8_t *ring;                  // shared
  uint64_t capacity, head;        // our own copies
  size_t mapped;                  // bytes
  pid_t command;                  // 0: its number means nothing here
  pid_t pid;                      // who has claimed it; a forked child writes nothing
  int fd;                         // of the file, for its lock
};

// For a program that is started: maps the file. Refuses one that is not sealed memory of this
// user's with mode 0600, or whose header does not fit it. The command is then told nothing: it did
// not make that file.
bool cs_producer_open(struct cs_producer *p, const char *path, struct cs_error *err);
// By attach: makes the memory that the command wants, for it to find. False with a `header`: there
// is that much of it, so that a reason can be given.
bool cs_producer_make(struct cs_producer *p, const void *invitation, size_t size,
                      struct cs_error *err);
// Waits until the command has come for it. False: it has not, or has ended, as far as its number
// means anything here.
bool cs_producer_wait_for_command(const struct cs_producer *p, unsigned seconds);
// Makes this process the one that writes. False: another one is already.
bool cs_producer_claim(struct cs_producer *p);
void cs_producer_close(struct cs_producer *p);
// Is there a command still? It holds a lock on the file, which goes with it however it ends.
bool cs_producer_command_lives(const struct cs_producer *p);

void cs_producer_set_state(struct cs_producer *p, enum cs_wire_agent_state state);
// What the recording cannot see, for its summary.
void cs_producer_say(struct cs_producer *p, const char *sentence);
// CS_WIRE_AGENT_REFUSED with a reason for the user.
void cs_producer_refuse(struct cs_producer *p, const char *sentence);
// The program's Activities are told of.
void cs_producer_tell_label_hooks(struct cs_producer *p);
bool cs_producer_stop_wanted(const struct cs_producer *p);

// Puts a record: a fixed head, then strings (cut at a character's border when they are longer than
// 65,535 bytes; NULL: empty). All or nothing. False: no room now; header->lost_records has counted
// it. A little room is kept for CS_WIRE_END, so that a command that is behind still gets that one.
bool cs_producer_put(struct cs_producer *p, enum cs_wire_kind kind, const void *head,
                     size_t head_size, const char *const strings[], unsigned string_count);
// The most frames that a sample can have here; a longer one has to be cut.
uint32_t cs_producer_max_frames(const struct cs_producer *p);
// A sample, in two steps, so that its frames are written in place: room for `frame_count` frames
// (NULL: none, counted), and publish. `label` NULL: it has none; the same in both.
uint64_t *cs_producer_begin_sample(struct cs_producer *p, const struct cs_wire_sample *sample,
                                   const struct cs_label *label);
void cs_producer_commit_sample(struct cs_producer *p, const struct cs_wire_sample *sample,
                               const struct cs_label *label);

#endif
