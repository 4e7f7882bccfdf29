// SPDX-License-Identifier: MIT
// One function for each slot of the interface, all alike: the check, then the real slot with the
// same arguments. No method has more than ten arguments, and all of them are integers. Threads:
// any.
#include "proxy.h"

#include <stdlib.h>

typedef HRESULT method(void *self, UINT_PTR a, UINT_PTR b, UINT_PTR c, UINT_PTR d, UINT_PTR e,
                       UINT_PTR f, UINT_PTR g, UINT_PTR h, UINT_PTR i);
struct proxy {
  method *const *slots;
  ICorProfilerInfo15 *real;
};
enum { SLOTS = sizeof(ICorProfilerInfo15Vtbl) / sizeof(void *) };
_Static_assert(SLOTS <= 120, "twelve times ten functions are made below");

static void (*check)(const char *name);

#define SLOT(n)                                                                                   \
  static HRESULT slot_##n(void *self, UINT_PTR a, UINT_PTR b, UINT_PTR c, UINT_PTR d, UINT_PTR e, \
                          UINT_PTR f, UINT_PTR g, UINT_PTR h, UINT_PTR i) {                       \
    struct proxy *proxy = self;                                                                   \
    check("the CLR, ICorProfilerInfo's slot " #n);                                                \
    method *const *real = *(method *const *const *)(const void *)proxy->real;                     \
    return real[n](proxy->real, a, b, c, d, e, f, g, h, i);                                       \
  }
#define TEN(X, t) X(t##0) X(t##1) X(t##2) X(t##3) X(t##4) X(t##5) X(t##6) X(t##7) X(t##8) X(t##9)
// clang-format off
#define ALL(X)                                                                                    \
  TEN(X, ) TEN(X, 1) TEN(X, 2) TEN(X, 3) TEN(X, 4) TEN(X, 5) TEN(X, 6) TEN(X, 7) TEN(X, 8)        \
  TEN(X, 9) TEN(X, 10) TEN(X, 11)
ALL(SLOT)
#define NAME(n) slot_##n,
static method *slots[] = {ALL(NAME)};
// clang-format on

// Returns this object for every interface: all interfaces of the family share one table.
static HRESULT query_interface(void *self, UINT_PTR iid, UINT_PTR out, UINT_PTR c, UINT_PTR d,
                               UINT_PTR e, UINT_PTR f, UINT_PTR g, UINT_PTR h, UINT_PTR i) {
  HRESULT hr = slot_0(self, iid, out, c, d, e, f, g, h, i);
  if (hr == S_OK) *(void **)out = self;
  return hr;
}

IUnknown *proxy_new(ICorProfilerInfo15 *real, void (*on_call)(const char *name)) {
  struct proxy *proxy = malloc(sizeof(*proxy));
  if (proxy == NULL) abort();
  check = on_call;
  slots[0] = query_interface;
  *proxy = (struct proxy){slots, real};
  return (IUnknown *)(void *)proxy;
}
