// SPDX-License-Identifier: MIT
// Numbers for names. The runtime delivers a name with every event. Its ids of types are reused, so
// types are identified by name; where a class is known as well, types of one name are told apart by
// it, so that each is counted for itself. Programs that keep loading their types again have many
// classes of each name, so these may take half of the numbers. Invariants: a number is never reused
// while a recording lasts; `lock` is held for table work only, never over a call into the CLR. Any
// thread outside of handlers. Signal-safe: no.
#include "state/event_names.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/hash.h"
#include "clr/clr.h"
#include "clr_names/text.h"

enum { MOST_NAMES = 65536 };  // a program may make types for as long as it runs
static const char all_others[] = "[types beyond the first 65,535]";

struct name {
  uint64_t hash, class;
  char *text;
};
// All under `lock`, except `counts` and `life`, which are atomic.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct name *names;  // by number - 1
static uint32_t count, capacity;
static uint32_t *slots;  // open addressing; numbers, twice as many as `capacity`; 0: free
static struct {
  uint64_t unsampled, sampled;
} counts[MOST_NAMES + 1];  // by number; 1 MiB, of which few pages are touched
static uint32_t life;      // bumped when all numbers become invalid

static uint64_t hash_of(const char *name, uint64_t class) {
  return cs_hash_bytes(name, strlen(name)) ^ class * CS_HASH_GOLDEN;
}

// Returns the slot that has the name, or the free one where it belongs.
static uint32_t *find(uint64_t hash, const char *name, uint64_t class) {
  uint32_t mask = 2 * capacity - 1, at = (uint32_t)(hash ^ hash >> 32) & mask;
  for (; slots[at] != 0; at = (at + 1) & mask) {
    const struct name *n = &names[slots[at] - 1];
    if (n->hash == hash && n->class == class && strcmp(n->text, name) == 0) break;
  }
  return &slots[at];
}

static bool grow(void) {
  uint32_t more = capacity == 0 ? 256 : 2 * capacity;
  struct name *larger = realloc(names, more * sizeof *names);
  if (larger == NULL) return false;
  names = larger;
  uint32_t *places = calloc(2ull * more, sizeof *places);
  if (places == NULL) return false;
  free(slots);
  slots = places;
  capacity = more;
  for (uint32_t i = 0; i < count; i++) *find(names[i].hash, names[i].text, names[i].class) = i + 1;
  return true;
}

// Invariant: a name has less than CS_EVENT_NAME_BYTES bytes.
static uint32_t intern(const char *name, uint64_t class) {
  uint64_t hash = hash_of(name, class);
  if (count == capacity && !grow()) return 0;
  uint32_t *slot = find(hash, name, class);
  if (*slot != 0) return *slot;
  if (class != 0 && count >= MOST_NAMES / 2) return intern(name, 0);
  if (count == MOST_NAMES) return MOST_NAMES;  // which is `all_others`
  if (count == MOST_NAMES - 1) {
    name = all_others;
    hash = hash_of(name, 0);
    slot = find(hash, name, 0);
  }
  char *copy = strdup(name);
  if (copy == NULL) return 0;
  names[count] = (struct name){hash, class, copy};
  return *slot = ++count;
}

static uint32_t number_of(const char *text, uint64_t class) {
  (void)pthread_mutex_lock(&lock);
  uint32_t number = intern(text, class);
  (void)pthread_mutex_unlock(&lock);
  return number;
}

// The program may give its Activities and routes names of any length.
uint32_t cs_event_name_of(const char *text) {
  char name[CS_EVENT_NAME_BYTES];
  struct cs_text_out out = cs_text_begin(name, sizeof name);
  cs_text_add(&out, text);
  return number_of(name, 0);
}

// Only one word is written, because threads that throw at the same time contend for its cache line.
uint64_t cs_event_name_count(uint32_t name) {
  return cs_add_relaxed(&counts[name].unsampled, 1) + 1 + cs_load_relaxed(&counts[name].sampled);
}

uint64_t cs_event_name_take_unsampled(uint32_t name) {
  uint64_t events = cs_take_seq(&counts[name].unsampled, 0);
  cs_add_relaxed(&counts[name].sampled, events);
  return events;
}

void cs_event_name_return(uint32_t name, uint64_t events) {
  cs_add_relaxed(&counts[name].sampled, -events);
  cs_add_relaxed(&counts[name].unsampled, events);
}

// The thread's last name, as it came: a thread often throws the same type again.
static __thread struct {
  uint32_t life, number;  // 0: none
  uint64_t class;
  size_t bytes;
  uint8_t utf16[256];
} last;

static uint32_t remember(const uint8_t *utf16, size_t bytes, uint64_t class, uint32_t number) {
  if (bytes > sizeof last.utf16) return number;
  memcpy(last.utf16, utf16, bytes);
  last.bytes = bytes;
  last.class = class;
  last.life = cs_load_relaxed(&life);
  last.number = number;
  return number;
}

uint32_t cs_event_name_again(const uint8_t *utf16, size_t left, uint64_t class, size_t *bytes) {
  if (last.number == 0 || last.class != class || left < last.bytes + 2 ||
      last.life != cs_load_relaxed(&life) || memcmp(utf16, last.utf16, last.bytes) != 0 ||
      utf16[last.bytes] != 0 || utf16[last.bytes + 1] != 0)
    return 0;
  *bytes = last.bytes;
  return last.number;
}

uint32_t cs_event_name_of_utf16(const uint8_t *utf16, size_t bytes, uint64_t class) {
  WCHAR units[CS_EVENT_NAME_BYTES];
  char name[CS_EVENT_NAME_BYTES];
  struct cs_text_out text = cs_text_begin(name, sizeof name);
  for (size_t at = 0, len; at < bytes; at += len) {
    len = bytes - at < sizeof units ? bytes - at : sizeof units;
    memcpy(units, utf16 + at, len);  // the event's data is not aligned
    cs_text_add_utf16(&text, units, len / sizeof units[0]);
  }
  return remember(utf16, bytes, class, number_of(name, class));
}

void cs_event_name_copy(uint32_t name, char text[CS_EVENT_NAME_BYTES]) {
  (void)pthread_mutex_lock(&lock);
  (void)snprintf(text, CS_EVENT_NAME_BYTES, "%s", names[name - 1].text);
  (void)pthread_mutex_unlock(&lock);
}

uint32_t cs_event_name_plain(uint32_t name) {
  (void)pthread_mutex_lock(&lock);
  uint32_t number = names[name - 1].class != 0 ? intern(names[name - 1].text, 0) : name;
  (void)pthread_mutex_unlock(&lock);
  return number != 0 ? number : name;
}

uint64_t cs_event_names_counted(void) {
  uint64_t events = 0;
  for (uint32_t i = 1, names_now = cs_event_names_count(); i <= names_now; i++)
    events += cs_load_relaxed(&counts[i].unsampled) + cs_load_relaxed(&counts[i].sampled);
  return events;
}

uint32_t cs_event_names_count(void) {
  (void)pthread_mutex_lock(&lock);
  uint32_t number = count;
  (void)pthread_mutex_unlock(&lock);
  return number;
}

void cs_event_names_free(void) {
  cs_add_relaxed(&life, 1);
  for (uint32_t i = 0; i < count; i++) free(names[i].text);
  free(names);
  free(slots);
  memset(counts, 0, (count + 1) * sizeof counts[0]);
  names = NULL;
  slots = NULL;
  count = capacity = 0;
}
