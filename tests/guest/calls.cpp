// SPDX-License-Identifier: MIT
// Every odd call that a profiler may make, and what it returns: calls that come too early, from the
// wrong thread or in the wrong order, calls with wrong arguments, and COM's rules of identity and
// reference counting. The results are notes, one line each, in a fixed order, so that the notes of
// two runs can be compared line by line. Threads: the main thread in Initialize, the program's
// threads in callbacks, and the profiler's own. Signal-safe: no.
#include <cstring>

#include "guest.hpp"

namespace guest {
namespace {

constexpr GUID kUnknown = {
    0x13579BDF, 0x2468, 0xACE0, {0x10, 0x32, 0x54, 0x76, 0x98, 0xBA, 0xDC, 0xFE}};
constexpr DWORD kSnapshots = COR_PRF_ENABLE_STACK_SNAPSHOT;

void tell(const char *what, HRESULT hr) {
  notes.say("%s: 0x%08x", what, static_cast<unsigned>(hr));
}

// ---- Masks: a mask that was set reads back, and a mask that was refused changes nothing ----
void read_mask(const char *when) {
  DWORD low = 0xDEAD, low2 = 0xDEAD, high = 0xDEAD;
  HRESULT hr = info->GetEventMask(&low), hr2 = info->GetEventMask2(&low2, &high);
  notes.say("%s: GetEventMask 0x%08x = 0x%x, GetEventMask2 0x%08x = 0x%x 0x%x", when,
            static_cast<unsigned>(hr), low, static_cast<unsigned>(hr2), low2, high);
}

void set_mask(DWORD low) {
  char when[64];
  snprintf(when, sizeof(when), "SetEventMask(0x%x) 0x%08x", low,
           static_cast<unsigned>(info->SetEventMask(low)));
  read_mask(when);
}

void set_mask2(DWORD low, DWORD high) {
  char when[64];
  snprintf(when, sizeof(when), "SetEventMask2(0x%x, 0x%x) 0x%08x", low, high,
           static_cast<unsigned>(info->SetEventMask2(low, high)));
  read_mask(when);
}

void masks() {
  read_mask("at first");
  set_mask(0);
  set_mask(COR_PRF_MONITOR_THREADS);
  set_mask(COR_PRF_MONITOR_MODULE_LOADS | kSnapshots);
  set_mask2(COR_PRF_MONITOR_MODULE_LOADS, COR_PRF_HIGH_MONITOR_DYNAMIC_FUNCTION_UNLOADS);
  set_mask(COR_PRF_MONITOR_THREADS);
  set_mask2(0, COR_PRF_HIGH_BASIC_GC);
  set_mask2(COR_PRF_MONITOR_CACHE_SEARCHES, 0x80000000u);
  set_mask2(COR_PRF_MONITOR_THREADS, COR_PRF_HIGH_IN_MEMORY_SYMBOLS_UPDATED);
  set_mask(COR_PRF_ENABLE_REJIT | kSnapshots);
  set_mask2(COR_PRF_ENABLE_OBJECT_ALLOCATED, COR_PRF_HIGH_DISABLE_TIERED_COMPILATION);
  set_mask2(0, 0);
}

// ---- COM ----
const GUID &info_iid(int version) {
  static const GUID all[] = {
      IID_ICorProfilerInfo,   IID_ICorProfilerInfo2,  IID_ICorProfilerInfo3,
      IID_ICorProfilerInfo4,  IID_ICorProfilerInfo5,  IID_ICorProfilerInfo6,
      IID_ICorProfilerInfo7,  IID_ICorProfilerInfo8,  IID_ICorProfilerInfo9,
      IID_ICorProfilerInfo10, IID_ICorProfilerInfo11, IID_ICorProfilerInfo12,
      IID_ICorProfilerInfo13, IID_ICorProfilerInfo14, IID_ICorProfilerInfo15,
  };
  return all[version - 1];
}

void ask_for(IUnknown *object, const char *name, const GUID &iid) {
  void *first = &first, *second = &second;
  HRESULT hr = object->QueryInterface(iid, &first), again = object->QueryInterface(iid, &second);
  IUnknown *unknown = nullptr;
  if (SUCCEEDED(hr)) {
    auto *part = static_cast<IUnknown *>(first);
    part->QueryInterface(IID_IUnknown, reinterpret_cast<void **>(&unknown));
  }
  notes.say("QueryInterface(%s): 0x%08x 0x%08x, %s, %s, %s", name, static_cast<unsigned>(hr),
            static_cast<unsigned>(again), first == second ? "the same" : "another",
            first == nullptr  ? "null"
            : first == object ? "itself"
                              : "other",
            unknown == nullptr  ? "nobody"
            : unknown == object ? "identical"
                                : "somebody else");
}

void com() {
  ask_for(info, "IUnknown", IID_IUnknown);
  for (int version = 1; version <= 15; version++) {
    char name[32];
    snprintf(name, sizeof(name), "ICorProfilerInfo%d", version);
    ask_for(info, name, info_iid(version));
  }
  ask_for(info, "an unknown one", kUnknown);
  ask_for(info, "ICorProfilerCallback2", IID_ICorProfilerCallback2);
  ask_for(info, "IClassFactory", IID_IClassFactory);
  tell("QueryInterface to nowhere", info->QueryInterface(IID_IUnknown, nullptr));
  notes.say("AddRef, AddRef, Release: %u %u %u", info->AddRef(), info->AddRef(), info->Release());
  for (int i = 0; i < 100; i++) info->Release();
  notes.say("after 100 releases too many: %u", info->AddRef());
}

// ---- Walks ----
// The callback returns `answer` at call number `at`, and S_OK at the others.
struct Refusal {
  int at;
  HRESULT answer;
  int calls;
};

HRESULT refuse(FunctionID, UINT_PTR, COR_PRF_FRAME_INFO, ULONG32, BYTE[], void *data) {
  auto *refusal = static_cast<Refusal *>(data);
  return ++refusal->calls == refusal->at ? refusal->answer : S_OK;
}

void walk(const char *what, ThreadID thread, ULONG32 flags, BYTE *context = nullptr,
          ULONG32 size = 0) {
  Refusal none = {0, S_OK, 0};
  HRESULT hr = info->DoStackSnapshot(thread, refuse, flags, &none, context, size);
  notes.say("DoStackSnapshot, %s: 0x%08x, %d calls", what, static_cast<unsigned>(hr), none.calls);
}

void aborted(ThreadID thread) {
  static const HRESULT answers[] = {S_FALSE, E_FAIL, E_NOTIMPL, 0x1234,
                                    CORPROF_E_STACKSNAPSHOT_UNSAFE};
  for (int at = 1; at <= 3; at++) {
    for (HRESULT answer : answers) {
      Refusal refusal = {at, answer, 0};
      HRESULT hr = info->DoStackSnapshot(thread, refuse, 0, &refusal, nullptr, 0);
      notes.say("a callback that answers 0x%08x at call %d: 0x%08x after %d",
                static_cast<unsigned>(answer), at, static_cast<unsigned>(hr), refusal.calls);
    }
  }
}

// Runs in the callback: asks for the exact instantiation, and walks within the walk (contract: C6).
HRESULT nested(FunctionID function, UINT_PTR, COR_PRF_FRAME_INFO frame, ULONG32, BYTE[],
               void *data) {
  auto *thread = static_cast<ThreadID *>(data);
  if (function != 0) {
    ClassID owner = 0, arguments[8];
    ModuleID module = 0;
    mdToken token = 0;
    ULONG32 count = 0;
    HRESULT hr =
        info->GetFunctionInfo2(function, frame, &owner, &module, &token, 8, &count, arguments);
    notes.say("GetFunctionInfo2 of %s: 0x%08x, token 0x%x, %u type arguments, %s",
              function_name(function).c_str(), static_cast<unsigned>(hr), token, count,
              owner != 0 ? "a class" : "no class");
  }
  walk("of the caller, within a callback", 0, COR_PRF_SNAPSHOT_DEFAULT);
  walk("of the same thread, within a callback", *thread, COR_PRF_SNAPSHOT_REGISTER_CONTEXT);
  return S_OK;
}

void odd_flags(ThreadID thread) {
  for (ULONG32 flags : {2u, 3u, 4u, 0x80000000u, 0xFFFFFFFFu}) {
    char what[64];
    snprintf(what, sizeof(what), "flags 0x%x", flags);
    walk(what, thread, flags);
  }
}

// ---- Other calls whose results are compared ----
void early_or_late() {
  tell("SetEnterLeaveFunctionHooks2", info->SetEnterLeaveFunctionHooks2(nullptr, nullptr, nullptr));
  tell("SetFunctionIDMapper", info->SetFunctionIDMapper(nullptr));
  ICorProfilerThreadEnum *all = nullptr;
  tell("EnumThreads", info->EnumThreads(&all));
  if (all != nullptr) all->Release();
  ThreadID thread = 0;
  tell("GetCurrentThreadID", info->GetCurrentThreadID(&thread));
  FunctionID function = 0;
  tell("GetFunctionFromIP", info->GetFunctionFromIP(reinterpret_cast<LPCBYTE>(&thread), &function));
  tell("ResumeRuntime without a suspension", info->ResumeRuntime());
}

// Methods with more arguments than registers, in slots before and after the overridden ones.
void many_arguments() {
  USHORT instance = 0, major = 0, minor = 0, build = 0, fix = 0;
  COR_PRF_RUNTIME_TYPE type = COR_PRF_DESKTOP_CLR;
  ULONG length = 0;
  WCHAR text[64] = {};
  HRESULT hr = info->GetRuntimeInformation(&instance, &type, &major, &minor, &build, &fix, 64,
                                           &length, text);
  notes.say("GetRuntimeInformation: 0x%08x, type %d, %u.%u.%u.%u, %u characters",
            static_cast<unsigned>(hr), static_cast<int>(type), major, minor, build, fix, length);
  ICorProfilerInfo12 *info12 = nullptr;
  if (FAILED(info->QueryInterface(IID_ICorProfilerInfo12, reinterpret_cast<void **>(&info12))))
    return;
  static const WCHAR name[] = {'G', 'u', 'e', 's', 't', 0};
  EVENTPIPE_PROVIDER provider = 0;
  EVENTPIPE_EVENT event = 0;
  tell("EventPipeCreateProvider", info12->EventPipeCreateProvider(name, &provider));
  tell("EventPipeDefineEvent",
       info12->EventPipeDefineEvent(provider, name, 1, 2, 3, 4, 5, 0, 0, nullptr, &event));
  tell("EventPipeWriteEvent", info12->EventPipeWriteEvent(event, 0, nullptr, nullptr, nullptr));
  info12->Release();
}

class Calls final : public Mode {
 public:
  DWORD events() const override { return COR_PRF_MONITOR_EXCEPTIONS; }

