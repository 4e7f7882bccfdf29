// SPDX-License-Identifier: MIT
// The drop-in's wrappers and options, without a runtime: identity, references, methods of any
// signature, and the forms of client data.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "clr/clr.h"
#include "dropin/guest.h"

// ---- A real object: 256 slots, of which the last is newer than anything ----

struct real {
  void *const *vtbl;
  int references;
  struct real *other;  // the object that query() returns for IID_ICorProfilerCallback3
};

static HRESULT query(struct real *self, REFIID iid, void **out) {
  *out = NULL;
  if (cs_guid_equal(iid, &IID_ICorProfilerInfo)) return E_NOINTERFACE;
  struct real *answer = cs_guid_equal(iid, &IID_ICorProfilerCallback3) ? self->other : self;
  answer->references++;
  *out = answer;
  return S_OK;
}

static ULONG add_ref(struct real *self) {
  return (ULONG)++self->references;
}
static ULONG release(struct real *self) {
  return (ULONG)--self->references;
}

struct large {
  uint64_t a, b, c;
};

static uint64_t seen[16];
static double seen_float;

static struct large many(struct real *self, uint64_t a, double f, uint32_t b, uint64_t c,
                         uint64_t d, uint64_t e, uint64_t g, struct large by_value) {
  const uint64_t all[] = {a, b, c, d, e, g, by_value.a, by_value.b, by_value.c};
  memcpy(seen, all, sizeof all);
  seen_float = f;
  return (struct large){(uint64_t)(uintptr_t)self, 2, 3};
}

// A method that returns its result in memory has its object as the second argument. COM has no such
// methods, so the newest slot returns its result in a register.
static uint64_t newest(struct real *self, uint64_t a, double f, uint32_t b, uint64_t c, uint64_t d,
                       uint64_t e, uint64_t g, struct large by_value) {
  struct large answer = many(self, a, f, b, c, d, e, g, by_value);
  return answer.a;
}

static void *real_vtbl[CS_SLOTS];
static struct real one = {real_vtbl, 1, NULL}, two = {real_vtbl, 1, NULL};

static bool is_callback(REFIID iid) {
  return cs_callback_version(iid) > 0;
}
static int counted;
static void referenced(struct cs_guest *guest, int change) {
  (void)guest;
  counted += change;
}
static struct cs_family family = {.is_of_kind = is_callback, .referenced = referenced};
static struct cs_guest guest, guest2;

static int setup(void **state) {
  (void)state;
  HRESULT (*q)(struct real *, REFIID, void **) = query;
  ULONG (*a)(struct real *) = add_ref, (*r)(struct real *) = release;
  uint64_t (*n)(struct real *, uint64_t, double, uint32_t, uint64_t, uint64_t, uint64_t, uint64_t,
                struct large) = newest;
  memcpy(&real_vtbl[0], &q, sizeof q);
  memcpy(&real_vtbl[1], &a, sizeof a);
  memcpy(&real_vtbl[2], &r, sizeof r);
  memcpy(&real_vtbl[CS_SLOTS - 1], &n, sizeof n);
  one.other = &two;
  two.other = &two;
  one.references = two.references = 1;
  counted = 0;
  cs_family_init(&family);
  return 0;
}

static void every_slot_with_any_signature(void **state) {
  (void)state;
  struct cs_wrapped *wrapped = cs_wrap(&family, &guest, &one, true);
  uint64_t (*call)(void *, uint64_t, double, uint32_t, uint64_t, uint64_t, uint64_t, uint64_t,
                   struct large);
  memcpy(&call, &wrapped->vtbl[CS_SLOTS - 1], sizeof call);
  uint64_t self = call(wrapped, 10, 2.5, 11, 12, 13, 14, 15, (struct large){16, 17, 18});
  assert_true(self == (uint64_t)(uintptr_t)&one);
  for (uint64_t i = 0; i < 9; i++) assert_true(seen[i] == 10 + i);
  assert_true(seen_float == 2.5);
}

static void one_object_is_one_wrapper(void **state) {
  (void)state;
  void *out;
  IUnknown *wrapped = cs_wrap(&family, &guest, &one, true);
  assert_ptr_equal(cs_wrap(&family, &guest, &one, true), wrapped);
  assert_ptr_not_equal(cs_wrap(&family, &guest2, &one, true), wrapped);
  assert_int_equal(wrapped->lpVtbl->QueryInterface(wrapped, &IID_IUnknown, &out), S_OK);
  assert_ptr_equal(out, wrapped);
  assert_int_equal(wrapped->lpVtbl->QueryInterface(wrapped, &IID_ICorProfilerCallback2, &out),
                   S_OK);
  assert_ptr_equal(out, wrapped);
  assert_int_equal(one.references, 3);
  assert_int_equal(counted, 2);
  assert_int_equal(wrapped->lpVtbl->QueryInterface(wrapped, &IID_ICorProfilerInfo, &out),
                   E_NOINTERFACE);
  assert_null(out);
  assert_int_equal(wrapped->lpVtbl->AddRef(wrapped), 4);
  assert_int_equal(wrapped->lpVtbl->Release(wrapped), 3);
  assert_int_equal(counted, 2);
}

