// SPDX-License-Identifier: MIT
// .NET 11's descriptor, which no test has seen in a real runtime. The names of its types, fields,
// globals and contracts, and their forms, are those of vm/datadescriptor/datadescriptor.inc of
// dotnet/runtime (002e41d5, and RecommendedReaderVersion 2 of September 2026). The numbers are not:
// a compiler makes them from structures, and most here are .NET 10's, others made up. The
// identifiers of Frames are numbered in the order of the runtime's list of their names.
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "contract/contract.h"
#include "contract/descriptor.h"

static const char eleven[] =
    "{\"version\":0,\"baseline\":\"empty\",\"types\":{"
    "\"Thread\":{\"Id\":[16,\"uint32\"],\"OSId\":[288,\"nuint\"],\"State\":[0,\"uint32\"],"
    "\"PreemptiveGCDisabled\":[4,\"uint32\"],\"RuntimeThreadLocals\":[32,\"pointer\"],"
    "\"Frame\":[8,\"pointer\"],\"CachedStackBase\":[400,\"pointer\"],"
    "\"CachedStackLimit\":[408,\"pointer\"],\"ExceptionTracker\":[344,\"pointer\"],"
    "\"DebuggerControlledThreadState\":[560,\"uint32\"],"
    "\"DebuggerFilterContext\":[552,\"pointer\"],\"ExposedObject\":[296,\"ObjectHandle\"],"
    "\"LastThrownObject\":[328,\"ObjectHandle\"],\"LastThrownObjectIsUnhandled\":[336,\"uint32\"],"
    "\"LinkNext\":[104,\"pointer\"],\"ThreadLocalDataPtr\":[576,\"pointer\"]},"
    "\"ThreadStore\":{\"FirstThreadLink\":[80,\"pointer\"],\"ThreadCount\":[104,\"int32\"],"
    "\"DeadCount\":[120,\"int32\"]},"
    "\"RuntimeThreadLocals\":{\"AllocContext\":[0,\"EEAllocContext\"]},"
    "\"ThreadLocalData\":{\"InFlightData\":[32,\"pointer\"]},"
    "\"EEAllocContext\":{\"GCAllocationContext\":[8,\"GCAllocContext\"]},"
    "\"GCAllocContext\":{\"Pointer\":[0,\"pointer\"],\"Limit\":[8,\"pointer\"],"
    "\"AllocBytes\":[16,\"int64\"],\"AllocBytesLoh\":[24,\"int64\"]},"
    "\"Exception\":{\"_message\":[16,\"pointer\"]},"
    "\"ExceptionInfo\":{\"PreviousNestedInfo\":[0,\"pointer\"],\"ThrownObject\":[152,\"pointer\"],"
    "\"ExceptionFlags\":[56,\"uint32\"],\"StackLowBound\":[120,\"pointer\"],"
    "\"StackHighBound\":[128,\"pointer\"],\"PassNumber\":[161,\"uint8\"],"
    "\"CSFEHClause\":[1000,\"pointer\"],\"CSFEnclosingClause\":[1008,\"pointer\"],"
    "\"CallerOfActualHandlerFrame\":[1016,\"pointer\"]},"
    "\"ObjectHandle\":{\"!\":8},\"Object\":{\"!\":8,\"m_pMethTab\":[0,\"pointer\"]},"
    "\"ObjectHeader\":{\"!\":8,\"SyncBlockValue\":[4,\"uint32\"]},"
    "\"String\":{\"m_FirstChar\":[12,\"pointer\"],\"m_StringLength\":[8,\"uint32\"]},"
    "\"ContinuationObject\":{\"!\":32},"
    "\"Array\":{\"!\":16,\"m_NumComponents\":[8,\"uint32\"]},"
    "\"SyncBlock\":{\"InteropInfo\":[16,\"pointer\"],\"Lock\":[0,\"ObjectHandle\"],"
    "\"ThinLock\":[8,\"uint32\"]},"
    "\"SyncTableEntry\":{\"!\":16,\"SyncBlock\":[0,\"pointer\"],\"Object\":[8,\"pointer\"]},"
    "\"Module\":{\"Base\":[224,\"pointer\"],\"Path\":[200,\"pointer\"],"
    "\"ReadyToRunInfo\":[704,\"pointer\"],\"TypeDefToMethodTableMap\":[416,\"pointer\"]},"
    "\"ModuleLookupMap\":{\"TableData\":[8,\"pointer\"],\"Next\":[0,\"pointer\"],"
    "\"Count\":[16,\"uint32\"]},"
    "\"MethodTable\":{\"!\":64,\"MTFlags\":[0,\"uint32\"],\"BaseSize\":[4,\"uint32\"],"
    "\"MTFlags2\":[8,\"uint32\"],\"EEClassOrCanonMT\":[40,\"pointer\"],"
    "\"Module\":[24,\"pointer\"],\"ParentMethodTable\":[16,\"pointer\"],"
    "\"PerInstInfo\":[48,\"pointer\"],\"AuxiliaryData\":[32,\"pointer\"]},"
    "\"MethodDesc\":{\"!\":16,\"ChunkIndex\":[2,\"uint8\"],\"Slot\":[4,\"uint16\"],"
    "\"Flags\":[6,\"uint16\"],\"Flags3AndTokenRemainder\":[0,\"uint16\"]},"
    "\"MethodDescChunk\":{\"!\":24,\"MethodTable\":[0,\"pointer\"],\"Next\":[8,\"pointer\"],"
    "\"FlagsAndTokenRange\":[18,\"uint16\"]},"
    "\"AsyncMethodData\":{\"!\":24,\"Flags\":[0,\"uint32\"]},"
    "\"DynamicMethodDesc\":{\"!\":48,\"MethodName\":[32,\"pointer\"]},"
    "\"ReadyToRunInfo\":{\"ReadyToRunHeader\":[16,\"pointer\"],\"CompositeInfo\":[40,\"pointer\"],"
    "\"NumRuntimeFunctions\":[88,\"uint32\"],\"RuntimeFunctions\":[80,\"pointer\"],"
    "\"NumHotColdMap\":[104,\"uint32\"],\"HotColdMap\":[96,\"pointer\"],"
    "\"DelayLoadMethodCallThunks\":[112,\"pointer\"],\"DebugInfoSection\":[120,\"pointer\"],"
    "\"EntryPointToMethodDescMap\":[368,\"HashMap\"],\"LoadedImageBase\":[8,\"pointer\"],"
    "\"Composite\":[48,\"pointer\"]},"
    "\"ImageDataDirectory\":{\"!\":8,\"VirtualAddress\":[0,\"uint32\"],\"Size\":[4,\"uint32\"]},"
    "\"RuntimeFunction\":{\"!\":12,\"BeginAddress\":[0,\"uint32\"],\"EndAddress\":[4,\"uint32\"],"
    "\"UnwindData\":[8,\"uint32\"]},"
    "\"HashMap\":{\"Buckets\":[0,\"pointer\"]},"
    "\"Bucket\":{\"!\":64,\"Keys\":[0,\"pointer\"],\"Values\":[32,\"pointer\"]},"
    "\"RangeSectionMap\":{\"TopLevelData\":[0,\"pointer\"]},"
    "\"RangeSectionFragment\":{\"RangeBegin\":[8,\"pointer\"],\"RangeEndOpen\":[16,\"pointer\"],"
    "\"RangeSection\":[24,\"pointer\"],\"Next\":[0,\"pointer\"]},"
    "\"RangeSection\":{\"RangeBegin\":[0,\"pointer\"],\"RangeEndOpen\":[8,\"pointer\"],"
    "\"NextForDelete\":[64,\"pointer\"],\"JitManager\":[24,\"pointer\"],\"Flags\":[16,\"int32\"],"
    "\"HeapList\":[40,\"pointer\"],\"R2RModule\":[32,\"pointer\"],\"RangeList\":[48,\"pointer\"]},"
    "\"EEJitManager\":{\"StoreRichDebugInfo\":[40,\"bool\"],\"AllCodeHeaps\":[16,\"pointer\"]},"
    "\"RealCodeHeader\":{\"MethodDesc\":[24,\"pointer\"],\"DebugInfo\":[0,\"pointer\"],"
    "\"EHInfo\":[8,\"pointer\"],\"GCInfo\":[16,\"pointer\"],\"NumUnwindInfos\":[32,\"uint32\"],"
    "\"UnwindInfos\":[36,\"RuntimeFunction\"]},"
    "\"InterpreterRealCodeHeader\":{\"MethodDesc\":[24,\"pointer\"],\"DebugInfo\":[0,\"pointer\"],"
    "\"GCInfo\":[16,\"pointer\"],\"JitEHInfo\":[8,\"pointer\"]},"
    "\"CodeHeapListNode\":{\"Next\":[0,\"pointer\"],\"StartAddress\":[16,\"pointer\"],"
    "\"EndAddress\":[24,\"pointer\"],\"MapBase\":[32,\"pointer\"],\"HeaderMap\":[40,\"pointer\"],"
    "\"Heap\":[8,\"pointer\"]},"
    "\"Frame\":{\"Next\":[8,\"pointer\"]},"
    "\"InlinedCallFrame\":{\"!\":56,\"CallSiteSP\":[24,\"pointer\"],"
    "\"CallerReturnAddress\":[32,\"pointer\"],\"CalleeSavedFP\":[40,\"pointer\"],"
    "\"Datum\":[16,\"pointer\"]},"
    "\"SoftwareExceptionFrame\":{\"!\":3520,\"TargetContext\":288,"
    "\"ReturnAddress\":[16,\"pointer\"]},"
    "\"FramedMethodFrame\":{\"!\":32,\"TransitionBlockPtr\":[16,\"pointer\"],"
    "\"MethodDescPtr\":[24,\"pointer\"]},"
    "\"InterpreterFrame\":{\"TopInterpMethodContextFrame\":[40,\"pointer\"],"
    "\"IsFaulting\":[48,\"bool\"]},"
    "\"TransitionBlock\":{\"!\":104,\"ReturnAddress\":[96,\"pointer\"],"
    "\"CalleeSavedRegisters\":[48,\"CalleeSavedRegisters\"],\"OffsetOfArgs\":[104,\"uint32\"]},"
    "\"ResumableFrame\":{\"!\":24,\"TargetContextPtr\":[16,\"pointer\"]},"
    "\"HijackFrame\":{\"!\":40,\"ReturnAddress\":[16,\"pointer\"],\"HijackArgsPtr\":[32,"
    "\"pointer\"]},"
    "\"HijackArgs\":{\"!\":80,\"CalleeSavedRegisters\":[24,\"CalleeSavedRegisters\"]},"
    "\"FaultingExceptionFrame\":{\"!\":3280,\"TargetContext\":32},"
    "\"CalleeSavedRegisters\":{\"!\":48,\"R12\":[0,\"nuint\"],\"R13\":[8,\"nuint\"],"
    "\"R14\":[16,\"nuint\"],\"R15\":[24,\"nuint\"],\"Rbx\":[32,\"nuint\"],\"Rbp\":[40,\"nuint\"]}},"
    "\"globals\":{"
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
    "\"DynamicHelperFrameIdentifier\":[\"0xd\",\"nuint\"],"
    "\"DebuggerExitFrameIdentifier\":[\"0xe\",\"nuint\"],"
    "\"ExceptionFilterFrameIdentifier\":[\"0xf\",\"nuint\"],"
    "\"InterpreterFrameIdentifier\":[\"0x10\",\"nuint\"],"
    "\"MethodDescTokenRemainderBitCount\":[\"0xc\",\"uint8\"],"
    "\"SOSBreakingChangeVersion\":[\"0x6\",\"uint8\"],"
    "\"RecommendedReaderVersion\":[\"0x2\",\"uint32\"],"
    "\"HashMapSlotsPerBucket\":[\"0x4\",\"uint32\"],"
    "\"HashMapValueMask\":[\"0x7fffffffffffffff\",\"uint64\"],"
    "\"MethodDescAlignment\":[\"0x8\",\"uint64\"],\"StubCodeBlockLast\":[\"0x10\",\"uint8\"],"
    "\"ThreadStore\":[[1],\"pointer\"],\"ContinuationMethodTable\":[[2],\"pointer\"],"
    "\"ExecutionManagerCodeRangeMapAddress\":[[3],\"pointer\"],"
    "\"EEJitManagerAddress\":[[4],\"pointer\"],\"InterpreterJitManagerAddress\":[[5],\"pointer\"],"
    "\"OperatingSystem\":[\"Unix\",\"string\"],\"Architecture\":[\"x64\",\"string\"],"
    "\"RID\":[\"linux-x64\",\"string\"]},"
    "\"sub-descriptors\":{\"GC\":[[6],\"pointer\"]},"
    "\"contracts\":{\"AuxiliarySymbols\":\"c1\",\"DebugInfo\":\"c2\",\"Exception\":\"c1\","
    "\"ExecutionManager\":\"c2\",\"GCInfo\":\"c1\",\"Loader\":\"c1\",\"Object\":\"c1\","
    "\"PrecodeStubs\":\"c3\",\"RuntimeInfo\":\"c1\",\"RuntimeTypeSystem\":\"c1\","
    "\"StackWalk\":\"c1\",\"SyncBlock\":\"c1\",\"Thread\":\"c1\"}}";

