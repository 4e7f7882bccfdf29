// SPDX-License-Identifier: MIT
// Which locks are waited for, by how many, and who holds them: waits are joined by their lock, and
// an owner counts only as long as the object is known not to have moved. Runtime structures are
// fakes.
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "contract/supported.h"
#include "events/holders.h"
#include "signal/signal.h"

enum { LOCK_OWNER = 8, LOCK_STATE = 12, INDEX = 3, OWNER_TID = 77, COOPERATIVE_AT = 4 };

static struct cs_world world;
static uint32_t clr_thread[4];
static struct cs_agent_thread agent;
static struct cs_thread thread;
static uint64_t lock_class[2], object_class[2];
static struct {
  uint64_t class;
  uint32_t owner, state;
} lock_object;
static struct {
  uint32_t pad, header;
  uint64_t class;
} object;
static struct {  // AwareLock
  uint32_t state, recursion, owner, pad;
  uint64_t owner_os_id;
  uint32_t pinned, index;
} monitor;
static struct { uint64_t block, object; } sync_table[INDEX + 1];
static uint64_t table = (uint64_t)(uintptr_t)sync_table;

static uint64_t address(const void *at) {
  return (uint64_t)(uintptr_t)at;
}

static int set_up(void **state) {
  (void)state;
  memset(&world, 0, sizeof world);
  memset(&agent, 0, sizeof agent);
  cs_mem_init_self(&world.mem);
  world.layout.thread.preemptive_gc_disabled = COOPERATIVE_AT;
  world.layout.runtime_major = CS_SUPPORTED_RUNTIME;
  world.layout.sync_table = address(&table);
  world.layout.objects.sync_size = sizeof sync_table[0];
  thread = (struct cs_thread){.clr_thread = address(clr_thread), .agent = &agent};
  lock_object.class = address(lock_class);
  lock_object.owner = OWNER_TID;
  lock_object.state = 1;
  object.class = address(object_class);
  object.header = 0x08000000u | INDEX;
  monitor.state = 1;
  monitor.owner_os_id = OWNER_TID;
  monitor.index = INDEX;
  sync_table[INDEX].block = address(&monitor);
  sync_table[INDEX].object = address(&object.class);
  cs_signal.world = &world;
  cs_lock_layout_set(&(struct cs_lock_layout){address(lock_class), LOCK_OWNER, LOCK_STATE});
  return 0;
}

static void begin(bool cooperative, const void *lock, const void *at) {
  clr_thread[COOPERATIVE_AT / 4] = cooperative;
  cs_lock_wait_begin(&thread, address(lock), address(at));
}

static void test_join(void **state) {
  (void)state;
  struct cs_waited_locks locks = {NULL, 0, 0};
  const struct cs_lock_wait waits[] = {
      {.monitor = 16, .object = 100},
      {.monitor = 32, .object = 200},
      {.monitor = 16, .object = 300},
      {.object = 100, .stops = 2},
      {.object = 100, .stops = 4},
      {.object = 100, .stops = 2},
      {.monitor = 16, .object = 1, .stops = 4},
  };
  static const uint32_t waiters[] = {3, 1, 2, 1};
  for (size_t i = 0; i < CS_COUNT(waits); i++) assert_true(cs_waited_locks_add(&locks, &waits[i]));
  assert_int_equal(locks.count, CS_COUNT(waiters));
  for (size_t i = 0; i < locks.count; i++) assert_int_equal(locks.at[i].waiters, waiters[i]);
  for (uint64_t i = 0; i < 1000; i++)
    assert_true(cs_waited_locks_add(&locks, &(struct cs_lock_wait){.monitor = 4096 + 8 * i}));
  assert_int_equal(locks.count, 1000 + CS_COUNT(waiters));
  cs_waited_locks_free(&locks);
}

static void test_wait(void **state) {
  (void)state;
  struct cs_lock_wait wait;
  assert_false(cs_lock_wait_read(&agent, &wait));
  begin(true, &monitor, &object.class);
  assert_true(cs_lock_wait_read(&agent, &wait));
  assert_int_equal(wait.monitor, address(&monitor));
  begin(false, &monitor, &lock_object);  // the end of the one before was not reported
  assert_true(cs_lock_wait_read(&agent, &wait));
  assert_int_equal(wait.monitor, 0);
  assert_int_equal(wait.object, address(&lock_object));
  cs_lock_wait_end(&thread);
  assert_false(cs_lock_wait_read(&agent, &wait));
  cs_lock_wait_end(&thread);
  assert_false(cs_lock_wait_read(&agent, &wait));
}

