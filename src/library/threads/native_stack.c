// SPDX-License-Identifier: MIT
// The stack of a thread that somebody else has made, and whether it has room for a signal: a
// library may give its threads 16 KiB, and a signal that does not fit ends the program. The runtime
// may know the thread, which has called managed code then. Any thread but a handler. Signal-safe:
// no.
//
// What is believed is the C library's own record of the thread, so that it may run meanwhile. The
// record lies at a fixed distance from the thread's list of robust mutexes, of which the kernel
// tells; where in it the bounds are is learned from that of a thread of ours, whose bounds are
// known. A record may go with its thread at any moment: reads are guarded. Of a thread without one
// (clone called by somebody else, another C library) nothing is known, and it is sent no signal.
#include <pthread.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "threads/native_stack.h"
#include "threads/stackmap.h"

enum { RECORD = 4096 };  // bytes that a record has at most

// In glibc's record: the lowest address (of the guard), the size with it, the guard's size.
struct block {
  uint64_t lo, size, guard;
};

static struct {
  pthread_mutex_t lock;
  bool learned;
  uint64_t robust;  // in the record
  uint64_t block;
} place = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool robust_list_of(uint32_t tid, uint64_t *head) {
  size_t size;
  void *at = NULL;
  if (syscall(SYS_get_robust_list, tid, &at, &size) != 0) return false;
  *head = (uint64_t)(uintptr_t)at;
  return *head != 0;
}

// On the calling thread. The main thread's record has no bounds.
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

static bool is_learned(void) {
  (void)pthread_mutex_lock(&place.lock);
  bool learned = place.learned = place.learned || learn_place();
  (void)pthread_mutex_unlock(&place.lock);
  return learned;
}

// The stack of a thread, and up to where it is free for it to use.
static bool find(uint32_t tid, struct cs_stack *stack, uint64_t *top) {
  uint64_t robust;
  struct block block;
  struct cs_mem mem;
  if (tid == (uint32_t)getpid()) {
    *top = getauxval(AT_RANDOM);  // the kernel's, on that very stack
    return cs_stack_around(*top, stack);
  }
  if (!is_learned() || !robust_list_of(tid, &robust) || robust < place.robust) return false;
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
