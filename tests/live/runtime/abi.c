// SPDX-License-Identifier: MIT
// A profiler that proves corprof.h: it calls the real runtime at both ends of every interface's
// slots and is called by it at both ends of its own, and checks answers that a wrong slot could not
// give. Also checks the contract room against the running runtime: offsets, CONTEXT's size. Result:
// lines "ok NAME" and "FAIL NAME: why" in the file named by CLRSNAP_TEST_OUT; abi.sh judges.
// Threads: callbacks on the application's threads, `native` on one of our own. Signal-safe: no.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "abi.h"
#include "base/utf16.h"
#include "contract/contract.h"
#include "life/permanent.h"

static ICorProfilerCallback11Vtbl vtbl;
static struct cs_callback profiler = {{&vtbl}, 1, NULL};
static struct cs_layout layout;
static pthread_t native_thread;
static uint32_t seen_exception, seen_catcher, seen_dynamic, seen_thread, stop_native;
static ModuleID app_module;
static bool attached;

// ---- once, in Initialize ----
static void every_info_number(IUnknown *unknown) {
  static const GUID *const ids[] = {
      &IID_ICorProfilerInfo,   &IID_ICorProfilerInfo2,  &IID_ICorProfilerInfo3,
      &IID_ICorProfilerInfo4,  &IID_ICorProfilerInfo5,  &IID_ICorProfilerInfo6,
      &IID_ICorProfilerInfo7,  &IID_ICorProfilerInfo8,  &IID_ICorProfilerInfo9,
      &IID_ICorProfilerInfo10, &IID_ICorProfilerInfo11, &IID_ICorProfilerInfo12,
      &IID_ICorProfilerInfo13, &IID_ICorProfilerInfo14, &IID_ICorProfilerInfo15};
  bool all = true;
  for (size_t i = 0; i < CS_COUNT(ids); i++) {
    void *out = NULL;
    all = all && unknown->lpVtbl->QueryInterface(unknown, ids[i], &out) == S_OK && out != NULL;
  }
  abi_check("IID_ICorProfilerInfo..15", all, 0);
}

static void environment_round_trip(void) {
  static const WCHAR name[] = {'C', 'L', 'R', 'S', '_', 'T', 0}, value[] = {'v', 0x20AC, 0};
  WCHAR back[8] = {0};
  ULONG len = 0;
  HRESULT hr;
  CALL(SetEnvironmentVariable, name, value);
  CALL(GetEnvironmentVariable, name, 8, &len, back);
  abi_check("environment value", memcmp(back, value, sizeof value) == 0, (HRESULT)len);
}

static void event_pipe(void) {
  static const WCHAR name[] = {'c', 'l', 'r', 's', 'n', 'a', 'p', 't', 0}, event[] = {'e', 0};
  static const WCHAR name2[] = {'c', 'l', 'r', 's', 'n', 'a', 'p', 'u', 0};
  EVENTPIPE_PROVIDER provider = 0, provider2 = 0;
  EVENTPIPE_EVENT defined = 0;
  EVENTPIPE_SESSION session = 0;
  WCHAR back[16] = {0};
  ULONG len = 0;
  HRESULT hr;
  CALL(EventPipeCreateProvider, name, &provider);
  CALL(EventPipeGetProviderInfo, provider, 16, &len, back);
  abi_check("provider name", memcmp(back, name, sizeof name) == 0, (HRESULT)len);
  CALL(EventPipeDefineEvent, provider, event, 1, 1, 1, 4, 0, 0, 0, NULL, &defined);
  CALL(EventPipeWriteEvent, defined, 0, NULL, NULL, NULL);
  CALL(EventPipeCreateProvider2, name2, NULL, &provider2);
  COR_PRF_EVENTPIPE_PROVIDER_CONFIG config = {name, 1, 4, NULL};
  CALL(EventPipeStartSession, 1, &config, 0, &session);
  CALL(EventPipeAddProviderToSession, session, config);
  CALL(EventPipeStopSession, session);
}

