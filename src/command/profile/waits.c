// SPDX-License-Identifier: MIT
// The table of waits, and the stacks of threads that are idle. Invariant: a stack is idle only if
// its leaf is a call that is known to wait; any other one is work. Signal-safe: no.
#include "profile/waits.h"

#include <stdlib.h>
#include <string.h>

#include "base/prefix.h"
#include "profile/change.h"

static const struct cs_wait waits[] = {
    {"System.Threading.Monitor.Enter", "a lock", false},
    {"System.Threading.Monitor.ReliableEnter", "a lock", false},
    {"System.Threading.Monitor.TryEnter", "a lock", false},
    {"System.Threading.Monitor.Wait", "a pulse", false},
    {"System.Threading.Lock.Enter", "a lock", false},
    {"System.Threading.Lock.TryEnter", "a lock", false},
    {"System.Threading.Thread.Join", "a thread to end", false},
    {"System.Threading.Thread.Sleep", "time to pass", false},
    {"System.Threading.WaitHandle.Wait", "a wait handle", false},
    {"System.Threading.ManualResetEventSlim.Wait", "an event", false},
    {"System.Threading.SemaphoreSlim.Wait", "a semaphore", false},
    {"System.Threading.CountdownEvent.Wait", "a countdown", false},
    {"System.Threading.Barrier.SignalAndWait", "a barrier", false},
    {"System.Threading.ReaderWriterLockSlim.", "a reader-writer lock", false},
    {"System.Threading.SpinLock.", "a spin lock", false},
    // The class's static constructor, or that of one it needs, runs on another thread.
    {"System.Runtime.CompilerServices.InitHelpers.InitClass", "a class to be initialized", false},
    {"System.Runtime.CompilerServices.RuntimeHelpers.RunClassConstructor",
     "a class to be initialized", false},
    {"System.Threading.Tasks.Task.", "a task", false},
    {"System.Threading.Tasks.Task<TResult>.", "a task", false},
    {"System.Threading.PortableThreadPool.WorkerThread.", "work (an idle pool thread)", true},
    {"System.Threading.PortableThreadPool.GateThread.", "work (the pool's gate)", true},
    {"System.Threading.PortableThreadPool.IOCompletionPoller.", "work (the pool's poller)", true},
    {"System.Threading.TimerQueue.TimerThread", "the next timer", true},
    {"System.Net.Sockets.SocketAsyncEngine.EventLoop", "events of sockets", true},
    {"System.IO.FileSystemWatcher.RunningInstance.TryReadEvent", "changes of files", true},
    {"Microsoft.AspNetCore.Server.Kestrel.Core.Internal.Infrastructure.Heartbeat.TimerLoop",
     "the next second (Kestrel's timer)", true},
    {"Microsoft.Extensions.Logging.Console.ConsoleLoggerProcessor.", "messages to log", true},
};

void cs_wait_search_add(struct cs_wait_search *search, const char *name, size_t len) {
  if (search->over) return;
  const struct cs_wait *row = NULL;
  for (size_t i = 0; i < CS_COUNT(waits) && row == NULL; i++)
    if (cs_has_prefix_in(name, len, waits[i].method)) row = &waits[i];
  if (row != NULL) search->found = row;
  // These lead to the wait; any other method is the one that waits.
  else if (!cs_has_prefix_in(name, len, "System.Threading.") &&
           !cs_has_prefix_in(name, len, "Interop."))
    search->over = true;
  // What these have called is work.
  if (cs_has_prefix_in(name, len, "System.Threading.ThreadPoolWorkQueue.Dispatch") ||
      cs_has_prefix_in(name, len, "System.Threading.TimerQueue.Fire"))
    search->over = true;
}

// ---- Idle threads ----

// Functions of libc in which a thread is blocked.
static bool blocks(const char *name, size_t len) {
  static const char *const calls[] = {"pthread_cond_", "__futex_",  "futex_",    "epoll_",
                                      "__epoll_",      "poll",      "__poll",    "ppoll",
                                      "read",          "__read",    "__libc_re", "sem_",
                                      "__GI___futex",  "nanosleep", "clock_nan", "__clock_nan"};
  for (size_t i = 0; i < CS_COUNT(calls); i++)
    if (cs_has_prefix_in(name, len, calls[i])) return true;
  return false;
}

struct stack {
  const struct cs_profile *p;
  bool native;  // the profile has native frames, so a thread that waits has some
};

