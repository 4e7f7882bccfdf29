// SPDX-License-Identifier: MIT
// Records this very program's threads by an engine of cpu mode, without a runtime.
#pragma once

#include "engines/engines.h"
#include "sampling/thread_life.h"
#include "wire/consumer.h"

#define MS 1000000ull

extern struct cs_consumer consumer;
extern struct cs_error err;

uint64_t own_cpu(void);  // of the calling thread, ns
void burn(uint64_t ns);  // of its CPU time
// CPU time in gaps of over a millisecond of burn(): a hypervisor had the processor, or another
// thread.
struct gaps {
  uint64_t ns, count;
};
extern _Thread_local struct gaps taken_away;
uint32_t own_tid(void);
int setup(void **state);

// The other settings of the wish are those of cs_agent: kernel, event.
void open_recording(uint32_t hz, enum cs_wire_engine_kind engine);
void begin(uint32_t hz, enum cs_wire_engine_kind engine);
void end(void);
int end_failed(void **state);  // a teardown: ends a recording that a failed test has left open

// On a machine that also runs other programs, a single measurement may be far off. A fault of the
// engine shows in each of them. `measure` returns false, with *why, if it measured something wrong.
#define TRIES 6
void measure_in_tries(bool (*measure)(char why[128]));

struct sums {
  uint64_t samples, weight;
};
struct sums drain(void);
// Burns `ns` up to TURNS times, until a turn has taken `enough` samples; returns the most that one
// has taken.
#define TURNS 5
uint64_t burn_for(uint64_t enough, uint64_t ns);
struct cs_wire_engine told(char why[256]);  // what was told last

int count_fds(void);
// Runs the test in a child process, because it makes changes that a process can make only once.
void in_child(int (*test)(void));
// From now on, the system call fails in this process with EPERM. Returns false if that cannot be.
bool refuse(unsigned call);

extern volatile int handled;  // by this handler
void on_urg(int number);
