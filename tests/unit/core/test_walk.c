// SPDX-License-Identifier: MIT
// Walks over stacks laid out by hand: managed frames, explicit Frames, and every way to end.
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/clock.h"
#include "images/images.h"
#include "support/walk_scene.h"
#include "unwind/sites.h"

static void walks_to_the_base(void **state) {
  (void)state;
  struct cs_frame frame;
  lay_recursion(100, 50);
  begin_walk(scene.method + AFTER_CALL, sp_of(100), 0);
  for (unsigned i = 0; i < 50; i++) {
    assert_true(cs_walk_next(&scene.walk, &frame));
    assert_int_equal(frame.code.function_id, 0x1234);
    assert_int_equal(frame.regs.r[CS_SP], sp_of(100 + i * FAKE_FRAME));
    assert_int_equal(frame.flags, i == 0 ? CS_FRAME_EXACT : 0);
  }
  assert_false(cs_walk_next(&scene.walk, &frame));
  assert_true(cs_walk_complete(&scene.walk));
  assert_false(cs_walk_next(&scene.walk, &frame));  // it stays ended
}

// A second walk finds the same frames without looking anything up. After the code is gone and
// forgotten, it does not.
static void steps_over_known_return_addresses_by_rule(void **state) {
  (void)state;
  static struct cs_sites sites;
  uint64_t leaf_ip = scene.method + AFTER_CALL;
  memset(&sites, 0, sizeof sites);
  scene.clr.world.sites = &sites;
  lay_recursion(100, 50);
  begin_walk(leaf_ip, sp_of(100), 0);
  scene.walk.fast = true;
  assert_int_equal(count_frames(), 50);
  assert_int_not_equal(cs_sites_find(&sites, leaf_ip), 0);
  for (unsigned round = 0; round < 2; round++) {
    struct cs_frame frame;
    begin_walk(leaf_ip, sp_of(100), 0);
    scene.walk.fast = true;
    assert_true(cs_walk_next(&scene.walk, &frame));  // the leaf is always looked up
    uint64_t map = scene.clr.world.layout.code_range_map;
    if (round == 0) scene.clr.world.layout.code_range_map = 0;  // nothing can be found any more
    for (unsigned i = 1; i < 50; i++) {
      assert_true(cs_walk_next(&scene.walk, &frame));
      assert_int_equal(frame.code.kind, CS_CODE_JIT);
      assert_int_equal(frame.regs.r[CS_SP], sp_of(100 + i * FAKE_FRAME));
    }
    assert_int_equal(count_frames(), 0);
    assert_true(cs_walk_complete(&scene.walk));
    scene.clr.world.layout.code_range_map = map;
  }
  cs_sites_forget(&sites);
  assert_int_equal(cs_sites_find(&sites, leaf_ip), 0);
}

static unsigned frames_without_a_map(uint64_t ip) {
  uint64_t map = scene.clr.world.layout.code_range_map;
  struct cs_frame frame;
  begin_walk(ip, sp_of(100), 0);
  scene.walk.fast = true;
  assert_true(cs_walk_next(&scene.walk, &frame));  // the leaf is always looked up
  scene.clr.world.layout.code_range_map = 0;
  unsigned n = 1 + count_frames();
  scene.clr.world.layout.code_range_map = map;
  return n;
}

// The same for collectible code, but only while none has been unloaded and unloading is reported.
static void steps_over_code_that_may_die_by_rule_until_something_dies(void **state) {
  (void)state;
  static struct cs_sites sites;
  struct cs_world *world = &scene.clr.world;
  uint64_t ip = scene.method + AFTER_CALL;
  memset(&sites, 0, sizeof sites);
  world->sites = &sites;
  fake_clr_set_collectible(&scene.clr, true);
  lay_recursion(100, 50);
  for (unsigned told = 0; told < 2; told++) {
    world->unloads_are_reported = told != 0;
    begin_walk(ip, sp_of(100), 0);
    scene.walk.fast = true;
    assert_int_equal(count_frames(), 50);
    assert_int_equal(cs_sites_find(&sites, ip), 0);  // never among those of code that stays
    assert_int_equal(frames_without_a_map(ip), told ? 50 : 2);
  }
  assert_true(cs_walk_complete(&scene.walk));
  world->code_generation++;
  assert_int_equal(frames_without_a_map(ip), 2);  // the leaf, and code of which nothing is known
  begin_walk(ip, sp_of(100), 0);
  scene.walk.fast = true;
  assert_int_equal(count_frames(), 50);
  assert_int_equal(frames_without_a_map(ip), 50);
  world->unloads_are_reported = false;
  fake_clr_set_collectible(&scene.clr, false);
}

