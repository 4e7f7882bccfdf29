// SPDX-License-Identifier: MIT
// The code map over a CLR made of data structures: every byte of every method, funclet, stub and
// gap.
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "codemap/permanent.h"
#include "support/fake_clr.h"

static uint8_t nops[4096];

static uint32_t fit(uint32_t size) {
  return (size + FAKE_STEP - 1) / FAKE_STEP * FAKE_STEP;
}

static struct fake_function function(uint32_t size) {
  return (struct fake_function){nops, fit(size), fake_leaf_info, sizeof fake_leaf_info};
}

static int setup(void **state) {
  static struct fake_clr clr;
  memset(nops, 0x90, sizeof nops);
  fake_clr_init(&clr);
  *state = &clr;
  return 0;
}
static int teardown(void **state) {
  fake_clr_free(*state);
  return 0;
}

// Every ip of [begin, end) is in that entry, and the bytes on either side of it are not.
static void check_entry(const struct cs_world *world, uint64_t begin, uint64_t end, uint64_t start,
                        uint64_t id, bool funclet) {
  struct cs_code code;
  for (uint64_t ip = begin; ip < end; ip++) {
    assert_int_equal(cs_codemap_find(world, ip, &code), CS_STOP_NONE);
    assert_int_equal(code.kind, CS_CODE_JIT);
    assert_int_equal(code.begin, begin);
    assert_int_equal(code.end, end);
    assert_int_equal(code.method_start, start);
    assert_int_equal(code.function_id, id);
    assert_int_equal(code.funclet, funclet);
  }
}

static void check_none(const struct cs_world *world, uint64_t ip) {
  struct cs_code code;
  assert_int_equal(cs_codemap_find(world, ip, &code), CS_STOP_NONE);
  assert_int_equal(code.kind, CS_CODE_NONE);
}

static void finds_methods_of_any_size_and_offset(void **state) {
  struct fake_clr *clr = *state;
  for (unsigned offset = 0; offset < 32; offset += 4) {
    static const uint32_t sizes[] = {1, 5, 31, 33, 200, 256, 257, 511, 600, 1024, 4000};
    for (unsigned i = 0; i < CS_COUNT(sizes); i++) {
      struct fake_function f = function(sizes[i]);
      uint64_t id = 0x1000 + offset * 16 + i;
      uint64_t start = fake_clr_add_method(clr, &f, 1, id, offset);
      check_entry(&clr->world, start, start + f.size, start, id, false);
      check_none(&clr->world, start + f.size);
      check_none(&clr->world, start - 1);
    }
  }
}

// The map of .NET 8 and 9 has no pointers, so a method's start may be far back.
static void finds_methods_in_a_map_of_nibbles(void **state) {
  struct fake_clr *clr = *state;
  clr->world.layout.nibbles_only = true;
  finds_methods_of_any_size_and_offset(state);
  struct fake_function f = function(sizeof nops);
  uint64_t start = fake_clr_add_method(clr, &f, 1, 0x55, 4);
  check_none(&clr->world, (uint64_t)(uintptr_t)clr->code);
  clr->world.layout.nibbles_only = false;  // read as another version it is not found
  check_none(&clr->world, start + f.size - 1);
}

static void tells_funclets_apart(void **state) {
  struct fake_clr *clr = *state;
  struct fake_function f[5];
  for (unsigned i = 0; i < CS_COUNT(f); i++) f[i] = function(40 + 7 * i);
  uint64_t start = fake_clr_add_method(clr, f, CS_COUNT(f), 0x77, 0), begin = start;
  for (unsigned i = 0; i < CS_COUNT(f); i++) {
    check_entry(&clr->world, begin, begin + f[i].size, start, 0x77, i > 0);
    begin += f[i].size;
  }
}

static void knows_stub_blocks(void **state) {
  struct fake_clr *clr = *state;
  struct cs_code code;
  uint64_t stub = fake_clr_add_stub(clr, 5, nops, 24);
  assert_int_equal(cs_codemap_find(&clr->world, stub + 3, &code), CS_STOP_NONE);
  assert_int_equal(code.kind, CS_CODE_STUB);
  assert_int_equal(code.stub_kind, 5);
}

