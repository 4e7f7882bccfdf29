// SPDX-License-Identifier: MIT
// The descriptor: what a correct one yields, and that every other one is refused with the reason.
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <dlfcn.h>
#include <glob.h>

#include "contract/contract.h"
#include "contract/described.h"
#include "contract/descriptor.h"
#include "contract/guarded.h"
#include "contract/runtime.h"

// The descriptor of a small runtime, with the forms that occur in real ones (bare, typed, sizes,
// hexadecimal strings) and with unusual numbers, which expose a parser that guesses.
static const char good[] =
    "{\"version\":0,\"baseline\":\"empty\",\"types\":{"
    "\"Thread\":{\"Id\":16,\"OSId\":296,\"State\":0,\"PreemptiveGCDisabled\":4,\"Frame\":8,"
    "\"ExceptionTracker\":352,\"GCHandle\":[304,\"GCHandle\"],\"LinkNext\":[112,\"pointer\"]},"
    "\"ThreadStore\":{\"FirstThreadLink\":88},"
    "\"ExceptionInfo\":{\"ThrownObject\":8,\"PreviousNestedInfo\":0},"
    "\"Module\":{\"Base\":224,\"ReadyToRunInfo\":704},"
    "\"ReadyToRunInfo\":{\"ReadyToRunHeader\":16,\"CompositeInfo\":40,\"NumRuntimeFunctions\":88,"
    "\"RuntimeFunctions\":80,\"NumHotColdMap\":104,\"HotColdMap\":96,"
    "\"DelayLoadMethodCallThunks\":112,\"EntryPointToMethodDescMap\":360},"
    "\"HashMap\":{\"Buckets\":16},\"Bucket\":{\"!\":64,\"Keys\":0,\"Values\":32},"
    "\"MethodDesc\":{\"!\":16,\"ChunkIndex\":2,\"Flags\":6,\"Flags3AndTokenRemainder\":0},"
    "\"MethodDescChunk\":{\"!\":24,\"MethodTable\":0,\"FlagsAndTokenRange\":18},"
    "\"MethodTable\":{\"Module\":24},"
    "\"ImageDataDirectory\":{\"!\":8,\"VirtualAddress\":1,\"Size\":4},"
    "\"RuntimeFunction\":{\"!\":12,\"BeginAddress\":4,\"EndAddress\":0,\"UnwindData\":8},"
    "\"RangeSectionMap\":{\"TopLevelData\":0},"
    "\"RangeSectionFragment\":{\"RangeBegin\":8,\"RangeEndOpen\":16,\"RangeSection\":24,\"Next\":2}"
    ","
    "\"RangeSection\":{\"RangeBegin\":5,\"RangeEndOpen\":8,\"JitManager\":24,\"Flags\":16,"
    "\"HeapList\":40,\"R2RModule\":32},"
    "\"RealCodeHeader\":{\"MethodDesc\":24,\"GCInfo\":16,\"NumUnwindInfos\":32,"
    "\"UnwindInfos\":36},"
    "\"CodeHeapListNode\":{\"Next\":0,\"StartAddress\":16,\"EndAddress\":24,\"MapBase\":32,"
    "\"HeaderMap\":40},"
    "\"Frame\":{\"Next\":8},"
    "\"InlinedCallFrame\":{\"!\":56,\"CallSiteSP\":24,\"CallerReturnAddress\":32,"
    "\"CalleeSavedFP\":40},"
    "\"SoftwareExceptionFrame\":{\"!\":3520,\"TargetContext\":288,\"ReturnAddress\":16},"
    "\"FramedMethodFrame\":{\"!\":32,\"TransitionBlockPtr\":16},"
    "\"TransitionBlock\":{\"!\":104,\"ReturnAddress\":96,\"CalleeSavedRegisters\":48},"
    "\"ResumableFrame\":{\"!\":24,\"TargetContextPtr\":16},"
    "\"HijackFrame\":{\"!\":40,\"ReturnAddress\":16,\"HijackArgsPtr\":32},"
    "\"HijackArgs\":{\"!\":80,\"CalleeSavedRegisters\":24},"
    "\"FaultingExceptionFrame\":{\"!\":3280,\"TargetContext\":33},"
    "\"CalleeSavedRegisters\":{\"!\":48,\"R12\":0,\"R13\":8,\"R14\":16,\"R15\":24,\"Rbx\":32,"
    "\"Rbp\":40}},"
    "\"globals\":{\"HashMapSlotsPerBucket\":[\"0x4\",\"uint32\"],"
    "\"HashMapValueMask\":[\"0x7fffffffffffffff\",\"uint64\"],"
    "\"MethodDescAlignment\":[\"0x8\",\"uint64\"],"
    "\"MethodDescTokenRemainderBitCount\":[\"0xc\",\"uint8\"],"
    "\"InlinedCallFrameIdentifier\":[\"0x1\",\"nuint\"],"
    "\"ResumableFrameIdentifier\":[\"0x2\",\"nuint\"],"
    "\"RedirectedThreadFrameIdentifier\":[\"0x3\",\"nuint\"],"
    "\"FaultingExceptionFrameIdentifier\":[\"0x4\",\"nuint\"],"
    "\"SoftwareExceptionFrameIdentifier\":[\"0x5\",\"nuint\"],"
    "\"FuncEvalFrameIdentifier\":[\"0x6\",\"nuint\"],"
    "\"PInvokeCalliFrameIdentifier\":[\"0x7\",\"nuint\"],"
    "\"HijackFrameIdentifier\":[\"0x8\",\"nuint\"],"
    "\"PrestubMethodFrameIdentifier\":[\"0x9\",\"nuint\"],"
    "\"CallCountingHelperFrameIdentifier\":[\"0xa\",\"nuint\"],"
    "\"StubDispatchFrameIdentifier\":[\"0xb\",\"nuint\"],"
    "\"ExternalMethodFrameIdentifier\":[\"0xc\",\"nuint\"],"
    "\"DynamicHelperFrameIdentifier\":\"13\","
    "\"ProtectValueClassFrameIdentifier\":14,"
    "\"DebuggerClassInitMarkFrameIdentifier\":[\"0xf\",\"nuint\"],"
    "\"DebuggerExitFrameIdentifier\":[\"0x10\",\"nuint\"],"
    "\"DebuggerU2MCatchHandlerFrameIdentifier\":[\"0x11\",\"nuint\"],"
    "\"ExceptionFilterFrameIdentifier\":[\"0x12\",\"nuint\"],"
    "\"StubCodeBlockLast\":[\"0xf\",\"uint8\"],"
    "\"ThreadStore\":[[3],\"pointer\"],"
    "\"ExecutionManagerCodeRangeMapAddress\":[[2],\"pointer\"]},"
    "\"contracts\":{\"ExecutionManager\":2,\"Loader\":1,\"StackWalk\":1,\"Exception\":1,"
    "\"Thread\":1}}";
