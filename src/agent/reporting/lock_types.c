// SPDX-License-Identifier: MIT
// Invariant: the CLR is asked about a class only if no code has been unloaded since an object of
// the class was read, or if all samples of that code in the ring were read in time
// (reporting/unload.h). When a module has been unloaded, all names are forgotten. The agent's
// thread, except for cs_lock_types_forget. Signal-safe: no.
#include "reporting/lock_types.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/log.h"
#include "clr_names/class.h"
#include "clr_names/types.h"
#include "events/lock_waits.h"
#include "life/function.h"
#include "life/library.h"
#include "reporting/unload.h"

enum { SLOTS = 512 };  // a program has few types of locks; a later one takes the place of another

static struct {
  uint64_t class;
  char *name;
} slots[SLOTS];
static uint32_t forgets, known_forgets;  // the first is atomic

// A lock of this class is in use, so the class has been loaded.
void cs_lock_types_learn(void) {
  static bool failed;
  ICorProfilerInfo15 *info = cs_agent.info;
  struct cs_lock_layout layout;
  struct cs_class class;
  if (failed || !cs_lock_layout_is_wanted()) return;
  cs_unloading_hold();
  failed = !cs_class_of_core(info, u"System.Threading.Lock", &class) ||
           !cs_class_field(info, &class, u"_owningThreadId", &layout.owner) ||
           !cs_class_field(info, &class, u"_state", &layout.state);
  cs_unloading_release();
  layout.class = class.id;
  if (failed)
    cs_log("System.Threading.Lock is not as expected: who holds such locks is not known");
  else
    cs_lock_layout_set(&layout);
}

static void forget_all(void) {
  for (unsigned i = 0; i < SLOTS; i++) {
    free(slots[i].name);
    slots[i].class = 0;
    slots[i].name = NULL;
  }
}

static char *read_name(uint64_t class, uint32_t generation) {
  char name[1024];
  struct cs_text_out out = cs_text_begin(name, sizeof name);
  if (!cs_unload_begin_naming_of(generation)) return NULL;
  bool ok = cs_class_write_whole(cs_agent.info, (ClassID) class, &out);
  cs_unload_end_naming();
  return ok ? strdup(name) : NULL;
}

const char *cs_lock_type_name(uint64_t class, uint32_t generation) {
  uint32_t at = (uint32_t)cs_hash_word(class, 32) % SLOTS, now = cs_load_acquire(&forgets);
  if (class == 0) return NULL;
  if (now != known_forgets) forget_all();
  known_forgets = now;
  if (slots[at].class == class) return slots[at].name;
  char *name = read_name(class, generation);
  if (name == NULL) return NULL;
  free(slots[at].name);
  slots[at].class = class;
  return slots[at].name = name;
}

void cs_lock_types_forget(void) {
  cs_add_seq(&forgets, 1);
}

void cs_lock_types_free(void) {
  forget_all();
}