// ---- Code that may be unloaded ----

static void what_may_be_unloaded_is_read_once_a_walk(void **state) {
  (void)state;
  enum { DEEP = 1000 };
  unsigned one;
  fake_clr_set_collectible(&scene.clr, true);
  scene.clr.world.mem.read_guarded = fake_counting_read;
  lay_recursion(100, 2);
  fake_guarded_reads = 0;
  begin_walk(scene.method + AFTER_CALL, sp_of(100), 0);
  assert_int_equal(count_frames(), 2);
  one = fake_guarded_reads;
  assert_true(one > 0);
  lay_recursion(100, DEEP);
  fake_guarded_reads = 0;
  begin_walk(scene.method + AFTER_CALL, sp_of(100), 0);
  assert_int_equal(count_frames(), DEEP);
  assert_true(cs_walk_complete(&scene.walk));
  assert_in_range(fake_guarded_reads, 1, one);
  assert_null(scene.walk.near.cache);
}

// The next walk reads the code again, which may be other code by then.
static void what_was_unloaded_is_not_remembered(void **state) {
  (void)state;
  static uint8_t other[64];
  struct fake_function f = {other, sizeof other, fake_larger_info, sizeof fake_larger_info};
  fake_clr_set_collectible(&scene.clr, true);
  lay_recursion(100, 20);
  begin_walk(scene.method + AFTER_CALL, sp_of(100), 0);
  assert_int_equal(count_frames(), 20);
  uint64_t start = fake_clr_add_method(&scene.clr, &f, 1, 0x5678, 0);
  memcpy((void *)(uintptr_t)(scene.method - 8), (const void *)(uintptr_t)(start - 8), 8);
  struct cs_frame frame;
  begin_walk(scene.method + AFTER_CALL, sp_of(100), 0);
  assert_true(cs_walk_next(&scene.walk, &frame));
  assert_int_equal(frame.code.function_id, 0x5678);
  cs_walk_leave(&scene.walk);
}

// With more walks at a time than there are leases, the others read each time and find the same.
static void walks_without_a_lease_find_the_same(void **state) {
  (void)state;
  enum { WALKS = 70 };
  static struct cs_walk walks[WALKS];
  struct cs_frame frame;
  fake_clr_set_collectible(&scene.clr, true);
  lay_recursion(100, 20);
  for (unsigned i = 0; i < WALKS; i++) {
    begin_walk(scene.method + AFTER_CALL, sp_of(100), 0);
    assert_true(cs_walk_next(&scene.walk, &frame));
    walks[i] = scene.walk;
  }
  for (unsigned i = 0; i < WALKS; i++) {
    unsigned n = 1;
    while (cs_walk_next(&walks[i], &frame)) n++;
    assert_int_equal(n, 20);
    assert_int_equal(walks[i].stop, CS_STOP_BASE);
    assert_null(walks[i].near.cache);
  }
}

// ---- The limit ----

static uint64_t ticks_of_ns(void) {
  cs_clock_init();
  return (uint64_t)(((unsigned __int128)1 << 64) / cs_clock_ticks_to_ns(1ull << 32));
}

// Walks the recursion with naps in between that are longer than the limit. Returns the CPU time
// that has passed meanwhile.
static uint64_t walk_with_naps(uint64_t limit_ns, unsigned frames) {
  enum { NAPS = 8, NAP_NS = 2500000 };
  struct cs_frame frame;
  unsigned n = 0;
  begin_walk(scene.method + AFTER_CALL, sp_of(100), 0);
  uint64_t from = cs_thread_cpu_ns();
  cs_walk_limit(&scene.walk, limit_ns, ticks_of_ns());
  for (; cs_walk_next(&scene.walk, &frame); n++)
    if (n % (frames / NAPS) == 0) (void)nanosleep(&(struct timespec){0, NAP_NS}, NULL);
  if (scene.walk.stop == CS_STOP_BASE) assert_int_equal(n, frames);
  return cs_thread_cpu_ns() - from;
}

