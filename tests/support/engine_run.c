// SPDX-License-Identifier: MIT
// Threads of this program in a recording. Signal-safe: no.
#include "support/engine_run.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "engines/ask.h"
#include "life/epoch.h"
#include "support/fake_clr.h"
#include "threads/registry.h"
#include "wire/decode.h"

struct cs_consumer consumer;
struct cs_error err;
volatile int handled;
_Thread_local struct gaps taken_away;
static struct fake_clr clr;
static bool is_open;

uint64_t own_cpu(void) {
  struct timespec t;
  (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void burn(uint64_t ns) {
  static volatile unsigned sink;
  uint64_t last = own_cpu(), until = last + ns;
  while (last < until) {
    for (unsigned i = 0; i < 5000; i++) sink += i;
    uint64_t now = own_cpu();
    if (now - last > MS) {
      taken_away.ns += now - last;
      taken_away.count++;
    }
    last = now;
  }
}

uint64_t burn_for(uint64_t enough, uint64_t ns) {
  uint64_t best = 0;
  for (int i = 0; i < TURNS && best < enough; i++) {
    burn(ns);
    uint64_t samples = drain().samples;
    if (samples > best) best = samples;
  }
  return best;
}

uint32_t own_tid(void) {
  return (uint32_t)syscall(SYS_gettid);
}

// ---- A recording ----

void open_recording(uint32_t hz, enum cs_wire_engine_kind engine) {
  struct cs_consumer_opts opts = {.capacity = 65536, .hz = hz, .max_depth = 64};
  assert_true(cs_consumer_create(&consumer, &opts, &err));
  assert_true(cs_producer_open(&cs_agent.wire, consumer.path, &err));
  assert_true(cs_producer_claim(&cs_agent.wire));
  cs_options.modes = CS_WIRE_MODE_BIT(CS_WIRE_MODE_CPU);
  cs_options.engine = engine;
  cs_options.hz = hz;
  cs_agent.period_ns = 1000000000u / hz;
  assert_true(cs_sample_ring_open(&cs_agent.ring, CS_SAMPLE_RING_BYTES, 64));
  cs_threads_start();
  cs_store_release(&cs_agent.state, (uint32_t)CS_AGENT_RECORDING);
  cs_store_release(&cs_signal.ring, &cs_agent.ring);
  is_open = true;
}

void begin(uint32_t hz, enum cs_wire_engine_kind engine) {
  open_recording(hz, engine);
  if (!cs_engines_begin(&err)) fail_msg("%s", err.text);
}

void end(void) {
  is_open = false;
  cs_threads_stop();
  cs_engines_end();
  cs_store_release(&cs_agent.state, (uint32_t)CS_AGENT_PASSIVE);
  cs_store_release(&cs_signal.ring, (struct cs_sample_ring *)NULL);
  assert_true(cs_epoch_wait());
  cs_asks_end();
  cs_threads_free_all();
  cs_sample_ring_close(&cs_agent.ring);
  cs_producer_close(&cs_agent.wire);
  cs_consumer_destroy(&consumer);
}

int end_failed(void **state) {
  (void)state;
  if (is_open) end();
  return 0;
}

void measure_in_tries(bool (*measure)(char why[128])) {
  char why[128] = "";
  for (int i = 0; i < TRIES; i++) {
    if (measure(why)) return;
    print_message("try %d: %s\n", i + 1, why);
  }
  fail_msg("%s", why);
}

struct sums drain(void) {
  struct sums sums = {0, 0};
  const struct cs_sample *s;
  while ((s = cs_sample_ring_peek(&cs_agent.ring)) != NULL) {
    sums.samples++;
    sums.weight += s->weight;
    cs_sample_ring_pop(&cs_agent.ring, s);
  }
  return sums;
}

struct cs_wire_engine told(char why[256]) {
  struct cs_wire_engine engine = {0};
  struct cs_text text[CS_ENGINE_TEXTS];
  const struct cs_wire_record *r;
  assert_true(cs_engines_report());
  while ((r = cs_consumer_next(&consumer)) != NULL) {
    assert_true(cs_decode_engine(r, &engine, text));
    (void)snprintf(why, 256, "%.*s", (int)text[CS_ENGINE_WHY].len, text[CS_ENGINE_WHY].data);
  }
  return engine;
}

int count_fds(void) {
  int count = 0;
  for (int fd = 0; fd < 20000; fd++)
    if (fcntl(fd, F_GETFD) >= 0) count++;
  return count;
}

void in_child(int (*test)(void)) {
  int status = 0;
  pid_t pid = fork();
  if (pid == 0) {
    cs_signal.pid = getpid();
    _exit(test());
  }
  assert_int_equal(waitpid(pid, &status, 0), pid);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    fail_msg("the child ended with %#x", (unsigned)status);
}

bool refuse(unsigned call) {
  struct sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog program = {sizeof code / sizeof code[0], code};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

int setup(void **state) {
  (void)state;
  fake_clr_init(&clr);
  cs_signal.world = &clr.world;
  cs_signal.pid = getpid();
  cs_clock_init();
  return cs_registry_init(&err) ? 0 : -1;
}

void on_urg(int number) {
  (void)number;
  handled++;
}
