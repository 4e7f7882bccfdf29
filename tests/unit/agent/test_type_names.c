// SPDX-License-Identifier: MIT
// The whole names of nested types, of a runtime that counts how often it is asked: once for each
// class, and again only where the class may have been unloaded.
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <uchar.h>

#include <cmocka.h>

#include "base/base.h"
#include "clrsnap/cormeta.h"
#include "life/library.h"
#include "reporting/type_names.h"
#include "state/event_names.h"
#include "state/state.h"

enum { STAYS = 1, GOES = 2, ARRAY = 0x9000 };  // ModuleIDs; the class of an array

static struct class {
  ClassID id;
  ModuleID module;
  mdTypeDef token;
  unsigned arg_count;
  ClassID args[2];
} classes[] = {
    {.id = 0x1000, .module = STAYS, .token = 1},
    {.id = 0x2000, .module = GOES, .token = 3},
    {.id = 0x3000, .module = STAYS, .token = 6, .arg_count = 2, .args = {0x1000, 0x4000}},
    {.id = 0x4000, .module = STAYS, .token = 7},
    {.id = 0x5000, .module = STAYS, .token = 6, .arg_count = 2, .args = {0x2000, 0x4000}},
};
static const struct type {
  const char16_t *name;
  mdTypeDef outer;
} types[] = {{NULL, 0},           {u"Item", 2},         {u"Shop.First", 0}, {u"Item", 4},
             {u"Shop.Second", 0}, {u"Shop.Outer`1", 0}, {u"Inner`1", 5},    {u"System.Int32", 0}};
static unsigned asked;  // for classes' names

static HRESULT refuse(void *self) {
  (void)self;
  return (HRESULT)0x80004005;  // E_FAIL
}

static HRESULT is_array(ICorProfilerInfo15 *self, ClassID id, CorElementType *element, ClassID *of,
                        ULONG *rank) {
  (void)self, (void)element;
  *of = 0x1000;
  *rank = 1;
  return id == ARRAY ? S_OK : 1;  // S_FALSE
}

static HRESULT get_class(ICorProfilerInfo15 *self, ClassID id, ModuleID *module, mdTypeDef *token,
                         ClassID *parent, ULONG32 cap, ULONG32 *count, ClassID args[]) {
  (void)self, (void)parent;
  asked++;
  for (size_t i = 0; i < CS_COUNT(classes); i++) {
    const struct class *c = &classes[i];
    if (c->id != id || c->arg_count > cap) continue;
    *module = c->module;
    *token = c->token;
    *count = c->arg_count;
    memcpy(args, c->args, c->arg_count * sizeof args[0]);
    return S_OK;
  }
  return refuse(self);
}

static HRESULT get_flags(ICorProfilerInfo15 *self, ModuleID module, LPCBYTE *base, ULONG cap,
                         ULONG *len, WCHAR path[], AssemblyID *assembly, DWORD *flags) {
  (void)self, (void)base, (void)cap, (void)len, (void)path, (void)assembly;
  *flags = module == GOES ? COR_PRF_MODULE_COLLECTIBLE : 0;
  return S_OK;
}

static HRESULT get_type(IMetaDataImport2 *self, mdTypeDef token, WCHAR *name, ULONG cap, ULONG *len,
                        DWORD *flags, mdToken *extends) {
  (void)self, (void)flags, (void)extends;
  for (*len = 0; *len < cap; ++*len)
    if ((name[*len] = types[token].name[*len]) == 0) break;
  ++*len;
  return S_OK;
}

static HRESULT get_outer(IMetaDataImport2 *self, mdTypeDef token, mdTypeDef *outer) {
  *outer = types[token].outer;
  return *outer != 0 ? S_OK : refuse(self);
}

static ULONG release(IMetaDataImport2 *self) {
  (void)self;
  return 0;
}

static HRESULT get_metadata(ICorProfilerInfo15 *self, ModuleID module, DWORD flags, REFIID iid,
                            void **out) {
  static IMetaDataImport2Vtbl table = {
      .GetTypeDefProps = get_type, .GetNestedClassProps = get_outer, .Release = release};
  static IMetaDataImport2 import = {&table};
  (void)self, (void)module, (void)flags, (void)iid;
  *out = &import;
  return S_OK;
}

static int set_up(void **state) {
  static ICorProfilerInfo15Vtbl table;
  static ICorProfilerInfo15 info = {&table};
  HRESULT (**entries)(void *) = (HRESULT(**)(void *))(void *)&table;
  (void)state;
  for (size_t i = 0; i < sizeof table / sizeof *entries; i++) entries[i] = refuse;
  table.IsArrayClass = is_array;
  table.GetClassIDInfo2 = get_class;
  table.GetModuleInfo2 = get_flags;
  table.GetModuleMetaData = get_metadata;
  cs_agent.info = &info;
  asked = 0;
  classes[1].token = 3;
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  cs_type_names_free();
  cs_event_names_free();
  return 0;
}

