// SPDX-License-Identifier: MIT
// Native walks of real stacks: through signal frames at random instructions, from a constructor
// that runs under the dynamic loader's lock, to the base of a thread; and libraries that are loaded
// and unloaded. The oracle for frames is glibc's backtrace(), called at the same place.
#include <dlfcn.h>
#include <execinfo.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <cmocka.h>

#include "images/images.h"
#include "native/native.h"
#include "walk/walk.h"

enum { MAX_FRAMES = 128, SAMPLES = 400 };

static struct cs_native *native;
static struct cs_world world;  // without a runtime: native code only

struct trace {
  uint64_t ip[MAX_FRAMES];
  unsigned count, signals;
  enum cs_stop stop;
};

static struct cs_stack stack_of_this_thread(void) {
  pthread_attr_t attr;
  void *lo = NULL;
  size_t size = 0;
  if (pthread_getattr_np(pthread_self(), &attr) == 0) {
    (void)pthread_attr_getstack(&attr, &lo, &size);
    (void)pthread_attr_destroy(&attr);
  }
  uint64_t begin = (uint64_t)(uintptr_t)lo;
  return (struct cs_stack){.lo = begin, .hi = begin + size};
}

static void walk_from(const ucontext_t *uc, const struct cs_stack *stack, struct trace *trace) {
  static const int order[] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP,
                              REG_RSI, REG_RDI, REG_R8,  REG_R9,  REG_R10, REG_R11,
                              REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP};
  struct cs_regs regs = {.known = CS_REGS_ALL};
  struct cs_walk walk;
  struct cs_frame frame;
  for (unsigned i = 0; i < CS_REG_COUNT; i++) regs.r[i] = (uint64_t)uc->uc_mcontext.gregs[order[i]];
  trace->count = trace->signals = 0;
  cs_walk_begin(&walk, &world, &regs, stack, 0, MAX_FRAMES);
  while (cs_walk_next(&walk, &frame)) {
    if (trace->count != 0 && (frame.flags & CS_FRAME_EXACT)) trace->signals++;
    trace->ip[trace->count++] = frame.regs.r[CS_RIP];
  }
  trace->stop = walk.stop;
}

// Both walks start in one place. The first frame's ip differs (two calls); all others must be
// equal.
static struct trace mine;
static void *theirs[MAX_FRAMES + 1];
static int their_count;
static struct cs_stack main_stack;

__attribute__((noinline)) static void walk_both(const struct cs_stack *stack) {
  ucontext_t here;
  (void)getcontext(&here);
  walk_from(&here, stack, &mine);
  their_count = backtrace(theirs, MAX_FRAMES);
}

static unsigned compared, differing;
static void compare(void) {
  compared++;
  int more = 0;  // frames of a sanitizer's own backtrace(), on top of the true one
  while (more < their_count && mine.ip[1] != (uint64_t)(uintptr_t)theirs[more + 1]) more++;
  bool same = mine.stop == CS_STOP_BASE && (int)mine.count + more == their_count && more <= 1;
  for (unsigned i = 1; same && i < mine.count; i++)
    same = mine.ip[i] == (uint64_t)(uintptr_t)theirs[(int)i + more];
  if (same) return;
  differing++;
  print_message("stop %s; ours, theirs:\n", cs_stop_token(mine.stop));
  for (int i = 0; i < (int)mine.count || i < their_count; i++)
    print_message("  %#lx %p\n", i < (int)mine.count ? mine.ip[i] : 0,
                  i < their_count ? theirs[i] : NULL);
}

static volatile sig_atomic_t samples;
static void on_sample(int signo) {
  (void)signo;
  walk_both(&main_stack);
  compare();
  samples++;
}

static void start(void) {
  world.images = cs_native_refresh(native);
  assert_non_null(world.images);
  main_stack = stack_of_this_thread();
  compared = differing = 0;
  samples = 0;
  (void)backtrace(theirs, 1);  // loads libgcc now, not in a handler
}

static void handle(int signo, void (*handler)(int), int flags) {
  struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
  assert_int_equal(sigaction(signo, &action, NULL), 0);
}

