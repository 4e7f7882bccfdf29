// SPDX-License-Identifier: MIT
// Seeds in prologs, epilogs and stubs, in the middle of instructions, in collected code and off the
// stack, and seeds that are too small (contract: C16): each has a defined result, and none crashes.
// Each seed is tried on a held thread, whose stack the caller walks, and on a running thread, which
// walks itself. Threads: callbacks and P/Invokes note addresses; the native thread of seeds.c tries
// the seeds. Signal-safe: no.
#include "badseeds.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST = 512, STUBS = 8 };
struct code {
  FunctionID id;
  uint64_t start, size;
  bool freed;
};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct code dynamic[MOST];
static uint32_t dynamic_count, freed_count;
static uint64_t stubs[STUBS];
static uint32_t stub_count;
static ThreadID target;
static uint32_t done;

static struct stack walk, good_walk;
static uint32_t tried, of_code[4];  // S_OK, E_FAIL, and the walks that found the true stack
static uint32_t freed_tried, stubs_tried, random_tried, random_ok;

ORACLE_EXPORT void oracle_seed_stub(void *address);
ORACLE_EXPORT int oracle_seed_collected(void);
ORACLE_EXPORT void oracle_seed_spinning(void);
ORACLE_EXPORT int oracle_seed_done(void);

void oracle_seed_stub(void *address) {
  if (stub_count < STUBS) stubs[stub_count++] = (uint64_t)(uintptr_t)address;
}
int oracle_seed_collected(void) {
  return __atomic_load_n(&freed_count, __ATOMIC_ACQUIRE) >= 4;
}
void oracle_seed_spinning(void) {
  ThreadID id = 0;
  ORACLE_CHECK(oracle_info->lpVtbl->GetCurrentThreadID(oracle_info, &id) == S_OK, "no ThreadID");
  __atomic_store_n(&target, id, __ATOMIC_RELEASE);
}
int oracle_seed_done(void) {
  return (int)__atomic_load_n(&done, __ATOMIC_ACQUIRE);
}

// ---- Collected code ----
static HRESULT compiled(ICorProfilerCallback11 *self, FunctionID id, HRESULT status, BOOL safe) {
  COR_PRF_CODE_INFO info;
  ULONG32 count = 0;
  (void)self, (void)safe;
  if (FAILED(status) ||
      oracle_info->lpVtbl->GetCodeInfo2(oracle_info, id, 1, &count, &info) != S_OK || count == 0)
    return S_OK;
  pthread_mutex_lock(&lock);
  if (dynamic_count < MOST)
    dynamic[dynamic_count++] = (struct code){id, info.startAddress, info.size, false};
  pthread_mutex_unlock(&lock);
  return S_OK;
}

static HRESULT (*unloaded_before)(ICorProfilerCallback11 *self, FunctionID id);
static HRESULT unloaded(ICorProfilerCallback11 *self, FunctionID id) {
  pthread_mutex_lock(&lock);
  for (uint32_t i = 0; i < dynamic_count; i++) {
    if (dynamic[i].id != id || dynamic[i].freed) continue;
    dynamic[i].freed = true;
    __atomic_fetch_add(&freed_count, 1, __ATOMIC_RELEASE);
  }
  pthread_mutex_unlock(&lock);
  return unloaded_before(self, id);
}

void badseeds_setup(ICorProfilerCallback11Vtbl *vtbl) {
  unloaded_before = vtbl->DynamicMethodUnloaded;
  vtbl->DynamicMethodUnloaded = unloaded;
  vtbl->DynamicMethodJITCompilationFinished = compiled;
}

// ---- One try, held or not ----
static HRESULT take(const AMD64_CONTEXT *seed, ULONG32 size) {
  AMD64_CONTEXT copy = *seed;
  stack_clear(&walk);
  tried++;
  return walk.hr = clrsnap_snapshot(target, stack_collect, COR_PRF_SNAPSHOT_REGISTER_CONTEXT, &walk,
                                    (BYTE *)&copy, size);
}

