// SPDX-License-Identifier: MIT
// The names of what events are about (types of objects and exceptions, kinds of pauses), by number,
// so that a sample carries four bytes of them. The runtime hands a name with every event; the id
// that it has for a type may be another type's later, so names are told apart by their text.
//
// Invariants: a number is never given twice while a recording lasts; `lock` is held for table work
// only, never over a call into the CLR. Any thread outside of handlers. Signal-safe: no.
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/utf16.h"
#include "clr/clr.h"
#include "sampling/agent.h"

enum {
  MAX_NAME = 1024,     // bytes of UTF-8; longer names are cut
  MOST_NAMES = 65536,  // a program may make types for as long as it runs
};
static const char all_others[] = "[types beyond the first 65,535]";

struct type {
  uint64_t hash;
  char *name;
  uint32_t wire_id;  // 0: the wire does not have it yet. The agent's thread only
};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct type *types;  // by number less one
static uint32_t count, capacity;
static uint64_t owed[MOST_NAMES + 1];  // by number; 512 KiB, of which few pages are touched
static uint32_t life;                  // of all this
static uint32_t *slots;  // open addressing over numbers, twice as many as `capacity`; 0: free

// The slot that has the name, or the free one where it belongs.
static uint32_t *find(uint64_t hash, const char *name) {
  uint32_t mask = 2 * capacity - 1, at = (uint32_t)(hash ^ hash >> 32) & mask;
  for (; slots[at] != 0; at = (at + 1) & mask) {
    const struct type *t = &types[slots[at] - 1];
    if (t->hash == hash && strcmp(t->name, name) == 0) break;
  }
  return &slots[at];
}

static bool grow(void) {
  uint32_t more = capacity == 0 ? 256 : 2 * capacity;
  struct type *larger = realloc(types, more * sizeof *types);
  if (larger == NULL) return false;
  types = larger;
  uint32_t *places = calloc(2ull * more, sizeof *places);
  if (places == NULL) return false;
  free(slots);
  slots = places;
  capacity = more;
  for (uint32_t i = 0; i < count; i++) *find(types[i].hash, types[i].name) = i + 1;
  return true;
}

static uint32_t intern(const char *name) {
  uint64_t hash = cs_hash_bytes(name, strlen(name));
  if (count == capacity && !grow()) return 0;
  uint32_t *slot = find(hash, name);
  if (*slot != 0) return *slot;
  if (count == MOST_NAMES) return MOST_NAMES;  // which is `all_others`
  if (count == MOST_NAMES - 1) {
    name = all_others;
    hash = cs_hash_bytes(name, strlen(name));
    slot = find(hash, name);
  }
  char *copy = strdup(name);
  if (copy == NULL) return 0;
  types[count] = (struct type){hash, copy, 0};
  return *slot = ++count;
}

uint32_t cs_type_intern_text(const char *text) {
  (void)pthread_mutex_lock(&lock);
  uint32_t number = intern(text);
  (void)pthread_mutex_unlock(&lock);
  return number;
}

void cs_type_owe(uint32_t type, uint64_t events) {
  cs_add_relaxed(&owed[type], events);
}

uint64_t cs_type_take(uint32_t type) {
  return __atomic_exchange_n(&owed[type], 0, __ATOMIC_ACQ_REL);
}

bool cs_types_tell_owed(bool (*tell)(uint32_t type, uint64_t events)) {
  for (uint32_t type = 1; type <= count; type++) {
    uint64_t events = cs_type_take(type);
    if (events > 0 && !tell(type, events)) return false;
  }
  return true;
}

// What a thread throws, it often throws again: the last name as it came.
static __thread struct {
  uint32_t life, number;  // 0: none
  size_t bytes;
  uint8_t utf16[256];
} last;

static uint32_t remember(const uint8_t *utf16, size_t bytes, uint32_t number) {
  if (bytes > sizeof last.utf16) return number;
  memcpy(last.utf16, utf16, bytes);
  last.bytes = bytes;
  last.life = cs_load_relaxed(&life);
  last.number = number;
  return number;
}

uint32_t cs_type_intern(const uint8_t *utf16, size_t bytes) {
  WCHAR units[MAX_NAME];
  char name[MAX_NAME];
  if (last.number != 0 && last.bytes == bytes && last.life == cs_load_relaxed(&life) &&
      memcmp(last.utf16, utf16, bytes) == 0)
    return last.number;
  size_t len = bytes / sizeof units[0] < MAX_NAME ? bytes / sizeof units[0] : MAX_NAME;
  memcpy(units, utf16, len * sizeof units[0]);  // the event's data is not aligned
  (void)cs_utf16_to_utf8(name, sizeof name, units, len, NULL);
  return remember(utf16, bytes, cs_type_intern_text(name));
}

bool cs_type_to_wire(uint32_t type, uint32_t *id) {
  char name[MAX_NAME];
  (void)pthread_mutex_lock(&lock);
  *id = types[type - 1].wire_id;
  memcpy(name, types[type - 1].name, strlen(types[type - 1].name) + 1);
  (void)pthread_mutex_unlock(&lock);
  if (*id != 0) return true;
  if (!cs_named_to_wire(name, id)) return false;
  (void)pthread_mutex_lock(&lock);
  types[type - 1].wire_id = *id;
  (void)pthread_mutex_unlock(&lock);
  return true;
}

void cs_types_free(void) {
  cs_add_relaxed(&life, 1);
  for (uint32_t i = 0; i < count; i++) free(types[i].name);
  free(types);
  free(slots);
  memset(owed, 0, (count + 1) * sizeof owed[0]);
  types = NULL;
  slots = NULL;
  count = capacity = 0;
}
