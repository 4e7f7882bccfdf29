// SPDX-License-Identifier: MIT
// Names as the compilers of C# (SDK 10.0.401) and F# make them, taken from recordings of
// tests/apps/Names and NamesFs and from .NET's own libraries, names as VB makes them, written by
// hand, and what they must read like; and made-up names, which must do no harm.
// tests/live/names/names.sh runs the compilers themselves.
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "demangle/demangle.h"

#define HASH "67B52892E21822D92CDA066CBB73EC0BA03F9AE3A1948C052E3A8B637465D8B5"

static const struct {
  const char *space, *type, *method, *signature;
  const char *expected, *with_signature;
  enum cs_demangled kind;
} names[] = {
    // Top-level statements.
    {"", "Program", "<Main>", "(string[])", "Program.Main", "Program.Main(string[])",
     CS_DEMANGLED_ENTRY},
    {"", "Program", "<Main>$", "(string[])", "Program.Main", "Program.Main(string[])", 0},
    {"", "Program.<<Main>$>d__0", "MoveNext", "()", "Program.Main", "Program.Main#0",
     CS_DEMANGLED_BODY},
    {"", "Program", "<<Main>$>g__Local|0_0", "()", "Program.Main.Local", "Program.Main.Local#0_0()",
     0},
    {"", "Program.<>c", "<<Main>$>b__0_1", "()", "Program.Main.lambda#1",
     "Program.Main.lambda#0_1()", 0},
    // State machines.
    {"Shop", "Cart.<LoadAsync>d__4", "MoveNext", "()", "Shop.Cart.LoadAsync",
     "Shop.Cart.LoadAsync#4", CS_DEMANGLED_BODY},
    {"Shop", "Cart.<MapAsync>d__7<int>", "MoveNext", "()", "Shop.Cart.MapAsync<int>",
     "Shop.Cart.MapAsync<int>#7", CS_DEMANGLED_BODY},
    {"Shop", "Box<int>.<PutAsync>d__3<U>", "MoveNext", "()", "Shop.Box<int>.PutAsync<U>",
     "Shop.Box<int>.PutAsync<U>#3", CS_DEMANGLED_BODY},
    {"Shop", "Cart.<System-IAsyncDisposable-DisposeAsync>d__39", "MoveNext", "()",
     "Shop.Cart.System.IAsyncDisposable.DisposeAsync",
     "Shop.Cart.System.IAsyncDisposable.DisposeAsync#39", CS_DEMANGLED_BODY},
    {"Shop", "Cart.<>c.<<AsyncLambda>b__13_0>d", "MoveNext", "()", "Shop.Cart.AsyncLambda.lambda#0",
     "Shop.Cart.AsyncLambda.lambda#13_0", CS_DEMANGLED_BODY},
    {"Shop", "Cart.<<AsyncLocal>g__Fetch|15_0>d", "MoveNext", "()", "Shop.Cart.AsyncLocal.Fetch",
     "Shop.Cart.AsyncLocal.Fetch#15_0", CS_DEMANGLED_BODY},
    {"Shop", "Cart.<>c__DisplayClass12_0<long>.<<AsyncLocal>g__In|0>d<int>", "MoveNext", "()",
     "Shop.Cart.AsyncLocal<long>.In<int>", "Shop.Cart.AsyncLocal<long>.In#12_0_0<int>",
     CS_DEMANGLED_BODY},
    {"Shop", "Cart.<<AsyncLocal>g__In|15_1>d<long,int>", "MoveNext", "()",
     "Shop.Cart.AsyncLocal.In<long,int>", "Shop.Cart.AsyncLocal.In#15_1<long,int>",
     CS_DEMANGLED_BODY},
    {"Shop", "Cart.<Items>d__8", "<>m__Finally1", "()", "Shop.Cart.Items.finally",
     "Shop.Cart.Items#8.finally", 0},
    {"Shop", "Cart.<StreamAsync>d__10",
     "System.Collections.Generic.IAsyncEnumerator<System.Int32>.MoveNextAsync", "()",
     "Shop.Cart.StreamAsync.MoveNextAsync", "Shop.Cart.StreamAsync#10.MoveNextAsync", 0},
    // Lambdas and local functions.
    {"Shop", "Cart.<>c__DisplayClass11_0", "<Lambdas>b__1", "()", "Shop.Cart.Lambdas.lambda#1",
     "Shop.Cart.Lambdas.lambda#11_0_1()", 0},
    {"Shop", "Cart.<>c__12<int>", "<GenericLambda>b__12_0", "(int)",
     "Shop.Cart.GenericLambda<int>.lambda#0", "Shop.Cart.GenericLambda<int>.lambda#12_0(int)", 0},
    {"Shop", "Cart", "<LocalFunctions>g__First|14_0", "(ref Cart.<>c__DisplayClass14_0)",
     "Shop.Cart.LocalFunctions.First", "Shop.Cart.LocalFunctions.First#14_0()", 0},
    {"Shop", "Cart", "<LocalFunctions>g__Second|14_1<int>", "()",
     "Shop.Cart.LocalFunctions.Second<int>", "Shop.Cart.LocalFunctions.Second#14_1<int>()", 0},
    {"Shop", "Box<int>", "<Each>b__4_0", "()", "Shop.Box<int>.Each.lambda#0",
     "Shop.Box<int>.Each.lambda#4_0()", 0},
    {"Shop", "Cart.<>c", "<.ctor>b__1_0", "()", "new Shop.Cart.lambda#0",
     "new Shop.Cart.lambda#1_0()", 0},
    {"Shop", "Cart.<>c__DisplayClass11_0", ".ctor", "()", "new Shop.Cart.closure",
     "new Shop.Cart.closure()", 0},
    // Members.
    {"Shop", "Cart", ".ctor", "(int)", "new Shop.Cart", "new Shop.Cart(int)", 0},
    {"Shop", "Cart", ".cctor", "()", "static Shop.Cart", "static Shop.Cart()", 0},
    {"Shop", "Cart", "get_Count", "()", "Shop.Cart.Count.get", "Shop.Cart.Count.get()", 0},
    {"Shop", "Cart", "get_Item", "(int)", "Shop.Cart.this[].get", "Shop.Cart.this[].get(int)", 0},
    {"Shop", "Cart", "set_Item", "(int, int)", "Shop.Cart.this[].set",
     "Shop.Cart.this[].set(int, int)", 0},
    {"System.Collections.Concurrent", "ConcurrentDictionary<TKey,TValue>", "get_Item", "()",
     "System.Collections.Concurrent.ConcurrentDictionary<TKey,TValue>.Item.get",
     "System.Collections.Concurrent.ConcurrentDictionary<TKey,TValue>.Item.get()", 0},
    {"Shop", "Cart", "add_Changed", "(Action)", "Shop.Cart.Changed.add",
     "Shop.Cart.Changed.add(Action)", 0},
    {"Shop", "Cart", "get_lowercase", "()", "Shop.Cart.get_lowercase", "Shop.Cart.get_lowercase()",
     0},
    {"Shop", "Cart", "Shop.IBox<System.Int32>.get_Value", "()",
     "Shop.Cart.Shop.IBox<System.Int32>.Value.get", "Shop.Cart.Shop.IBox<System.Int32>.Value.get()",
     0},
    {"Shop", "Cart", "op_Addition", "(Cart, Cart)", "Shop.Cart.operator +",
     "Shop.Cart.operator +(Cart, Cart)", 0},
    {"Shop", "Cart", "op_Explicit", "(Cart)", "Shop.Cart.explicit operator",
     "Shop.Cart.explicit operator(Cart)", 0},
    {"Shop", "Cart", "op_Implicit", "(Cart, int):List<string>", "Shop.Cart.implicit operator",
     "Shop.Cart.implicit operator List<string>(Cart, int)", 0},
    {"Shop", "Cart", "op_CheckedAddition", "(Cart, Cart)", "Shop.Cart.operator checked +",
     "Shop.Cart.operator checked +(Cart, Cart)", 0},
    {"Shop", "Point", "<Clone>$", "()", "Shop.Point.Clone", "Shop.Point.Clone()", 0},
    // Types.
    {"Shop", "<Program>F" HASH "__Hidden", "Work", "()", "Shop.Hidden.Work", "Shop.Hidden.Work()",
     0},
    {"", "<>f__AnonymousType0<<A>j__TPar,<B>j__TPar>", "get_A", "()", "AnonymousType0<A,B>.A.get",
     "AnonymousType0<A,B>.A.get()", 0},
    {"", "<>z__ReadOnlyArray<T>", "GetEnumerator", "()", "ReadOnlyArray<T>.GetEnumerator",
     "ReadOnlyArray<T>.GetEnumerator()", 0},
    {"", "<PrivateImplementationDetails>", "ComputeStringHash", "(string)",
     "<PrivateImplementationDetails>.ComputeStringHash",
     "<PrivateImplementationDetails>.ComputeStringHash(string)", 0},
    {"System.Runtime.CompilerServices",
     "AsyncTaskMethodBuilder<VoidTaskResult>.AsyncStateMachineBox<Cart.<<AsyncLocal>g__Fetch|15_0>"
     "d>",
     "MoveNext", "()",
     "System.Runtime.CompilerServices.AsyncTaskMethodBuilder<VoidTaskResult>.AsyncStateMachineBox<"
     "Cart.AsyncLocal.Fetch>.MoveNext",
     "System.Runtime.CompilerServices.AsyncTaskMethodBuilder<VoidTaskResult>.AsyncStateMachineBox<"
     "Cart.AsyncLocal.Fetch#15_0>.MoveNext()",
     0},
    {"System", "Span<byte>", "Fill", "(byte)", "System.Span<byte>.Fill",
     "System.Span<byte>.Fill(byte)", 0},
    {"", "", "InvokeStub_X", "(object[,], ref List<int>[])", "InvokeStub_X",
     "InvokeStub_X(object[,], ref List<int>[])", 0},
    // F#.
    {"Shop", "Program.closures@31-1", "Invoke", "(int)", "Shop.Program.closures@31-1",
     "Shop.Program.closures@31-1(int)", 0},
    {"Shop", "Program.numbers@39", "GenerateNext", "(ref IEnumerable<int>)", "Shop.Program.numbers",
     "Shop.Program.numbers", CS_DEMANGLED_BODY},
    {"Shop", "Program.workTask@45", "MoveNext", "()", "Shop.Program.workTask",
     "Shop.Program.workTask", CS_DEMANGLED_BODY},
    {"Shop", "Program", "|Even|Odd|", "(int)", "Shop.Program.|Even|Odd|",
     "Shop.Program.|Even|Odd|(int)", 0},
    {"Microsoft.FSharp.Core", "Operators", "op_PipeRight<T1,TResult>",
     "(T1, FSharpFunc<T1,TResult>)", "Microsoft.FSharp.Core.Operators.operator |><T1,TResult>",
     "Microsoft.FSharp.Core.Operators.operator |><T1,TResult>(T1, FSharpFunc<T1,TResult>)", 0},
    {"Shop", "Program", "op_BarGreaterGreater", "(int, int)", "Shop.Program.operator |>>",
     "Shop.Program.operator |>>(int, int)", 0},
    {"<StartupCode$fsi>", "$LegacyResolver.capture@84", "Invoke", "(object)",
     "LegacyResolver.capture@84", "LegacyResolver.capture@84(object)", 0},
    {"Microsoft.FSharp.Core", "LanguagePrimitives", ".cctor$cont@2676<T>", "()",
     "static Microsoft.FSharp.Core.LanguagePrimitives<T>",
     "static Microsoft.FSharp.Core.LanguagePrimitives<T>()", 0},
    {"<StartupCode$FSharp-Build>", "$MapSourceRoots", "PerformMapping$cont@147", "()",
     "MapSourceRoots.PerformMapping", "MapSourceRoots.PerformMapping()", 0},
    // VB.
    {"Shop", "Cart.VB$StateMachine_3_LoadAsync", "MoveNext", "()", "Shop.Cart.LoadAsync",
     "Shop.Cart.LoadAsync#3", CS_DEMANGLED_BODY},
    {"Shop", "Cart._Closure$__", "_Lambda$__1-0", "()", "Shop.Cart.lambda#1-0",
     "Shop.Cart.lambda#1-0()", 0},
};