static const uint64_t pointers[] = {0, 0x1000, 0x7f0000001000, 0x7f0000002000};

// Parses a copy of exactly its size, so that a sanitizer sees a read past the end.
static bool parse(const char *text, size_t len, struct cs_layout *out, struct cs_error *err) {
  char *copy = malloc(len > 0 ? len : 1);
  assert_non_null(copy);
  memcpy(copy, text, len);
  bool ok = cs_descriptor_parse(copy, len, pointers, 4, out, err);
  free(copy);
  return ok;
}

// `good` with the first `from` replaced by `to`.
static bool parse_with(const char *from, const char *to, struct cs_error *err) {
  char text[sizeof good + 64];
  const char *at = strstr(good, from);
  assert_non_null(at);
  int n = snprintf(text, sizeof text, "%.*s%s%s", (int)(at - good), good, to, at + strlen(from));
  assert_true(n > 0 && (size_t)n < sizeof text);
  struct cs_layout out;
  return parse(text, (size_t)n, &out, err);
}

static void a_good_descriptor_fills_the_layout(void **state) {
  (void)state;
  struct cs_layout l;
  struct cs_error err = {""};
  memset(&l, 0, sizeof l);
  if (!parse(good, sizeof good - 1, &l, &err)) fail_msg("%s", err.text);
  assert_int_equal(l.thread.os_id, 296);
  assert_int_equal(l.thread.link_next, 112);
  assert_int_equal(l.exception_info.thrown, 8);
  assert_int_equal(l.range_fragment.next, 2);
  assert_int_equal(l.range_section.range_begin, 5);
  assert_int_equal(l.image_data_directory.begin, 1);
  assert_int_equal(l.runtime_function.size, 12);
  assert_int_equal(l.runtime_function.begin, 4);
  assert_int_equal(l.faulting_exception_frame.target_context, 33);
  assert_int_equal(l.callee_saved.size, 48);
  assert_int_equal(l.callee_saved.rbp, 40);
  assert_int_equal(l.r2r_info.entry_points, 360);
  assert_int_equal(l.frame_ids.call_counting_helper, 10);
  assert_int_equal(l.frame_ids.dynamic_helper, 13);
  assert_int_equal(l.frame_ids.protect_value_class, 14);
  assert_int_equal(l.frame_ids.exception_filter, 18);
  assert_int_equal(l.stub_code_block_last, 15);
  assert_true(l.code_range_map == pointers[2] && l.thread_store == pointers[3]);
  assert_int_equal(l.context_size, 3232);
  assert_int_equal(l.hijack.hijack_slot, 0);  // no descriptor has it
}

