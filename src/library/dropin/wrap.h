// SPDX-License-Identifier: MIT
// Private to component dropin: wrappers of COM objects. A caller cannot distinguish a wrapper from
// the object: every slot forwards to the object (thunks.S), including methods that are newer than
// this project, except for those that a family takes over. Any thread; not for handlers.
#pragma once

#include <pthread.h>
#include <stdbool.h>

#include "clrsnap/corprof.h"

// Slots of a wrapper's vtable. The largest interface known has 115; each new one adds a few.
enum { CS_SLOTS = 256 };

struct cs_guest;
struct cs_family;

struct cs_wrapped {
  void *const *vtbl;
  void *target[CS_SLOTS];  // slot n's object: the real object, or a proxy
  struct cs_guest *guest;
  struct cs_family *family;
  bool known;  // its vtable is the family's, with the slots that are taken over
  struct cs_wrapped *next;
};

// One kind of object: which interfaces are of the kind, and which slots are taken over.
struct cs_family {
  bool (*is_of_kind)(REFIID iid);
  void *vtbl[CS_SLOTS];   // of known interfaces
  void *plain[CS_SLOTS];  // of others: QueryInterface, AddRef and Release are taken over
  // Called for each reference that is taken or released through a wrapper; may be NULL.
  void (*referenced)(struct cs_guest *guest, int change);
  struct cs_wrapped *all;  // never freed: a process has a few real objects
};

// Fills both tables with thunks and the three methods of IUnknown. Called once, before cs_wrap.
void cs_family_init(struct cs_family *family);

// Returns the wrapper of `object`: the same one each time (COM identity). Takes over the caller's
// reference. Returns NULL if there is no memory; the reference is then released.
void *cs_wrap(struct cs_family *family, struct cs_guest *guest, void *object, bool known);

static inline struct cs_wrapped *cs_wrapped_of(void *self) {
  return self;
}

// The object that a slot of a wrapper forwards to: THEIRS(self, ICorProfilerInfo15,
// DoStackSnapshot).
#define CS_SLOT(type, method) (offsetof(type##Vtbl, method) / sizeof(void *))
#define THEIRS(self, type, method) ((type *)cs_wrapped_of(self)->target[CS_SLOT(type, method)])
