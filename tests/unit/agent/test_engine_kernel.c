// SPDX-License-Identifier: MIT
// What the perf engine records besides CPU time: the kernel's part of a stack, from the ring that
// the kernel writes it to, and events that are not clocks. The first tests use rings made by hand,
// the others threads of this program.
#include <asm/perf_regs.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/perf.h"
#include "signal/kernel.h"
#include "support/engine_run.h"
#include "wire/decode.h"

// ---- Rings by hand ----

#define SP 0x7ffc0000ull
#define IP 0x401000ull
#define MARKER ((uint64_t)PERF_CONTEXT_KERNEL)

static _Alignas(4096) uint8_t page[CS_PERF_RING_BYTES];
static struct cs_thread thread = {.tid = 77, .perf.ring = page};

static void clear_ring(uint64_t at) {
  memset(page, 0, sizeof page);
  struct perf_event_mmap_page *head = (void *)page;
  head->data_head = head->data_tail = at;
}

static void put_word(uint64_t word) {
  struct perf_event_mmap_page *head = (void *)page;
  memcpy(page + CS_PERF_PAGE + head->data_head % CS_PERF_PAGE, &word, 8);
  head->data_head += 8;
}

static void put_head(uint64_t type, uint64_t words) {
  put_word(type | words * 8 << 48);
}

// Writes a chain as the kernel does: a marker, then `depth` addresses, of which `first` is the
// innermost.
static void put_chain(uint32_t tid, uint64_t first, uint64_t depth, uint64_t sp, uint64_t ip) {
  uint64_t count = depth > 0 ? depth + 1 : 0;
  put_head(PERF_RECORD_SAMPLE, 6 + count);
  put_word((uint64_t)tid << 32 | 70);
  put_word(count);
  if (depth > 0) put_word(MARKER);
  for (uint64_t i = 0; i < depth; i++) put_word(first + i * 16);
  put_word(PERF_SAMPLE_REGS_ABI_64);
  put_word(sp);
  put_word(ip);
}

static uint64_t found[CS_KERNEL_MOST];
static uint32_t look(uint64_t sp, uint64_t ip) {
  struct cs_regs regs = {.known = CS_REGS_ALL};
  regs.r[CS_RSP] = sp;
  regs.r[CS_RIP] = ip;
  return cs_kernel_stack(&thread, &regs, found, CS_KERNEL_MOST);
}

static const uint64_t kernel = 0xffffffff81000000ull;

static void the_last_chain_is_the_stacks(void **state) {
  (void)state;
  for (uint64_t at = 0; at < 3 * CS_PERF_PAGE; at += 1000) {  // also across the page's end
    clear_ring(at);
    assert_int_equal(look(SP, IP), CS_KERNEL_UNKNOWN);
    put_chain(77, kernel + 4096, 5, SP, IP);
    put_head(PERF_RECORD_LOST, 3);
    put_word(1);
    put_word(1);
    put_chain(77, kernel, 20, SP, IP);
    put_head(PERF_RECORD_THROTTLE, 1);
    assert_int_equal(look(SP, IP), 20);
    for (uint64_t i = 0; i < 20; i++) assert_true(found[i] == kernel + i * 16);
    assert_int_equal(look(SP, IP - 2), 20);  // the system call is restarted
    cs_kernel_forget(&thread.perf);
    assert_int_equal(look(SP, IP), CS_KERNEL_UNKNOWN);
    put_chain(77, 0, 0, SP, IP);
    assert_int_equal(look(SP, IP), 0);  // the thread was in user mode
  }
}

static void a_chain_of_elsewhere_is_not_believed(void **state) {
  (void)state;
  const struct {
    uint32_t tid;
    uint64_t sp, ip;
  } others[] = {{78, SP, IP}, {77, SP + 8, IP}, {77, SP, IP - 2}, {77, SP, IP + 1}, {77, 0, 0}};
  for (size_t i = 0; i < CS_COUNT(others); i++) {
    clear_ring(0);
    put_chain(77, kernel, 3, SP, IP);
    put_chain(others[i].tid, kernel, 3, others[i].sp, others[i].ip);
    assert_int_equal(look(SP, IP), CS_KERNEL_UNKNOWN);  // the last record is of another moment
  }
}

