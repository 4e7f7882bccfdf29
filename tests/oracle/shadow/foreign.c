// SPDX-License-Identifier: MIT
// A profiler with a signal of its own. SIGPROF, sent by an interval timer and by a thread that
// sends more of them, interrupts threads at any instruction: in malloc, the JIT, the collector, or
// a hook. Its handler walks the interrupted thread by clrsnap_snapshot_from_signal and by
// clrsnap_snapshot, and copies the shadow stack. Both walks must be the same, and agree with the
// shadow. While they are taken, a call into the CLR, or of a libc function that allocates, locks or
// waits, ends the process (proxy.c, trap.c). Threads: handlers on managed threads fill slots;
// foreign_main judges them. No lock is shared.
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proxy.h"
#include "shadow.h"

// Defined in trap.c; absent without the preloaded library.
extern void oracle_trap_set(uint32_t on) __attribute__((weak));
extern void oracle_trap_check(const char *name) __attribute__((weak));

enum { SLOTS = 16, TIMER_US = 1000, PHYSICAL = 100 };
enum { FREE, BUSY, READY };
struct slot {
  uint32_t state;
  struct copy copy;
  struct stack automatic;
  uint32_t walk_stop;
  UINT_PTR stop_ip;
  uint32_t physical_count, own_stop;  // own: through the signal frame, if the walk failed there
  UINT_PTR own_stop_ip;
  struct clrsnap_frame physical[PHYSICAL];
};
static struct slot *slots;
static uint32_t ready, stop;
static struct {
  uint64_t signals, full, no_shadow, not_managed, differ, moved, physical_early, unknown_code,
      errnos;
} seen;

static void count(uint64_t *counter) {
  __atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
}

static HRESULT any_frame(const struct clrsnap_frame *frame, void *data) {
  struct slot *slot = data;
  if (slot->physical_count < PHYSICAL) slot->physical[slot->physical_count++] = *frame;
  return S_OK;
}

static void print_physical(const struct slot *slot) {
  printf("    physical:\n");
  for (uint32_t i = 0; i < slot->physical_count; i++) {
    const struct clrsnap_frame *f = &slot->physical[i];
    Dl_info in = {0};
    if (f->kind == CLRSNAP_FRAME_NATIVE) (void)dladdr((void *)f->ip, &in);
    const char *slash = in.dli_fname != NULL ? strrchr(in.dli_fname, '/') : NULL;
    printf(
        "      sp %#lx kind %u flags %#x ip %#lx %s+%#lx\n", (unsigned long)f->sp, f->kind,
        f->flags, (unsigned long)f->ip,
        slash != NULL ? slash + 1 : oracle_function_name(f->function),
        (unsigned long)(slash != NULL ? f->ip - (UINT_PTR)in.dli_fbase : f->ip - f->method_start));
  }
}

static struct slot *claim(void) {
  for (int i = 0; i < SLOTS; i++) {
    uint32_t expected = FREE;
    if (__atomic_compare_exchange_n(&slots[i].state, &expected, BUSY, false, __ATOMIC_ACQUIRE,
                                    __ATOMIC_RELAXED))
      return &slots[i];
  }
  return NULL;
}

static HRESULT no_frame(const struct clrsnap_frame *frame, void *data) {
  (void)frame, (void)data;
  return S_OK;
}

// A library that is just being loaded may be known before the last walk; the first walk may have
// ended because it was not.
static void take(struct slot *slot, void *ucontext, struct shadow *shadow) {
  struct clrsnap_walk_result before = {.size = sizeof(before)}, result = {.size = sizeof(result)};
  (void)clrsnap_walk_from_signal(ucontext, no_frame, NULL, &before);
  slot->copy.source = shadow;
  slot->copy.taken = false;
  slot->physical_count = 0;
  stack_clear(&slot->copy.stack);
  stack_clear(&slot->automatic);
  slot->copy.stack.hr = clrsnap_snapshot_from_signal(
      ucontext, shadow_collect, COR_PRF_SNAPSHOT_REGISTER_CONTEXT, &slot->copy, NULL, 0);
  slot->automatic.hr = clrsnap_snapshot(0, stack_collect, COR_PRF_SNAPSHOT_REGISTER_CONTEXT,
                                        &slot->automatic, NULL, 0);
  if (slot->automatic.hr != slot->copy.stack.hr) {
    (void)clrsnap_walk(0, any_frame, slot, NULL, &result);
    slot->own_stop = result.stop;
    slot->own_stop_ip = result.stop_ip;
    slot->physical_count = 0;
  }
  (void)clrsnap_walk_from_signal(ucontext, any_frame, slot, &result);
  slot->walk_stop = before.stop != 1 ? before.stop : result.stop;
  slot->stop_ip = before.stop != 1 ? before.stop_ip : result.stop_ip;
}

