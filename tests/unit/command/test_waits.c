// SPDX-License-Identifier: MIT
// What threads wait for, and which stacks are those of idle threads; what the table of methods
// leaves out.
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "formats/writers.h"
#include "profile/waits.h"

// Frames from the root on, each a kind's letter and a name: m managed, u of the user, r runtime,
// j the JIT, n native. The first letter of the stack says whether it is idle.
static const char *const stacks[][8] = {
    {"+", "n__clone3", "nstart_thread", "r[libcoreclr.so]",
     "mSystem.Threading.Thread.StartCallback",
     "mSystem.Threading.PortableThreadPool.WorkerThread.WorkerThreadStart", "n__futex_wait"},
    {"+", "nstart_thread", "mSystem.Threading.PortableThreadPool.WorkerThread.WorkerThreadStart",
     "mSystem.Threading.LowLevelLifoSemaphore.Wait", "r[libcoreclr.so]", "n__sched_yield"},
    {"+", "nstart_thread", "mSystem.Threading.TimerQueue.TimerThread",
     "mSystem.Threading.WaitHandle.WaitOneNoCheck", "npthread_cond_timedwait"},
    {"+", "nstart_thread", "mSystem.Net.Sockets.SocketAsyncEngine.EventLoop",
     "mInterop.Sys.WaitForSocketEvents", "nepoll_wait"},
    {"+", "n__clone3", "nstart_thread", "r[libcoreclr.so]", "npthread_cond_wait"},
    // Work that the pool, a timer and the socket's loop have called, and the runtime's own.
    {"-", "nstart_thread", "mSystem.Threading.PortableThreadPool.WorkerThread.WorkerThreadStart",
     "mSystem.Threading.ThreadPoolWorkQueue.Dispatch", "mSystem.Threading.Monitor.Wait",
     "npthread_cond_wait"},
    {"-", "nstart_thread", "mSystem.Threading.TimerQueue.TimerThread",
     "mSystem.Threading.TimerQueue.FireNextTimers", "mSystem.Threading.Monitor.Enter",
     "npthread_cond_wait"},
    {"-", "nstart_thread", "mSystem.Net.Sockets.SocketAsyncEngine.EventLoop", "uShop.Cart.Work",
     "mSystem.Threading.Monitor.Wait", "npthread_cond_wait"},
    {"-", "nstart_thread", "mSystem.Threading.PortableThreadPool.WorkerThread.WorkerThreadStart",
     "r[libcoreclr.so]", "nmemset"},
    {"-", "n__clone3", "nstart_thread", "r[libcoreclr.so]", "j[libclrjit.so]",
     "npthread_cond_wait"},
    {"-", "n__clone3", "nstart_thread", "r[libcoreclr.so]", "nmemset"},
    {"-", "n__libc_start_main", "r[dotnet]", "npthread_cond_wait"},
    {"-", "r[dotnet]", "uShop.Program.Main", "mSystem.Threading.Tasks.Task.Wait",
     "mSystem.Threading.Monitor.Wait", "npthread_cond_wait"},
};

static uint32_t add_stack(struct cs_profile *p, const char *const *frames, uint64_t weight) {
  uint32_t node = cs_tree_child(&p->tree, 0, cs_profile_thread(p, "T", 1));
  for (; *frames != NULL; frames++) {
    char kind = **frames;
    node = cs_tree_child(&p->tree, node,
                         cs_profile_frame(p, *frames + 1, kind == 'j' ? "libclrjit.so" : "module",
                                          kind == 'm'   ? CS_KIND_FRAMEWORK
                                          : kind == 'u' ? CS_KIND_USER
                                          : kind == 'n' ? CS_KIND_NATIVE
                                                        : CS_KIND_RUNTIME));
  }
  p->tree.nodes[node].samples++;
  p->tree.nodes[node].weight += weight;
  p->facts.samples++;
  p->facts.weight += weight;
  return node;
}

static void start(struct cs_profile *p, enum cs_wire_mode mode) {
  cs_profile_init(p);
  p->facts.mode = mode;
}

static void idle_stacks(void **state) {
  struct cs_profile p;
  uint32_t leaf[CS_COUNT(stacks)];
  (void)state;
  start(&p, CS_WIRE_MODE_WALL);
  for (size_t i = 0; i < CS_COUNT(stacks); i++) leaf[i] = add_stack(&p, &stacks[i][1], 1000);
  bool *idle = cs_idle_nodes(&p);
  for (size_t i = 0; i < CS_COUNT(stacks); i++)
    if (idle[leaf[i]] != (stacks[i][0][0] == '+'))
      fail_msg("stack %zu, %s: idle is %d", i, stacks[i][2], idle[leaf[i]]);
  free(idle);
  assert_int_equal(cs_spin_weight(&p), 1000);  // the second stack
  p.facts.mode = CS_WIRE_MODE_CPU;
  assert_null(cs_idle_nodes(&p));
  cs_profile_free(&p);
}

// The outermost of the methods that wait says what for, and nothing beyond the caller's own code.
static void what_for(void **state) {
  static const char *const methods[] = {"Interop.Sys.Read", "System.Threading.Monitor.Wait",
                                        "System.Threading.Tasks.Task.Wait", "Shop.Cart.Work",
                                        "System.Threading.SemaphoreSlim.Wait"};
  struct cs_wait_search search = {0};
  (void)state;
  for (size_t i = 0; i < CS_COUNT(methods); i++)
    cs_wait_search_add(&search, methods[i], strlen(methods[i]));
  assert_string_equal(search.found->what, "a task");
  assert_false(search.found->idle);
}

// The static constructor's thread has other methods at its leaf.
static void class_initialization(void **state) {
  static const char *const methods[] = {
      "System.Runtime.CompilerServices.InitHelpers.InitClassSlow",
      "System.Runtime.CompilerServices.StaticsHelpers.GetNonGCStaticBaseSlow", "Shop.Cart.Work"};
  struct cs_wait_search waits = {0}, works = {0};
  (void)state;
  for (size_t i = 0; i < CS_COUNT(methods); i++)
    cs_wait_search_add(&waits, methods[i], strlen(methods[i]));
  assert_string_equal(waits.found->what, "a class to be initialized");
  cs_wait_search_add(&works, "static Shop.Cart", strlen("static Shop.Cart"));
  cs_wait_search_add(&works, methods[0], strlen(methods[0]));
  assert_null(works.found);
}

static void table_without_idle(void **state) {
  struct cs_profile p;
  char *text = NULL;
  size_t len;
  (void)state;
  start(&p, CS_WIRE_MODE_WALL);
  (void)add_stack(&p, &stacks[0][1], 9000000);
  (void)add_stack(&p, &stacks[7][1], 1000000);
  FILE *out = open_memstream(&text, &len);
  cs_write_top(&p, 3, "", out);
  assert_int_equal(fclose(out), 0);
  assert_non_null(strstr(text, "9.00 ms of idle threads"));
  assert_non_null(strstr(text, "1.00 ms of wall-clock time"));
  assert_non_null(strstr(text, "100.0 %  100.0 %        1  pthread_cond_wait"));
  assert_null(strstr(text, "__futex_wait"));
  free(text);
  cs_profile_free(&p);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(idle_stacks),
      cmocka_unit_test(what_for),
      cmocka_unit_test(class_initialization),
      cmocka_unit_test(table_without_idle),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