static void burn(uint64_t ns) {
  for (uint64_t from = cs_thread_cpu_ns(); cs_thread_cpu_ns() - from < ns;) {
  }
}

// CPU time that the thread uses beside the walk counts as the walk's; time without a processor does
// not count. A machine that is emulated, or whose host is busy, takes time without a processor for
// CPU time now and then; then the walk may end as well.
static void ends_when_its_time_is_used_up(void **state) {
  (void)state;
  enum { LIMIT_NS = 4000000, FRAMES = 40, TRIES = 50 };
  struct cs_frame frame;
  unsigned n = 0;
  lay_recursion(100, FRAMES);
  begin_walk(scene.method + AFTER_CALL, sp_of(100), 0);
  cs_walk_limit(&scene.walk, LIMIT_NS, ticks_of_ns());
  for (; cs_walk_next(&scene.walk, &frame); n++) burn(LIMIT_NS / 16);
  assert_int_equal(scene.walk.stop, CS_STOP_TIME);
  assert_in_range(n, 2, 24);
  for (n = 0; n < TRIES && scene.walk.stop != CS_STOP_BASE; n++) {
    uint64_t used = walk_with_naps(LIMIT_NS, FRAMES);
    if (scene.walk.stop != CS_STOP_BASE) assert_in_range(used, LIMIT_NS / 2, UINT64_MAX);
  }
  assert_int_equal(scene.walk.stop, CS_STOP_BASE);
}

// Walks the recursion, with `gaps` times twice the limit between two frames.
static enum cs_stop walk_with_gaps(uint64_t limit_ns, unsigned gaps) {
  struct cs_frame frame;
  unsigned n = 0;
  begin_walk(scene.method + AFTER_CALL, sp_of(100), 0);
  cs_walk_limit(&scene.walk, limit_ns, ticks_of_ns());
  for (; cs_walk_next(&scene.walk, &frame); n++)
    if (n % 4 == 1 && n / 4 < gaps) burn(2 * limit_ns);
  return scene.walk.stop;
}

// As where a host takes the processor away without a word. The first gap is before the CPU clock is
// read at all; two more are forgiven.
static void a_gap_between_two_frames_is_not_its_time(void **state) {
  (void)state;
  enum { LIMIT_NS = 4000000, FRAMES = 40, TRIES = 50 };
  enum cs_stop stop = CS_STOP_TIME;
  lay_recursion(100, FRAMES);
  for (unsigned i = 0; i < TRIES && stop != CS_STOP_BASE; i++) stop = walk_with_gaps(LIMIT_NS, 3);
  assert_int_equal(stop, CS_STOP_BASE);
  assert_int_equal(walk_with_gaps(LIMIT_NS, 4), CS_STOP_TIME);
}

static void ends_at_the_depth_limit_and_says_so(void **state) {
  (void)state;
  lay_recursion(100, 50);
  begin_walk(scene.method + AFTER_CALL, sp_of(100), 20);
  assert_int_equal(count_frames(), 20);
  assert_int_equal(scene.walk.stop, CS_STOP_DEPTH);
}

static void ends_where_the_stack_does(void **state) {
  (void)state;
  begin_walk(scene.method + AFTER_CALL, sp_of(WORDS - 2), 0);  // its frame would reach beyond
  assert_int_equal(count_frames(), 1);
  assert_int_equal(scene.walk.stop, CS_STOP_BAD_SP);
  begin_walk(scene.method + AFTER_CALL, scene.stack.lo - 64, 0);
  assert_int_equal(count_frames(), 0);
  assert_int_equal(scene.walk.stop, CS_STOP_BAD_SP);
  scene.stack.hi = scene.stack.lo = 0;
  begin_walk(scene.method + AFTER_CALL, sp_of(100), 0);
  assert_int_equal(count_frames(), 0);
  assert_int_equal(scene.walk.stop, CS_STOP_NO_BOUNDS);
}

static void ends_in_unknown_code_and_names_it(void **state) {
  (void)state;
  words[100 + FAKE_RETURN] = 0x4242;
  begin_walk(scene.method + AFTER_CALL, sp_of(100), 0);
  assert_int_equal(count_frames(),
                   2);  // the unknown one is a frame: the reader sees where it broke
  assert_int_equal(scene.walk.stop, CS_STOP_UNKNOWN_CODE);
  assert_int_equal(scene.walk.stop_ip, 0x4242);
}

