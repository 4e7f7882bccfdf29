// SPDX-License-Identifier: MIT
// From a box to the boxes that await it. Signal-safe: yes; memory reads and nothing else, bounded.
//
// Invariants. (1) Each object is a member of a verified one, at an offset that the profiling API
// has reported; the caller verifies the first. (2) A method that awaits is suspended until what it
// awaits has completed. So the whole chain is suspended while the sampled thread runs, or sleeps
// in, its first method. (3) A Task's continuation is set once, and removed for good when the Task
// completes. A source is reset and used again, perhaps by another chain, but only after its awaiter
// has run. So a chain that passes a source is read twice: if both readings agree, all of it was
// true at one moment between them.
#include "signal/await_chain.h"

enum {
  PROBES = 16,
  HOPS = 4 * CS_AWAITS_MOST,  // objects in a chain, most of which belong to no method
  BASES = 8,
  LISTED = 16,  // entries of a list that are read; most have given up
};

// A chain that is being followed.
struct cursor {
  uint64_t object;     // the next one; 0: there is none
  bool from_task;      // it is a Task's continuation: only there does a list hold awaiters
  uint64_t trace;      // a hash of all objects so far
  bool passed_source;  // or a list: either may have changed since
};

CS_ISLAND static bool read_u64(const struct cs_await_reader *r, uint64_t addr, uint64_t *out) {
  return r->guarded ? cs_mem_read_guarded(r->mem, addr, out, 8) : cs_mem_u64(r->mem, addr, out);
}

CS_ISLAND uint64_t cs_await_type(const struct cs_awaits *awaits, uint64_t class, uint32_t *slot) {
  uint32_t at = cs_await_slot(class, CS_AWAIT_TYPES);
  for (int i = 0; i < PROBES; i++, at = (at + 1) & (CS_AWAIT_TYPES - 1)) {
    uint64_t type = cs_load_acquire(&awaits->types[at]);
    *slot = at;
    if (type == 0 || CS_AWAIT_TYPE_CLASS(type) == class) return type;
  }
  return 0;
}

CS_ISLAND static bool add_word(struct cs_await_chain *chain, uint64_t word) {
  if (chain->count == CS_AWAITS_MOST) return false;
  chain->words[chain->count++] = word;
  return true;
}

// Returns whether this class, which is not in the table yet, is derived from Task, so that its
// continuation leads on.
CS_ISLAND static bool is_task(const struct cs_awaits *awaits, const struct cs_await_reader *r,
                              uint64_t class) {
  uint64_t task = cs_load_acquire(&awaits->task);
  for (int i = 0; i < BASES && task != 0 && class != 0; i++) {
    if (class == task) return true;
    if (!read_u64(r, class + awaits->parent, &class)) return false;
  }
  return false;
}

CS_ISLAND static enum cs_await_state note_unknown(struct cs_await_chain *chain, uint64_t class) {
  chain->words[chain->count++] = class;
  return CS_AWAITS_UNKNOWN;
}

// A source's state is its awaiter only if the source resumes it by one of the runtime's own
// delegates.
CS_ISLAND static enum cs_await_state look_at_resumer(const struct cs_awaits *awaits,
                                                     const struct cs_await_reader *r,
                                                     uint64_t delegate, bool *resumes,
                                                     struct cs_await_chain *chain) {
  uint64_t target, class;
  uint32_t slot;
  *resumes = false;
  if (!read_u64(r, delegate + awaits->target, &target)) return CS_AWAITS_STOPPED;
  if (target == 0) return CS_AWAITS_COMPLETE;
  if (!read_u64(r, target, &class)) return CS_AWAITS_STOPPED;
  uint64_t type = cs_await_type(awaits, class, &slot);
  if (type == 0) return note_unknown(chain, class);
  *resumes = CS_AWAIT_TYPE_KIND(type) == CS_AWAIT_RESUMER;
  return CS_AWAITS_COMPLETE;
}

// The members are read in this order because the state is set before the continuation, and the
// source completes before it calls the continuation.
CS_ISLAND static enum cs_await_state pass_source(const struct cs_awaits *awaits,
                                                 const struct cs_await_reader *r,
                                                 const struct cs_await_source *source,
                                                 struct cursor *cursor,
                                                 struct cs_await_chain *chain) {
  uint64_t at = cursor->object, continuation, state, completed;
  unsigned shift = source->completed % 8u * 8;
  bool resumes;
  cursor->object = 0;
  cursor->passed_source = true;
  if (source->holder != 0 && !read_u64(r, at + source->holder, &at)) return CS_AWAITS_STOPPED;
  if (at == 0) return CS_AWAITS_COMPLETE;
  if (!read_u64(r, at + source->continuation, &continuation)) return CS_AWAITS_STOPPED;
  if (continuation == 0) return CS_AWAITS_COMPLETE;
  if (!read_u64(r, at + source->state, &state) ||
      !read_u64(r, at + source->completed / 8u * 8, &completed))
    return CS_AWAITS_STOPPED;
  if ((completed >> shift & 0xFF) != 0) return CS_AWAITS_COMPLETE;
  enum cs_await_state looked = look_at_resumer(awaits, r, continuation, &resumes, chain);
  if (looked == CS_AWAITS_COMPLETE && resumes) cursor->object = state;
  return looked;
}