// The kinds of Frames whose own fields are read; without another one, a walk ends at such a Frame.
static bool is_optional_frame(const char *name) {
  static const char *const needed[] = {"InlinedCall",       "Resumable",         "RedirectedThread",
                                       "FaultingException", "SoftwareException", "Hijack"};
  const char *end = strstr(name, "FrameIdentifier");
  for (size_t i = 0; end != NULL && i < CS_COUNT(needed); i++)
    if (strncmp(name, needed[i], strlen(needed[i])) == 0) return false;
  return end != NULL;
}

// Removes one key after another. Only keys that are not read may be missing.
static void every_missing_field_is_named(void **state) {
  (void)state;
  static const char *const unused[] = {"version", "baseline", "GCHandle", "ThrownObject"};
  char text[sizeof good];
  int refused = 0;
  for (const char *p = good; (p = strstr(p, "\":")) != NULL; p++) {
    const char *key = p;
    while (key[-1] != '"') key--;
    char name[64];
    (void)snprintf(name, sizeof name, "%.*s", (int)(p - key), key);
    memcpy(text, good, sizeof good);
    text[key - good] = '?';
    struct cs_layout out;
    struct cs_error err = {""};
    bool ok = parse(text, sizeof good - 1, &out, &err), may_go = false;
    for (size_t i = 0; i < CS_COUNT(unused); i++) may_go |= strcmp(name, unused[i]) == 0;
    may_go |= strcmp(name, "!") == 0;  // several sizes are not needed
    may_go |= is_optional_frame(name);
    if (ok && !may_go) fail_msg("no refusal without %s", name);
    if (ok) continue;
    refused++;
    // What is reported for "types" and the like is the first thing that is looked up inside.
    bool outer = strcmp(name, "types") == 0 || strcmp(name, "globals") == 0 ||
                 strcmp(name, "contracts") == 0;
    if (!outer && strstr(err.text, name) == NULL && strstr(err.text, "size") == NULL) {
      fail_msg("without %s: %s", name, err.text);
    }
  }
  assert_true(refused > 95);
}

static void wrong_values_are_refused(void **state) {
  (void)state;
  struct cs_error err = {""};
  static const char *const cases[][3] = {
      {"\"OSId\":296", "\"OSId\":-1", "Thread.OSId"},
      {"\"OSId\":296", "\"OSId\":70000", "Thread.OSId"},
      {"\"OSId\":296", "\"OSId\":\"pointer\"", "Thread.OSId"},
      {"\"OSId\":296", "\"OSId\":[]", "Thread.OSId"},
      {"\"OSId\":296", "\"OSId\":[[296]]", "Thread.OSId"},
      {"\"OSId\":296", "\"OSId\":29999999999999999999999999999999999996", "Thread.OSId"},
      {"\"BeginAddress\":4", "\"BeginAddress\":65532", "RuntimeFunction.BeginAddress"},
      {"\"BeginAddress\":4", "\"BeginAddress\":3", "RuntimeFunction.BeginAddress"},
      {"\"!\":12,\"BeginAddress\"", "\"!\":0,\"BeginAddress\"", "RuntimeFunction"},
      {"\"Flags\":6", "\"Flags\":65535", "MethodDesc.Flags"},
      {"\"ChunkIndex\":2", "\"ChunkIndex\":16", "MethodDesc.ChunkIndex"},
      {"\"RangeBegin\":5", "\"RangeBegin\":60000", "RangeSection.RangeBegin"},
      {"\"NumUnwindInfos\":32", "\"NumUnwindInfos\":96", "RealCodeHeader.NumUnwindInfos"},
      {"\"HeaderMap\":40", "\"HeaderMap\":89", "CodeHeapListNode.HeaderMap"},
      {"[[2],\"pointer\"]", "[[4],\"pointer\"]", "ExecutionManagerCodeRangeMapAddress"},
      {"[[2],\"pointer\"]", "[[0],\"pointer\"]", "ExecutionManagerCodeRangeMapAddress"},
      {"[[2],\"pointer\"]", "[2,\"pointer\"]", "ExecutionManagerCodeRangeMapAddress"},
      {"[\"0xf\",\"uint8\"]", "[[1],\"uint8\"]", "StubCodeBlockLast"},
      {"\"!\":3520", "\"!\":1000", "CONTEXT"},
      {"\"!\":3520", "\"!\":3521", "CONTEXT"},
      {"\"ExecutionManager\":2", "\"ExecutionManager\":3", "ExecutionManager has version 3"},
      {"\"StackWalk\":1", "\"StackWalk\":2", "StackWalk has version 2"},
      {"\"Thread\":1}", "\"Thread\":2}", "Thread has version 2"},
      {"\"ExecutionManager\":2,", "", "does not describe ExecutionManager"},
  };
  for (size_t i = 0; i < CS_COUNT(cases); i++) {
    if (parse_with(cases[i][0], cases[i][1], &err)) fail_msg("accepted: %s", cases[i][1]);
    if (strstr(err.text, cases[i][2]) == NULL) fail_msg("%s: %s", cases[i][1], err.text);
  }
}