// A part of an object with a table of its own is wrapped, too, and leads back to the object.
static void parts_are_wrapped(void **state) {
  (void)state;
  void *part, *back;
  IUnknown *wrapped = cs_wrap(&family, &guest, &one, true);
  assert_int_equal(wrapped->lpVtbl->QueryInterface(wrapped, &IID_ICorProfilerCallback3, &part),
                   S_OK);
  assert_ptr_not_equal(part, wrapped);
  assert_ptr_not_equal(part, &two);
  assert_ptr_equal(cs_wrapped_of(part)->target[5], &two);
  assert_int_equal(
      ((IUnknown *)part)->lpVtbl->QueryInterface(part, &IID_ICorProfilerCallback3, &back), S_OK);
  assert_ptr_equal(back, part);
}

// ---- Client data ----

#define DATA(text) (text), sizeof(text)  // with the NUL that ends the options

static void client_data(void **state) {
  (void)state;
  struct cs_guest_options options;
  struct cs_error err;
  size_t used;
  assert_true(cs_guest_options_from_data(
      &options, DATA("CLRSNAP_PROFILER_PATH=/a.so\0CLRSNAP_HOLD=1\0\0theirs"), &used, &err));
  assert_string_equal(options.path, "/a.so");
  assert_true(options.hold && !options.dynamic && !options.elide_suspend);
  assert_int_equal(used, sizeof "CLRSNAP_PROFILER_PATH=/a.so\0CLRSNAP_HOLD=1\0");
  static const struct {
    const char *data;
    size_t size;
  } bad[] = {
      {DATA("")},
      {"", 0},
      {"CLRSNAP_PROFILER_PATH=/a.so", 10},
      {"CLRSNAP_PROFILER_PATH=/a.so", sizeof "CLRSNAP_PROFILER_PATH=/a.so"},  // no empty string
      {DATA("CLRSNAP_HOLD=1\0")},
      {DATA("CLRSNAP_PROFILER_PATH=/a.so\0CLRSNAP_HOLD=yes\0")},
      {DATA("CLRSNAP_PROFILER_PATH=/a.so\0CLRSNAP_OTHER=1\0")},
      {DATA("CLRSNAP_PROFILER_PATH\0")},
      {DATA("=\0")},
  };
  for (size_t i = 0; i < CS_COUNT(bad); i++) {
    err.text[0] = '\0';
    assert_false(cs_guest_options_from_data(&options, bad[i].data, bad[i].size, &used, &err));
    assert_true(err.text[0] != '\0');
  }
}

static void too_long_a_path(void **state) {
  (void)state;
  static char data[PATH_MAX + 64] = "CLRSNAP_PROFILER_PATH=";
  struct cs_guest_options options;
  struct cs_error err;
  size_t used;
  memset(data + strlen(data), 'x', PATH_MAX);
  assert_false(cs_guest_options_from_data(&options, data, sizeof data, &used, &err));
}

// ---- An object whose guest is not known yet ----

static void without_a_path(void **state) {
  (void)state;
  static const GUID clsid = {1, 2, 3, {4}};
  static void *factory_object;  // lives as long as the process, by design
  void *object;
  unsetenv("CLRSNAP_PROFILER_PATH");
  assert_int_equal(cs_foreign_class_object(&clsid, &IID_ICorProfilerInfo, &factory_object),
                   E_NOINTERFACE);
  assert_int_equal(cs_foreign_class_object(&clsid, &IID_IClassFactory, &factory_object), S_OK);
  IClassFactory *factory = factory_object;
  assert_int_equal(
      factory->lpVtbl->CreateInstance(factory, NULL, &IID_ICorProfilerCallback2, &object), S_OK);
  ICorProfilerCallback11 *callback = object;
  assert_int_equal(callback->lpVtbl->QueryInterface(callback, &IID_ICorProfilerCallback11, &object),
                   S_OK);
  assert_ptr_equal(object, callback);
  // At start-up there is no client data: the load fails and reports what is missing.
  assert_int_equal(callback->lpVtbl->Initialize(callback, NULL), CLASS_E_CLASSNOTAVAILABLE);
  assert_int_equal(callback->lpVtbl->InitializeForAttach(callback, NULL, NULL, 0), E_INVALIDARG);
  char data[] = "CLRSNAP_PROFILER_PATH=/no/such/profiler.so\0";
  assert_int_equal(callback->lpVtbl->InitializeForAttach(callback, NULL, data, sizeof data),
                   (HRESULT)0x8007007Eu);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup(every_slot_with_any_signature, setup),
      cmocka_unit_test_setup(one_object_is_one_wrapper, setup),
      cmocka_unit_test_setup(parts_are_wrapped, setup),
      cmocka_unit_test(client_data),
      cmocka_unit_test(too_long_a_path),
      cmocka_unit_test(without_a_path),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