// An awaiter that has given up (WhenAny's Task, when another Task has completed) leaves a gap. The
// count is read first: an array that replaces the list's is never shorter.
CS_ISLAND static enum cs_await_state pass_list(const struct cs_awaits *awaits,
                                               const struct cs_await_reader *r,
                                               const struct cs_await_source *list,
                                               struct cursor *cursor) {
  uint64_t word, array, entry, only = 0;
  unsigned shift = list->state % 8u * 8;
  if (!read_u64(r, cursor->object + list->state / 8u * 8, &word) ||
      !read_u64(r, cursor->object + list->holder, &array))
    return CS_AWAITS_STOPPED;
  uint32_t count = (uint32_t)(word >> shift);
  if (count > LISTED) return CS_AWAITS_SEVERAL;
  for (uint32_t i = 0; i < count; i++) {
    if (!read_u64(r, array + awaits->elements + i * 8ull, &entry)) return CS_AWAITS_STOPPED;
    if (entry != 0 && only != 0) return CS_AWAITS_SEVERAL;
    if (entry != 0) only = entry;
  }
  cursor->object = only;
  cursor->passed_source = true;
  return CS_AWAITS_COMPLETE;
}

// Continues from an object of this type to the next one.
CS_ISLAND static enum cs_await_state pass(const struct cs_awaits *awaits,
                                          const struct cs_await_reader *r, uint64_t type,
                                          uint32_t slot, struct cursor *cursor,
                                          struct cs_await_chain *chain) {
  enum cs_await_kind kind = CS_AWAIT_TYPE_KIND(type);
  if (kind == CS_AWAIT_SOURCE || kind == CS_AWAIT_LIST) {
    union {
      uint64_t word;
      struct cs_await_source source;
    } at = {.word = cs_load_acquire(&awaits->sources[slot])};
    // The types may have been cleared since, and the slot may be another type's now.
    if (cs_load_acquire(&awaits->types[slot]) != type) return CS_AWAITS_STOPPED;
    if (kind == CS_AWAIT_LIST && (at.word == 0 || !cursor->from_task)) return CS_AWAITS_SEVERAL;
    cursor->from_task = false;
    return kind == CS_AWAIT_LIST ? pass_list(awaits, r, &at.source, cursor)
                                 : pass_source(awaits, r, &at.source, cursor, chain);
  }
  cursor->from_task = kind == CS_AWAIT_BOX || kind == CS_AWAIT_PROMISE;
  if (kind == CS_AWAIT_END || kind == CS_AWAIT_RESUMER)
    cursor->object = 0;
  else if (!read_u64(r, cursor->object + CS_AWAIT_TYPE_OFFSET(type), &cursor->object))
    return CS_AWAITS_STOPPED;
  return CS_AWAITS_COMPLETE;
}

// Records the object's class, if it is a method's, and continues with the next object.
CS_ISLAND static enum cs_await_state step(const struct cs_awaits *awaits,
                                          const struct cs_await_reader *r, struct cursor *cursor,
                                          struct cs_await_chain *chain) {
  uint64_t class;
  uint32_t slot;
  if (!read_u64(r, cursor->object, &class)) return CS_AWAITS_STOPPED;
  uint64_t type = cs_await_type(awaits, class, &slot), word = class;
  if (type == 0 && is_task(awaits, r, class)) {
    type = CS_AWAIT_TYPE(class, awaits->continuation, CS_AWAIT_BOX);
    word |= CS_AWAIT_WORD_NEW;
  }
  enum cs_await_kind kind = CS_AWAIT_TYPE_KIND(type);
  if (type == 0) return note_unknown(chain, class);
  if ((kind == CS_AWAIT_BOX || kind == CS_AWAIT_SOURCE) && !add_word(chain, word))
    return CS_AWAITS_CUT;
  return pass(awaits, r, type, slot, cursor, chain);
}

CS_ISLAND static enum cs_await_state follow(const struct cs_awaits *awaits,
                                            const struct cs_await_reader *r, struct cursor *cursor,
                                            struct cs_await_chain *chain) {
  for (int i = 0; i < HOPS && cursor->object != 0; i++) {
    cursor->trace = cs_hash_sequence(cursor->trace, cursor->object);
    enum cs_await_state state = step(awaits, r, cursor, chain);
    if (state != CS_AWAITS_COMPLETE) return state;
  }
  return cursor->object == 0 ? CS_AWAITS_COMPLETE : CS_AWAITS_CUT;
}

CS_ISLAND static enum cs_await_state begin(const struct cs_awaits *awaits,
                                           const struct cs_await_reader *r, uint64_t object,
                                           bool runs, struct cursor *cursor,
                                           struct cs_await_chain *chain) {
  uint64_t class;
  *cursor = (struct cursor){.object = object};
  chain->count = 0;
  if (runs) {
    if (!read_u64(r, object, &class) ||
        !read_u64(r, object + awaits->continuation, &cursor->object))
      return CS_AWAITS_STOPPED;
    chain->words[chain->count++] = class | CS_AWAIT_WORD_RUNS;
    cursor->from_task = true;
  }
  return follow(awaits, r, cursor, chain);
}

CS_ISLAND enum cs_await_state cs_await_follow(const struct cs_awaits *awaits,
                                              const struct cs_await_reader *r, uint64_t object,
                                              bool runs, struct cs_await_chain *chain) {
  struct cursor cursor, again;
  enum cs_await_state state = begin(awaits, r, object, runs, &cursor, chain);
  if (!cursor.passed_source) return state;
  if (begin(awaits, r, object, runs, &again, chain) == state && again.trace == cursor.trace)
    return state;
  chain->count = 0;
  return CS_AWAITS_STOPPED;
}