// The runtime may just have stopped a running thread in preemptive mode, in which the seed is
// ignored. That cannot happen time after time.
static HRESULT refused(const AMD64_CONTEXT *seed) {
  HRESULT hr = take(seed, sizeof(*seed));
  for (int i = 0; i < 5 && hr == S_OK; i++) {
    usleep(1000);
    hr = take(seed, sizeof(*seed));
  }
  return hr;
}

static void expect(const char *what, uint64_t detail, HRESULT got, HRESULT wanted) {
  if (got == wanted) return;
  char text[32];
  snprintf(text, sizeof(text), "%s", stack_hresult(got));
  oracle_fail("a seed %s (%#lx): %s instead of %s", what, (unsigned long)detail, text,
              stack_hresult(wanted));
}

static void try_ip(const char *what, const AMD64_CONTEXT *good, uint64_t ip) {
  AMD64_CONTEXT seed = *good;
  seed.Rip = ip;
  expect(what, ip, refused(&seed), CORPROF_E_STACKSNAPSHOT_UNMANAGED_CTX);
}

// The memory of collected code may hold other code by now.
static bool is_code_again(const struct code *code) {
  for (uint32_t i = 0; i < dynamic_count; i++) {
    const struct code *other = &dynamic[i];
    if (!other->freed && other->start < code->start + code->size &&
        other->start + other->size > code->start)
      return true;
  }
  return false;
}

static void try_places(const AMD64_CONTEXT *good) {
  const uint64_t native[] = {0,
                             8,
                             (uint64_t)(uintptr_t)&usleep,
                             (uint64_t)(uintptr_t)good,
                             (uint64_t)(uintptr_t)&walk,
                             good->Rsp,
                             0xFFFFFFFF81000000u};
  for (size_t i = 0; i < sizeof(native) / sizeof(native[0]); i++)
    try_ip("in no managed code", good, native[i]);
  for (uint32_t i = 0; i < stub_count; i++)
    for (uint64_t at = 0; at < 24; at++, stubs_tried++) try_ip("in a stub", good, stubs[i] + at);
  static const ULONG32 sizes[] = {0, 1, 8, 100, 1231};
  for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
    expect("that is too small", sizes[i], take(good, sizes[i]), E_INVALIDARG);
  const uint64_t stacks[] = {0,
                             1,
                             good->Rsp + 1,
                             good->Rsp - (64u << 20),
                             good->Rsp + (64u << 20),
                             (uint64_t)(uintptr_t)&walk,
                             ~7ull,
                             0x7FFFFFFFFFF8u};
  for (size_t i = 0; i < sizeof(stacks) / sizeof(stacks[0]); i++) {
    AMD64_CONTEXT seed = *good;
    seed.Rsp = stacks[i];
    expect("with an sp off the stack", stacks[i], refused(&seed), E_INVALIDARG);
  }
}

static void try_random(const AMD64_CONTEXT *good, uint32_t times) {
  static unsigned random = 7;
  for (uint32_t i = 0; i < times; i++, random_tried++) {
    AMD64_CONTEXT seed = *good;
    uint64_t *registers[] = {&seed.Rsp, &seed.Rbp, &seed.Rip, &seed.Rbx, &seed.R12, &seed.R15};
    for (size_t r = 0; r < sizeof(registers) / sizeof(registers[0]); r++) {
      if (rand_r(&random) % 2) *registers[r] += (uint64_t)(rand_r(&random) % 4096) - 2048;
      if (rand_r(&random) % 40 == 0)
        *registers[r] = (uint64_t)rand_r(&random) << (rand_r(&random) % 40);
    }
    HRESULT hr = take(&seed, sizeof(seed));
    random_ok += hr == S_OK;
    if (hr != S_OK && hr != E_FAIL && hr != E_INVALIDARG &&
        hr != CORPROF_E_STACKSNAPSHOT_UNMANAGED_CTX)
      expect("of nonsense", seed.Rip, hr, E_FAIL);
  }
}