static int raise_then_compare(const void *a, const void *b) {
  if (samples == 0) (void)raise(SIGUSR1);
  return *(const int *)a - *(const int *)b;
}

static void through_a_callback_and_a_handler(void **state) {
  (void)state;
  int numbers[] = {5, 3, 4, 1, 2};
  start();
  handle(SIGUSR1, on_sample, SA_RESTART);
  qsort(numbers, CS_COUNT(numbers), sizeof numbers[0], raise_then_compare);
  assert_int_equal(compared, 1);
  assert_int_equal(differing, 0);
  assert_int_equal(mine.signals, 1);
  assert_true(mine.count >= 10);  // walk, handler, trampoline, raise, callback, qsort ... _start
}

// Returns in two steps, as hand-written code does: with the return address in a register, the sp is
// already the caller's. The signal comes between the two steps.
extern void return_by_jump(void);
__asm__(
    ".text\n"
    ".p2align 4\n"
    ".type return_by_jump, @function\n"
    "return_by_jump:\n"
    "  .cfi_startproc\n"
    "  popq %rax\n"
    "  .cfi_def_cfa_offset 0\n"
    "  .cfi_register %rip, %rax\n"
    "  int3\n"
    "  jmpq *%rax\n"
    "  .cfi_endproc\n"
    ".size return_by_jump, .-return_by_jump\n");

static void through_a_handler_where_the_sp_is_the_callers(void **state) {
  (void)state;
  start();
  handle(SIGTRAP, on_sample, 0);
  return_by_jump();
  assert_int_equal(compared, 1);
  assert_int_equal(differing, 0);
  assert_int_equal(mine.signals, 1);
  assert_int_equal(mine.stop, CS_STOP_BASE);
}

static int compare_numbers(const void *a, const void *b) {
  return *(const int *)a - *(const int *)b;
}

// Interruptions anywhere: in prologs, epilogs, PLT entries and libc's hand-written code.
static void at_random_instructions(void **state) {
  (void)state;
  static int numbers[2000];
  static char text[4096];
  volatile double sink = 0;
  start();
  handle(SIGPROF, on_sample, SA_RESTART);
  struct itimerval every = {.it_interval = {.tv_usec = 500}, .it_value = {.tv_usec = 500}};
  assert_int_equal(setitimer(ITIMER_PROF, &every, NULL), 0);
  for (unsigned round = 0; samples < SAMPLES; round++) {
    for (unsigned i = 0; i < CS_COUNT(numbers); i++) numbers[i] = (int)((i * 7919 + round) % 2003);
    qsort(numbers, CS_COUNT(numbers), sizeof numbers[0], compare_numbers);
    for (unsigned i = 0; i < 200; i++) {
      (void)snprintf(text, sizeof text, "%d %f %s", numbers[i], (double)i / 3, "text");
      sink = sink + strtod(text, NULL) + (double)strlen(text);
      memset(text, 'a' + (int)(i % 26), sizeof text - 1);
      char *copy = strdup(text);
      sink = sink + (double)(copy != NULL ? strlen(copy) : 0);
      free(copy);
    }
  }
  assert_int_equal(setitimer(ITIMER_PROF, &(struct itimerval){0}, NULL), 0);
  print_message("%u samples\n", compared);
  assert_true(compared >= SAMPLES);
  assert_int_equal(differing, 0);
}

static void on_alternate_stack(int signo) {
  (void)signo;
  stack_t alternate;
  (void)sigaltstack(NULL, &alternate);
  struct cs_stack stack = main_stack;
  stack.alt_lo = (uint64_t)(uintptr_t)alternate.ss_sp;
  stack.alt_hi = stack.alt_lo + alternate.ss_size;
  walk_both(&stack);
  compare();
}

static void from_the_alternate_stack(void **state) {
  (void)state;
  enum { BYTES = 256 << 10 };
  stack_t alternate = {.ss_sp = malloc(BYTES), .ss_size = BYTES}, old;
  assert_non_null(alternate.ss_sp);
  start();
  assert_int_equal(sigaltstack(&alternate, &old), 0);
  handle(SIGUSR1, on_alternate_stack, SA_ONSTACK);
  (void)raise(SIGUSR1);
  assert_int_equal(sigaltstack(&old, NULL), 0);
  free(alternate.ss_sp);
  assert_int_equal(compared, 1);
  assert_int_equal(differing, 0);
  assert_int_equal(mine.signals, 1);
}