static void is_named(uint64_t class, const char *event, const char *expected) {
  char text[CS_EVENT_NAME_BYTES];
  uint32_t type = cs_event_name_of(event);
  cs_event_name_copy(
      cs_type_name_whole(class, type, cs_load_acquire(&cs_library.world.code_generation)), text);
  assert_string_equal(text, expected);
}

static void a_nested_type_has_its_outer_types(void **state) {
  (void)state;
  is_named(0x1000, "Item", "Shop.First.Item");
  is_named(0x2000, "Item", "Shop.Second.Item");
  is_named(ARRAY, "Item[]", "Shop.First.Item[]");
  is_named(0x3000, "Inner`1[Shop.First+Item,System.Int32]",
           "Shop.Outer`1[Shop.First.Item].Inner`1[System.Int32]");
  is_named(0x4000, "System.Int32", "System.Int32");
  is_named(0, "Item", "Item");
}

static void a_class_with_another_name_is_not_believed(void **state) {
  (void)state;
  is_named(0x1000, "Other", "Other");
  is_named(0x7000, "Item", "Item");  // it is none
  is_named(0x1000, "Item", "Shop.First.Item");
}

static void a_class_is_asked_for_once(void **state) {
  (void)state;
  is_named(0x1000, "Item", "Shop.First.Item");
  unsigned once = asked;
  is_named(0x1000, "Item", "Shop.First.Item");
  assert_int_equal(asked, once);
}

// Its address may be another class's, also as a type argument; what is never unloaded stays known.
static void what_may_be_unloaded_is_forgotten(void **state) {
  static const char event[] = "Inner`1[Shop.Second+Item,System.Int32]";
  (void)state;
  is_named(0x1000, "Item", "Shop.First.Item");
  is_named(0x2000, "Item", "Shop.Second.Item");
  is_named(0x5000, event, "Shop.Outer`1[Shop.Second.Item].Inner`1[System.Int32]");
  classes[1].token = 1;  // the module has been unloaded, and First is where Second was
  cs_type_names_forget();
  unsigned before = asked;
  is_named(0x1000, "Item", "Shop.First.Item");
  assert_int_equal(asked, before);
  is_named(0x2000, "Item", "Shop.First.Item");
  is_named(0x5000, event, event);
  assert_true(asked > before);
}

// A generation ends without the ring having been read.
static void what_may_be_gone_is_not_asked_for(void **state) {
  char text[CS_EVENT_NAME_BYTES];
  uint32_t type = cs_event_name_of("Item"), old = cs_library.world.code_generation++;
  (void)state;
  is_named(0x1000, "Item", "Shop.First.Item");
  unsigned before = asked;
  cs_event_name_copy(cs_type_name_whole(0x2000, type, old), text);
  assert_string_equal(text, "Item");
  cs_event_name_copy(cs_type_name_whole(0x1000, type, old), text);
  assert_string_equal(text, "Shop.First.Item");  // it is known already
  assert_int_equal(asked, before);
}

// Events that no sample stands for have the name that the samples have had.
static void the_rest_has_the_same_name(void **state) {
  static const char16_t item[] = u"Item";
  char text[CS_EVENT_NAME_BYTES];
  uint32_t generation = cs_library.world.code_generation;
  (void)state;
  uint32_t first = cs_event_name_of_utf16((const uint8_t *)item, sizeof item - 2, 0x1000);
  uint32_t second = cs_event_name_of_utf16((const uint8_t *)item, sizeof item - 2, 0x2000);
  assert_int_equal(cs_type_name_known(first), cs_event_name_of("Item"));
  (void)cs_type_name_whole(0x1000, first, generation);
  (void)cs_type_name_whole(0x2000, second, generation);
  cs_event_name_copy(cs_type_name_known(second), text);
  assert_string_equal(text, "Shop.Second.Item");
  cs_type_names_forget();
  cs_event_name_copy(cs_type_name_known(first), text);
  assert_string_equal(text, "Shop.First.Item");
  assert_int_equal(cs_type_name_known(second), cs_event_name_of("Item"));
}

// However many classes there are, each has its own name.
static void the_table_does_not_fill_up(void **state) {
  (void)state;
  classes[0].id = 0;
  for (ClassID id = 0x100000; id < 0x200000; id += 64) {
    classes[0].id = id;
    is_named(id, "Item", "Shop.First.Item");
  }
  classes[0].id = 0x1000;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(a_nested_type_has_its_outer_types, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_class_with_another_name_is_not_believed, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_class_is_asked_for_once, set_up, tear_down),
      cmocka_unit_test_setup_teardown(what_may_be_unloaded_is_forgotten, set_up, tear_down),
      cmocka_unit_test_setup_teardown(what_may_be_gone_is_not_asked_for, set_up, tear_down),
      cmocka_unit_test_setup_teardown(the_rest_has_the_same_name, set_up, tear_down),
      cmocka_unit_test_setup_teardown(the_table_does_not_fill_up, set_up, tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
