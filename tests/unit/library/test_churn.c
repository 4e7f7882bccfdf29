// SPDX-License-Identifier: MIT
// Libraries that are loaded at each other's former addresses while threads run through them and are
// walked. The right result is known, because each function of the chain notes where its return
// address is: a walk may end early, with a reason, but none of its frames may be wrong.
#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include <cmocka.h>

#include "images/images.h"
#include "life/images.h"
#include "life/start.h"
#include "signal/handler.h"
#include "signal/signal.h"
#include "signal/ucontext.h"
#include "threads/registry.h"
#include "unwind/sites.h"
#include "walk/record.h"

enum { SHAPES = 8, WORKERS = 3, MAX_FRAMES = 96, MAX_NOTED = 48, PAGE = 4096 };

struct noted {
  uint64_t ip, cfa;  // the return address, and the sp that it returns with
};

struct worker {
  struct noted noted[MAX_NOTED];  // outermost first; written before `depth` is
  unsigned depth;
  struct cs_stack stack;
  pthread_t thread;
  timer_t timer;
  uint32_t random;
  char copy[SHAPES][96];  // its own copies, which another worker's dlopen does not keep
  uint64_t last_base, loads, replaced, holes;
  uint64_t samples, complete, cut[CS_STOP_COUNT], frames, by_site, unsettled, wrong;
};

static const struct cs_world *world = &cs_library.world;
static struct worker workers[WORKERS];
static bool over;

// ---- What is on the stack, and what a walk finds ----

#define FENCE() __atomic_signal_fence(__ATOMIC_SEQ_CST)
#define HERE                                                        \
  ((struct noted){(uint64_t)(uintptr_t)__builtin_return_address(0), \
                  (uint64_t)(uintptr_t)__builtin_dwarf_cfa()})

static void note(struct worker *w, const struct noted *noted, unsigned count) {
  for (unsigned i = 0; i < count; i++) w->noted[w->depth + i] = noted[i];
  FENCE();
  w->depth += count;
  FENCE();
}
static void forget(struct worker *w, unsigned count) {
  FENCE();
  w->depth -= count;
  FENCE();
}

struct walked {
  struct noted frame[MAX_FRAMES];
  unsigned count;
  enum cs_stop stop;
};

static void add_frame(struct walked *out, uint64_t ip, uint64_t sp) {
  out->frame[out->count++] = (struct noted){ip, sp};
}

static void walk_thread(struct worker *w, const struct cs_world *of, const struct cs_regs *regs,
                        uint64_t clr_thread, struct walked *out) {
  struct cs_record records[MAX_FRAMES];
  struct cs_walk walk;
  struct cs_frame frame;
  out->count = 0;
  cs_walk_begin(&walk, of, regs, &w->stack, clr_thread, MAX_FRAMES);
  walk.fast = true;
  w->unsettled += !walk.settled;
  while (out->count < MAX_FRAMES && cs_walk_next(&walk, &frame)) {
    add_frame(out, frame.regs.r[CS_RIP], frame.regs.r[CS_RSP]);
    uint32_t n = cs_walk_run(&walk, records, MAX_FRAMES - out->count);
    for (uint32_t i = 0; i < n; i++)
      add_frame(out, cs_record_ip(&records[i]), cs_record_sp(&records[i]));
    w->by_site += n;
  }
  out->stop = walk.stop;
}

static void walk_world(struct worker *w, const struct cs_world *of, const struct cs_regs *regs,
                       struct walked *out) {
  walk_thread(w, of, regs, 0, out);
}

// Everything from the innermost noted frame outwards must be in the walk. The frames inside of it
// have not been noted yet, or are no longer noted, but must lead there.
static bool is_right(const struct worker *w, const struct walked *walked) {
  unsigned k = 1, depth = w->depth;
  while (k < walked->count && walked->frame[k].cfa < w->noted[depth - 1].cfa) k++;
  for (unsigned j = depth; j-- > 0; k++) {
    if (k >= walked->count) return walked->stop != CS_STOP_BASE;
    if (walked->frame[k].ip != w->noted[j].ip || walked->frame[k].cfa != w->noted[j].cfa)
      return false;
  }
  return true;
}

