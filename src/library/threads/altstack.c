// SPDX-License-Identifier: MIT
// Larger alternate signal stacks for managed threads, outside of handlers (signal/altstack.c is the
// handlers' part).
//
// Why: while the runtime turns the SIGSEGV of a null reference into an exception, a further signal
// frame does not fit on its alternate stack, and the kernel kills the process
// (docs/signal-safety.md, "Alternate stacks"). 64 KiB and a frame's size are enough.
//
// Invariants: a thread puts its old stack back itself, before ours is unmapped; an alternate stack
// that other code has set meanwhile stays. When the end of a thread is announced on another thread,
// ours is unmapped only after the kernel says that the thread is gone.
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "threads/altstack.h"

enum { ALTSTACK_BYTES = 64 * 1024 };
#ifndef AT_MINSIGSTKSZ
#define AT_MINSIGSTKSZ 51
#endif

static size_t page_size(void) {
  return (size_t)sysconf(_SC_PAGESIZE);
}

static size_t usable_size(void) {
  size_t page = page_size(), frame = getauxval(AT_MINSIGSTKSZ);
  return (ALTSTACK_BYTES + frame + page - 1) & ~(page - 1);
}

// ---- Stacks of threads that have ended, or are about to ----

struct retired {
  struct retired *next;
  struct cs_altstack alt;
};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct retired *retired;

static bool has_ended(uint32_t tid) {
  return syscall(SYS_tgkill, getpid(), tid, 0) != 0 && errno == ESRCH;
}

// Frees a few at a time, since few are added at a time.
static void free_retired(void) {
  enum { AT_ONCE = 8 };
  struct retired *gone = NULL;
  (void)pthread_mutex_lock(&lock);
  struct retired **link = &retired;
  for (int checked = 0; *link != NULL && checked < AT_ONCE; checked++) {
    struct retired *l = *link;
    if (!has_ended(l->alt.tid)) {
      link = &l->next;
      continue;
    }
    *link = l->next;
    l->next = gone;
    gone = l;
  }
  (void)pthread_mutex_unlock(&lock);
  for (struct retired *next; gone != NULL; gone = next) {
    next = gone->next;
    cs_altstack_free(&gone->alt);
    free(gone);
  }
}

// If there is no memory for the entry, the stack stays mapped for good.
static void retire(const struct cs_altstack *alt) {
  struct retired *l = malloc(sizeof *l);
  if (l == NULL) return;
  l->alt = *alt;
  (void)pthread_mutex_lock(&lock);
  struct retired **link = &retired;
  while (*link != NULL) link = &(*link)->next;  // the oldest are checked first
  l->next = NULL;
  *link = l;
  (void)pthread_mutex_unlock(&lock);
}

void cs_altstack_map(struct cs_altstack *alt, uint32_t tid) {
  free_retired();
  size_t guard = page_size(), size = usable_size();
  char *at = mmap(NULL, guard + size, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  *alt = (struct cs_altstack){0};
  if (at == MAP_FAILED) return;
  if (mprotect(at, guard, PROT_NONE) != 0) {
    (void)munmap(at, guard + size);
    return;
  }
  alt->sp = (uint64_t)(uintptr_t)(at + guard);
  alt->size = size;
  alt->tid = tid;
}

void cs_altstack_enter(struct cs_altstack *alt) {
  if (alt->sp == 0) return;
  stack_t ours = {.ss_sp = (void *)(uintptr_t)alt->sp, .ss_size = alt->size}, old;
  if (sigaltstack(&ours, &old) != 0) return;        // the thread is running on it: leave it
  if ((uint64_t)(uintptr_t)old.ss_sp != alt->sp) {  // else a handler has installed it
    alt->old_sp = (uint64_t)(uintptr_t)old.ss_sp;
    alt->old_size = old.ss_size;
    alt->old_flags = (uint32_t)old.ss_flags;
    alt->swapped = 1;
  }
  cs_store_release(&alt->ready, 1u);
}

void cs_altstack_leave(struct cs_altstack *alt) {
  stack_t now;
  if (alt->sp == 0) return;
  if (alt->tid != (uint32_t)syscall(SYS_gettid)) {
    retire(alt);
    *alt = (struct cs_altstack){0};
    free_retired();
    return;
  }
  if (sigaltstack(NULL, &now) != 0) return;
  if ((uint64_t)(uintptr_t)now.ss_sp == alt->sp) {
    stack_t old = {.ss_sp = (void *)(uintptr_t)alt->old_sp, .ss_size = alt->old_size};
    old.ss_flags = (int)alt->old_flags & SS_DISABLE;
    if (sigaltstack(&old, NULL) != 0) return;  // still in use: a leak is better than a fault
  }
  cs_altstack_free(alt);
}

void cs_altstack_free(struct cs_altstack *alt) {
  size_t guard = page_size();
  if (alt->sp != 0) (void)munmap((void *)(uintptr_t)(alt->sp - guard), alt->size + guard);
  *alt = (struct cs_altstack){0};
}
