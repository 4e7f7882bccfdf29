// SPDX-License-Identifier: MIT
// The agent's side of the shared memory: maps or makes it, and writes records to its ring. One
// thread at a time, and only in the process that has claimed it. Not for handlers.
#pragma once

#include <sys/types.h>

#include "base/error.h"
#include "base/own_file.h"
#include "wire/wire.h"

struct cs_producer {
  struct cs_wire_header *header;  // shared; NULL: not open
  uint8_t *ring;                  // shared
  uint64_t capacity, head;        // private copies
  size_t mapped;                  // bytes
  pid_t command;                  // 0: its process id is of another namespace
  pid_t pid;                      // the process that has claimed it; a forked child writes nothing
  struct cs_own_file file;        // its lock is tested
  uint64_t alive_cpu_ns;          // if the program has closed it: the CPU time that the command
  uint64_t alive_ns;              // published last, and since when it has been the same
};

// For a program that was started: maps the file. Refuses a file that is not sealed memory of this
// user with mode 0600, or whose header does not fit the file. The command, which did not make such
// a file, is not informed.
bool cs_producer_open(struct cs_producer *p, const char *path, struct cs_error *err);
// For an attach: makes the memory that the command wants, for the command to find. If it returns
// false with `header` set, there is only the header, for the reason.
bool cs_producer_make(struct cs_producer *p, const void *invitation, size_t size,
                      struct cs_error *err);
// Waits until the command has opened the memory. Returns false if it has not done so in time, or
// has ended (known if its process id is of the same namespace).
bool cs_producer_wait_for_command(struct cs_producer *p, unsigned seconds);
// Claims the memory for this process, which alone may then write to it. Returns false if another
// one has claimed it.
bool cs_producer_claim(struct cs_producer *p);
void cs_producer_close(struct cs_producer *p);
// Returns whether the command is alive: it holds a lock on the file, which ends with it in any
// case. After the program has closed the file: whether the command has published its CPU time
// within the last minute.
bool cs_producer_command_lives(struct cs_producer *p);

void cs_producer_set_state(struct cs_producer *p, enum cs_wire_agent_state state);
// Adds a sentence that says what the recording cannot see, for its summary.
void cs_producer_add_note(struct cs_producer *p, const char *sentence);
// Sets CS_WIRE_AGENT_REFUSED, with the reason for the user.
void cs_producer_refuse(struct cs_producer *p, const char *sentence);
// Publishes that the program reports its Activities.
void cs_producer_set_label_hooks(struct cs_producer *p);
bool cs_producer_stop_wanted(const struct cs_producer *p);

// Writes a record: a fixed head, then strings. A string of more than 65,535 bytes is cut at the end
// of a character; NULL is empty. If there is no room, writes nothing, counts the record in
// header->lost_records, and returns false. Some room is reserved for CS_WIRE_END, in case the
// command has fallen behind.
bool cs_producer_put(struct cs_producer *p, enum cs_wire_kind kind, const void *head,
                     size_t head_size, const char *const strings[], unsigned string_count);
// Returns the largest number of frames that fits; a longer sample must be cut.
uint32_t cs_producer_max_frames(const struct cs_producer *p);
// A sample is written in two steps, so that its frames are written in place: `begin` returns room
// for `frame_count` frames (or NULL, and counts the sample as lost), `commit` publishes it. Both
// get the same `label`, or NULL.
uint64_t *cs_producer_begin_sample(struct cs_producer *p, const struct cs_wire_sample *sample,
                                   const struct cs_label *label);
void cs_producer_commit_sample(struct cs_producer *p, const struct cs_wire_sample *sample,
                               const struct cs_label *label);