static void print_walk(const struct worker *w, const struct walked *walked) {
  char line[96];
  for (unsigned k = 0; k < walked->count; k++) {
    int n =
        snprintf(line, sizeof line, "  %#lx sp %#lx\n", walked->frame[k].ip, walked->frame[k].cfa);
    (void)!write(2, line, (size_t)n);
  }
  int n = snprintf(line, sizeof line, "  stop %d; noted:\n", (int)walked->stop);
  (void)!write(2, line, (size_t)n);
  for (unsigned j = w->depth; j-- > 0;) {
    n = snprintf(line, sizeof line, "  %#lx sp %#lx\n", w->noted[j].ip, w->noted[j].cfa);
    (void)!write(2, line, (size_t)n);
  }
}

static void count_walk(struct worker *w, const struct walked *walked) {
  w->samples++;
  w->frames += walked->count;
  w->complete += walked->stop == CS_STOP_BASE;
  w->cut[walked->stop]++;
  if (is_right(w, walked)) return;
  if (w->wrong++ == 0) print_walk(w, walked);
}

static void on_sample(int signo, siginfo_t *info, void *context) {
  (void)signo;
  struct worker *w = info->si_value.sival_ptr;
  struct walked walked;
  struct cs_regs regs;
  if (info->si_code != SI_TIMER || w->depth == 0) return;
  cs_regs_from_ucontext(&regs, context);
  uint32_t parity = cs_epoch_enter(&cs_signal.epoch);
  walk_world(w, world, &regs, &walked);
  cs_epoch_leave(&cs_signal.epoch, parity);
  count_walk(w, &walked);
}

// ---- Libraries ----

struct plug {
  void *handle, *code;
  void (*call)(void (*function)(void *), void *arg);
  unsigned frames[2];
  uint64_t base;
};

// Makes no assertions, since it runs on any thread.
static bool plug_open(struct plug *plug, const char *path) {
  *plug = (struct plug){.handle = dlopen(path, RTLD_NOW | RTLD_LOCAL)};
  if (plug->handle == NULL) return false;
  const unsigned *frames = dlsym(plug->handle, "plug_frames");
  const void *entry = dlsym(plug->handle, "plug_entry");
  if (frames == NULL || entry == NULL) return false;
  memcpy(plug->frames, frames, sizeof plug->frames);
  memcpy(&plug->call, entry, sizeof plug->call);
  plug->base = (uint64_t)(uintptr_t)plug->call & ~(uint64_t)(PAGE - 1);
  return true;
}

struct call {
  struct worker *worker;
  const struct plug *plug;
  void (*function)(struct worker *w, void *arg);
  void *arg;
};

// Called by the libraries, whose two frames are told apart by their sizes.
static __attribute__((noinline)) void called_back(void *arg) {
  struct call *call = arg;
  struct noted here = HERE, noted[3];
  uint64_t inner = here.cfa + call->plug->frames[0], outer = inner + call->plug->frames[1];
  noted[2] = here;
  noted[1] = (struct noted){*(uint64_t *)(uintptr_t)(inner - 8), inner};
  noted[0] = (struct noted){*(uint64_t *)(uintptr_t)(outer - 8), outer};
  note(call->worker, noted, 3);
  call->function(call->worker, call->arg);
  forget(call->worker, 3);
}

// Calls `function` through the library.
static __attribute__((noinline)) void through(struct worker *w, const struct plug *plug,
                                              void (*function)(struct worker *, void *),
                                              void *arg) {
  struct noted here = HERE;
  struct call call = {w, plug, function, arg};
  note(w, &here, 1);
  plug->call(called_back, &call);
  forget(w, 1);
}

static bool copy_file(const char *from, const char *to) {
  char command[512];
  (void)snprintf(command, sizeof command, "cp '%s' '%s'", from, to);
  return system(command) == 0;
}

static const char *shape_path(unsigned shape) {
  static const char *const paths[SHAPES] = {PLUGS};
  return paths[shape];
}

static struct cs_stack own_stack(void) {
  pthread_attr_t attr;
  void *lo = NULL;
  size_t size = 0;
  if (pthread_getattr_np(pthread_self(), &attr) == 0) {
    (void)pthread_attr_getstack(&attr, &lo, &size);
    (void)pthread_attr_destroy(&attr);
  }
  return (struct cs_stack){.lo = (uint64_t)(uintptr_t)lo, .hi = (uint64_t)(uintptr_t)lo + size};
}