static void as_people_wrote_them(void **state) {
  (void)state;
  char text[1024];
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    struct cs_mangled name = {names[i].space,     names[i].type, names[i].method,
                              names[i].signature, false,         0};
    enum cs_demangled kind = cs_demangle(&name, text, sizeof text);
    assert_string_equal(text, names[i].expected);
    assert_int_equal(kind, names[i].kind);
    name.show_signature = true;
    assert_int_equal(cs_demangle(&name, text, sizeof text), names[i].kind);
    assert_string_equal(text, names[i].with_signature);
  }
}

// Any size of buffer will do; the result is as much of the name's beginning as fits.
static void cut_where_the_room_ends(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    struct cs_mangled name = {names[i].space, names[i].type, names[i].method, NULL, true, 0};
    char whole[1024], *text;
    (void)cs_demangle(&name, whole, sizeof whole);
    for (size_t cap = 1; cap <= strlen(whole) + 1; cap++) {
      text = malloc(cap);
      assert_non_null(text);
      (void)cs_demangle(&name, text, cap);
      assert_int_equal(strlen(text), cap - 1);
      assert_memory_equal(text, whole, cap - 1);
      free(text);
    }
  }
}

static uint64_t next_random(void) {
  static uint64_t state = 20;
  state = state * 6364136223846793005u + 1442695040888963407u;
  return state >> 33;
}