static void finds_ready_to_run_functions(void **state) {
  struct fake_clr *clr = *state;
  struct fake_function f[7];
  uint64_t starts[CS_COUNT(f)];
  struct cs_code code;
  for (unsigned i = 0; i < CS_COUNT(f); i++) f[i] = function(17 + 31 * i);
  uint64_t base = fake_clr_add_image(clr, f, CS_COUNT(f), starts);
  for (unsigned i = 0; i < CS_COUNT(f); i++) {
    for (uint64_t ip = starts[i]; ip < starts[i] + f[i].size; ip++) {
      assert_int_equal(cs_codemap_find(&clr->world, ip, &code), CS_STOP_NONE);
      assert_int_equal(code.kind, CS_CODE_R2R);
      assert_int_equal(code.begin, starts[i]);
      assert_int_equal(code.end, starts[i] + f[i].size);
      assert_int_equal(code.base, base);
      assert_int_equal(code.function_id, 0);
    }
  }
  check_none(&clr->world, base);
  check_none(&clr->world, starts[0] + f[0].size);  // padding before the next method
  assert_int_equal(cs_codemap_find(&clr->world, base + 0x10010, &code), CS_STOP_NONE);
  assert_int_equal(code.kind, CS_CODE_STUB);  // a delay-load thunk
}

static void nothing_outside_of_any_range(void **state) {
  struct fake_clr *clr = *state;
  check_none(&clr->world, 0);
  check_none(&clr->world, 0x1000);
  check_none(&clr->world, ~0ull);
  check_none(&clr->world, (uint64_t)(uintptr_t)clr->code - 1);
}

static void collectible_code_is_read_guarded(void **state) {
  struct fake_clr *clr = *state;
  struct fake_function f = function(100);
  uint64_t start = fake_clr_add_method(clr, &f, 1, 0x99, 0);
  struct cs_code code;
  fake_clr_set_collectible(clr, true);
  assert_int_equal(cs_codemap_find(&clr->world, start + 50, &code), CS_STOP_NONE);
  assert_int_equal(code.function_id, 0x99);
  assert_true(code.collectible);
  clr->world.mem.guard_works = false;  // as in a container that refuses process_vm_readv
  assert_int_equal(cs_codemap_find(&clr->world, start + 50, &code), CS_STOP_NO_GUARD);
  fake_clr_set_collectible(clr, false);
  assert_int_equal(cs_codemap_find(&clr->world, start + 50, &code), CS_STOP_NONE);
  assert_false(code.collectible);
}

static void guarded_reads_fail_on_unmapped_memory(void **state) {
  struct fake_clr *clr = *state;
  uint64_t word;
  assert_true(clr->world.mem.guard_works);
  assert_false(cs_mem_read_guarded(&clr->world.mem, 16, &word, sizeof word));
  assert_true(cs_mem_read_guarded(&clr->world.mem, (uint64_t)(uintptr_t)clr, &word, sizeof word));
}

static void another_source_of_bytes_is_used_throughout(void **state) {
  struct fake_clr *clr = *state;
  struct fake_function f = function(100);
  uint64_t start = fake_clr_add_method(clr, &f, 1, 0x99, 0);
  struct cs_code code;
  fake_guarded_reads = 0;
  clr->world.mem.read = fake_counting_read;
  assert_int_equal(cs_codemap_find(&clr->world, start + 50, &code), CS_STOP_NONE);
  assert_int_equal(code.function_id, 0x99);
  assert_true(fake_guarded_reads > 8);
}

static void list_permanent(struct fake_clr *clr, struct cs_permanent *list) {
  *list = (struct cs_permanent){0};
  cs_permanent_add(&clr->world, (uint64_t)(uintptr_t)clr->code, (uint64_t)(uintptr_t)clr->code_end,
                   list);
}