static void *native(void *arg);

// The first thing asked, since it must work on runtimes that have less than the rest needs.
static bool read_contract(IUnknown *unknown) {
  struct cs_runtime_version version = {0, 0, 0};
  struct cs_error err = {""};
  abi_check("runtime version", cs_runtime_version_get(unknown, &version), version.major);
  abi_line("version %u.%u.%u", version.major, version.minor, version.build);
  if (!cs_contract_read(&layout, &version, &err)) {
    abi_line("refused: %s", err.text);
    return false;
  }
  // Without being told the version: it is then in the path of libcoreclr, or nowhere.
  struct cs_layout again;
  bool same = cs_contract_read(&again, NULL, &err);
  abi_check("contract again",
            same && again.code_range_map == layout.code_range_map &&
                (again.runtime_major == 0 || again.runtime_build == version.build),
            0);
  if (unknown->lpVtbl->QueryInterface(unknown, &IID_ICorProfilerInfo15, (void **)&abi_info) ==
      S_OK) {
    return true;
  }
  abi_line("FAIL ICorProfilerInfo15");
  return false;
}

static HRESULT initialize(ICorProfilerCallback11 *self, IUnknown *unknown) {
  (void)self;
  HRESULT hr;
  abi_line("ok callback slot 3 Initialize");
  if (!read_contract(unknown)) return E_FAIL;
  every_info_number(unknown);
  const DWORD low = COR_PRF_MONITOR_JIT_COMPILATION | COR_PRF_MONITOR_THREADS |
                    COR_PRF_MONITOR_MODULE_LOADS | COR_PRF_MONITOR_EXCEPTIONS |
                    COR_PRF_ENABLE_STACK_SNAPSHOT;
  DWORD got_low = 0, got_high = 0, event_mask = 0;
  CALL(SetEventMask2, low, COR_PRF_HIGH_MONITOR_DYNAMIC_FUNCTION_UNLOADS);
  CALL(GetEventMask2, &got_low, &got_high);
  CALL(GetEventMask, &event_mask);
  abi_check("event mask", got_low == low && event_mask == low && got_high == 4, (HRESULT)got_low);
  environment_round_trip();
  event_pipe();
  abi_check("pthread_create", pthread_create(&native_thread, NULL, native, NULL) == 0, 0);
  return S_OK;
}

// ---- attach: threads and code are there already ----
static HRESULT initialize_for_attach(ICorProfilerCallback11 *self, IUnknown *unknown, void *data,
                                     UINT len) {
  (void)self, (void)data, (void)len;
  abi_line("ok callback slot 80 InitializeForAttach");
  attached = true;
  return read_contract(unknown) ? S_OK : E_FAIL;
}

static HRESULT attach_complete(ICorProfilerCallback11 *self) {
  (void)self;
  abi_line("ok callback slot 81 ProfilerAttachComplete");
  HRESULT hr;
  ICorProfilerThreadEnum *threads = NULL;
  ThreadID thread;
  ULONG got = 0, passed = 0;
  struct cs_error err = {""};
  CALL(EnumThreads, &threads);
  if (threads == NULL) return S_OK;
  while (threads->lpVtbl->Next(threads, 1, &thread, &got) == S_OK && got == 1) {
    DWORD tid = 0;
    if (abi_info->lpVtbl->GetThreadInfo(abi_info, thread, &tid) != S_OK || tid == 0) continue;
    if (cs_contract_check_thread(&layout, thread, tid, &err) == CS_CHECK_PASSED) {
      passed++;
    } else {
      abi_line("FAIL attach: %s", err.text);
    }
  }
  (void)threads->lpVtbl->Release(threads);
  abi_check("attach: threads", passed >= 2, (HRESULT)passed);  // main and finalizer
  struct cs_code_check report;
  struct cs_permanent code;
  cs_permanent_code(&layout, &code);
  enum cs_check answer = cs_contract_check_code(&layout, abi_info, &code, &report, &err);
  if (answer != CS_CHECK_PASSED) abi_line("FAIL attach: %d %s", (int)answer, err.text);
  abi_check("attach: code", answer == CS_CHECK_PASSED && report.methods > 0,
            (HRESULT)report.methods);
  abi_line("hijack %u %u", layout.hijack.hijack_return_address, layout.hijack.hijack_slot);
  return S_OK;
}