static void no_prefix_is_taken_for_the_whole(void **state) {
  (void)state;
  struct cs_layout out;
  struct cs_error err;
  for (size_t len = 0; len < sizeof good - 1; len++) assert_false(parse(good, len, &out, &err));
  assert_false(parse("[]", 2, &out, &err));
  assert_false(parse("0", 1, &out, &err));
  assert_false(parse("{}", 2, &out, &err));
}

static void a_wrong_head_is_refused(void **state) {
  (void)state;
  const struct cs_descriptor_head head = {CS_DESCRIPTOR_MAGIC, 1, 100, 0x1000, 4, 0, 0x2000};
  struct cs_error err = {""};
  assert_true(cs_descriptor_check_head(&head, &err));
  struct cs_descriptor_head bad = head;
  bad.magic = 0x444E434344414300ull;  // the other byte order
  assert_false(cs_descriptor_check_head(&bad, &err));
  assert_non_null(strstr(err.text, "magic"));
  for (uint32_t flags = 0; flags < 4; flags++) {
    bad = head;
    bad.flags = flags;
    assert_true(cs_descriptor_check_head(&bad, &err) == (flags == 1));
  }
  bad = head;
  bad.json_bytes = UINT32_MAX;
  assert_false(cs_descriptor_check_head(&bad, &err));
  bad.json_bytes = 0;
  assert_false(cs_descriptor_check_head(&bad, &err));
  bad = head;
  bad.pointer_count = UINT32_MAX;
  assert_false(cs_descriptor_check_head(&bad, &err));
  bad = head;
  bad.json = 0;
  assert_false(cs_descriptor_check_head(&bad, &err));
}

static uint64_t next_random(uint64_t *seed) {  // xorshift64*
  *seed ^= *seed >> 12;
  *seed ^= *seed << 25;
  *seed ^= *seed >> 27;
  return *seed * 2685821657736338717u;
}

// A fixed sequence of mutations: bytes are changed, removed and doubled. Whatever is accepted must
// still be within bounds; the sanitizers check the rest.
static void mutations_do_no_harm(void **state) {
  (void)state;
  uint64_t seed = 0x1234567890ABCDEFu;
  static const char alphabet[] = "{}[]\",:0123456789-x\\eE.tfn \0\xFF";
  int accepted = 0;
  for (int round = 0; round < 4000; round++) {
    char text[2 * sizeof good];
    size_t len = sizeof good - 1;
    memcpy(text, good, len);
    for (uint64_t n = next_random(&seed) % 4 + 1; n > 0; n--) {
      size_t at = next_random(&seed) % len, span = next_random(&seed) % 16 + 1;
      if (span > len - at) span = len - at;
      switch (next_random(&seed) % 3) {
        case 0:
          text[at] = alphabet[next_random(&seed) % (sizeof alphabet - 1)];
          break;
        case 1:
          memmove(text + at, text + at + span, len - at - span);
          len -= span;
          break;
        default:
          memmove(text + at + span, text + at, len - at);
          len += span;
          break;
      }
    }
    struct cs_layout out;
    struct cs_error err = {""};
    if (!parse(text, len, &out, &err)) {
      assert_true(err.text[0] != '\0');
      continue;
    }
    accepted++;
    assert_true(out.thread.os_id <= 65536 && out.callee_saved.rbp <= 65536);
    assert_true(out.context_size >= 1232 && out.context_size <= 16384);
  }
  assert_true(accepted > 0 && accepted < 4000);
}