static void put_frame(unsigned at, uint64_t id, uint64_t next, uint64_t sp, uint64_t ip) {
  words[at] = id;
  words[at + 1] = next;
  words[at + 3] = sp;
  words[at + 4] = ip;
  words[at + 5] = 0xF9;
}

// Native code without a rule is crossed by an InlinedCallFrame; stale and foreign Frames are passed
// over.
static void crosses_native_code_by_explicit_frames(void **state) {
  (void)state;
  struct cs_frame frame;
  uint64_t head = sp_of(90), active = sp_of(130);
  lay_recursion(200, 2);
  put_frame(90, 1, sp_of(120), sp_of(190),
            scene.method + AFTER_CALL);  // below the sp: already passed
  put_frame(120, 17, active, 0, 0);      // a kind that leads nowhere
  put_frame(130, 1, ~0ull, sp_of(200), scene.method + AFTER_CALL);
  memcpy(scene.thread + 8, &head, 8);
  begin_walk(0x5000, sp_of(100), 0);
  assert_true(cs_walk_next(&scene.walk, &frame));
  assert_int_equal(frame.code.kind, CS_CODE_NONE);
  assert_true(cs_walk_next(&scene.walk, &frame));
  assert_int_equal(frame.regs.r[CS_SP], sp_of(200));
  assert_int_equal(frame.regs.r[CS_FP], 0xF9);
  assert_int_equal(frame.flags, CS_FRAME_BRIDGED);
  assert_int_equal(frame.regs.known & CS_REG_BIT(FAKE_SAVED), 0);
  assert_int_equal(count_frames(), 1);
  assert_true(cs_walk_complete(&scene.walk));
}

// In ReadyToRun code the Frame has the return address of the helper that has filled it in, which is
// called right before the call that is in progress. Jitted code fills in its Frame itself.
static void finds_the_call_in_progress_in_ready_code(void **state) {
  (void)state;
  static uint8_t code[64];
  fake_frame_code(code);
  struct fake_function f = {code, sizeof code, fake_frame_info, sizeof fake_frame_info};
  uint64_t ready, head = sp_of(130);
  (void)fake_clr_add_image(&scene.clr, &f, 1, &ready);
  lay_recursion(200, 2);
  for (unsigned i = 0; i < 2; i++) {
    struct cs_frame frame;
    uint64_t method = i == 0 ? ready : scene.method;
    put_frame(130, 1, ~0ull, sp_of(200), method + AFTER_CALL);
    words[199] = i == 0 ? method + SECOND_CALL : 0;  // pushed on x86-64, and in lr on arm64
    memcpy(scene.thread + 8, &head, 8);
    begin_walk(0x5000, sp_of(100), 0);
    assert_true(cs_walk_next(&scene.walk, &frame));
    assert_true(cs_walk_next(&scene.walk, &frame));
    assert_int_equal(frame.code.kind, i == 0 ? CS_CODE_R2R : CS_CODE_JIT);
    assert_int_equal(frame.regs.r[CS_IP], method + (i == 0 ? SECOND_CALL : AFTER_CALL));
    assert_int_equal(count_frames(), 1);
    assert_true(cs_walk_complete(&scene.walk));
  }
}

// A Frame of a kind that is not known may stand for managed callers.
static void does_not_pass_a_frame_of_an_unknown_kind(void **state) {
  (void)state;
  uint64_t head = sp_of(120);
  lay_recursion(200, 2);
  put_frame(120, 77, sp_of(130), 0, 0);
  put_frame(130, 1, ~0ull, sp_of(200), scene.method + AFTER_CALL);
  memcpy(scene.thread + 8, &head, 8);
  begin_walk(0x5000, sp_of(100), 0);
  assert_int_equal(count_frames(), 1);
  assert_int_equal(scene.walk.stop, CS_STOP_UNKNOWN_CODE);
}

// In cooperative mode a helper is called without a Frame, and its managed caller must not be
// skipped.
static void does_not_skip_managed_callers_by_a_frame(void **state) {
  (void)state;
  uint64_t head = sp_of(130);
  uint32_t cooperative = 1;
  lay_recursion(200, 1);
  put_frame(130, 1, ~0ull, sp_of(200), scene.method + AFTER_CALL);
  memcpy(scene.thread + 8, &head, 8);
  memcpy(scene.thread + 4, &cooperative, 4);
  begin_walk(0x5000, sp_of(100), 0);
  assert_int_equal(count_frames(), 2);  // nothing lies between: the Frame is right
  words[110] = scene.method + SECOND_CALL;
  begin_walk(0x5000, sp_of(100), 0);
  assert_int_equal(count_frames(), 1);
  assert_int_equal(scene.walk.stop, CS_STOP_UNKNOWN_CODE);
}