// ---- One thread, step by step ----

static struct walked walked;
static bool blind;  // ignores the loader's counters: every table and every kept rule is trusted

static __attribute__((noinline)) void walk_here(struct worker *w, void *arg) {
  struct noted here = HERE;
  struct cs_world unaware = *world;
  ucontext_t context;
  struct cs_regs regs;
  (void)arg;
  note(w, &here, 1);
  (void)getcontext(&context);
  cs_regs_from_ucontext(&regs, &context);
  unaware.loader = NULL;
  walk_world(w, blind ? &unaware : world, &regs, &walked);
  w->wrong += !is_right(w, &walked);
  forget(w, 1);
}

static uint64_t walk_through(struct worker *w, const struct plug *plug) {
  w->wrong = w->by_site = 0;
  through(w, plug, walk_here, NULL);
  return w->wrong;
}

// Opens a library of another shape where `gone` was. The kernel chooses the highest address with
// enough room, so all higher pages are filled first.
static void replace(struct plug *plug, uint64_t gone, unsigned shape) {
  enum { MAX_FILLED = 1 << 16, PAGES = 5 };
  static void *filled[MAX_FILLED];
  unsigned count = 0;
  uint64_t last = gone - PAGE + (PAGES - 1) * PAGE;  // its headers come before the text
  for (; count < MAX_FILLED; count++) {
    filled[count] = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(filled[count], MAP_FAILED);
    if ((uint64_t)(uintptr_t)filled[count] <= last) break;
  }
  assert_true(count < MAX_FILLED);
  assert_int_equal((uint64_t)(uintptr_t)filled[count], last);
  (void)munmap(filled[count], PAGE);
  assert_true(plug_open(plug, shape_path(shape)));
  assert_int_equal(plug->base, gone);
  while (count-- > 0) (void)munmap(filled[count], PAGE);
}

static void another_one_in_its_place(void **state) {
  (void)state;
  static struct worker w;
  struct noted here = HERE;
  struct plug first, second;
  w.stack = own_stack();
  note(&w, &here, 1);
  assert_true(plug_open(&first, shape_path(0)));
  (void)cs_library_refresh_images();
  assert_int_equal(walk_through(&w, &first), 0);
  assert_int_equal(walked.stop, CS_STOP_BASE);
  assert_int_equal(walk_through(&w, &first), 0);
  assert_true(w.by_site >= 3);  // rules are kept for its frames
  assert_int_equal(dlclose(first.handle), 0);
  replace(&second, first.base, 1);
  // The table has not been refreshed. Without the loader's counters, the table and the kept rules
  // mislead a walk.
  blind = true;
  assert_int_equal(walk_through(&w, &second), 1);
  blind = false;
  assert_int_equal(walk_through(&w, &second), 0);
  assert_int_equal(w.by_site, 0);
  assert_int_equal(walked.stop, CS_STOP_UNKNOWN_CODE);
  // The first library is back, so its build id is where the table says.
  assert_int_equal(dlclose(second.handle), 0);
  replace(&first, first.base, 0);
  assert_int_equal(walk_through(&w, &first), 0);
  assert_int_equal(w.by_site, 0);
  assert_int_equal(walked.stop, CS_STOP_BASE);
  (void)cs_library_refresh_images();
  assert_int_equal(walk_through(&w, &first), 0);
  assert_true(w.by_site >= 3);
  // Then the second library again, this time with the table refreshed.
  assert_int_equal(dlclose(first.handle), 0);
  replace(&second, first.base, 1);
  assert_true(cs_library_refresh_images());
  for (int i = 0; i < 2; i++) {
    assert_int_equal(walk_through(&w, &second), 0);
    assert_int_equal(walked.stop, CS_STOP_BASE);
  }
  assert_true(w.by_site >= 3);
  assert_int_equal(dlclose(second.handle), 0);
}

