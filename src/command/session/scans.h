// SPDX-License-Identifier: MIT
// While a process is recorded, scans of it from outside, by a process of the command's own (the
// observer): for async mode, of its heap for suspended operations, at random moments; in wall mode,
// of its thread pool. An observer writes what it has seen as records of the wire, and the command
// takes them in like those of the agent.
//
// The observer is a process because only the tracer of a thread may wait for it, and because a
// program that was started by the command is the command's child: its end must not be taken by a
// scan. If the command dies, the kernel kills the observer; if the observer dies, the kernel
// resumes the program.
#pragma once

#include <sys/types.h>

#include "recording/recfile.h"

struct cs_scans_ask {
  bool lines;   // of awaits
  bool labels;  // of what is awaited for, if the program has the hook that sets them
};
typedef void cs_observer_run(int to, pid_t pid, const struct cs_scans_ask *ask);
struct cs_scans {
  bool wanted;  // set by the caller, as are the next two
  struct cs_scans_ask ask;
  cs_observer_run *run;  // what the observer does
  bool started;
  pid_t observer;  // 0: none
  int from;        // its pipe
  uint8_t *bytes;  // that were read, but not taken in yet
  size_t used, capacity;
};

// Starts an observer, which dies with this process; `from`: its pipe, of which reads do not wait.
// Returns 0 if it cannot be started, and sets *why if that is for want of a pipe.
pid_t cs_observer_start(cs_observer_run *run, pid_t pid, const struct cs_scans_ask *ask, int *from,
                        const char **why);
// Kills the observer, if there is one, and closes its pipe.
void cs_observer_end(pid_t *observer, int from);

// Starts the observer for a process that is being recorded. Failures of cs_scans_run are recorded.
void cs_scans_start(struct cs_scans *scans, pid_t pid, struct cs_recording *rec,
                    struct cs_recfile *file);
// Takes in what the observer has written. `began_ns`: the recording's start (CLOCK_MONOTONIC).
void cs_scans_take(struct cs_scans *scans, uint64_t began_ns, struct cs_recording *rec,
                   struct cs_recfile *file);
// Ends the observer, also in the middle of a scan, and takes in the rest.
void cs_scans_end(struct cs_scans *scans, uint64_t began_ns, struct cs_recording *rec,
                  struct cs_recfile *file);
void cs_scans_close(struct cs_scans *scans);

// ---- pool_scans.c: the thread pool ----
// Reads its state about twice a second, without stopping the process, until that ends.
void cs_pool_scans_run(int to, pid_t pid, const struct cs_scans_ask *ignored);

// ---- observer.c: what the observer of async mode does ----
// A source line of a frame that the observer has announced; between the observer and the command
// only. The file's name follows.
#define CS_SCANS_PLACE 0x7F00u
struct cs_scans_place {
  uint64_t frame;  // as the recording has it
  uint32_t line, file_size;
};
// Scans the process until it ends, or scans fail again and again.
void cs_scans_run(int to, pid_t pid, const struct cs_scans_ask *ask);