// The variables that the globals refer to, and the runtime around them.
static struct {
  uint64_t nothing, thread_store, continuations, ranges, jit, interpreter, gc;
  uint64_t pointers[7];
} runtime;

static uint64_t address(const void *p) {
  return (uint64_t)(uintptr_t)p;
}

static bool read_plain(const struct cs_mem *mem, uint64_t at, void *out, size_t size) {
  (void)mem;
  memcpy(out, (const void *)(uintptr_t)at, size);
  return true;
}

// As from a process: by the version, the descriptor's head, its text, and what is measured.
static bool read_as(uint16_t major, const char *text, struct cs_layout *out, struct cs_error *err) {
  static const struct cs_mem mem = {.read = read_plain};
  const uint64_t *words = &runtime.nothing;
  for (unsigned i = 0; i < CS_COUNT(runtime.pointers); i++)
    runtime.pointers[i] = i == 0 ? 0 : address(&words[i]);
  struct cs_descriptor_head head = {
      CS_DESCRIPTOR_MAGIC,        1, (uint32_t)strlen(text),   address(text),
      CS_COUNT(runtime.pointers), 0, address(runtime.pointers)};
  const struct cs_contract_place place = {
      address(&head), address(&runtime), address(&runtime + 1), {major, 0, 0}, 0};
  return cs_contract_read_at(out, &mem, &place, err);
}

