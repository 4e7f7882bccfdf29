// SPDX-License-Identifier: MIT
// The profiler's interfaces: DllGetClassObject, the class factory, and the callback object, whose
// reference count belongs to the runtime; and the functions that the program calls by P/Invoke.
// Threads: the runtime's threads in callbacks, and one native thread for each guest_run.
// Signal-safe: no.
#include "guest.hpp"

#include <sys/syscall.h>
#include <unistd.h>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <thread>

#define GUEST_EXPORT extern "C" __attribute__((visibility("default")))

namespace guest {

constexpr GUID kClsid = {
    0x6D2B1C44, 0x9A57, 0x4F0E, {0xB3, 0x18, 0x5C, 0x7E, 0x20, 0xD9, 0x41, 0xAF}};

// Never destroyed: the runtime may still make callbacks while the process ends.
ICorProfilerInfo10 *info;
Threads &threads = *new Threads;
Notes &notes = *new Notes;
Mode *mode;
long kept_waiting_ns;

static std::atomic<int> parked;
static std::atomic<bool> parked_may_go;
static thread_local bool in_sites;

static bool same(const GUID &a, const GUID &b) {
  return memcmp(&a, &b, sizeof(GUID)) == 0;
}

long setting(const char *name, long otherwise) {
  const char *value = getenv(name);
  return value != nullptr && *value != '\0' ? strtol(value, nullptr, 10) : otherwise;
}

uint32_t gettid() {
  return static_cast<uint32_t>(syscall(SYS_gettid));
}

long cpu_ns(clockid_t clock) {
  timespec now;
  clock_gettime(clock, &now);
  return now.tv_sec * 1000000000 + now.tv_nsec;
}

uint64_t now_ns() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1000000000u + static_cast<uint64_t>(time.tv_nsec);
}

void sleep_ms(long ms) {
  timespec time = {ms / 1000, ms % 1000 * 1000000};
  while (nanosleep(&time, &time) != 0) {
  }
}

static std::unique_ptr<Mode> make_mode() {
  static const std::map<std::string, std::unique_ptr<Mode> (*)()> modes = {
      {"suspend", make_suspend}, {"sites", make_sites},     {"cross", make_cross},
#ifndef GUEST_WITHOUT_LIBUNWIND
      {"recipe", make_recipe},
#endif
      {"handler", make_handler}, {"calls", make_calls},     {"crowd", make_crowd},
      {"throw", make_throw},     {"detach", make_detach},   {"leave", make_leave},
      {"pause", make_pause},     {"hostile", make_hostile}, {"rounds", make_rounds},
      {"endings", make_endings}, {"late", make_late},       {"circle", make_circle},
  };
  const char *name = getenv("GUEST_MODE");
  auto found = modes.find(name != nullptr ? name : "");
  return found == modes.end() ? nullptr : found->second();
}

// The callback object. ProfilerCallbackBase implements the callbacks that this profiler does not
// use.
class Profiler final : public ProfilerCallbackBase {
 public:
  HRESULT QueryInterface(const GUID &iid, void **out) override {
    static const GUID known[] = {
        IID_IUnknown,
        IID_ICorProfilerCallback,
        IID_ICorProfilerCallback2,
        IID_ICorProfilerCallback3,
        IID_ICorProfilerCallback4,
        IID_ICorProfilerCallback5,
        IID_ICorProfilerCallback6,
        IID_ICorProfilerCallback7,
        IID_ICorProfilerCallback8,
        IID_ICorProfilerCallback9,
        IID_ICorProfilerCallback10,
        IID_ICorProfilerCallback11,
    };
    static const long newest = setting("GUEST_VERSION", 11);
    for (const GUID &one : known) {
      if (!same(one, iid) || &one - known > newest) continue;
      *out = static_cast<ICorProfilerCallback11 *>(this);
      AddRef();
      return S_OK;
    }
    *out = nullptr;
    return E_NOINTERFACE;
  }
  ULONG AddRef() override { return ++references_; }
  ULONG Release() override {
    ULONG left = --references_;
    if (left == 0) delete this;
    return left;
  }

