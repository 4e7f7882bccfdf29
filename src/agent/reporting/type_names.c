// SPDX-License-Identifier: MIT
// The CLR is asked about a class once. If the class can be unloaded, the answer is kept until any
// module is, since the address may then be another class's.
//
// Invariants: the CLR is asked about a class only if it is alive (reporting/unload.h): an event's
// thread keeps the class alive until its sample is in the ring, and what is in the ring when a
// module is unloaded is read before, or else not asked for. A class counts only if its name is the
// event's, but for the types that it is nested in, so none is believed that is not the event's own.
// The agent's thread, except for cs_type_names_forget. Signal-safe: no.
#include "reporting/type_names.h"

#include <string.h>

#include "base/hash.h"
#include "clr_names/class.h"
#include "reporting/unload.h"
#include "state/event_names.h"
#include "state/state.h"

enum { BITS = 12, SLOTS = 1 << BITS, MOST = SLOTS / 4 * 3 };

static struct slot {
  uint64_t class;        // 0: free
  uint32_t type, whole;  // numbers of names; `whole` 0: forgotten
  bool permanent;        // never unloaded
} slots[SLOTS];          // open addressing
static uint32_t used;
static uint32_t forgets, known_forgets;  // the first is atomic

static void forget_all(void) {
  memset(slots, 0, sizeof slots);
  used = 0;
}

// Forgets what may be gone, if a module has been unloaded.
static void keep_current(void) {
  uint32_t now = cs_load_acquire(&forgets);
  for (unsigned i = 0; i < SLOTS && now != known_forgets; i++)
    if (!slots[i].permanent) slots[i].whole = 0;
  known_forgets = now;
}

static struct slot *slot_of(uint64_t class, uint32_t type) {
  uint32_t at = (uint32_t)cs_hash_word(class ^ type, BITS);
  while (slots[at].class != 0 && (slots[at].class != class || slots[at].type != type))
    at = (at + 1) % SLOTS;
  return &slots[at];
}

// Fills in the slot. Returns false if the class is not known to be alive, or there is no memory.
static bool ask(uint64_t class, uint32_t type, uint32_t generation, struct slot *slot) {
  char event[CS_EVENT_NAME_BYTES], as_event[CS_EVENT_NAME_BYTES], name[CS_EVENT_NAME_BYTES];
  struct cs_text_out inner = cs_text_begin(as_event, sizeof as_event);
  struct cs_text_out outer = cs_text_begin(name, sizeof name);
  if (!cs_unload_begin_naming_of(generation)) return false;
  cs_class_write_as_event(cs_agent.info, (ClassID) class, &inner);
  cs_class_write_nested(cs_agent.info, (ClassID) class, &outer);
  bool permanent = cs_class_is_permanent(cs_agent.info, (ClassID) class);
  cs_unload_end_naming();
  cs_event_name_copy(type, event);
  bool same = !inner.cut && !outer.cut && strcmp(as_event, event) == 0;
  *slot = (struct slot){class, type, cs_event_name_of(same ? name : event), permanent};
  return slot->whole != 0;
}

uint32_t cs_type_name_whole(uint64_t class, uint32_t type, uint32_t generation) {
  struct slot fresh;
  if (class == 0 || type == 0) return type;
  keep_current();
  struct slot *slot = slot_of(class, type);
  if (slot->whole != 0) return slot->whole;
  if (!ask(class, type, generation, &fresh)) return cs_event_name_plain(type);
  if (used == MOST) forget_all();
  slot = slot_of(class, type);
  used += slot->class == 0;
  *slot = fresh;
  return fresh.whole;
}

uint32_t cs_type_name_known(uint32_t type) {
  keep_current();
  for (unsigned i = 0; i < SLOTS; i++)
    if (slots[i].whole != 0 && slots[i].type == type) return slots[i].whole;
  return cs_event_name_plain(type);
}

void cs_type_names_forget(void) {
  cs_add_seq(&forgets, 1);
}

void cs_type_names_free(void) {
  forget_all();
}