static void on_signal(int signo, siginfo_t *info, void *ucontext) {
  (void)signo, (void)info;
  struct shadow *shadow = shadow_of_self();
  count(&seen.signals);
  if (!__atomic_load_n(&ready, __ATOMIC_ACQUIRE)) return;
  if (shadow == NULL || shadow->overflow || shadow->depth == 0) {
    count(&seen.no_shadow);
    return;
  }
  struct slot *slot = claim();
  if (slot == NULL) {
    count(&seen.full);
    return;
  }
  int saved = errno;
  errno = 12345;
  if (oracle_trap_set != NULL) oracle_trap_set(1);
  take(slot, ucontext, shadow);
  if (oracle_trap_set != NULL) oracle_trap_set(0);
  if (errno != 12345) count(&seen.errnos);
  errno = saved;
  __atomic_store_n(&slot->state, READY, __ATOMIC_RELEASE);
}

static void in_clr(const char *name) {
  if (oracle_trap_check != NULL) oracle_trap_check(name);
}

// Tests the trap itself: a child process that allocates while the trap is set must be killed.
static bool traps(void) {
  int status = 0;
  pid_t child = fork();
  if (child == 0) {
    const struct rlimit no_core = {0, 0};
    (void)setrlimit(RLIMIT_CORE, &no_core);
    (void)signal(SIGABRT, SIG_DFL);
    (void)close(2);
    oracle_trap_set(1);
    void *volatile block = malloc(1);
    _exit(block == NULL);
  }
  return child > 0 && waitpid(child, &status, 0) == child && WIFSIGNALED(status);
}

void foreign_prepare(void) {
  slots = mmap(NULL, SLOTS * sizeof(*slots), PROT_READ | PROT_WRITE,
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (slots == MAP_FAILED) abort();
  ORACLE_CHECK(oracle_trap_set != NULL && traps(), "trap.c is not preloaded: run.sh does that");
  ours_info = proxy_new(oracle_info, in_clr);
  // Blocks every signal in the handler: what the runtime does in its own handlers is not tested
  // here.
  struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_RESTART};
  // Not SA_ONSTACK: with it, a null reference in managed code may end a .NET program, even though
  // the handler is another one's (docs/signal-safety.md).
  sigfillset(&action.sa_mask);
  ORACLE_CHECK(sigaction(SIGPROF, &action, NULL) == 0, "sigaction: %s", strerror(errno));
}

// A collection by another thread may move objects while a thread is interrupted in native code. It
// then writes their new addresses to the saved registers, so these may differ between two walks;
// the places of the frames may not.
static bool same(const struct stack *a, const struct stack *b) {
  if (a->hr != b->hr || a->count != b->count) return false;
  for (uint32_t i = 0; i < a->count; i++) {
    const struct stack_frame *x = &a->frames[i], *y = &b->frames[i];
    if (x->id != y->id || x->ip != y->ip || x->reg[STACK_PC] != y->reg[STACK_PC] ||
        x->reg[STACK_SP] != y->reg[STACK_SP] || x->reg[STACK_FP] != y->reg[STACK_FP])
      return false;
    for (int r = 0; r < STACK_REGS; r++) seen.moved += x->reg[r] != y->reg[r];
  }
  return true;
}

