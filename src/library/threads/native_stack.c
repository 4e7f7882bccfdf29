// SPDX-License-Identifier: MIT
// The stacks of threads that other code has made, and whether they have room for a signal: a
// library may give its threads 16 KiB, and a signal that does not fit ends the program
// (docs/signal-safety.md, "Small stacks"). Any thread. Signal-safe: no.
//
// The bounds come from the C library's record of the thread, which may run meanwhile. With glibc
// the record lies at a fixed distance from the thread's robust-mutex list, whose address the kernel
// returns; with musl, the records form a ring, and contain the thread's tid. Where the bounds are
// in a record is learned from the record of a thread of ours. A record may be freed with its thread
// at any moment, so reads are guarded. A thread without one (made by clone, or by another C
// library) stays unknown, and is sent no signal.
#include <pthread.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "threads/native_stack.h"
#include "threads/stackmap.h"

enum { RECORD = 4096 };  // bytes of a record, at most

// In glibc's record: the lowest address (of the guard), the size with it, the guard's size.
struct block {
  uint64_t lo, size, guard;
};

// In musl's record: the address above the stack, and the size without the guard.
struct musl_block {
  uint64_t hi, size;
};
enum { MUSL_PREVIOUS = 16, MUSL_NEXT = 24, MUSL_MOST = 65536 };

static struct {
  pthread_mutex_t lock;
  bool learned;
  bool musl;
  uint64_t robust;  // in the record
  uint64_t block;
  uint64_t tid;   // in musl's record
  uint64_t ring;  // musl's record of the main thread, which is never freed
} place = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool robust_list_of(uint32_t tid, uint64_t *head) {
  size_t size;
  void *at = NULL;
  if (syscall(SYS_get_robust_list, tid, &at, &size) != 0) return false;
  *head = (uint64_t)(uintptr_t)at;
  return *head != 0;
}

// Learns from the calling thread's record. That must not be the main thread's, which has no bounds.
static bool learn_place(void) {
  uint64_t self = (uint64_t)pthread_self(), robust;
  struct cs_stack stack;
  unsigned found = 0;
  if (!cs_stack_of_self(&stack) || self < stack.lo || self >= stack.hi) return false;
  if (!robust_list_of(0, &robust) || robust < self || robust - self >= RECORD) return false;
  place.robust = robust - self;
  for (uint64_t at = 0; at + sizeof(struct block) <= RECORD; at += 8) {
    struct block block;
    if (self + at + sizeof block > stack.hi) break;
    memcpy(&block, (const void *)(uintptr_t)(self + at), sizeof block);
    if (block.lo + block.size != stack.hi || block.lo + block.guard != stack.lo) continue;
    place.block = at;
    found++;
  }
  return found == 1;
}

static bool read_word(uint64_t at, uint64_t *word) {
  struct cs_mem mem;
  cs_mem_init_self(&mem);
  return cs_mem_read_guarded(&mem, at, word, sizeof *word);
}

// Finds the next record in the ring. Returns false unless that one points back to this one.
static bool next_record(uint64_t record, uint64_t *next) {
  uint64_t back;
  return read_word(record + MUSL_NEXT, next) && read_word(*next + MUSL_PREVIOUS, &back) &&
         back == record;
}

static bool has_tid(uint64_t record, uint32_t tid) {
  uint64_t word;
  return read_word(record + place.tid, &word) && (uint32_t)word == tid;
}

static uint64_t find_record(uint64_t from, uint32_t tid) {
  uint64_t record = from;
  for (int i = 0; i < MUSL_MOST; i++) {
    if (has_tid(record, tid)) return record;
    if (!next_record(record, &record) || record == from) return 0;
  }
  return 0;
}

// The same for musl. The tid must be in one place only.
static bool learn_musl(void) {
  uint64_t self = (uint64_t)pthread_self(), next, word;
  uint32_t tid = (uint32_t)syscall(SYS_gettid);
  struct cs_stack stack;
  struct musl_block block;
  unsigned tids = 0, blocks = 0;
  if (!cs_stack_of_self(&stack) || self < stack.lo || !next_record(self, &next)) return false;
  for (uint64_t at = 0; at + sizeof block <= 256; at += 8) {
    memcpy(&word, (const void *)(uintptr_t)(self + at), sizeof word);
    memcpy(&block, (const void *)(uintptr_t)(self + at), sizeof block);
    if ((uint32_t)word == tid && tids++ == 0) place.tid = at;
    if (block.hi == stack.hi && block.size == stack.hi - stack.lo && blocks++ == 0)
      place.block = at;
  }
  if (tids != 1 || blocks != 1) return false;
  place.ring = find_record(self, (uint32_t)getpid());
  return place.musl = place.ring != 0;
}

static bool is_learned(void) {
  (void)pthread_mutex_lock(&place.lock);
  bool learned = place.learned = place.learned || learn_place() || learn_musl();
  (void)pthread_mutex_unlock(&place.lock);
  return learned;
}

// What lies above the stack is the thread-local memory and the record.
static bool find_musl(uint32_t tid, struct cs_stack *stack, uint64_t *top) {
  struct musl_block block;
  struct cs_mem mem;
  uint64_t record = find_record(place.ring, tid);
  cs_mem_init_self(&mem);
  if (record == 0 || !cs_mem_read_guarded(&mem, record + place.block, &block, sizeof block) ||
      block.size > block.hi || !has_tid(record, tid))
    return false;
  *top = block.hi;
  *stack = (struct cs_stack){.lo = block.hi - block.size, .hi = block.hi};
  return true;
}

// Finds a thread's stack, and where the part that its code may use ends.
static bool find(uint32_t tid, struct cs_stack *stack, uint64_t *top) {
  uint64_t robust;
  struct block block;
  struct cs_mem mem;
  if (tid == (uint32_t)getpid()) {
    *top = getauxval(AT_RANDOM);  // on the main thread's stack
    return cs_stack_around(*top, stack);
  }
  if (!is_learned()) return false;
  if (place.musl) return find_musl(tid, stack, top);
  if (!robust_list_of(tid, &robust) || robust < place.robust) return false;
  *top = robust - place.robust;
  cs_mem_init_self(&mem);
  if (!cs_mem_read_guarded(&mem, *top + place.block, &block, sizeof block)) return false;
  if (block.lo > *top || block.size <= *top - block.lo || block.guard > *top - block.lo)
    return false;
  *stack = (struct cs_stack){.lo = block.lo + block.guard, .hi = block.lo + block.size};
  return true;
}

void cs_thread_learn_stack(struct cs_thread *entry, uint32_t tid) {
  struct cs_stack stack;
  uint64_t top;
  if (cs_load_acquire(&entry->room) != CS_ROOM_UNKNOWN || !find(tid, &stack, &top)) return;
  if (cs_load_acquire(&entry->stack.hi) == 0) {
    entry->stack.lo = stack.lo;
    cs_store_release(&entry->stack.hi, stack.hi);
  }
  bool enough = top - stack.lo >= CS_LEAST_STACK;
  cs_store_release(&entry->room, (uint32_t)(enough ? CS_ROOM_ENOUGH : CS_ROOM_SMALL));
}