  void before_mask() override {
    notes.say("---- in Initialize");
    com();
    masks();
    walk("before the runtime has started", 0, COR_PRF_SNAPSHOT_DEFAULT);
    odd_flags(0);
    info->SetEventMask(kSnapshots);
    walk("before the runtime has started, with the flag", 0, COR_PRF_SNAPSHOT_DEFAULT);
    odd_flags(0);
    tell("SuspendRuntime", info->SuspendRuntime());
    early_or_late();
    tell("RequestProfilerDetach", info->RequestProfilerDetach(0));
    info->SetEventMask(0);
  }

  void after_mask() override { read_mask("at the end of Initialize"); }

  // Runs once, in the first such callback on a managed thread.
  void thrown() override {
    if (callback_done_) return;
    callback_done_ = true;
    notes.say("---- in a callback");
    report_unwanted();
    early_or_late();
    tell("SuspendRuntime", info->SuspendRuntime());
    tell("ResumeRuntime", info->ResumeRuntime());
    walk("without the flag", 0, COR_PRF_SNAPSHOT_DEFAULT);
    odd_flags(0);
    set_mask(COR_PRF_MONITOR_EXCEPTIONS | kSnapshots);
    walk("of oneself", 0, COR_PRF_SNAPSHOT_DEFAULT);
    odd_flags(0);
    aborted(0);
    ThreadID myself = 0;
    info->GetCurrentThreadID(&myself);
    walk("of oneself by name", myself, COR_PRF_SNAPSHOT_REGISTER_CONTEXT);
    info->DoStackSnapshot(0, nested, COR_PRF_SNAPSHOT_DEFAULT, &myself, nullptr, 0);
    set_mask(COR_PRF_MONITOR_EXCEPTIONS);
    walk("without the flag again", 0, COR_PRF_SNAPSHOT_DEFAULT);
    many_arguments();
  }