// .NET 9, with addresses from the table for its debugger instead of numbers.
static void our_description_is_whole(void **state) {
  (void)state;
  const struct cs_description *ours = cs_described(9);
  uint64_t table[CS_DEBUG_TABLE_ENTRIES];
  struct cs_layout l;
  struct cs_error err = {""};
  assert_non_null(ours);
  for (size_t i = 0; i < CS_COUNT(table); i++) table[i] = 0x10000 + 8 * i;
  if (!cs_descriptor_parse(ours->json, ours->bytes, table, CS_COUNT(table), &l, &err))
    fail_msg("%s", err.text);
  assert_true(l.nibbles_only);
  assert_int_equal(l.context_size, 3104);
  assert_int_equal(l.thread.os_id, 296);
  assert_true(l.code_range_map == table[0] && l.thread_store == table[16]);
  assert_true(l.frame_ids.inlined_call == table[137]);
  assert_true(l.frame_ids.software_exception == CS_NO_FRAME);
  assert_null(cs_described(10));
  table[16] = 0;  // not filled in yet, or no address of the runtime's
  assert_false(cs_descriptor_parse(ours->json, ours->bytes, table, CS_COUNT(table), &l, &err));
  assert_non_null(strstr(err.text, "ThreadStore"));
}

// What a runtime says of itself must be what our description of it says.
static void two_sources_must_agree(void **state) {
  (void)state;
  struct cs_layout l;
  struct cs_error err = {""};
  memset(&l, 0, sizeof l);
  assert_true(parse(good, sizeof good - 1, &l, &err));
  const struct cs_layout same = l;
  assert_true(cs_descriptor_compare(good, sizeof good - 1, pointers, 4, &l, &err));
  l.thread.os_id++;
  assert_false(cs_descriptor_compare(good, sizeof good - 1, pointers, 4, &l, &err));
  assert_non_null(strstr(err.text, "Thread.OSId at 0x128"));
  l = same;
  l.thread_store++;
  assert_false(cs_descriptor_compare(good, sizeof good - 1, pointers, 4, &l, &err));
  assert_non_null(strstr(err.text, "ThreadStore"));
  l = same;
  l.thread.exposed_object = 300;
  assert_false(cs_descriptor_compare(good, sizeof good - 1, pointers, 4, &l, &err));
  l.thread.exposed_object = CS_NO_FIELD;  // ours need not have everything
  assert_true(cs_descriptor_compare(good, sizeof good - 1, pointers, 4, &l, &err));
  assert_false(cs_descriptor_compare("x", 1, pointers, 4, &l, &err));
}

static void versions_are_read_from_paths(void **state) {
  (void)state;
  uint16_t v[3];
  assert_true(cs_runtime_path_version(
      "/usr/share/dotnet/shared/Microsoft.NETCore.App/10.0.12/libcoreclr.so", v));
  assert_true(v[0] == 10 && v[1] == 0 && v[2] == 12);
  assert_true(cs_runtime_path_version("/a/9.0.22-preview.1/libcoreclr.so", v));
  assert_true(v[0] == 9 && v[2] == 22);
  assert_false(cs_runtime_path_version("/app/libcoreclr.so", v));
  assert_false(cs_runtime_path_version("libcoreclr.so", v));
  assert_false(cs_runtime_path_version("/99999.0.1/libcoreclr.so", v));
}

static void guarded_reads_do_not_fault(void **state) {
  (void)state;
  uint64_t value = 0x1122334455667788u, out = 0;
  assert_true(cs_guarded_u64((uint64_t)(uintptr_t)&value, &out));
  assert_true(out == value);
  assert_false(cs_guarded_u64(0, &out));
  assert_false(cs_guarded_u64(8, &out));
  assert_false(cs_guarded_u64(0xCCCCCCCCCCCCCCCCu, &out));
  assert_false(cs_guarded_u64(UINT64_MAX - 3, &out));
}