static HRESULT load_as_notification_only(ICorProfilerCallback11 *self, BOOL *answer) {
  (void)self;
  abi_line("ok callback slot 97 LoadAsNotificationOnly");
  *answer = 0;  // the main profiler
  return S_OK;
}

static HRESULT shutdown(ICorProfilerCallback11 *self) {
  (void)self;
  if (attached) return S_OK;
  cs_store_release(&stop_native, 1);
  (void)pthread_join(native_thread, NULL);
  abi_check("saw an exception, a catcher, a dynamic method, a thread",
            cs_load_acquire(&seen_exception) && cs_load_acquire(&seen_catcher) &&
                cs_load_acquire(&seen_dynamic) && cs_load_acquire(&seen_thread),
            0);
  abi_check("hijack fields found", layout.hijack.hijack_slot != 0, 0);
  abi_line("hijack %u %u", layout.hijack.hijack_return_address, layout.hijack.hijack_slot);
  abi_line("done");
  return S_OK;
}

// ---- threads ----
static HRESULT thread_assigned(ICorProfilerCallback11 *self, ThreadID thread, DWORD tid) {
  (void)self;
  HRESULT hr;
  DWORD by_api = 0;
  ThreadID current = 0;
  struct cs_error err = {""};
  cs_store_release(&seen_thread, 1);
  CALL(GetThreadInfo, thread, &by_api);
  CALL(GetCurrentThreadID, &current);
  abi_check("thread id", by_api == tid && current == thread, (HRESULT)by_api);
  if (layout.context_size == 0) return S_OK;
  if (cs_contract_check_thread(&layout, thread, tid, &err) != CS_CHECK_PASSED) {
    abi_line("FAIL check_thread: %s", err.text);
  }
  // The main thread lives, and is another one than all others.
  if (tid != (DWORD)getpid() &&
      cs_contract_check_thread(&layout, thread, (DWORD)getpid(), &err) != CS_CHECK_FAILED) {
    abi_line("FAIL check_thread does not see a wrong id");
  }
  return S_OK;
}

// ---- modules and methods ----
static HRESULT module_attached(ICorProfilerCallback11 *self, ModuleID module, AssemblyID assembly) {
  (void)self, (void)assembly;
  WCHAR name[512];
  char path[1024];
  ULONG len = 0;
  LPCBYTE base = NULL;
  DWORD flags = 0;
  if (abi_info->lpVtbl->GetModuleInfo2(abi_info, module, &base, 512, &len, name, NULL, &flags) !=
      S_OK) {
    return S_OK;
  }
  (void)cs_utf16_to_utf8(path, sizeof path, name, len > 0 ? len - 1 : 0, NULL);
  const char *slash = strrchr(path, '/');
  if (slash == NULL || strcmp(slash, "/Abi.dll") != 0) return S_OK;
  abi_check("GetModuleInfo2 slot 70", base != NULL && (flags & COR_PRF_MODULE_DISK) != 0,
            (HRESULT)flags);
  app_module = module;
  abi_check_metadata(module);
  HRESULT hr;
  DWORD bytes = 1;
  CALL(ApplyMetaData, module);
  CALL(GetInMemorySymbolsLength, module, &bytes);
  abi_check("no symbols in memory", bytes == 0, (HRESULT)bytes);
  hr = abi_info->lpVtbl->ReadInMemorySymbols(abi_info, module, 0, NULL, 0, &bytes);
  abi_check("ReadInMemorySymbols slot 86", FAILED(hr), hr);  // E_INVALIDARG: there is no buffer
  return S_OK;
}

