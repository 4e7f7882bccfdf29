// SPDX-License-Identifier: MIT
// awaits: which methods await the async method that was resumed on a stack. The state machine of
// such a method lives in a heap object, its box (AsyncStateMachineBox), which is its Task, too. The
// box's frame is the caller of the method's on the stack, and the box leads to the box that awaits
// it, and so on; none of the others is on the stack. A Task that runs a delegate is treated alike.
// Signal-safe: everything marked CS_ISLAND. The agent's thread alone fills the tables, while
// handlers read them.
//
// Two tables hold what the profiling API has reported to the agent, and nothing else:
//
//   sites   return addresses in a box's MoveNext, which identify its frame, with the box's class;
//           or in a method into which a MoveNext was inlined, for any class; or in the method that
//           runs a Task's delegate
//   types   classes of objects that such a chain may pass, and which member of each leads on
#pragma once

#include "base/hash.h"
#include "signal/signal.h"

enum {
  CS_AWAIT_SITES = 1 << 13,
  CS_AWAIT_TYPES = 1 << 13,
  CS_AWAITS_MOST = 32,  // boxes in a sample, the first included
};

// What an object of a class means to a chain; in a type's lowest bits.
enum cs_await_kind {
  CS_AWAIT_END = 1,  // leads nowhere: nothing awaits it, or that cannot be found out
  CS_AWAIT_BOX,      // an async method; its Task's continuation leads on
  CS_AWAIT_LINK,     // leads on by a member, but is not a method; for example a delegate
  CS_AWAIT_LIST,     // several await the same Task; or all but one of them have given up
  CS_AWAIT_SOURCE,   // an async method that is awaited by a ManualResetValueTaskSourceCore
  CS_AWAIT_PROMISE,  // a Task without a method, such as WhenAll's; its continuation leads on
  CS_AWAIT_RESUMER,  // the target of the delegates by which such a source resumes its awaiter
};

// How a sample's chain ended.
enum cs_await_state {
  CS_AWAITS_NONE,       // no box on the stack: nothing was looked for
  CS_AWAITS_COMPLETE,   // up to a box that nothing awaits
  CS_AWAITS_SEVERAL,    // up to one that several await
  CS_AWAITS_CUT,        // more than CS_AWAITS_MOST
  CS_AWAITS_UNKNOWN,    // the last word is a class that is not in the table, nor derived from Task
  CS_AWAITS_STOPPED,    // the runtime is or was suspended: objects may have moved
  CS_AWAITS_AMBIGUOUS,  // the box could not be distinguished from other values in its frame
};

struct cs_await_site {
  uint64_t ip;     // 0: free. Written last
  uint64_t class;  // the box's MethodTable; of shared code, that of all its instantiations
  // CS_AWAIT_PLACES bits: the places in the frame where the box may be. At one address, code always
  // keeps it in the same places, so each sample rules out those that had none, until a single one
  // is left to be read. The bits above are the agent's generation of the table.
  uint64_t places;
  uint64_t last_class;  // the MethodTable of the last box that was found here; 0: none yet
};
#define CS_AWAIT_PLACES ((1ull << 54) - 1)
enum { CS_AWAIT_LIFE_AT = 54 };
// In place of a class: the frame is of a box of any class; of Task.ExecuteWithThreadLocal, which
// runs a Task's delegate; of a method that calls this one for an idle thread, or because another
// Task has completed.
#define CS_AWAIT_ANY_BOX 1u
#define CS_AWAIT_TASK_RUNS 2u
#define CS_AWAIT_DISPATCHES 3u
enum { CS_AWAIT_DISPATCH_FRAMES = 4 };  // its frame is at most this far from the delegate's

// Offsets: of the members of a CS_AWAIT_SOURCE's ManualResetValueTaskSourceCore; or of a
// CS_AWAIT_LIST's array (holder) and of the count of its entries (state). One word, so that it is
// read whole.
struct cs_await_source {
  uint16_t holder;  // of the member that points to the object with the others; 0: the box has them
  uint16_t continuation, state, completed;
};

struct cs_awaits {
  // Odd: the runtime is suspended, and objects may move. Written by its suspension callbacks.
  uint32_t stops;
  uint32_t canonical, parent;  // offsets in a MethodTable
  uint64_t task;               // Task's own MethodTable; 0: not known yet
  uint32_t continuation;       // offset of Task.m_continuationObject
  uint32_t target;             // offset in a Delegate; known when there is a CS_AWAIT_SOURCE
  uint32_t elements;           // offset in an array; known when there is a CS_AWAIT_LIST
  // A class's MethodTable << 16 | offset of the member that leads on << 4 | enum cs_await_kind.
  uint64_t types[CS_AWAIT_TYPES];
  uint64_t sources[CS_AWAIT_TYPES];  // struct cs_await_source of the type with this index, or 0;
                                     // written before the type
  struct cs_await_site sites[CS_AWAIT_SITES];
};
#define CS_AWAIT_TYPE(mt, offset, kind) ((mt) << 16 | (uint64_t)(offset) << 4 | (uint64_t)(kind))
#define CS_AWAIT_TYPE_CLASS(type) ((type) >> 16)
#define CS_AWAIT_TYPE_OFFSET(type) ((uint32_t)((type) >> 4) & 0xFFFu)
#define CS_AWAIT_TYPE_KIND(type) ((enum cs_await_kind)((type)&0xFu))

static inline uint32_t cs_await_slot(uint64_t key, uint32_t slots) {
  return (uint32_t)cs_hash_word(key, 32) & (slots - 1);
}

struct cs_await_chain {
  enum cs_await_state state;
  uint32_t at;     // the index of the box's frame in the sample
  uint32_t count;  // of words
  // MethodTables: of the box on the stack, of the box that awaits it, and so on. CS_AWAIT_WORD_NEW:
  // derived from Task but not in the table yet, so perhaps not a box. CS_AWAIT_WORD_RUNS: the first
  // word, if it is of a Task whose delegate runs.
  uint64_t words[CS_AWAITS_MOST + 1];
};
#define CS_AWAIT_WORD_NEW 1u
#define CS_AWAIT_WORD_RUNS 2u
#define CS_AWAIT_WORD_CLASS(word) ((word) & ~3ull)