// With impossible numbers, nothing outside the record is read.
static void a_record_that_makes_no_sense_is_none(void **state) {
  (void)state;
  struct perf_event_mmap_page *head = (void *)page;
  for (uint64_t count = 0; count < 1ull << 62; count = count * 3 + 1) {
    clear_ring(0);
    put_chain(77, kernel, 4, SP, IP);
    if (count == 5) continue;
    memcpy(page + CS_PERF_PAGE + 16, &count, 8);
    assert_int_equal(look(SP, IP), CS_KERNEL_UNKNOWN);
  }
  for (uint64_t size = 0; size < 64; size++) {
    clear_ring(0);
    put_chain(77, kernel, 4, SP, IP);
    uint64_t word = PERF_RECORD_SAMPLE | size << 48;
    memcpy(page + CS_PERF_PAGE, &word, 8);
    assert_int_equal(look(SP, IP), CS_KERNEL_UNKNOWN);
  }
  clear_ring(0);
  put_chain(77, kernel, 4, SP, IP);
  head->data_head = 1ull << 40;
  assert_int_equal(look(SP, IP), CS_KERNEL_UNKNOWN);
  thread.perf.ring = NULL;
  assert_int_equal(look(SP, IP), CS_KERNEL_UNKNOWN);
  thread.perf.ring = page;
}

// ---- Threads ----

static volatile unsigned sink;
static void burn_in_user_mode(uint64_t ns) {
  for (uint64_t until = own_cpu() + ns; own_cpu() < until;)
    for (unsigned i = 0; i < 3000000; i++) sink += i;
}

static void burn_in_kernel(uint64_t ns) {
  static char block[1 << 20];
  int zeros = open("/dev/zero", O_RDONLY | O_CLOEXEC);
  for (uint64_t until = own_cpu() + ns; own_cpu() < until;)
    if (read(zeros, block, sizeof block) <= 0) break;  // a signal makes the read short
  (void)close(zeros);
}

struct parts {
  unsigned samples, in_kernel, unknown;
};
static struct parts drain_parts(void) {
  struct parts parts = {0, 0, 0};
  const struct cs_sample *s;
  while ((s = cs_sample_ring_peek(&cs_agent.ring)) != NULL) {
    parts.samples++;
    parts.unknown += s->kernel_count == CS_KERNEL_UNKNOWN;
    bool inside = s->kernel_count != CS_KERNEL_UNKNOWN && s->kernel_count > 0;
    parts.in_kernel += inside;
    for (uint32_t i = 0; inside && i < s->kernel_count; i++)
      if (s->frames[s->frame_count + s->await_count + i] < 0xffff800000000000ull)
        fail_msg("of %u addresses the kernel's number %u is %#lx", s->kernel_count, i,
                 (unsigned long)s->frames[s->frame_count + s->await_count + i]);
    cs_sample_ring_pop(&cs_agent.ring, s);
  }
  return parts;
}

// Of the first of some turns that has so many samples: a hypervisor may take the processor for most
// of a turn.
static struct parts parts_of(void (*turn)(uint64_t ns), uint64_t ns, unsigned enough) {
  struct parts parts = {0, 0, 0};
  for (int i = 0; i < TURNS && parts.samples < enough; i++) {
    turn(ns);
    parts = drain_parts();
  }
  return parts;
}