static HRESULT jit_finished(ICorProfilerCallback11 *self, FunctionID function, HRESULT status,
                            BOOL safe) {
  (void)self, (void)safe;
  HRESULT hr;
  LPCBYTE start = NULL;
  ULONG size = 0;
  ModuleID module = 0;
  mdToken token = 0;
  static uint32_t once;
  if (FAILED(status) || app_module == 0) return S_OK;
  hr = abi_info->lpVtbl->GetFunctionInfo(abi_info, function, NULL, &module, &token);
  if (hr != S_OK || module != app_module || cs_add_seq(&once, 1) != 0) return S_OK;
  CALL(GetCodeInfo, function, &start, &size);
  abi_check("code size", start != NULL && size > 0, (HRESULT)size);
  COR_DEBUG_IL_TO_NATIVE_MAP map[64];
  ULONG32 count = 0;
  CALL(GetILToNativeMapping, function, 64, &count, map);  // slot 35
  abi_check("map entries", count > 0, (HRESULT)count);
  UINT_PTR starts[4] = {0};
  CALL(GetNativeCodeStartAddresses, function, 0, 4, &count, starts);
  abi_check("start addresses", count >= 1 && starts[0] == (UINT_PTR)start, (HRESULT)count);
  COR_PRF_CODE_INFO code[4];
  CALL(GetCodeInfo4, (UINT_PTR)start, 4, &count, code);  // slot 92
  abi_check("code info 4", count >= 1 && code[0].startAddress == (UINT_PTR)start, (HRESULT)count);
  FunctionID found = 0;
  ReJITID rejit = 1;
  CALL(GetFunctionFromIP3, start + 1, &found, &rejit);
  abi_check("function from ip", found == function && rejit == 0, 0);
  BOOL incomplete = 0, dynamic = 1;
  ICorProfilerMethodEnum *methods = NULL;
  hr = abi_info->lpVtbl->EnumNgenModuleMethodsInliningThisMethod(abi_info, module, module, token,
                                                                 &incomplete, &methods);
  abi_check("EnumNgenModuleMethodsInliningThisMethod slot 83",
            SUCCEEDED(hr) || hr == CORPROF_E_DATAINCOMPLETE, hr);
  CALL(IsFunctionDynamic, function, &dynamic);  // slot 87
  abi_check("is not dynamic", dynamic == 0, 0);
  struct cs_error err = {""};
  if (!cs_contract_check_method(&layout, function, (UINT_PTR)start, &err)) {
    abi_line("FAIL check_method: %s", err.text);
  }
  if (cs_contract_check_method(&layout, function + 8, (UINT_PTR)start, &err)) {
    abi_line("FAIL check_method does not see a wrong method");
  }
  return S_OK;
}

static HRESULT dynamic_finished(ICorProfilerCallback11 *self, FunctionID function, HRESULT status,
                                BOOL safe) {
  (void)self, (void)safe;
  WCHAR name[64] = {0};
  ULONG len = 0, sig_len = 0;
  ModuleID module = 0;
  PCCOR_SIGNATURE sig = NULL;
  if (FAILED(status)) return S_OK;
  HRESULT hr = abi_info->lpVtbl->GetDynamicFunctionInfo(abi_info, function, &module, &sig, &sig_len,
                                                        64, &len, name);  // slot 89
  if (hr != S_OK || !abi_name_is(name, len, "AddSeven")) return S_OK;
  abi_line("ok GetDynamicFunctionInfo slot 89");
  cs_store_release(&seen_dynamic, 1);
  ULONG32 count = 0;
  UINT_PTR starts[4];
  struct cs_error err = {""};
  CALL(GetNativeCodeStartAddresses, function, 0, 4, &count, starts);
  if (count != 1 || !cs_contract_check_method(&layout, function, starts[0], &err)) {
    abi_line("FAIL check_method of a dynamic method: %s", err.text);
  }
  return S_OK;
}

// ---- exceptions ----
struct walk {
  uint32_t frames, bad;
  ULONG32 context_size;
};

