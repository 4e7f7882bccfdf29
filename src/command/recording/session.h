// SPDX-License-Identifier: MIT
// A program under recording: its signals, its end, and the ring being emptied meanwhile. It is
// either our child, or a process that ran before and runs on afterwards.
#ifndef CS_RECORDING_SESSION_H
#define CS_RECORDING_SESSION_H

#include <signal.h>
#include <sys/types.h>

#include "recording/recfile.h"
#include "recording/window.h"
#include "wire/consumer.h"

// One who looks on while it is recorded. Signals are then the command's own.
struct cs_watcher {
  void *context;
  // Records have been taken, `recording.samples` being the new samples. False: it is enough.
  bool (*look)(void *context, uint64_t now_ns);
  void (*signal)(void *context, int number);
};

struct cs_session {
  struct cs_consumer consumer;
  struct cs_recording recording;
  struct cs_recfile file;    // open if the recording is wanted as such
  struct cs_window *window;  // NULL: nothing is pushed meanwhile
  bool timeline;             // an output wants the samples one by one
  pid_t child;               // or the process that is recorded by attach
  int attached;              // 0, or a descriptor of that process (a pidfd)
  bool child_ended;
  int child_status;      // as wait(2) has it; a child's only
  sigset_t old_mask;     // the command's own, for the program
  int signals;           // signalfd
  unsigned interrupts;   // Ctrl-C so far
  unsigned patience;     // attached: how many end the recording; 0: one
  uint64_t began_ns;     // CLOCK_MONOTONIC: when the agent was first seen to record; 0: not yet
  uint64_t recorded_ns;  // how long it recorded
  uint64_t limit_ns;     // 0: none
  uint64_t progress_ns;  // when the progress line was last written; 0: there is none
  bool progress;         // stderr is a terminal
  struct cs_watcher watcher;  // look NULL: there is none
  bool enough;                // it has said so
};

// Blocks the signals that are passed on and makes the descriptor that they arrive at. To be called
// before the program starts, so that none is missed.
bool cs_session_open(struct cs_session *s, struct cs_error *err);
// For a process that runs: opens its descriptor. False: there is no such process.
bool cs_session_attach(struct cs_session *s, pid_t pid, struct cs_error *err);
// Takes the signals that have come. True: they end what is being done.
bool cs_session_is_interrupted(struct cs_session *s);
// Records until the program or the agent ends, the time is up, or a second Ctrl-C comes (if it is
// attached, a first one or any other signal that ends a program); then has the agent end and takes
// all that it has committed.
void cs_session_record(struct cs_session *s);
// Calls `tick` every 20 ms until it answers false, the program has ended, or Ctrl-C as above.
void cs_session_watch(struct cs_session *s, bool (*tick)(void *data), void *data);
// Passes signals on until the program has ended.
void cs_session_wait(struct cs_session *s);
// The program's exit code, 128 + n if signal n killed it.
int cs_session_exit_code(const struct cs_session *s);
void cs_session_close(struct cs_session *s);

#endif