  HRESULT Initialize(IUnknown *unknown) override {
    kept_waiting_ns += cpu_ns(CLOCK_THREAD_CPUTIME_ID);
    mode = make_mode().release();
    if (mode == nullptr) {
      fprintf(stderr, "guest: GUEST_MODE does not name a mode\n");
      return E_INVALIDARG;
    }
    HRESULT hr = unknown->QueryInterface(IID_ICorProfilerInfo10, reinterpret_cast<void **>(&info));
    if (FAILED(hr)) return hr;
    mode->before_mask();
    hr = info->SetEventMask2(mode->events(), mode->events_high());
    notes.say("mask set: 0x%08x", static_cast<unsigned>(hr));
    mode->after_mask();
    return hr;
  }
  HRESULT LoadAsNotificationOnly(BOOL *only) override {
    *only = setting("GUEST_NOTIFIED", 0) != 0;
    return S_OK;
  }
  HRESULT Shutdown() override {
    told("Shutdown");
    return S_OK;
  }
  HRESULT ThreadCreated(ThreadID id) override {
    told("ThreadCreated");
    threads.created(id);
    mode->created(id);
    return S_OK;
  }
  HRESULT ThreadAssignedToOSThread(ThreadID id, DWORD tid) override {
    told("ThreadAssignedToOSThread");
    threads.assigned(id, tid);
    return S_OK;
  }
  HRESULT ThreadNameChanged(ThreadID id, ULONG length, WCHAR name[]) override {
    told("ThreadNameChanged");
    threads.named(id, name, length);
    return S_OK;
  }
  HRESULT ThreadDestroyed(ThreadID id) override {
    told("ThreadDestroyed");
    threads.destroyed(id);
    return S_OK;
  }
  HRESULT ModuleLoadFinished(ModuleID, HRESULT) override {
    told("ModuleLoadFinished");
    return S_OK;
  }
  HRESULT ModuleUnloadStarted(ModuleID) override {
    told("ModuleUnloadStarted");
    return S_OK;
  }
  HRESULT JITCompilationFinished(FunctionID, HRESULT, BOOL) override {
    told("JITCompilationFinished");
    return S_OK;
  }
  HRESULT ObjectAllocated(ObjectID, ClassID) override {
    mode->every_callback("ObjectAllocated");
    if (in_sites) mode->allocated();
    return S_OK;
  }
  HRESULT ExceptionThrown(ObjectID) override {
    mode->every_callback("ExceptionThrown");
    if (in_sites) mode->thrown();
    return S_OK;
  }
  HRESULT ProfilerDetachSucceeded() override {
    mode->detached();
    return S_OK;
  }

 private:
  HRESULT any(const char *name) override {
    mode->every_callback(name);
    return S_OK;
  }
  static void told(const char *name) {
    mode->any_callback(name);
    mode->every_callback(name);
  }
  ~Profiler() = default;
  std::atomic<ULONG> references_{1};
};

class Factory final : public IClassFactory {
 public:
  HRESULT QueryInterface(const GUID &iid, void **out) override {
    *out = nullptr;
    if (!same(iid, IID_IUnknown) && !same(iid, IID_IClassFactory)) return E_NOINTERFACE;
    *out = static_cast<IClassFactory *>(this);
    AddRef();
    return S_OK;
  }
  ULONG AddRef() override { return ++references_; }
  ULONG Release() override {
    ULONG left = --references_;
    if (left == 0) delete this;
    return left;
  }
  HRESULT CreateInstance(IUnknown *outer, const GUID &iid, void **out) override {
    *out = nullptr;
    if (outer != nullptr) return CLASS_E_NOAGGREGATION;
    auto *profiler = new Profiler;
    HRESULT hr = profiler->QueryInterface(iid, out);
    profiler->Release();
    kept_waiting_ns = -cpu_ns(CLOCK_THREAD_CPUTIME_ID);
    return hr;
  }
  HRESULT LockServer(BOOL) override { return S_OK; }

 private:
  ~Factory() = default;
  std::atomic<ULONG> references_{1};
};

}  // namespace guest

GUEST_EXPORT HRESULT DllGetClassObject(const GUID &clsid, const GUID &iid, void **out) {
  *out = nullptr;
  if (!guest::same(clsid, guest::kClsid)) return CLASS_E_CLASSNOTAVAILABLE;
  auto *factory = new guest::Factory;
  HRESULT hr = factory->QueryInterface(iid, out);
  factory->Release();
  return hr;
}

GUEST_EXPORT int guest_run() {
  std::thread sampler([] { guest::mode->run(); });
  sampler.join();
  guest::parked_may_go = true;
  guest::notes.write();
  return 0;
}

GUEST_EXPORT int guest_has_enough() {
  return guest::mode->has_enough() ? 1 : 0;
}

GUEST_EXPORT void guest_sites(int on) {
  guest::in_sites = on != 0;
}

GUEST_EXPORT int guest_parked() {
  return guest::parked;
}

GUEST_EXPORT void guest_park() {
  guest::parked++;
  while (!guest::parked_may_go) guest::sleep_ms(10);
}

GUEST_EXPORT void guest_call(void (*back)()) {
  back();
}