static HRESULT on_frame(FunctionID function, UINT_PTR ip, COR_PRF_FRAME_INFO frame, ULONG32 size,
                        BYTE context[], void *data) {
  struct walk *walk = data;
  AMD64_CONTEXT head;
  walk->frames++;
  walk->context_size = size;
  if (size < sizeof head || context == NULL) {
    walk->bad++;
    return S_OK;
  }
  memcpy(&head, context, sizeof head);
  if (head.Rip != ip || head.Rsp == 0) walk->bad++;
  if (function == 0) return S_OK;
  const COR_PRF_FRAME_INFO_INTERNAL *f = (const COR_PRF_FRAME_INFO_INTERNAL *)frame;
  if (f == NULL || f->size != sizeof *f || f->version != 1 || f->funcID != function) walk->bad++;
  ClassID class_id = 0;
  ModuleID module = 0;
  mdToken token = 0;
  ULONG32 args = 0;
  HRESULT hr = abi_info->lpVtbl->GetFunctionInfo2(abi_info, function, frame, &class_id, &module,
                                                  &token, 0, &args, NULL);
  if (hr != S_OK || module == 0) walk->bad++;
  return S_OK;
}

static BOOL on_reference(ObjectID root, ObjectID *reference, void *data) {
  (void)root, (void)reference;
  (*(uint32_t *)data)++;
  return 1;
}

static HRESULT exception_thrown(ICorProfilerCallback11 *self, ObjectID object) {
  (void)self;
  HRESULT hr;
  if (cs_add_seq(&seen_exception, 1) != 0) return S_OK;
  ClassID class_id = 0;
  CALL(GetClassFromObject, object, &class_id);  // slot 3
  ModuleID module = 0;
  mdTypeDef type = 0;
  CALL(GetClassIDInfo, class_id, &module, &type);
  abi_check("class of object", module != 0 && type >> 24 == 2, (HRESULT)type);
  struct walk walk = {0, 0, 0};
  CALL(DoStackSnapshot, 0, on_frame, COR_PRF_SNAPSHOT_REGISTER_CONTEXT, &walk, NULL, 0);
  abi_check("frames of snapshot", walk.frames >= 6 && walk.bad == 0, (HRESULT)walk.bad);
  abi_check("CONTEXT size", walk.context_size == layout.context_size, (HRESULT)walk.context_size);
  abi_line("context %u", walk.context_size);
  SIZE_T size = 0;
  CALL(GetObjectSize2, object, &size);  // slot 80
  abi_check("object size", size > 24 && size < 1024, (HRESULT)size);
  uint32_t references = 0;
  CALL(EnumerateObjectReferences, object, on_reference, &references);  // slot 93
  abi_check("references", references > 0, (HRESULT)references);
  ObjectHandleID handle = NULL;
  ObjectID back = 0;
  CALL(CreateHandle, object, 2, &handle);  // slot 108: strong
  CALL(GetObjectIDFromHandle, handle, &back);
  abi_check("object of handle", back == object, 0);
  CALL(DestroyHandle, handle);
  return S_OK;
}

static HRESULT exception_catcher_enter(ICorProfilerCallback11 *self, FunctionID function,
                                       ObjectID object) {
  (void)self, (void)function, (void)object;
  if (cs_add_seq(&seen_catcher, 1) != 0) return S_OK;
  COR_PRF_EX_CLAUSE_INFO clause;
  memset(&clause, 0, sizeof clause);
  HRESULT hr;
  CALL(GetNotifiedExceptionClauseInfo, &clause);  // slot 56
  abi_check("clause", clause.programCounter != 0 && clause.framePointer != 0, 0);
  return S_OK;
}

// ---- on a thread that the runtime does not know ----
static BOOL on_object(ObjectID object, void *data) {
  (void)object;
  (*(uint32_t *)data)++;
  return 1;
}