// `eleven` with the first `from` replaced by `to`; free the result.
static char *with(const char *from, const char *to) {
  const char *at = strstr(eleven, from);
  char *text = NULL;
  if (at == NULL) fail_msg("not in the descriptor: %s", from);
  if (asprintf(&text, "%.*s%s%s", (int)(at - eleven), eleven, to, at + strlen(from)) < 0) abort();
  return text;
}

static void the_descriptor_is_understood(void **state) {
  (void)state;
  struct cs_layout l;
  struct cs_error err = {""};
  if (!read_as(11, eleven, &l, &err)) fail_msg("%s", err.text);
  assert_int_equal(l.thread.exposed_object, 296);
  assert_int_equal(l.exception_info.flags, 56);
  assert_int_equal(l.exception_info.unwound_lo, 120);
  assert_int_equal(l.exception_info.unwound_hi, 128);
  assert_int_equal(l.exception_info.handler_entered, CS_NO_FIELD);  // described nowhere
  assert_int_equal(l.frame_ids.exception_filter, 15);
  assert_true(l.frame_ids.debugger_u2m_catch == CS_NO_FRAME);  // 11 has no such Frame
  assert_true(l.frame_ids.protect_value_class == CS_NO_FRAME);
  assert_true(l.jit_manager == address(&runtime.jit));
  assert_true(l.code_range_map == address(&runtime.ranges));
  assert_int_equal(l.context_size, 3232);
  assert_int_equal(l.ee_class.fields, CS_NO_FIELD);  // left out above: only names need it
}

