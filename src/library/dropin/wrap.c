// SPDX-License-Identifier: MIT
// Wrappers and their identity. Invariants: no object that a real QueryInterface returns is passed
// on without a wrapper; the same object always has the same wrapper; a wrapper counts no
// references, the real object does. Any thread; not for handlers, except for the thunks: only
// QueryInterface takes the lock.
#include "dropin/wrap.h"

#include <stdint.h>
#include <stdlib.h>

enum { STRIDE = 32 };  // of the thunks

extern const char cs_thunks[];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;  // of the lists

static IUnknown *real(void *self) {
  return cs_wrapped_of(self)->target[0];
}

static void note(struct cs_wrapped *wrapped, int change) {
  if (wrapped->family->referenced != NULL) wrapped->family->referenced(wrapped->guest, change);
}

static HRESULT query_interface(IUnknown *self, REFIID iid, void **out) {
  struct cs_wrapped *wrapped = cs_wrapped_of(self);
  HRESULT hr = real(self)->lpVtbl->QueryInterface(real(self), iid, out);
  if (FAILED(hr) || out == NULL || *out == NULL) return hr;
  bool known = iid != NULL && wrapped->family->is_of_kind(iid);
  *out = cs_wrap(wrapped->family, wrapped->guest, *out, known);
  if (*out == NULL) return E_OUTOFMEMORY;
  note(wrapped, 1);
  return hr;
}

static ULONG add_ref(IUnknown *self) {
  note(cs_wrapped_of(self), 1);
  return real(self)->lpVtbl->AddRef(real(self));
}

static ULONG release(IUnknown *self) {
  ULONG left = real(self)->lpVtbl->Release(real(self));
  note(cs_wrapped_of(self), -1);
  return left;
}

static void fill(void *vtbl[CS_SLOTS]) {
  IUnknownVtbl *unknown = (IUnknownVtbl *)(void *)vtbl;
  for (size_t i = 0; i < CS_SLOTS; i++) vtbl[i] = (void *)(uintptr_t)(cs_thunks + i * STRIDE);
  unknown->QueryInterface = query_interface;
  unknown->AddRef = add_ref;
  unknown->Release = release;
}

void cs_family_init(struct cs_family *family) {
  fill(family->vtbl);
  fill(family->plain);
}

// An interface that is not of the family's kind may still be the same object, and then has the same
// wrapper.
static struct cs_wrapped *find(const struct cs_family *family, const struct cs_guest *guest,
                               const void *object, bool known) {
  for (struct cs_wrapped *w = family->all; w != NULL; w = w->next)
    if (w->target[0] == object && w->guest == guest && (w->known || !known)) return w;
  return NULL;
}

static struct cs_wrapped *make(struct cs_family *family, struct cs_guest *guest, void *object,
                               bool known) {
  struct cs_wrapped *wrapped = malloc(sizeof *wrapped);
  if (wrapped == NULL) return NULL;
  wrapped->vtbl = known ? family->vtbl : family->plain;
  wrapped->guest = guest;
  wrapped->family = family;
  wrapped->known = known;
  for (size_t i = 0; i < CS_SLOTS; i++) wrapped->target[i] = object;
  wrapped->next = family->all;
  family->all = wrapped;
  return wrapped;
}

void *cs_wrap(struct cs_family *family, struct cs_guest *guest, void *object, bool known) {
  IUnknown *unknown = object;
  (void)pthread_mutex_lock(&lock);
  struct cs_wrapped *wrapped = find(family, guest, object, known);
  if (wrapped == NULL) wrapped = make(family, guest, object, known);
  (void)pthread_mutex_unlock(&lock);
  if (wrapped == NULL) (void)unknown->lpVtbl->Release(unknown);
  return wrapped;
}