static void *walk_in_thread(void *arg) {
  (void)arg;
  struct cs_stack stack = stack_of_this_thread();
  walk_both(&stack);
  return NULL;
}

static void a_threads_base(void **state) {
  (void)state;
  pthread_t thread;
  start();
  assert_int_equal(pthread_create(&thread, NULL, walk_in_thread, NULL), 0);
  assert_int_equal(pthread_join(thread, NULL), 0);
  compare();
  assert_int_equal(mine.stop, CS_STOP_BASE);
  assert_int_equal(differing, 0);
}

// Another thread refreshes the table while this one is in a constructor and holds the loader's
// lock. The refresh would wait for ever if it took that lock.
static sem_t wanted, done;
static void *refresher(void *arg) {
  (void)arg;
  (void)sem_wait(&wanted);
  world.images = cs_native_refresh(native);
  (void)sem_post(&done);
  return NULL;
}
static void on_constructor(int signo) {
  (void)signo;
  (void)sem_post(&wanted);
  (void)sem_wait(&done);
  walk_both(&main_stack);
  compare();
}

// Finds a library by its file's name, since the maps have the path without symbolic links.
static const struct cs_image *find_library(const struct cs_images *images) {
  for (uint32_t i = 0; i < images->count; i++) {
    const char *slash = strrchr(images->image[i].path, '/');
    if (slash != NULL && strcmp(slash, strrchr(TEST_LIBRARY, '/')) == 0) return &images->image[i];
  }
  return NULL;
}

static void from_a_constructor(void **state) {
  (void)state;
  pthread_t thread;
  start();
  assert_int_equal(sem_init(&wanted, 0, 0), 0);
  assert_int_equal(sem_init(&done, 0, 0), 0);
  assert_int_equal(pthread_create(&thread, NULL, refresher, NULL), 0);
  handle(SIGUSR2, on_constructor, 0);
  void *library = dlopen(TEST_LIBRARY, RTLD_NOW);
  assert_non_null(library);
  assert_int_equal(pthread_join(thread, NULL), 0);
  assert_int_equal(compared, 1);
  assert_int_equal(differing, 0);
  assert_non_null(find_library(world.images));
  assert_int_equal(dlclose(library), 0);
}

// What takes long is compiled one image at a time; the last call's table is that of a full refresh.
static void brief_refreshes_leave_images(void **state) {
  (void)state;
  struct cs_native *own = cs_native_new(0);
  assert_non_null(own);
  const struct cs_images *now = NULL, *whole = cs_native_refresh(native);
  for (uint32_t i = 1; i <= whole->count; i++) {
    now = cs_native_refresh_in(own, 0);
    assert_int_equal(now->count, i);
    assert_int_equal(cs_native_has_left(own), i < whole->count);
    assert_int_equal(now->loaded == CS_LOADER_UNSETTLED, i < whole->count);
  }
  for (uint32_t i = 0; i < whole->count; i++) {
    assert_int_equal(now->image[i].begin, whole->image[i].begin);
    assert_int_equal(now->image[i].row_count, whole->image[i].row_count);
  }
  assert_ptr_equal(cs_native_refresh_in(own, 0), now);
  cs_native_free(own);
}

static void libraries_come_and_go(void **state) {
  (void)state;
  handle(SIGUSR2, SIG_IGN, 0);
  const struct cs_images *before = cs_native_refresh(native);
  assert_non_null(before);
  assert_null(find_library(before));
  assert_ptr_equal(cs_native_refresh(native), before);  // nothing new: the same table
  void *library = dlopen(TEST_LIBRARY, RTLD_NOW);
  assert_non_null(library);
  const struct cs_images *with = cs_native_refresh(native);
  assert_ptr_not_equal(with, before);
  const struct cs_image *image = find_library(with);
  assert_non_null(image);
  assert_true(image->row_count > 1);
  assert_int_equal(with->count, before->count + 1);
  for (uint32_t i = 1; i < with->count; i++)
    assert_true(with->image[i].begin >= with->image[i - 1].end);
  assert_int_equal(dlclose(library), 0);
  const struct cs_images *after = cs_native_refresh(native);
  assert_null(find_library(after));
  assert_int_equal(after->count, before->count);
  // A walk in progress may still use either of the older tables.
  cs_native_retire(native, with);
  assert_ptr_equal(find_library(with), image);
  assert_true(image->row_ip[image->row_count - 1] <= image->end - image->begin);
  cs_native_retire(native, NULL);
  assert_ptr_equal(cs_native_refresh(native), after);
}