// Whether the callers in the walk are those that the frame has in the true stack.
static bool leads_on(uint32_t frame) {
  if (walk.count != good_walk.count - frame) return false;
  for (uint32_t i = 1; i < walk.count; i++)
    if (memcmp(&walk.frames[i], &good_walk.frames[frame + i], sizeof(walk.frames[0])) != 0)
      return false;
  return true;
}

// ---- Every byte of a method: prolog, body, epilog, and between instructions ----
// The registers are those of the method's frame in its body. At most of these places the method has
// not been entered yet or has been left, so its caller can be found only by luck. The result is
// E_FAIL after the seed's frame, or a walk to the base.
static void try_method(const AMD64_CONTEXT *seed_of_frame, const struct code *code,
                       uint32_t frame) {
  for (uint64_t at = 0; at < code->size; at++) {
    AMD64_CONTEXT seed = *seed_of_frame;
    seed.Rip = code->start + at;
    HRESULT hr = take(&seed, sizeof(seed));
    if (hr != S_OK && hr != E_FAIL) expect("inside of a method", seed.Rip, hr, E_FAIL);
    bool told = walk.count > 0 && walk.frames[0].id == code->id && walk.frames[0].ip == seed.Rip;
    if (!told)
      oracle_fail("a seed at %s+%lu: the walk does not start there", oracle_function_name(code->id),
                  (unsigned long)at);
    of_code[hr == S_OK ? 0 : 1]++;
    if (hr == S_OK && leads_on(frame)) of_code[2]++;
  }
}

static bool code_of(FunctionID id, uint64_t ip, struct code *code) {
  COR_PRF_CODE_INFO info[4];
  ULONG32 count = 0;
  if (oracle_info->lpVtbl->GetCodeInfo2(oracle_info, id, 4, &count, info) != S_OK) return false;
  for (ULONG32 i = 0; i < count && i < 4; i++) {
    *code = (struct code){id, info[i].startAddress, info[i].size, false};
    if (ip >= code->start && ip < code->start + code->size) return true;
  }
  return false;
}

static void of_frame(AMD64_CONTEXT *seed, const AMD64_CONTEXT *good,
                     const struct stack_frame *frame) {
  *seed = *good;
  seed->Rip = frame->ip;
  seed->Rsp = frame->reg[STACK_RSP];
  seed->Rbp = frame->reg[STACK_RBP];
  seed->Rbx = frame->reg[STACK_RBX];
  seed->R12 = frame->reg[STACK_R12];
  seed->R13 = frame->reg[STACK_R13];
  seed->R14 = frame->reg[STACK_R14];
  seed->R15 = frame->reg[STACK_R15];
}

// ---- The two ways: held and running ----
static struct clrsnap_hold *hold_spinning(AMD64_CONTEXT *leaf) {
  struct clrsnap_hold *hold = NULL;
  for (int i = 0; i < 1000; i++) {
    HRESULT hr = clrsnap_hold(target, &hold);
    ORACLE_CHECK(hr == S_OK, "hold: %s %s", stack_hresult(hr), clrsnap_last_error());
    if (hr != S_OK) return NULL;
    clrsnap_hold_context(hold, (BYTE *)leaf, sizeof(*leaf));
    AMD64_CONTEXT seed = {0};
    HRESULT unwound = clrsnap_hold_unwind_to_managed(hold, (BYTE *)&seed, sizeof(seed));
    // The thread must be in managed code itself, not at a safe point of the runtime, which may have
    // switched modes.
    if (unwound == S_OK && memcmp(&seed, leaf, sizeof(seed)) == 0) return hold;
    clrsnap_release(hold);
    usleep(100);
  }
  oracle_fail("the spinning thread was never found in managed code");
  return NULL;
}