// `guarded` ends just before an unreadable page.
static char *mutate(const char *from, char *guarded) {
  static const char bytes[] = "<>.,@|_-`[]()d_bgc0$ \x80";
  size_t len = strlen(from);
  char *text = guarded - len - 1;
  memcpy(text, from, len + 1);
  for (unsigned n = (unsigned)(next_random() % 4); n > 0 && len > 0; n--)
    text[next_random() % len] = bytes[next_random() % (sizeof bytes - 1)];
  return text;
}

static void nothing_is_read_beyond(void **state) {
  (void)state;
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  char *area = mmap(NULL, 6 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  char text[256];
  assert_true(area != MAP_FAILED);
  for (int i = 1; i < 6; i += 2) assert_int_equal(mprotect(area + (size_t)i * page, page, 0), 0);
  for (int round = 0; round < 200000; round++) {
    size_t i = next_random() % (sizeof names / sizeof names[0]);
    struct cs_mangled name = {"",
                              mutate(names[i].type, area + page),
                              mutate(names[i].method, area + 3 * page),
                              mutate(names[i].signature, area + 5 * page),
                              true,
                              0};
    (void)cs_demangle(&name, text, 1 + next_random() % sizeof text);
  }
  assert_int_equal(munmap(area, 6 * page), 0);
}

static void a_count_of_parameters_is_enough(void **state) {
  (void)state;
  static const struct {
    const char *method;
    uint32_t parameters;
    const char *wanted;
  } cases[] = {{"get_Item", 0, "Shop.Cart.Item.get"},
               {"get_Item", 1, "Shop.Cart.this[].get"},
               {"set_Item", 1, "Shop.Cart.Item.set"},
               {"set_Item", 2, "Shop.Cart.this[].set"}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    char text[64];
    (void)cs_demangle(
        &(struct cs_mangled){"Shop", "Cart", cases[i].method, NULL, false, cases[i].parameters},
        text, sizeof text);
    assert_string_equal(text, cases[i].wanted);
  }
}

static void deep_names_end(void **state) {
  (void)state;
  enum { DEPTH = 20000 };
  char *type = malloc(4 * DEPTH + 16), *out = malloc(8 * DEPTH);
  assert_true(type != NULL && out != NULL);
  type[0] = '\0';
  char *at = type;
  for (int i = 0; i < DEPTH; i++) *at++ = '<';
  *at++ = 'M';
  for (int i = 0; i < DEPTH; i++, at += 2) memcpy(at, ">d", 2);
  *at = '\0';
  struct cs_mangled name = {"A", type, type, NULL, false, 0};
  (void)cs_demangle(&name, out, 8 * DEPTH);
  assert_memory_equal(out, "A.", 2);
  free(type);
  free(out);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(as_people_wrote_them),   cmocka_unit_test(cut_where_the_room_ends),
      cmocka_unit_test(nothing_is_read_beyond), cmocka_unit_test(a_count_of_parameters_is_enough),
      cmocka_unit_test(deep_names_end),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