static void look(enum cs_lock_holder expected, uint64_t class) {
  struct cs_lock_wait wait;
  struct cs_lock_owner out;
  assert_true(cs_lock_wait_read(&agent, &wait));
  assert_int_equal(cs_lock_wait_owner(&wait, &out), expected);
  if (expected != CS_LOCK_HELD) return;
  uint32_t owner;
  memcpy(&owner, (const void *)(uintptr_t)out.owner_at, sizeof owner);
  assert_int_equal(out.owner, OWNER_TID);
  assert_int_equal(owner, OWNER_TID);
  assert_int_equal(out.class, class);
}

static void test_monitor(void **state) {
  (void)state;
  begin(true, &monitor, &object.class);
  look(CS_LOCK_HELD, address(object_class));
  assert_int_equal(cs_lock_wait_class(&thread), address(object_class));
  // The owner is not in the object, and its class was read before: a collection changes nothing.
  cs_lock_objects_may_move();
  object.class = 0;
  look(CS_LOCK_HELD, address(object_class));
  cs_lock_objects_stay();
  look(CS_LOCK_HELD, address(object_class));
  object.header++;  // the object has moved away
  look(CS_LOCK_HELD, address(object_class));
  assert_int_equal(cs_lock_wait_class(&thread), address(object_class));
  struct cs_lock_wait wait;
  struct cs_lock_owner out;
  assert_true(cs_lock_wait_read(&agent, &wait));
  cs_lock_objects_may_move();  // since then the monitor may have gone over to another object
  assert_int_equal(cs_lock_wait_owner(&wait, &out), CS_LOCK_HELD);
  assert_int_equal(out.class, 0);
  cs_lock_objects_stay();
  monitor.owner_os_id = 0;
  look(CS_LOCK_UNKNOWN, 0);
  monitor.state = 0;
  look(CS_LOCK_FREE, 0);
  monitor.index++;  // the lock of another object by now
  look(CS_LOCK_UNKNOWN, 0);
}

// An object is read again if it may have moved since, or if it is another one.
static void test_class_is_current(void **state) {
  (void)state;
  begin(true, &monitor, &object.class);
  object.class = address(lock_class);
  begin(true, &monitor, &object.class);
  look(CS_LOCK_HELD, address(object_class));
  cs_lock_objects_may_move();
  cs_lock_objects_stay();
  begin(true, &monitor, &object.class);
  look(CS_LOCK_HELD, address(lock_class));
  begin(false, NULL, &lock_object);
  begin(true, &monitor, &sync_table[0]);
  look(CS_LOCK_HELD, 0);
}

static void test_lock(void **state) {
  (void)state;
  begin(false, NULL, &lock_object);
  look(CS_LOCK_HELD, address(lock_class));
  assert_int_equal(cs_lock_wait_class(&thread), address(lock_class));
  lock_object.owner = 0;
  look(CS_LOCK_UNKNOWN, 0);
  lock_object.state = 0;
  look(CS_LOCK_FREE, 0);
  lock_object.class = address(object_class);
  look(CS_LOCK_UNKNOWN, 0);
  lock_object.class = address(lock_class);
  cs_lock_objects_may_move();
  look(CS_LOCK_UNKNOWN, 0);
  begin(false, NULL, &lock_object);
  look(CS_LOCK_UNKNOWN, 0);
  cs_lock_objects_stay();
  look(CS_LOCK_UNKNOWN, 0);  // the object may have moved since the wait began
  begin(false, NULL, &lock_object);
  look(CS_LOCK_FREE, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup(test_join, set_up),
      cmocka_unit_test_setup(test_wait, set_up),
      cmocka_unit_test_setup(test_monitor, set_up),
      cmocka_unit_test_setup(test_class_is_current, set_up),
      cmocka_unit_test_setup(test_lock, set_up),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