// Where the code of the walk's first methods is. It has to be queried before the hold.
static uint32_t find_code(struct code *code, uint32_t most) {
  stack_by_ours(&good_walk, target, COR_PRF_SNAPSHOT_REGISTER_CONTEXT);
  uint32_t known = good_walk.count < most ? good_walk.count : most;
  for (uint32_t i = 0; i < known; i++)
    if (good_walk.frames[i].id == 0 ||
        !code_of(good_walk.frames[i].id, good_walk.frames[i].ip, &code[i]))
      return i;
  return known;
}

static bool is_within(const struct code *code, uint64_t ip) {
  return ip >= code->start && ip < code->start + code->size;
}

// Holds the thread while it is in these methods. NULL: it is elsewhere, perhaps in a newer version
// of one of them.
static struct clrsnap_hold *hold_within(const struct code *code, uint32_t known,
                                        AMD64_CONTEXT *good) {
  struct clrsnap_hold *hold = hold_spinning(good);
  if (hold == NULL) return NULL;
  expect("that is good", good->Rip, take(good, sizeof(*good)), S_OK);
  good_walk = walk;
  bool within = known > 0 && good_walk.count >= known;
  for (uint32_t i = 0; within && i < known; i++)
    within = is_within(&code[i], good_walk.frames[i].ip);
  if (within) return hold;
  clrsnap_release(hold);
  return NULL;
}

static void try_held(void) {
  AMD64_CONTEXT good, seed;
  struct code code[4];
  uint32_t known = 0;
  struct clrsnap_hold *hold = NULL;
  for (int i = 0; i < 100 && hold == NULL; i++) {
    known = find_code(code, sizeof(code) / sizeof(code[0]));
    hold = hold_within(code, known, &good);
  }
  ORACLE_CHECK(hold != NULL, "the spinning thread was never found in the same methods twice");
  if (hold == NULL) return;
  try_places(&good);
  try_random(&good, 20000);
  for (uint32_t i = 0; i < known; i++) {
    of_frame(&seed, &good, &good_walk.frames[i]);
    try_method(&seed, &code[i], i);
  }
  HRESULT hr = clrsnap_release(hold);
  ORACLE_CHECK(hr == S_OK, "the hold ended by itself");
}

// The target's own handler walks. The target has moved on by then, but it is still in cooperative
// mode.
static void try_running(void) {
  AMD64_CONTEXT good;
  struct clrsnap_hold *hold = hold_spinning(&good);
  if (hold == NULL) return;
  clrsnap_release(hold);
  try_places(&good);
  try_random(&good, 2000);
}

static void try_freed(void) {
  AMD64_CONTEXT good;
  for (uint32_t i = 0; i < dynamic_count; i++) {
    struct code code = dynamic[i];
    if (!code.freed || is_code_again(&code)) continue;
    struct clrsnap_hold *hold = hold_spinning(&good);
    if (hold == NULL) return;
    for (uint64_t at = 0; at < code.size; at++, freed_tried++)
      try_ip("in collected code", &good, code.start + at);
    clrsnap_release(hold);
    try_ip("in collected code", &good, code.start + code.size / 2);
  }
}

void badseeds_run(void) {
  while (__atomic_load_n(&target, __ATOMIC_ACQUIRE) == 0) usleep(1000);
  try_held();
  try_running();
  try_freed();
  __atomic_store_n(&done, 1, __ATOMIC_RELEASE);
}

void badseeds_report(void) {
  printf(
      "%u seeds where none should be: %u bytes of stubs, %u of collected code, %u of nonsense"
      " (%u walks to the base)\n",
      tried, stubs_tried, freed_tried, random_tried, random_ok);
  printf(
      "  and at each byte of the code on the stack: %u to the base (%u the true stack), %u ended"
      " early\n",
      of_code[0], of_code[2], of_code[1]);
  ORACLE_CHECK(stub_count >= 3 && stubs_tried > 0, "there was no stub to try");
  ORACLE_CHECK(freed_tried > 30, "there was no collected code to try");
  ORACLE_CHECK(of_code[2] > 100, "hardly any seed in a method's body led to its callers");
}