static void refusals_tell_the_version(void **state) {
  (void)state;
  struct cs_layout out;
  struct cs_error err = {""};
  // This process has no runtime until the next test loads one.
  assert_false(cs_contract_read(&out, NULL, &err));
  assert_non_null(strstr(err.text, "no CoreCLR"));
}

// Reads the installed runtime's own descriptor, found through the dynamic loader as in a real
// process. Where no runtime is installed, tests/live has the same test in a running program.
static void the_installed_runtime_is_understood(void **state) {
  (void)state;
  glob_t found;
  const char *root = getenv("DOTNET_ROOT");
  char pattern[512];
  (void)snprintf(pattern, sizeof pattern, "%s/shared/Microsoft.NETCore.App/10.*/libcoreclr.so",
                 root != NULL ? root : "/usr/*/dotnet");
  if (glob(pattern, 0, NULL, &found) != 0) skip();
  void *handle = dlopen(found.gl_pathv[0], RTLD_LAZY);
  globfree(&found);
  if (handle == NULL) skip();
  struct cs_layout l;
  struct cs_error err = {""};
  if (!cs_contract_read(&l, NULL, &err)) fail_msg("%s", err.text);
  assert_int_equal(l.runtime_major, 10);
  assert_true(l.coreclr_begin < l.code_range_map && l.code_range_map < l.coreclr_end);
  assert_true(l.coreclr_begin < l.thread_store && l.thread_store < l.coreclr_end);
  assert_int_equal(l.context_size, 3232);
  static const struct cs_runtime_version others[] = {{8, 0, 33}, {9, 0, 3}, {9, 0, 22}, {12, 0, 0}};
  static const char *const texts[] = {".NET 8.0.33, which is not supported yet",
                                      ".NET 9.0.3, which clrsnap has not measured; of .NET 9 it "
                                      "knows 9.0.18 to 9.0.22",
                                      "", ".NET 12.0.0, which this version"};
  for (size_t i = 0; i < CS_COUNT(others); i++) {
    assert_false(cs_contract_read(&l, &others[i], &err));
    if (strstr(err.text, texts[i]) == NULL) fail_msg("%s", err.text);
  }
}

// The Thread that the runtime gives for a thread may belong to another one by the time it is read.
static void a_thread_may_have_ended_meanwhile(void **state) {
  (void)state;
  struct cs_layout layout = {.hijack.hijack_slot = 8};
  struct {
    uint32_t os_id, pad;
    uint64_t frame;
  } thread = {(uint32_t)gettid(), 0, UINT64_MAX};
  struct cs_error err = {""};
  pid_t ended = fork();
  if (ended == 0) _exit(0);
  assert_int_equal(waitpid(ended, NULL, 0), ended);
  layout.thread.os_id = offsetof(typeof(thread), os_id);
  layout.thread.frame = offsetof(typeof(thread), frame);
  ThreadID id = (ThreadID)&thread;
  assert_int_equal(cs_contract_check_thread(&layout, id, (DWORD)gettid(), &err), CS_CHECK_PASSED);
  assert_int_equal(cs_contract_check_thread(&layout, id, (DWORD)ended, &err), CS_CHECK_NOT_YET);
  thread.os_id = 1;  // the thread exists, but has its id elsewhere
  assert_int_equal(cs_contract_check_thread(&layout, id, (DWORD)gettid(), &err), CS_CHECK_FAILED);
  thread.os_id = 0;
  assert_int_equal(cs_contract_check_thread(&layout, id, (DWORD)gettid(), &err), CS_CHECK_NOT_YET);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_good_descriptor_fills_the_layout),
      cmocka_unit_test(every_missing_field_is_named),
      cmocka_unit_test(wrong_values_are_refused),
      cmocka_unit_test(no_prefix_is_taken_for_the_whole),
      cmocka_unit_test(a_wrong_head_is_refused),
      cmocka_unit_test(mutations_do_no_harm),
      cmocka_unit_test(our_description_is_whole),
      cmocka_unit_test(two_sources_must_agree),
      cmocka_unit_test(versions_are_read_from_paths),
      cmocka_unit_test(guarded_reads_do_not_fault),
      cmocka_unit_test(refusals_tell_the_version),
      cmocka_unit_test(the_installed_runtime_is_understood),
      cmocka_unit_test(a_thread_may_have_ended_meanwhile),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
