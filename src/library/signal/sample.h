// SPDX-License-Identifier: MIT
// The sample ring: many handlers write, the agent's thread reads. It lies in private memory of this
// process, so that a handler never depends on a page of a file or on another process. Signal-safe:
// everything marked CS_ISLAND. The reader is state/ring.h.
//
//   tail                                     head
//    | READY record | BUSY record | READY record |  all zero ...  |
//
// A record's first word is 0 while the record is being written, and holds its size and state after
// that. Free space is all zero, because the reader clears what it has read before it moves the
// tail. So a reserved record is BUSY without a store.
#pragma once

#include "signal/cooldown.h"
#include "signal/label.h"
#include "signal/sampled.h"
#include "walk/record.h"

enum {
  CS_SAMPLE_RING_BYTES = 4 << 20,  // 13,000 samples of 30 frames; it is drained every 10 ms
  CS_SAMPLE_ALIGN = 16,
  CS_SAMPLE_MODES = 16,  // more than any mode's number
};

enum cs_sample_state {
  CS_SAMPLE_BUSY = 0,
  CS_SAMPLE_READY = 1,  // a struct cs_sample
  CS_SAMPLE_PAD = 2,    // nothing: the ring's end, or a record that has moved
};
#define CS_SAMPLE_WORD(size, state) ((uint64_t)(size) << 8 | (uint64_t)(state))
#define CS_SAMPLE_SIZE(word) ((word) >> 8)
#define CS_SAMPLE_STATE(word) ((enum cs_sample_state)((word)&0xFFu))

// What has made a thread take a sample.
enum cs_cause {
  CS_CAUSE_NONE,       // another thread took it while this one slept, or it is an event's
  CS_CAUSE_WALL,       // wall mode's scan of all threads
  CS_CAUSE_CLOCKED,    // an engine whose samples stand for the CPU time since the thread's last one
  CS_CAUSE_SCAN,       // the clock engine's scan: the thread has a processor
  CS_CAUSE_STRAGGLER,  // the runtime is being suspended, and the thread holds that up
  CS_CAUSE_HOLDS,      // it holds a lock that others wait for (struct cs_hold)
};
struct cs_signal_cause {
  uint64_t entry_tsc;  // the time-stamp when the handler was entered
  enum cs_cause cause;
  uint64_t weight;             // CS_CAUSE_SCAN: what the sample stands for
  const struct cs_hold *hold;  // CS_CAUSE_HOLDS
};

struct cs_sample {
  uint64_t word;     // CS_SAMPLE_WORD; written last, with release
  uint64_t tsc;      // when the handler was entered
  uint64_t stop_ip;  // struct cs_walk.stop_ip
  uint64_t sp;       // of the leaf
  void *agent;       // struct cs_thread.agent, as it was
  uint32_t thread;   // struct cs_thread.index
  uint32_t thread_generation;
  uint32_t code_generation;  // struct cs_world.code_generation when the walk began
  uint32_t held_ticks;       // of the time-stamp counter, from the handler's entry to its end; 0:
                             // not held, it was walked while it slept
  uint32_t put_off;          // signals before it for which no sample was taken (struct cs_cooldown)
  uint32_t frame_count;
  uint16_t stop;      // enum cs_stop
  uint16_t cause;     // enum cs_cause
  uint32_t images;    // struct cs_images.sequence of the table that it was walked by
  uint64_t loaded;    // struct cs_walk.loaded
  uint64_t weight;    // an event's own; CS_CAUSE_CLOCKED and _SCAN: CPU time, ns, or a count of
                      // the perf event's; CS_CAUSE_STRAGGLER: time, ns; _HOLDS: the time that
                      // others wait, ns; else 0
  uint64_t class;     // the MethodTable of the object that a lock, a lock's holder, an allocation
                      // or an exception is about; 0: unknown
  uint32_t mode;      // an event's, a straggler's or a holder's, as the agent numbers them; 0: it
                      // stands for time
  uint32_t type;      // what an event is about, or a thread is held up by, as the agent numbers it
  uint32_t await_at;  // struct cs_await_chain: at, count and state
  uint16_t await_count, await_state;
  uint32_t kernel_count;  // of the kernel's addresses, or CS_KERNEL_UNKNOWN
  uint32_t
      put_off_by_ns;      // cost of the sample that `put_off` were put off for (struct cs_cooldown)
  struct cs_label label;  // all zero: none
  uint64_t frames[];      // CS_FRAME_WORD()s, leaf first; then the chain's words, then the kernel's
};