// The profiling API is asked about what is listed, and an id that has died would end the program.
static void only_code_that_never_dies_is_listed(void **state) {
  struct fake_clr *clr = *state;
  struct fake_function f = function(100), r2r[3] = {f, f, f};
  struct cs_permanent list;
  uint64_t starts[2], images[CS_COUNT(r2r)];
  for (unsigned i = 0; i < CS_COUNT(starts); i++)
    starts[i] = fake_clr_add_method(clr, &f, 1, 0x99 + i, 4 * i);
  (void)fake_clr_add_stub(clr, 5, nops, 200);
  list_permanent(clr, &list);
  assert_int_equal(list.starts, CS_COUNT(starts));
  assert_memory_equal(list.start, starts, sizeof starts);
  assert_int_equal(list.modules, 0);
  fake_clr_set_collectible(clr, true);
  list_permanent(clr, &list);
  assert_int_equal(list.starts, 0);
  fake_clr_set_collectible(clr, false);
  uint64_t base = fake_clr_add_image(clr, r2r, CS_COUNT(r2r), images);
  cs_permanent_add(&clr->world, base & ~0xfffull, base + 0x20000, &list);
  assert_int_equal(list.modules, 1);
  assert_int_equal(list.starts, 0);
}

static void no_more_is_listed_than_there_is_room_for(void **state) {
  struct fake_clr *clr = *state;
  struct fake_function f = function(100);
  struct cs_permanent list;
  for (unsigned i = 0; i < CS_COUNT(list.start) + 10; i++)
    (void)fake_clr_add_method(clr, &f, 1, 0x1000 + i, 0);
  list_permanent(clr, &list);
  assert_int_equal(list.starts, CS_COUNT(list.start));
}

// Nothing of the interpreter's ranges is read: their headers are of another form. They are known by
// a flag, or because they are not the JIT's.
static void interpreted_code_is_left_alone(void **state) {
  struct fake_clr *clr = *state;
  struct fake_function f = function(100);
  struct cs_permanent list;
  struct cs_code code;
  uint64_t jit = FAKE_JIT_MANAGER, start = fake_clr_add_method(clr, &f, 1, 0x1000, 0);
  uint32_t *flags = (uint32_t *)(void *)(clr->heap_section + 16), jitted = *flags;
  clr->world.layout.jit_manager = (uint64_t)(uintptr_t)&jit;
  check_entry(&clr->world, start, start + 100, start, 0x1000, false);
  for (int i = 0; i < 2; i++) {
    struct cs_near near = {.begin = 0};
    *flags = i == 0 ? jitted | CS_RANGE_INTERPRETER : jitted;
    jit = i == 0 ? FAKE_JIT_MANAGER : 0x1234;
    assert_int_equal(cs_codemap_find(&clr->world, start, &code), CS_STOP_INTERPRETED);
    for (int again = 0; again < 2; again++) {
      assert_int_equal(cs_codemap_find_near(&clr->world, start, &near, &code), CS_STOP_INTERPRETED);
      assert_int_equal(code.kind, CS_CODE_NONE);
    }
    list_permanent(clr, &list);
    assert_int_equal(list.starts, 0);
  }
  jit = 0;  // the runtime has no manager yet: nothing is known
  check_entry(&clr->world, start, start + 100, start, 0x1000, false);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(finds_methods_of_any_size_and_offset, setup, teardown),
      cmocka_unit_test_setup_teardown(finds_methods_in_a_map_of_nibbles, setup, teardown),
      cmocka_unit_test_setup_teardown(tells_funclets_apart, setup, teardown),
      cmocka_unit_test_setup_teardown(knows_stub_blocks, setup, teardown),
      cmocka_unit_test_setup_teardown(finds_ready_to_run_functions, setup, teardown),
      cmocka_unit_test_setup_teardown(nothing_outside_of_any_range, setup, teardown),
      cmocka_unit_test_setup_teardown(collectible_code_is_read_guarded, setup, teardown),
      cmocka_unit_test_setup_teardown(guarded_reads_fail_on_unmapped_memory, setup, teardown),
      cmocka_unit_test_setup_teardown(another_source_of_bytes_is_used_throughout, setup, teardown),
      cmocka_unit_test_setup_teardown(only_code_that_never_dies_is_listed, setup, teardown),
      cmocka_unit_test_setup_teardown(interpreted_code_is_left_alone, setup, teardown),
      cmocka_unit_test_setup_teardown(no_more_is_listed_than_there_is_room_for, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