static void enumerations(void) {
  HRESULT hr;
  ICorProfilerFunctionEnum *functions = NULL;
  ICorProfilerThreadEnum *threads = NULL;
  ICorProfilerObjectEnum *objects = NULL;
  ULONG count = 0, got = 0;
  CALL(EnumJITedFunctions, &functions);  // slot 57
  if (functions != NULL) {
    hr = functions->lpVtbl->GetCount(functions, &count);
    abi_check("jitted functions", hr == S_OK && count > 0, hr);
    (void)functions->lpVtbl->Release(functions);
  }
  CALL(EnumThreads, &threads);  // slot 71
  if (threads != NULL) {
    ThreadID ids[64];
    hr = threads->lpVtbl->Next(threads, 64, ids, &got);
    abi_check("threads", SUCCEEDED(hr) && got >= 1 && ids[0] != 0, hr);
    (void)threads->lpVtbl->Release(threads);
  }
  CALL(EnumerateNonGCObjects, &objects);  // slot 111
  if (objects != NULL) (void)objects->lpVtbl->Release(objects);
  CALL(SuspendRuntime);  // slot 97
  uint32_t seen = 0;
  CALL(EnumerateGCHeapObjects, on_object, &seen);  // slot 114
  CALL(ResumeRuntime);
  abi_check("objects of heap", seen > 100, (HRESULT)seen);
}

static void *native(void *arg) {
  (void)arg;
  struct timespec nap = {0, 2000000};
  struct cs_code_check report;
  struct cs_permanent code;
  struct cs_error err = {""};
  enum cs_check answer = CS_CHECK_NOT_YET;
  bool enumerated = false;
  while (answer == CS_CHECK_NOT_YET || !enumerated) {
    if (cs_load_acquire(&stop_native)) break;
    cs_permanent_code(&layout, &code);
    if (answer == CS_CHECK_NOT_YET)
      answer = cs_contract_check_code(&layout, abi_info, &code, &report, &err);
    if (answer != CS_CHECK_NOT_YET && !enumerated && cs_load_acquire(&seen_dynamic)) {
      enumerations();
      answer = cs_contract_check_code(&layout, abi_info, &code, &report, &err);
      enumerated = true;
    }
    (void)nanosleep(&nap, NULL);
  }
  if (answer != CS_CHECK_PASSED) abi_line("FAIL check_code: %s", err.text);
  abi_line("code check: %u methods, %u unmatched, %u images", report.methods, report.unmatched,
           report.images);
  abi_check("code check counts", report.methods > 0 && report.images > 0, 0);
  struct cs_layout wrong = layout;
  wrong.code_header.method_desc += 8;
  abi_check("a wrong offset is seen",
            cs_contract_check_code(&wrong, abi_info, &code, &report, &err) != CS_CHECK_PASSED, 0);
  abi_check("native thread did all", enumerated, 0);
  const char *path = getenv("CLRSNAP_TEST_UNTIL");  // the application waits for it
  FILE *file = path != NULL ? fopen(path, "w") : NULL;
  if (file != NULL) (void)fclose(file);
  return NULL;
}

// No drop-in here.
HRESULT cs_foreign_class_object(REFCLSID clsid, REFIID iid, void **out) {
  (void)clsid, (void)iid, (void)out;
  return CLASS_E_CLASSNOTAVAILABLE;
}

HRESULT cs_profiler_create(const GUID *iid, void **out) {
  cs_callback_defaults(&vtbl);
  vtbl.Initialize = initialize;
  vtbl.Shutdown = shutdown;
  vtbl.LoadAsNotificationOnly = load_as_notification_only;
  vtbl.InitializeForAttach = initialize_for_attach;
  vtbl.ProfilerAttachComplete = attach_complete;
  vtbl.ThreadAssignedToOSThread = thread_assigned;
  vtbl.ModuleAttachedToAssembly = module_attached;
  vtbl.JITCompilationFinished = jit_finished;
  vtbl.DynamicMethodJITCompilationFinished = dynamic_finished;
  vtbl.ExceptionThrown = exception_thrown;
  vtbl.ExceptionCatcherEnter = exception_catcher_enter;
  return vtbl.QueryInterface(&profiler.base, iid, out);
}