  void run() override {
    notes.say("---- on a thread of the profiler");
    report_unwanted();
    early_or_late();
    com();
    masks();
    walk("without the flag", 0, COR_PRF_SNAPSHOT_DEFAULT);
    set_mask(kSnapshots);
    walk("of nobody", 0, COR_PRF_SNAPSHOT_DEFAULT);
    odd_flags(0);
    suspended();
    many_arguments();
    report_unwanted();
  }

  void any_callback(const char *name) override {
    std::lock_guard<std::mutex> guard(lock_);
    unwanted_[name]++;
  }

 private:
  // Callbacks that the mask does not ask for.
  void report_unwanted() {
    std::lock_guard<std::mutex> guard(lock_);
    for (const auto &one : unwanted_)
      notes.say("not asked for: %s %d", one.first.c_str(), one.second);
    notes.say("kinds of callbacks not asked for: %zu", unwanted_.size());
  }

  static void suspended() {
    ICorProfilerThreadEnum *all = nullptr;
    // A collection may be about to end; that result is not the one under test, so the call is
    // repeated.
    HRESULT hr = info->SuspendRuntime();
    for (int i = 0; i < 500 && hr == CORPROF_E_SUSPENSION_IN_PROGRESS; i++) {
      sleep_ms(2);
      hr = info->SuspendRuntime();
    }
    tell("SuspendRuntime",
         hr);  // a second one now would be S_OK, and the program would never run again
    ThreadID id;
    ULONG got = 0;
    if (SUCCEEDED(info->EnumThreads(&all))) {
      while (all->Next(1, &id, &got) == S_OK && got == 1) one_suspended(id);
      all->Release();
    }
    tell("ResumeRuntime", info->ResumeRuntime());
    tell("ResumeRuntime again", info->ResumeRuntime());
  }

  static void one_suspended(ThreadID id) {
    walk("of a suspended thread", id, COR_PRF_SNAPSHOT_DEFAULT);
    odd_flags(id);
    aborted(id);
    // A thread in native code needs no seed, and a seed that is passed for it is ignored.
    Context seed;
    memset(&seed, 0, sizeof(seed));
    auto *bytes = reinterpret_cast<BYTE *>(&seed);
    walk("with an empty seed", id, COR_PRF_SNAPSHOT_DEFAULT, bytes, sizeof(seed));
    walk("with a seed of no size", id, COR_PRF_SNAPSHOT_DEFAULT, bytes, 0);
    walk("with a small seed", id, COR_PRF_SNAPSHOT_DEFAULT, bytes, 100);
    info->DoStackSnapshot(id, nested, COR_PRF_SNAPSHOT_DEFAULT, &id, nullptr, 0);
  }

  std::mutex lock_;
  std::map<std::string, int> unwanted_;
  bool callback_done_ = false;
};

}  // namespace

std::unique_ptr<Mode> make_calls() {
  return std::make_unique<Calls>();
}

}  // namespace guest