static void judge(const struct slot *slot) {
  // A library was loaded after the tables were made; clrsnap_ready makes them anew.
  if (strcmp(clrsnap_stop_token(slot->walk_stop), "unknown-code") == 0) {
    seen.unknown_code++;
    return;
  }
  if (!same(&slot->copy.stack, &slot->automatic) && seen.differ++ < 3) {
    oracle_fail("a walk from the ucontext and one through the signal frame differ");
    stack_print(stdout, &slot->copy.stack, 0, 24);
    stack_print(stdout, &slot->automatic, 0, 24);
    if (slot->automatic.hr != slot->copy.stack.hr)
      printf("      and once more through the signal frame: ended at %#lx: %s\n",
             (unsigned long)slot->own_stop_ip, clrsnap_stop_text(slot->own_stop));
  }
  if (slot->walk_stop != 1 && seen.physical_early++ < 3) {
    oracle_fail("a physical walk ended early at %#lx: %s", (unsigned long)slot->stop_ip,
                clrsnap_stop_text(slot->walk_stop));
    print_physical(slot);
  }
  if (slot->copy.taken) {
    if (!shadow_judge(&slot->copy)) print_physical(slot);
  } else {
    seen.not_managed++;
  }
}

// Sends signals in addition to the timer's, to any thread that has a shadow.
static void *send_more(void *unused) {
  (void)unused;
  unsigned seed = 77;
  while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {
    struct oracle_thread threads[64];
    uint32_t n = oracle_threads(threads, 64);
    if (n != 0)
      (void)syscall(SYS_tgkill, getpid(), threads[(uint32_t)rand_r(&seed) % n].tid, SIGPROF);
    usleep((useconds_t)rand_r(&seed) % 40);
  }
  return NULL;
}

void *foreign_main(void *unused) {
  (void)unused;
  pthread_t sender;
  uint64_t refreshed = 0;
  struct itimerval every = {{0, TIMER_US}, {0, TIMER_US}}, never = {{0, 0}, {0, 0}};
  if (!ours_ready()) return NULL;
  __atomic_store_n(&ready, 1, __ATOMIC_RELEASE);
  ORACLE_CHECK(setitimer(ITIMER_PROF, &every, NULL) == 0, "setitimer: %s", strerror(errno));
  int error = pthread_create(&sender, NULL, send_more, NULL);
  ORACLE_CHECK(error == 0, "pthread_create: %s", strerror(error));
  while (shadow_taken() < shadow_wanted()) {
    for (int i = 0; i < SLOTS; i++) {
      if (__atomic_load_n(&slots[i].state, __ATOMIC_ACQUIRE) != READY) continue;
      judge(&slots[i]);
      __atomic_store_n(&slots[i].state, FREE, __ATOMIC_RELEASE);
    }
    if (seen.unknown_code != refreshed && clrsnap_ready() == S_OK) refreshed = seen.unknown_code;
    usleep(20);
  }
  (void)setitimer(ITIMER_PROF, &never, NULL);
  __atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
  if (error == 0) pthread_join(sender, NULL);
  shadow_done();
  return NULL;
}

void foreign_report(void) {
  if (slots == NULL) return;
  printf("  %10lu signals; in handlers: %lu threads without a shadow, %lu without a free slot\n",
         (unsigned long)seen.signals, (unsigned long)seen.no_shadow, (unsigned long)seen.full);
  printf("  %10lu differ by how they were taken, %lu registers moved by a collection meanwhile\n",
         (unsigned long)seen.differ, (unsigned long)seen.moved);
  printf("  %10lu physical walks ended early, and %lu in a library that was loaded just then\n",
         (unsigned long)seen.physical_early, (unsigned long)seen.unknown_code);
  ORACLE_CHECK(seen.differ == 0 && seen.physical_early == 0,
               "walks in handlers differ or ended early");
  // Which threads have the processors decides how many signals find no free slot, or a thread
  // without a shadow.
  oracle_excuse("signals to threads without a shadow", seen.no_shadow, seen.signals, 900000, 0);
  oracle_excuse("signals that found no free slot", seen.full, seen.signals, 500000, 50);
  uint32_t busy = 0;
  for (int i = 0; i < SLOTS; i++)
    busy += __atomic_load_n(&slots[i].state, __ATOMIC_ACQUIRE) == BUSY;
  ORACLE_CHECK(busy == 0, "%u handlers have not come back", busy);
  oracle_excuse("in a library that was loaded just then", seen.unknown_code, seen.signals, 1000,
                50);
  oracle_excuse("without managed frames", seen.not_managed, seen.signals, 50000, 20);
  oracle_excuse("registers moved by a collection meanwhile", seen.moved, seen.signals, 10000, 100);
  ORACLE_CHECK(seen.errnos == 0, "errno was changed %lu times", (unsigned long)seen.errnos);
}