static void samples_have_the_kernels_part(void **state) {
  (void)state;
  cs_options.kernel = true;
  begin(999, CS_WIRE_ENGINE_AUTO);
  cs_threads_add_native(own_tid());
  struct parts kernel_parts = parts_of(burn_in_kernel, 300 * MS, 101);
  struct parts user_parts = parts_of(burn_in_user_mode, 300 * MS, 101);
  end();
  cs_options.kernel = false;
  assert_true(kernel_parts.samples > 100 && user_parts.samples > 100);
  if (kernel_parts.in_kernel < kernel_parts.samples * 6 / 10 ||
      user_parts.in_kernel > user_parts.samples * 2 / 10 ||
      kernel_parts.unknown + user_parts.unknown > 10)
    fail_msg("%u of %u in the kernel, %u of %u in user mode; %u and %u not known",
             kernel_parts.in_kernel, kernel_parts.samples, user_parts.in_kernel, user_parts.samples,
             kernel_parts.unknown, user_parts.unknown);
}

static int drop_lock_right(void) {
  struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
  struct __user_cap_data_struct data[2];
  struct rlimit none = {0, 0};
  if (syscall(SYS_capget, &head, data) != 0) return -1;
  data[0].effective &= ~(1u << CAP_IPC_LOCK);
  return setrlimit(RLIMIT_MEMLOCK, &none) != 0 ? -1 : (int)syscall(SYS_capset, &head, data);
}