static const char *name_of(const struct cs_profile *p, uint32_t node, size_t *len) {
  return cs_strings_get(&p->strings, p->frames[p->tree.nodes[node].frame].name, len);
}

static bool is_native(const struct cs_profile *p, uint32_t node) {
  enum cs_profile_kind kind = p->frames[p->tree.nodes[node].frame].kind;
  return kind == CS_KIND_NATIVE || kind == CS_KIND_RUNTIME || kind == CS_KIND_KERNEL;
}

// A thread of the runtime itself, such as the finalizer's: the runtime has started it, and nothing
// but the runtime is on its stack. A thread that compiles works, even while it waits.
static bool is_of_runtime(const struct cs_profile *p, uint32_t leaf) {
  bool runtime = false, started = false;
  for (uint32_t node = leaf; p->tree.nodes[node].parent != 0; node = p->tree.nodes[node].parent) {
    size_t len;
    const struct cs_profile_frame *f = &p->frames[p->tree.nodes[node].frame];
    const char *module = cs_strings_get(&p->strings, f->module, &len);
    runtime = runtime || f->kind == CS_KIND_RUNTIME;
    if (!is_native(p, node) || cs_has_prefix_in(module, len, "libclrjit")) return false;
    const char *name = name_of(p, node, &len);
    if (cs_has_prefix_in(name, len, "[JIT]")) return false;
    started = cs_has_prefix_in(name, len, "__clone") || cs_has_prefix_in(name, len, "clone") ||
              cs_has_prefix_in(name, len, "start_thread");
  }
  return runtime && started;
}

enum idle { BUSY, IDLE_BLOCKED, IDLE_SPINNING };

// A thread of the pool spins for a while before it blocks: that is waiting, too.
static enum idle how_idle(const struct stack *s, uint32_t leaf) {
  size_t len;
  const char *name = name_of(s->p, leaf, &len);
  bool blocked = !s->native || (is_native(s->p, leaf) && blocks(name, len));
  bool spins =
      cs_has_prefix_in(name, len, "__sched_yield") || cs_has_prefix_in(name, len, "sched_yield");
  struct cs_wait_search search = {0};
  for (uint32_t node = leaf; s->p->tree.nodes[node].parent != 0 && !search.over;
       node = s->p->tree.nodes[node].parent) {
    if (is_native(s->p, node)) continue;
    name = name_of(s->p, node, &len);
    spins = spins || cs_has_prefix_in(name, len, "System.Threading.LowLevelSpinWaiter.");
    if (!blocked && !spins) return BUSY;
    cs_wait_search_add(&search, name, len);
  }
  enum idle how = blocked ? IDLE_BLOCKED : IDLE_SPINNING;
  if (search.found != NULL) return search.found->idle ? how : BUSY;
  return s->native && blocked && is_of_runtime(s->p, leaf) ? how : BUSY;
}

static struct stack stacks_of(const struct cs_profile *p) {
  struct stack s = {p, false};
  for (size_t i = 0; i < p->frame_count && !s.native; i++)
    s.native = p->frames[i].kind == CS_KIND_NATIVE || p->frames[i].kind == CS_KIND_RUNTIME;
  return s;
}

bool *cs_idle_nodes(const struct cs_profile *p) {
  if (p->facts.mode != CS_WIRE_MODE_WALL) return NULL;
  struct stack s = stacks_of(p);
  bool *idle = cs_allocate(p->tree.count * sizeof *idle);
  for (uint32_t i = 1; i < p->tree.count; i++)
    idle[i] = p->tree.nodes[i].parent != 0 && how_idle(&s, i) != BUSY;
  return idle;
}

bool *cs_left_out_nodes(const struct cs_profile *p) {
  return p->with_idle ? NULL : cs_idle_nodes(p);
}

double cs_points_off(const struct cs_profile *p, const bool *idle) {
  double whole = 0, squares = 0;
  for (size_t i = 1; i < p->tree.count; i++) {
    if (idle != NULL && idle[i]) continue;
    whole += (double)p->tree.nodes[i].weight;
    squares += p->tree.nodes[i].squares;
  }
  return 100 * cs_share_error(whole, squares);
}

uint64_t cs_spin_weight(const struct cs_profile *p) {
  struct stack s = stacks_of(p);
  uint64_t sum = 0;
  for (uint32_t i = 1; i < p->tree.count; i++) {
    const struct cs_node *node = &p->tree.nodes[i];
    if (node->parent != 0 && node->weight > 0 && how_idle(&s, i) == IDLE_SPINNING)
      sum += node->weight;
  }
  return sum;
}