// What is measured on one version is not taken for another's.
static void nothing_is_taken_from_another_version(void **state) {
  (void)state;
  struct cs_layout l;
  struct cs_error err = {""};
  char *text = with("\"ExceptionFlags\":[56,\"uint32\"],", "");
  assert_true(read_as(11, text, &l, &err));
  assert_int_equal(l.exception_info.flags, CS_NO_FIELD);
  assert_true(read_as(10, text, &l, &err));
  assert_int_equal(l.exception_info.flags, 64);
  assert_int_equal(l.exception_info.handler_entered, 60);
  free(text);
  assert_false(read_as(12, eleven, &l, &err));
  assert_non_null(strstr(err.text, ".NET 12.0.0, which this version of clrsnap does not support"));
}

static void what_may_be_missing(void **state) {
  (void)state;
  static const char *const optional[] = {
      "\"ExposedObject\":[296,\"ObjectHandle\"],",
      "\"StackLowBound\":[120,\"pointer\"],",
      "\"ThrownObject\":[152,\"pointer\"],",
      "\"Path\":[200,\"pointer\"],",
      "\"EEJitManagerAddress\":[[4],\"pointer\"],",
      "\"PrestubMethodFrameIdentifier\":[\"0x9\",\"nuint\"],",
      "\"ExceptionFilterFrameIdentifier\":[\"0xf\",\"nuint\"],",
      "\"RecommendedReaderVersion\":[\"0x2\",\"uint32\"],",
      "\"DebugInfo\":\"c2\",",
  };
  struct cs_layout l;
  struct cs_error err = {""};
  for (size_t i = 0; i < CS_COUNT(optional); i++) {
    char *text = with(optional[i], "");
    if (!read_as(11, text, &l, &err)) fail_msg("without %s: %s", optional[i], err.text);
    free(text);
  }
}