static void distrusts_implausible_explicit_frames(void **state) {
  (void)state;
  const struct {
    uint64_t next, sp, ip;
  } bad[] = {
      {~0ull, sp_of(80), scene.method + AFTER_CALL},       // sp below ours
      {~0ull, sp_of(200) + 4, scene.method + AFTER_CALL},  // misaligned
      {~0ull, scene.stack.hi + 64, scene.method + AFTER_CALL},
      {~0ull, sp_of(200), scene.method + AFTER_NO_CALL},   // follows no call
      {~0ull, sp_of(200), 0x5000},                         // not managed
      {~0ull, sp_of(200), 0},                              // not active
      {sp_of(10), sp_of(200), scene.method + AFTER_CALL},  // a chain that goes down
  };
  for (unsigned i = 0; i < CS_COUNT(bad); i++) {
    uint64_t head = sp_of(130);
    lay_recursion(200, 1);
    put_frame(130, 1, bad[i].next, bad[i].sp, bad[i].ip);
    memcpy(scene.thread + 8, &head, 8);
    begin_walk(0x5000, sp_of(100), 0);
    assert_int_equal(count_frames(), 1);
    assert_int_equal(scene.walk.stop, CS_STOP_UNKNOWN_CODE);
  }
}

// The runtime has replaced a return address: the Thread holds the true one and the address of its
// slot.
static void sees_through_a_hijacked_return_address(void **state) {
  (void)state;
  struct cs_frame frame;
  struct cs_layout *layout = &scene.clr.world.layout;
  layout->coreclr_begin = 0x10000;
  layout->coreclr_end = 0x20000;
  layout->hijack.hijack_return_address = 152;
  layout->hijack.hijack_slot = 160;
  lay_recursion(100, 3);
  uint64_t slot = sp_of(100 + FAKE_RETURN), address = words[100 + FAKE_RETURN];
  words[100 + FAKE_RETURN] = 0x12345;  // in libcoreclr's text
  memcpy(scene.thread + 152, &address, 8);
  memcpy(scene.thread + 160, &slot, 8);
  begin_walk(scene.method + AFTER_CALL, sp_of(100), 0);
  assert_true(cs_walk_next(&scene.walk, &frame));
  assert_true(cs_walk_next(&scene.walk, &frame));
  assert_int_equal(frame.flags, CS_FRAME_HIJACKED);
  assert_int_equal(frame.regs.r[CS_IP], scene.method + AFTER_CALL);
  assert_int_equal(count_frames(), 1);
  assert_true(cs_walk_complete(&scene.walk));
  memset(scene.thread + 160, 0, 8);  // the fields belong to an older hijack, of another slot
  begin_walk(scene.method + AFTER_CALL, sp_of(100), 0);
  assert_int_equal(count_frames(), 2);
  assert_int_equal(scene.walk.stop, CS_STOP_UNKNOWN_CODE);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(walks_to_the_base),
      TEST(steps_over_known_return_addresses_by_rule),
      TEST(steps_over_code_that_may_die_by_rule_until_something_dies),
      TEST(what_may_be_unloaded_is_read_once_a_walk),
      TEST(what_was_unloaded_is_not_remembered),
      TEST(walks_without_a_lease_find_the_same),
      TEST(ends_when_its_time_is_used_up),
      TEST(a_gap_between_two_frames_is_not_its_time),
      TEST(ends_at_the_depth_limit_and_says_so),
      TEST(ends_where_the_stack_does),
      TEST(ends_in_unknown_code_and_names_it),
      TEST(crosses_native_code_by_explicit_frames),
      TEST(finds_the_call_in_progress_in_ready_code),
      TEST(does_not_pass_a_frame_of_an_unknown_kind),
      TEST(does_not_skip_managed_callers_by_a_frame),
      TEST(distrusts_implausible_explicit_frames),
      TEST(sees_through_a_hijacked_return_address),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