// While a walk over the old images has not ended, the kept rules of these images cannot be
// forgotten, so none are used.
static void a_walk_that_does_not_end(void **state) {
  (void)state;
  static struct worker w;
  struct noted here = HERE;
  struct plug first, second;
  w.stack = own_stack();
  note(&w, &here, 1);
  assert_true(plug_open(&first, shape_path(2)));
  (void)cs_library_refresh_images();
  for (int i = 0; i < 2; i++) assert_int_equal(walk_through(&w, &first), 0);
  assert_true(w.by_site >= 3);
  uint32_t parity = cs_epoch_enter(&cs_signal.epoch);
  assert_int_equal(dlclose(first.handle), 0);
  replace(&second, first.base, 3);
  (void)cs_library_refresh_images();
  for (int i = 0; i < 2; i++) {
    assert_int_equal(walk_through(&w, &second), 0);
    assert_int_equal(w.by_site, 0);
    assert_int_equal(walked.stop, CS_STOP_BASE);
  }
  cs_epoch_leave(&cs_signal.epoch, parity);
  (void)cs_library_refresh_images();
  for (int i = 0; i < 2; i++) assert_int_equal(walk_through(&w, &second), 0);
  assert_true(w.by_site >= 3);
  assert_int_equal(dlclose(second.handle), 0);
}