// Images that stay are not compiled again: their rows are the same memory in every table.
static void what_stays_is_kept(void **state) {
  (void)state;
  const struct cs_images *before = cs_native_refresh(native);
  const uint32_t *rows = cs_images_find(before, (uint64_t)(uintptr_t)&what_stays_is_kept)->row_ip;
  void *library = dlopen(TEST_LIBRARY, RTLD_NOW);
  assert_non_null(library);
  const struct cs_images *with = cs_native_refresh(native);
  assert_ptr_not_equal(with, before);
  assert_ptr_equal(cs_images_find(with, (uint64_t)(uintptr_t)&what_stays_is_kept)->row_ip, rows);
  cs_native_retire(native, NULL);
  assert_ptr_equal(cs_images_find(with, (uint64_t)(uintptr_t)&what_stays_is_kept)->row_ip, rows);
  assert_int_equal(dlclose(library), 0);
}

static void another_process(void **state) {
  (void)state;
  int ready[2], leave[2];
  char byte = 0;
  assert_int_equal(pipe(ready), 0);
  assert_int_equal(pipe(leave), 0);
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    (void)close(leave[1]);
    bool told = write(ready[1], &byte, 1) == 1;
    _exit(told && read(leave[0], &byte, 1) == 0 ? 0 : 1);
  }
  assert_int_equal(read(ready[0], &byte, 1), 1);
  struct cs_native *other = cs_native_new(child);
  assert_non_null(other);
  const struct cs_images *images = cs_native_refresh(other), *here = cs_native_refresh(native);
  assert_non_null(images);
  // A forked child has its parent's images, at the same places.
  assert_int_equal(images->count, here->count);
  for (uint32_t i = 0; i < here->count; i++) {
    assert_int_equal(images->image[i].begin, here->image[i].begin);
    assert_int_equal(images->image[i].row_count, here->image[i].row_count);
  }
  cs_native_free(other);
  for (unsigned i = 0; i < 2; i++) {
    (void)close(leave[i]);
    (void)close(ready[i]);
  }
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
}

// The number of images and the number of loads may grow together.
static void each_state_of_the_loader_has_its_number(void **state) {
  enum { MOST = 40 };
  uint32_t settled = 0, images;
  uint64_t loads, numbers[MOST * MOST];
  struct cs_loader loader = {.r_state = &settled, .loaded = &images, .words = {&loads}, .count = 1};
  size_t count = 0;
  (void)state;
  for (images = 1; images <= MOST; images++) {
    for (loads = 1; loads <= MOST; loads++) {
      numbers[count] = cs_loader_now(&loader);
      for (size_t i = 0; i < count; i++) assert_true(numbers[i] != numbers[count]);
      count++;
    }
  }
}

static int setup(void **state) {
  (void)state;
  cs_mem_init_self(&world.mem);
  native = cs_native_new(0);
  return native != NULL ? 0 : -1;
}
static int teardown(void **state) {
  (void)state;
  cs_native_free(native);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(through_a_callback_and_a_handler),
      cmocka_unit_test(through_a_handler_where_the_sp_is_the_callers),
      cmocka_unit_test(at_random_instructions),
      cmocka_unit_test(from_the_alternate_stack),
      cmocka_unit_test(a_threads_base),
      cmocka_unit_test(from_a_constructor),
      cmocka_unit_test(brief_refreshes_leave_images),
      cmocka_unit_test(libraries_come_and_go),
      cmocka_unit_test(what_stays_is_kept),
      cmocka_unit_test(another_process),
      cmocka_unit_test(each_state_of_the_loader_has_its_number),
  };
  return cmocka_run_group_tests(tests, setup, teardown);
}