// Uses up the locked memory that the kernel allows this user, with rings of the test's own. Returns
// false if there is no limit.
static bool use_up_locked_memory(void) {
  struct perf_event_attr attr;
  cs_perf_attr(&attr, 0, 1000000, true);
  for (size_t pages = 1024; pages > 0;) {
    int fd = cs_perf_open(&attr, 0);
    if (fd < 0 || pages > 1u << 20) return false;
    void *at = mmap(NULL, (pages + 1) * 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    (void)close(fd);
    if (at == MAP_FAILED) pages /= 2;
  }
  return true;
}

// Bounded, in case nothing is refused.
static int without_locked_memory(void) {
  char why[256];
  FILE *in = fopen("/proc/sys/kernel/perf_event_paranoid", "re");
  int paranoid = 0;
  if (in == NULL || fscanf(in, "%d", &paranoid) != 1) return 1;
  (void)fclose(in);
  if (paranoid < 0) return 0;  // nothing is ever refused
  if (drop_lock_right() != 0 || !use_up_locked_memory()) return 2;
  cs_options.kernel = true;
  begin(999, CS_WIRE_ENGINE_AUTO);
  cs_threads_add_native(own_tid());
  struct parts parts = parts_of(burn_in_kernel, 100 * MS, 50);
  if (parts.samples < 50 || parts.in_kernel + parts.unknown > 0) return 3;
  struct cs_wire_engine engine = told(why);
  if (engine.used != CS_WIRE_ENGINE_PERF) return 4;
  return strstr(cs_engine_perf.unseen(), "1 thread is without kernel frames: 8 KiB of locked") ? 0
                                                                                               : 5;
}

static void threads_without_a_ring_are_told_of(void **state) {
  (void)state;
  in_child(without_locked_memory);
}

// A forked child has the parent's entries, but neither its rings nor the table of them.
static int events_in_a_forked_child(void) {
  int status = 0;
  cs_options.kernel = true;
  begin(999, CS_WIRE_ENGINE_AUTO);
  cs_threads_add_native(own_tid());
  burn_in_kernel(20 * MS);
  if (drain().samples == 0) return 1;
  int first = thread.perf.fd;
  const struct cs_thread *entries = (const struct cs_thread *)(uintptr_t)cs_signal.threads_lo;
  for (uint32_t i = 0; i < cs_signal.threads_used; i++)
    if (entries[i].tid == own_tid()) first = entries[i].perf.fd;
  if (first <= 0) return 2;
  pid_t pid = fork();
  if (pid == 0) {
    siginfo_t info;
    memset(&info, 0, sizeof info);
    info.si_signo = SIGURG;
    info.si_code = POLL_IN;
    info.si_fd = first;
    if (syscall(SYS_rt_tgsigqueueinfo, getpid(), gettid(), SIGURG, &info) != 0) _exit(3);
    _exit(drain().samples == 0 ? 0 : 4);
  }
  if (waitpid(pid, &status, 0) != pid || status != 0) return 5;
  return 0;
}

static void a_forked_child_has_no_events(void **state) {
  (void)state;
  in_child(events_in_a_forked_child);
}

// ---- Events ----

static void touch_new_memory(size_t pages) {
  volatile char *at =
      mmap(NULL, pages * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  (void)madvise((void *)(uintptr_t)at, pages * 4096, MADV_NOHUGEPAGE);
  for (size_t i = 0; i < pages; i++) at[i * 4096] = 1;
  (void)munmap((void *)(uintptr_t)at, pages * 4096);
}

static void page_faults_are_counted(void **state) {
  (void)state;
#ifdef __SANITIZE_ADDRESS__
  enum { SHADOW = 8 };  // mmap, intercepted, clears the sanitizer's shadow: a byte for eight
#else
  enum { SHADOW = INT_MAX };
#endif
  enum { TOUCHED = 40000, PAGES = TOUCHED + TOUCHED / SHADOW, PERIOD = 25 };
  cs_options.event = cs_perf_kind_by_name("page-faults", 11);
  cs_options.event_period = PERIOD;
  begin(499, CS_WIRE_ENGINE_AUTO);
  cs_threads_add_native(own_tid());
  touch_new_memory(TOUCHED);
  struct sums sums = drain();
  burn_in_user_mode(50 * MS);
  struct sums after = drain();
  end();
  cs_options.event = 0;
  if (sums.samples < 100 || sums.weight < PAGES * 9 / 10 || sums.weight > PAGES * 11 / 10)
    fail_msg("%lu samples stand for %lu page faults of %d", (unsigned long)sums.samples,
             (unsigned long)sums.weight, PAGES);
  assert_true(after.samples < 5);
}

static void an_event_without_a_counter_is_refused_with_a_reason(void **state) {
  (void)state;
  struct cs_error why;
  uint32_t cycles = cs_perf_kind_by_name("cycles", 6);
  assert_false(cs_perf_refused(ENOENT, cycles, true, &why));
  assert_non_null(strstr(why.text, "no counter for cycles"));
  assert_int_equal(cs_perf_kind_by_name("cycle", 5), 0);
  assert_int_equal(cs_perf_kind_by_name("cpu-time", 8), 0);
  if (cs_perf_probe(cycles, true, &why)) return;  // this machine has these events
  cs_options.event = cycles;
  cs_options.event_period = 1000000;
  open_recording(499, CS_WIRE_ENGINE_AUTO);
  assert_false(cs_engines_begin(&why));
  assert_non_null(strstr(why.text, "perf: "));
  assert_null(strstr(why.text, "clock: "));
  cs_options.event = 0;
  end();
}

int main(void) {
  bool works = cs_perf_probe(0, true, &err);
  const struct CMUnitTest by_hand[] = {
      cmocka_unit_test(the_last_chain_is_the_stacks),
      cmocka_unit_test(a_chain_of_elsewhere_is_not_believed),
      cmocka_unit_test(a_record_that_makes_no_sense_is_none),
  };
  const struct CMUnitTest live[] = {
      cmocka_unit_test(samples_have_the_kernels_part),
      cmocka_unit_test(threads_without_a_ring_are_told_of),
      cmocka_unit_test(a_forked_child_has_no_events),
      cmocka_unit_test(page_faults_are_counted),
      cmocka_unit_test(an_event_without_a_counter_is_refused_with_a_reason),
  };
  int failed = cmocka_run_group_tests(by_hand, NULL, NULL);
  if (works) return failed + cmocka_run_group_tests(live, setup, NULL);
  printf("skipped: %s\n", err.text);
  return failed != 0 ? failed : 77;
}