// A library that is merely unloaded is noticed, too: another one may be loaded in its place.
static void what_is_not_there_is_not_believed(void **state) {
  (void)state;
  static struct worker w;
  struct noted here = HERE;
  struct plug plug, other;
  w.stack = own_stack();
  note(&w, &here, 1);
  assert_true(plug_open(&plug, shape_path(4)));
  assert_true(plug_open(&other, shape_path(5)));
  (void)cs_library_refresh_images();
  assert_false(cs_library_images_are_old());
  for (int i = 0; i < 2; i++) assert_int_equal(walk_through(&w, &plug), 0);
  assert_int_equal(dlclose(plug.handle), 0);
  assert_true(cs_library_images_are_old());
  void *place = (void *)(uintptr_t)plug.base;
  void *code = mmap(place, PAGE, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  assert_ptr_equal(code, place);
  memcpy(code, (void *)(uintptr_t)other.base, PAGE);
  assert_int_equal(mprotect(code, PAGE, PROT_READ | PROT_EXEC), 0);
  memcpy(plug.frames, other.frames, sizeof plug.frames);
  assert_int_equal(walk_through(&w, &plug), 0);
  assert_int_equal(walked.stop, CS_STOP_UNKNOWN_CODE);
  (void)cs_library_refresh_images();
  assert_int_equal(walk_through(&w, &plug), 0);
  assert_int_equal(walked.stop, CS_STOP_UNKNOWN_CODE);
  assert_int_equal(munmap(code, PAGE), 0);
  assert_int_equal(dlclose(other.handle), 0);
}

// Code that is in no map may have anything on its stack: a word that was once a return address is
// not its frame's.
static void unknown_code_is_no_stub(void **state) {
  (void)state;
  static struct worker w;
  struct noted here = HERE;
  uint64_t stale[8];
  w.stack = own_stack();
  void *code = mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  assert_ptr_not_equal(code, MAP_FAILED);
  for (unsigned i = 0; i < 8; i++) stale[i] = here.ip;
  struct cs_regs regs = {.known = CS_REGS_ALL};
  regs.r[CS_RIP] = (uint64_t)(uintptr_t)code + 16;
  regs.r[CS_RSP] = (uint64_t)(uintptr_t)stale;
  (void)cs_library_refresh_images();
  walk_world(&w, world, &regs, &walked);
  assert_int_equal(w.unsettled, 0);
  assert_int_equal(walked.count, 1);
  assert_int_equal(walked.stop, CS_STOP_UNKNOWN_CODE);
  assert_int_equal(munmap(code, PAGE), 0);
}

// Calls as managed code calls a copied helper of the runtime: through a cell.
void call_by_cell(void);
extern void *volatile stub_cell;
__asm__(
    ".text\n"
    ".type call_by_cell, @function\n"
    "call_by_cell:\n"
    "  .cfi_startproc\n"
    "  subq $8, %rsp\n"
    "  .cfi_adjust_cfa_offset 8\n"
    "  call *stub_cell(%rip)\n"
    "  addq $8, %rsp\n"
    "  .cfi_adjust_cfa_offset -8\n"
    "  ret\n"
    "  .cfi_endproc\n"
    ".size call_by_cell, .-call_by_cell\n");
void *volatile stub_cell __attribute__((visibility("hidden")));

// A stub that jumps to `body`: the running code is in no map and has pushed nothing. At PRECODE
// there is one that jumps to the stub.
enum { IN_STUB = 2, BEHIND_STUB = 1024, PRECODE = 2048 };
static uint8_t *make_stub(void (*body)(void)) {
  static const uint8_t jump[] = {0x90, 0x90, 0xFF, 0x25, 0, 0, 0, 0};  // jmp [rip]
  uint8_t *code =
      mmap(NULL, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  assert_ptr_not_equal(code, MAP_FAILED);
  memcpy(code, jump, sizeof jump);
  memcpy(code + sizeof jump, &body, sizeof body);
  memcpy(code + PRECODE, jump + 2, sizeof jump - 2);
  memcpy(code + PRECODE + sizeof jump - 2, &code, sizeof code);
  return code;
}

static uint8_t *stub_code;
static struct walked from_stub, from_elsewhere, by_stale_word, preemptive;

// Walks as if the thread stood in the stub, while it is unknown which libraries are loaded.
static __attribute__((noinline)) void stub_body(void) {
  static struct worker w;
  struct cs_images *images = NULL;
  size_t bytes = sizeof *images + world->images->count * sizeof world->images->image[0];
  images = malloc(bytes);
  if (images == NULL) return;
  memcpy(images, world->images, bytes);
  images->loaded = CS_LOADER_UNSETTLED;
  struct cs_world unsettled = *world;
  unsettled.images = images;
  uint64_t cooperative = 1, stub = (uint64_t)(uintptr_t)stub_code;
  unsettled.layout.thread.preemptive_gc_disabled = 0;
  unsettled.layout.thread.frame = sizeof cooperative;
  uint64_t thread[2] = {cooperative, 0}, address = (uint64_t)(uintptr_t)thread;
  struct noted here = HERE;
  uint64_t stale[2] = {here.ip, 0};
  w.stack = own_stack();
  struct cs_regs regs = {.known = CS_REGS_ALL};
  regs.r[CS_RSP] = here.cfa - 8;
  regs.r[CS_RIP] = stub + IN_STUB;
  walk_thread(&w, &unsettled, &regs, address, &from_stub);
  regs.r[CS_RIP] = stub + BEHIND_STUB;
  walk_thread(&w, &unsettled, &regs, address, &from_elsewhere);
  thread[0] = 0;
  regs.r[CS_RIP] = stub + IN_STUB;
  walk_thread(&w, &unsettled, &regs, address, &preemptive);
  thread[0] = 1;
  // The return address of a call that led elsewhere, left on the stack.
  stale[0] = *(uint64_t *)(uintptr_t)(here.cfa + 8);
  regs.r[CS_RSP] = (uint64_t)(uintptr_t)stale;
  walk_thread(&w, &unsettled, &regs, address, &by_stale_word);
  w.depth = 0;
  free(images);
}

static void a_stub_is_known_by_the_call_that_leads_there(void **state) {
  (void)state;
  (void)cs_library_refresh_images();
  stub_code = make_stub(stub_body);
  for (int by_precode = 0; by_precode <= 1; by_precode++) {
    stub_cell = stub_code + (by_precode ? PRECODE : 0);
    call_by_cell();
    assert_true(from_stub.count > 3);
    assert_true(from_stub.frame[1].ip > (uint64_t)(uintptr_t)call_by_cell &&
                from_stub.frame[1].ip < (uint64_t)(uintptr_t)call_by_cell + 16);
    assert_int_equal(from_stub.stop, CS_STOP_BASE);
    const struct walked *cut[] = {&from_elsewhere, &by_stale_word, &preemptive};
    for (unsigned i = 0; i < 3; i++) {
      assert_int_equal(cut[i]->count, 1);
      assert_int_equal(cut[i]->stop, CS_STOP_UNKNOWN_CODE);
    }
  }
  assert_int_equal(munmap(stub_code, PAGE), 0);
}

// Frames that are named later are looked up in the walk's table, as long as it is kept.
static void tables_are_kept_for_names(void **state) {
  (void)state;
  struct plug first, second;
  bool exact;
  assert_true(plug_open(&first, shape_path(6)));
  (void)cs_library_refresh_images();
  uint64_t loaded = cs_library.world.images->loaded;
  uint32_t sequence = cs_library_images_sequence();
  assert_int_not_equal(loaded, CS_LOADER_UNSETTLED);
  cs_library_images_keep(sequence);
  assert_int_equal(dlclose(first.handle), 0);
  replace(&second, first.base, 7);
  assert_true(cs_library_refresh_images());
  const struct cs_images *then = cs_library_images_of(loaded, 0, &exact);
  assert_true(then != NULL && exact);
  assert_string_equal(cs_images_find(then, first.base)->path, shape_path(6));
  assert_ptr_equal(cs_library_images_of(CS_LOADER_UNSETTLED, sequence, &exact), then);
  assert_false(exact);
  const struct cs_images *now = cs_library_images_of(cs_library.world.images->loaded, 0, &exact);
  assert_true(now == cs_library.world.images && exact);
  assert_string_equal(cs_images_find(now, first.base)->path, shape_path(7));
  cs_library_images_keep(UINT32_MAX);
  assert_false(cs_library_refresh_images());
  assert_null(cs_library_images_of(loaded, sequence, &exact));
  assert_int_equal(dlclose(second.handle), 0);
}

// ---- Many threads, at random ----

static uint32_t random_of(struct worker *w) {
  w->random = w->random * 1664525u + 1013904223u;
  return w->random >> 8;
}

static void spin(struct worker *w) {
  char from[256], to[256];
  memset(from, (int)w->random, sizeof from);
  for (uint32_t i = random_of(w) % 4000; i > 0; i--) {
    memcpy(to, from, sizeof to);
    __asm__ volatile("" ::"r"(to) : "memory");
  }
}

static void in_and_out(struct worker *w, void *levels);

static void use(struct worker *w, const struct plug *plug, uintptr_t levels) {
  uint32_t calls = 1 + random_of(w) % 8;
  for (uint32_t i = 0; i < calls; i++) through(w, plug, in_and_out, (void *)(levels / 2));
}

// Puts code of another shape, without unwind data, where a library was.
static void use_hole(struct worker *w, const struct plug *gone, const struct plug *other) {
  struct plug hole = *other;
  void *place = (void *)(uintptr_t)gone->base;
  void *code = mmap(place, PAGE, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  if (code == MAP_FAILED) return;
  if (code == place) {
    memcpy(code, (void *)(uintptr_t)other->base, PAGE);
    (void)mprotect(code, PAGE, PROT_READ | PROT_EXEC);
    memcpy(&hole.call, &gone->call, sizeof hole.call);
    use(w, &hole, 0);
    w->holes++;
  }
  (void)munmap(code, PAGE);
}

static __attribute__((noinline)) void in_and_out(struct worker *w, void *arg) {
  uintptr_t levels = (uintptr_t)arg;
  struct noted here = HERE;
  struct plug plug, other;
  note(w, &here, 1);
  spin(w);
  if (levels != 0 && plug_open(&plug, w->copy[random_of(w) % SHAPES])) {
    w->loads++;
    w->replaced += plug.base == w->last_base;
    w->last_base = plug.base;
    use(w, &plug, levels);
    bool dig = random_of(w) % 4 == 0 && plug_open(&other, w->copy[random_of(w) % SHAPES]);
    (void)dlclose(plug.handle);
    if (dig && other.base != plug.base) use_hole(w, &plug, &other);
    if (dig) (void)dlclose(other.handle);
  }
  forget(w, 1);
}

static void *work(void *arg) {
  struct worker *w = arg;
  struct noted here = HERE;
  struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID,
                           .sigev_signo = SIGUSR1,
                           .sigev_value.sival_ptr = w,
                           ._sigev_un._tid = (pid_t)syscall(SYS_gettid)};
  struct itimerspec every = {{0, 90000}, {0, 90000}};
  w->stack = own_stack();
  note(w, &here, 1);
  if (timer_create(CLOCK_MONOTONIC, &event, &w->timer) != 0 ||
      timer_settime(w->timer, 0, &every, NULL) != 0)
    w->wrong++;
  while (!cs_load_acquire(&over)) in_and_out(w, (void *)2);
  (void)timer_delete(w->timer);
  forget(w, 1);
  return NULL;
}

static void prepare(struct worker *w, unsigned index, const char *folder) {
  *w = (struct worker){.random = 4711 * (index + 1)};
  for (unsigned i = 0; i < SHAPES; i++) {
    (void)snprintf(w->copy[i], sizeof w->copy[i], "%s/%u-%u.so", folder, index, i);
    assert_true(copy_file(shape_path(i), w->copy[i]));
  }
}

static void sum(struct worker *to) {
  for (unsigned i = 0; i < WORKERS; i++) {
    const struct worker *w = &workers[i];
    to->loads += w->loads, to->replaced += w->replaced, to->holes += w->holes;
    to->samples += w->samples, to->complete += w->complete, to->frames += w->frames;
    to->by_site += w->by_site, to->unsettled += w->unsettled, to->wrong += w->wrong;
    for (unsigned s = 0; s < CS_STOP_COUNT; s++) to->cut[s] += w->cut[s];
  }
}

static void report(const struct worker *all, unsigned refreshes) {
  print_message(
      "%lu loads, %lu of them where the last one was, %lu holes dug, %u tables; %lu walks, %lu "
      "complete, %lu while images came or went, %lu frames, %lu of them by kept rules, wrong: "
      "%lu\n",
      all->loads, all->replaced, all->holes, refreshes, all->samples, all->complete, all->unsettled,
      all->frames, all->by_site, all->wrong);
  for (unsigned s = 0; s < CS_STOP_COUNT; s++)
    if (all->cut[s] != 0 && s != CS_STOP_BASE)
      print_message("  cut: %lu %s\n", all->cut[s], cs_stop_token((enum cs_stop)s));
}

static void no_wrong_frame_under_churn(void **state) {
  (void)state;
  enum { SECONDS = 6 };
  char folder[] = "/tmp/clrsnap-churn-XXXXXX";
  struct sigaction action = {.sa_sigaction = on_sample, .sa_flags = SA_SIGINFO | SA_RESTART};
  struct worker all = {0};
  unsigned refreshes = 0;
  assert_non_null(mkdtemp(folder));
  assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
  for (unsigned i = 0; i < WORKERS; i++) prepare(&workers[i], i, folder);
  for (unsigned i = 0; i < WORKERS; i++)
    assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
  time_t end = time(NULL) + SECONDS;
  while (time(NULL) < end) {
    if (cs_library_images_are_old()) refreshes += cs_library_refresh_images();
    (void)usleep(300);
  }
  cs_store_release(&over, true);
  for (unsigned i = 0; i < WORKERS; i++) (void)pthread_join(workers[i].thread, NULL);
  sum(&all);
  report(&all, refreshes);
  for (unsigned i = 0; i < WORKERS; i++)
    for (unsigned k = 0; k < SHAPES; k++) (void)unlink(workers[i].copy[k]);
  (void)rmdir(folder);
  assert_int_equal(all.wrong, 0);
  assert_true(all.samples > 1000);
  assert_true(all.replaced > 50 && all.holes > 10 && refreshes > 10);
  assert_true(all.complete > all.samples / 10);
  assert_true(all.by_site > 100 && all.unsettled > 100);
}

static int setup(void **state) {
  (void)state;
  struct cs_error err = {0};
  HRESULT hr = cs_library_start_native(NULL, &err);
  if (hr != S_OK) print_error("%s\n", err.text);
  return hr == S_OK ? 0 : -1;
}
static int teardown(void **state) {
  (void)state;
  clrsnap_stop();
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(another_one_in_its_place),
      cmocka_unit_test(a_walk_that_does_not_end),
      cmocka_unit_test(what_is_not_there_is_not_believed),
      cmocka_unit_test(unknown_code_is_no_stub),
      cmocka_unit_test(a_stub_is_known_by_the_call_that_leads_there),
      cmocka_unit_test(tables_are_kept_for_names),
      cmocka_unit_test(no_wrong_frame_under_churn),
  };
  return cmocka_run_group_tests(tests, setup, teardown);
}