static inline bool cs_sample_has_label(const struct cs_sample *sample) {
  const uint64_t *words = (const uint64_t *)(const void *)&sample->label;
  return (words[0] | words[1] | words[2]) != 0;
}

enum { CS_RAN_ON_COUNT = 16 };

struct cs_sample_ring {
  uint8_t *bytes;
  uint64_t capacity;       // a power of two
  uint64_t walk_limit_ns;  // CPU time that a sample's walk may use; 0: no limit
  uint32_t max_depth;
  _Alignas(64) uint64_t head;  // bytes ever reserved, less those given back
  // Counters. signals + asleep + events = samples + lost, once no handler is running.
  uint64_t signals;  // handled for a thread that is being sampled
  uint64_t asleep;   // threads that were walked while they slept, without a signal
  uint64_t events;   // of the runtime, for which threads walked themselves
  uint64_t samples;  // READY records ever written
  uint64_t lost;     // no room in the ring
  uint64_t lost_events[CS_SAMPLE_MODES];  // of the lost ones, events by mode
  uint64_t released;  // weights of holders that have not been walked, because they no longer held
                      // the lock or were in their cooldown
  // How long threads ran on until they took the signal that asked for a sample: [0] counts less
  // than 1,024 ns of CPU time, [i] less than 2^i times that, the last one all others.
  uint64_t ran_on[CS_RAN_ON_COUNT];
  _Alignas(64) uint64_t tail;  // bytes ever read
};

// Returns whether the thread, which runs its handler or sleeps, still holds the lock.
CS_ISLAND bool cs_hold_lasts(const struct cs_world *world, const struct cs_thread *thread,
                             const struct cs_hold *hold);
// Makes the sample one of a lock's holder.
CS_ISLAND void cs_hold_write(struct cs_sample *sample, const struct cs_hold *hold);

struct cs_sample_place {  // a reservation: [at, at + size), in bytes ever reserved
  struct cs_sample *sample;
  uint64_t at, size;
};
// Takes one sample of the calling thread into the ring.
CS_ISLAND void cs_sample_take(struct cs_thread *thread, const struct cs_regs *regs,
                              const struct cs_signal_cause *cause);
// A sample of a sleeping thread, which another thread takes over a copy of its stack (in the memory
// of `world`). cs_sample_draft walks; the sample is then kept if the copy has proved valid, or else
// dropped. Returns false if there is no room; the sample is then lost.
CS_ISLAND bool cs_sample_draft(struct cs_sample_ring *ring, struct cs_sample_place *place,
                               const struct cs_sampled *sleeping);
CS_ISLAND void cs_sample_keep(struct cs_sample_ring *ring, const struct cs_sample_place *place);
CS_ISLAND void cs_sample_drop(const struct cs_sample_place *place);

// Takes a sample of the calling thread because of an event, outside of a handler: of the function
// whose registers `from` has, and its callers. The caller is inside the epoch. If the thread's last
// event samples have taken too much of its time (`cooldown`), the sample has no frames. Returns
// false if there was no room: the sample is lost.
struct cs_sample_event {
  uint64_t tsc;    // when it happened
  uint64_t begin;  // since when its thread has been held for it; 0: since `tsc`
  uint64_t weight;
  uint32_t mode;  // 1 to CS_SAMPLE_MODES - 1
  uint32_t type;
  uint64_t class;  // struct cs_sample.class
};
CS_ISLAND bool cs_sample_event(struct cs_sample_ring *ring, const struct cs_sampled *from,
                               struct cs_cooldown *cooldown, const struct cs_sample_event *event);
// Writes an event's sample with the stack of another sample, which is not in this ring. Returns
// false if there is no room; the sample is then lost.
CS_ISLAND bool cs_sample_event_like(struct cs_sample_ring *ring, const struct cs_sample *like,
                                    const struct cs_sample_event *event);