static void what_is_missing_or_wrong_is_named(void **state) {
  (void)state;
  static const char *const cases[][3] = {
      {"\"ExecutionManager\":\"c2\"", "\"ExecutionManager\":\"c3\"",
       "ExecutionManager has version c3, and this clrsnap knows version 2"},
      {"\"ExecutionManager\":\"c2\"", "\"ExecutionManager\":\"2c\"", "has version 2c"},
      {"\"ExecutionManager\":\"c2\"", "\"ExecutionManager\":\"c\"", "has version c,"},
      {"\"ExecutionManager\":\"c2\"", "\"ExecutionManager\":\"c2.1\"", "has version c2.1"},
      {"\"ExecutionManager\":\"c2\"", "\"ExecutionManager\":\"\"", "has version ,"},
      {"\"ExecutionManager\":\"c2\"", "\"ExecutionManager\":[\"c2\"]",
       "does not describe ExecutionManager"},
      {"\"ExecutionManager\":\"c2\"", "\"ExecutionManager\":\"cccccccccccccccc2\"",
       "does not describe ExecutionManager"},
      {"\"StackWalk\":\"c1\"", "\"StackWalk\":\"n1\"", "version n1, that of Native AOT"},
      {"\"Thread\":\"c1\"", "\"Thread\":\"c2\"", "Thread has version c2"},
      {"\"Thread\":\"c1\"", "\"Threads\":\"c1\"", "does not describe Thread"},
      {"\"OSId\":[288,\"nuint\"],", "", "lacks Thread.OSId"},
      {"\"OSId\":[288,\"nuint\"]", "\"OSId\":[\"nuint\",288]", "lacks Thread.OSId"},
      {"\"NumUnwindInfos\":[32,\"uint32\"],", "", "lacks RealCodeHeader.NumUnwindInfos"},
      {"\"JitManager\":[24,\"pointer\"],", "", "lacks RangeSection.JitManager"},
      {"\"JitManager\":[24,\"pointer\"]", "\"JitManager\":[89,\"pointer\"]",
       "RangeSection.JitManager at 89"},
      {"\"InlinedCallFrameIdentifier\":[\"0x1\",\"nuint\"],", "",
       "lacks the global InlinedCallFrameIdentifier"},
      {"[[3],\"pointer\"]", "[[7],\"pointer\"]", "no pointer 7"},
      {"\"EndAddress\":[4,\"uint32\"],", "", "lacks RuntimeFunction.EndAddress"},  // arm64's form
  };
  struct cs_layout l;
  for (size_t i = 0; i < CS_COUNT(cases); i++) {
    struct cs_error err = {""};
    char *text = with(cases[i][0], cases[i][1]);
    if (read_as(11, text, &l, &err)) fail_msg("accepted: %s", cases[i][1]);
    if (strstr(err.text, cases[i][2]) == NULL) fail_msg("%s: %s", cases[i][1], err.text);
    free(text);
  }
}

// Handlers read this variable directly.
static void a_manager_outside_of_the_runtime_is_refused(void **state) {
  (void)state;
  static const struct cs_mem mem = {.read = read_plain};
  static uint64_t elsewhere;
  struct cs_layout l;
  struct cs_error err = {""};
  uint64_t pointers[7];
  for (unsigned i = 0; i < CS_COUNT(pointers); i++) pointers[i] = address(&runtime.nothing + i);
  pointers[4] = address(&elsewhere);
  struct cs_descriptor_head head = {CS_DESCRIPTOR_MAGIC, 1, sizeof eleven - 1, address(eleven),
                                    CS_COUNT(pointers),  0, address(pointers)};
  const struct cs_contract_place place = {
      address(&head), address(&runtime), address(&runtime + 1), {11, 0, 0}, 0};
  assert_false(cs_contract_read_at(&l, &mem, &place, &err));
  assert_non_null(strstr(err.text, "EEJitManagerAddress outside of the runtime"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_descriptor_is_understood),
      cmocka_unit_test(nothing_is_taken_from_another_version),
      cmocka_unit_test(what_may_be_missing),
      cmocka_unit_test(what_is_missing_or_wrong_is_named),
      cmocka_unit_test(a_manager_outside_of_the_runtime_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
