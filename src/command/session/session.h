// SPDX-License-Identifier: MIT
// A recording in progress: forwards signals to the program, waits for its end, and empties the ring
// meanwhile. The program is our child, or a process that was already running and continues
// afterwards.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include "process/witness.h"
#include "recording/recfile.h"
#include "session/scans.h"
#include "session/window.h"
#include "wire/consumer.h"

// An observer of the recording. The command then handles signals by itself.
struct cs_watcher {
  void *context;
  // Called when records have been taken in; `recording.samples` has the new samples. Returns
  // false to end the recording.
  bool (*poll)(void *context, uint64_t now_ns);
  void (*signal)(void *context, int number);
};

struct cs_session {
  struct cs_consumer consumer;
  struct cs_recording recording;
  struct cs_recfile file;    // open if the recording itself is an output
  struct cs_scans scans;     // of async mode
  struct cs_scans pool;      // of the thread pool
  struct cs_window *window;  // NULL: nothing is pushed during the recording
  bool timeline;             // an output shows samples one by one
  pid_t child;               // or the process that was attached to
  int attached;              // pidfd of the process that was attached to; 0: a child
  bool child_ended;
  int child_status;           // as wait(2) has it; a child's only
  sigset_t old_mask;          // the command's own, for the program
  int signals;                // signalfd
  struct cs_witness witness;  // for a child only
  unsigned interrupts;        // Ctrl-C so far
  unsigned patience;          // attached: the number of them that ends the recording; 0: one
  uint64_t began_ns;         // CLOCK_MONOTONIC: when the agent was first seen to record; 0: not yet
  uint64_t recorded_ns;      // how long it recorded
  uint64_t limit_ns;         // 0: none
  unsigned long long stack;  // the first stack of the agent's process; 0: not known yet
  char name[64];             // the name of that process; "": not known yet
  uint64_t looked_ns;        // when these were last looked at
  uint64_t alive_ns;         // when the agent was last known to be there
  bool replaced;             // another program has taken the place of the agent's (execve)
  uint64_t progress_ns;      // when the progress line was last written; 0: there is none
  bool progress;             // stderr is a terminal
  struct cs_watcher watcher;  // poll NULL: none
  bool enough;                // it has ended the recording
};

// Blocks the signals that are forwarded, and opens the descriptor that receives them. To be called
// before the program starts, so that none is missed.
bool cs_session_open(struct cs_session *s, struct cs_error *err);
// Is to be called before the session starts a program, whose signals are forwarded.
bool cs_session_expect_child(struct cs_session *s, struct cs_error *err);
// Opens the pidfd of a process that is already running. Returns false if there is no such process.
bool cs_session_attach(struct cs_session *s, pid_t pid, struct cs_error *err);
// Handles the signals that have arrived. Returns whether they end what is in progress.
bool cs_session_is_interrupted(struct cs_session *s);
// Records until the program or the agent ends, another program takes its place (execve), the time
// is up, or a second Ctrl-C arrives (after an attach: a first one, or another signal that ends a
// program). Then makes the agent end, and takes everything that it has committed.
void cs_session_record(struct cs_session *s);
// Calls `tick` every 20 ms until it returns false, the program has ended, or Ctrl-C as above.
void cs_session_watch(struct cs_session *s, bool (*tick)(void *data), void *data);
// Forwards signals until the program has ended.
void cs_session_wait(struct cs_session *s);
// Returns the program's exit code, or 128 + n if signal n killed it.
int cs_session_exit_code(const struct cs_session *s);
// "was killed by signal 9 (Killed)". Returns false if it was not started here, or runs.
bool cs_session_how_ended(const struct cs_session *s, char *out, size_t size);
// Also ends an agent that is still recording.
void cs_session_close(struct cs_session *s);
