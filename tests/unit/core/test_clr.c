// SPDX-License-Identifier: MIT
// The COM interface: identifiers, the default callback object, the factory, UTF-16.
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/utf16.h"
#include "clr/clr.h"

HRESULT DllGetClassObject(REFCLSID clsid, REFIID iid, void **out);

static void clsid_is_its_text(void **state) {
  (void)state;
  const GUID *g = &cs_clsid_clrsnap;
  char text[64];
  (void)snprintf(text, sizeof text, "{%08X-%04X-%04X-%02X%02X-%02X%02X%02X%02X%02X%02X}", g->Data1,
                 g->Data2, g->Data3, g->Data4[0], g->Data4[1], g->Data4[2], g->Data4[3],
                 g->Data4[4], g->Data4[5], g->Data4[6], g->Data4[7]);
  assert_string_equal(text, CS_CLSID_TEXT);
}

static void slots_are_where_the_runtime_looks(void **state) {
  (void)state;
  assert_int_equal(offsetof(ICorProfilerInfo15Vtbl, DoStackSnapshot), 36 * 8);
  assert_int_equal(offsetof(ICorProfilerInfo15Vtbl, GetFunctionFromIP3), 88 * 8);
  assert_int_equal(offsetof(ICorProfilerInfo15Vtbl, SuspendRuntime), 97 * 8);
  assert_int_equal(offsetof(ICorProfilerCallback11Vtbl, ThreadDestroyed), 30 * 8);
  assert_int_equal(offsetof(ICorProfilerCallback11Vtbl, DynamicMethodUnloaded), 94 * 8);
}

static int destroyed;
static void count_destroy(struct cs_callback *self) {
  (void)self;
  destroyed++;
}

static void callback_answers_to_its_names(void **state) {
  (void)state;
  ICorProfilerCallback11Vtbl vtbl;
  cs_callback_defaults(&vtbl);
  struct cs_callback object = {{&vtbl}, 1, count_destroy};
  const GUID *yes[] = {&IID_IUnknown, &IID_ICorProfilerCallback, &IID_ICorProfilerCallback2,
                       &IID_ICorProfilerCallback11};
  for (size_t i = 0; i < sizeof yes / sizeof yes[0]; i++) {
    void *out = NULL;
    assert_int_equal(vtbl.QueryInterface(&object.base, yes[i], &out), S_OK);
    assert_ptr_equal(out, &object);
    assert_int_equal(vtbl.Release(&object.base), 1);
  }
  void *out = &object;
  assert_int_equal(vtbl.QueryInterface(&object.base, &IID_ICorProfilerInfo, &out), E_NOINTERFACE);
  assert_null(out);
  assert_int_equal(vtbl.QueryInterface(&object.base, &IID_IUnknown, NULL), E_POINTER);
  assert_int_equal(vtbl.AddRef(&object.base), 2);
  assert_int_equal(vtbl.Release(&object.base), 1);
  assert_int_equal(destroyed, 0);
  assert_int_equal(vtbl.Release(&object.base), 0);
  assert_int_equal(destroyed, 1);
}

static void every_slot_answers(void **state) {
  (void)state;
  ICorProfilerCallback11Vtbl vtbl;
  memset(&vtbl, 0, sizeof vtbl);
  cs_callback_defaults(&vtbl);
  struct cs_callback object = {{&vtbl}, 1, NULL};
  void *slots[98];
  memcpy(slots, &vtbl, sizeof slots);
  for (size_t i = 0; i < 98; i++) assert_non_null(slots[i]);
  BOOL answer = 0;
  assert_int_equal(vtbl.LoadAsNotificationOnly(&object.base, &answer), S_OK);
  assert_int_equal(answer, 1);
  answer = 0;
  assert_int_equal(vtbl.JITInlining(&object.base, 1, 2, &answer), S_OK);
  assert_int_equal(answer, 1);
  // Eleven arguments, most of them on the stack, where only the caller is concerned with them.
  assert_int_equal(
      vtbl.EventPipeEventDelivered(&object.base, 1, 2, 3, 4, NULL, 5, NULL, NULL, NULL, 6, 7, NULL),
      S_OK);
}

static void factory_refuses_what_it_is_not(void **state) {
  (void)state;
  void *out = NULL;
  GUID other = cs_clsid_clrsnap;
  other.Data1++;
  assert_int_equal(setenv("CLRSNAP_PROFILER_PATH", "/no/such/profiler.so", 1), 0);
  assert_int_equal(DllGetClassObject(&other, &IID_IClassFactory, &out), (HRESULT)0x8007007Eu);
  assert_int_equal(unsetenv("CLRSNAP_PROFILER_PATH"), 0);
  assert_int_equal(DllGetClassObject(&cs_clsid_clrsnap, &IID_ICorProfilerInfo, &out),
                   E_NOINTERFACE);
  assert_int_equal(DllGetClassObject(&cs_clsid_clrsnap, &IID_IClassFactory, NULL), E_POINTER);
  assert_int_equal(DllGetClassObject(&cs_clsid_clrsnap, &IID_IClassFactory, &out), S_OK);
  IClassFactory *factory = out;
  void *object = &other;
  assert_int_equal(
      factory->lpVtbl->CreateInstance(factory, (IUnknown *)factory, &IID_IUnknown, &object),
      CLASS_E_NOAGGREGATION);
  assert_null(object);
  assert_int_equal(factory->lpVtbl->CreateInstance(factory, NULL, &IID_ICorProfilerInfo, &object),
                   E_NOINTERFACE);
  assert_int_equal(
      factory->lpVtbl->CreateInstance(factory, NULL, &IID_ICorProfilerCallback2, &object), S_OK);
  assert_non_null(object);
  ICorProfilerCallback2 *profiler = object;
  assert_int_equal(profiler->lpVtbl->Release(profiler), 0);
}

static void utf16_becomes_utf8(void **state) {
  (void)state;
  static const WCHAR text[] = {'A', 0xE4, 0x20AC, 0xD83D, 0xDE00, 0xD800, 'z', 0};
  static const char want[] = "A\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80\xEF\xBF\xBDz";
  char out[32];
  size_t used;
  assert_int_equal(cs_utf16_to_utf8(out, sizeof out, text, SIZE_MAX, &used), sizeof want - 1);
  assert_string_equal(out, want);
  assert_int_equal(used, 7);
  // Every smaller buffer receives a whole number of characters and a terminator.
  for (size_t cap = 0; cap < sizeof want; cap++) {
    memset(out, 'x', sizeof out);
    size_t n = cs_utf16_to_utf8(out, cap, text, 7, &used);
    assert_true(cap == 0 ? n == 0 : n < cap);
    if (cap > 0) assert_int_equal(out[n], 0);
    assert_int_equal(out[cap], 'x');
    assert_memory_equal(out, want, n);
    assert_true(n == 0 || (want[n] & 0xC0) != 0x80);
  }
  static const WCHAR cut[] = {0xD83D};
  assert_int_equal(cs_utf16_to_utf8(out, sizeof out, cut, 1, NULL), 3);
  assert_string_equal(out, "\xEF\xBF\xBD");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(clsid_is_its_text),
      cmocka_unit_test(slots_are_where_the_runtime_looks),
      cmocka_unit_test(callback_answers_to_its_names),
      cmocka_unit_test(every_slot_answers),
      cmocka_unit_test(factory_refuses_what_it_is_not),
      cmocka_unit_test(utf16_becomes_utf8),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
