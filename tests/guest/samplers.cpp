// SPDX-License-Identifier: MIT
// What the known users of DoStackSnapshot do: they walk all threads while the runtime is suspended,
// the current thread in a callback, and, as on Windows, other threads that nothing has suspended.
// Threads: one native sampler, and the program's own threads in callbacks. Signal-safe: no.
#include "guest.hpp"

namespace guest {
namespace {

// SuspendRuntime -> EnumThreads -> DoStackSnapshot for each -> ResumeRuntime. Nothing is allocated
// or named between the first call and the last, because a suspended thread may own any of the
// runtime's locks.
class Suspend final : public Mode {
 public:
  DWORD events() const override { return COR_PRF_MONITOR_THREADS | COR_PRF_ENABLE_STACK_SNAPSHOT; }

  void run() override {
    long rounds = setting("GUEST_ROUNDS", 60);
    for (long round = 0; round < rounds; round++) {
      ULONG32 flags = round % 2 == 0 ? COR_PRF_SNAPSHOT_DEFAULT : COR_PRF_SNAPSHOT_REGISTER_CONTEXT;
      unsigned count = 0;
      HRESULT hr = suspend();
      if (hr == S_OK) {
        count = walk_all(flags);
        hr = info->ResumeRuntime();
      }
      if (hr != S_OK) notes.say("round %ld: 0x%08x", round, static_cast<unsigned>(hr));
      for (unsigned i = 0; i < count; i++) notes.add(walks_[i]);
      sleep_ms(3);
    }
  }

 private:
  // The call fails while a collection is under way, so it is repeated.
  static HRESULT suspend() {
    HRESULT hr = info->SuspendRuntime();
    for (int i = 0; i < 1000 && hr == CORPROF_E_SUSPENSION_IN_PROGRESS; i++) {
      sleep_ms(2);
      hr = info->SuspendRuntime();
    }
    return hr;
  }

  unsigned walk_all(ULONG32 flags) {
    ICorProfilerThreadEnum *all = nullptr;
    if (FAILED(info->EnumThreads(&all))) return 0;
    unsigned count = 0;
    ThreadID id;
    ULONG got = 0;
    while (count < walks_.size() && all->Next(1, &id, &got) == S_OK && got == 1) {
      Walk &walk = walks_[count++];
      walk.clear(id, flags);
      walk.hr = info->DoStackSnapshot(id, collect, flags, &walk, nullptr, 0);
    }
    all->Release();
    return count;
  }

  std::vector<Walk> walks_ = std::vector<Walk>(64);
};

// DoStackSnapshot(0) in the callbacks that allocation and exception profilers use.
class Sites final : public Mode {
 public:
  DWORD events() const override {
    return COR_PRF_MONITOR_THREADS | COR_PRF_ENABLE_STACK_SNAPSHOT | COR_PRF_MONITOR_EXCEPTIONS |
           COR_PRF_MONITOR_OBJECT_ALLOCATED | COR_PRF_ENABLE_OBJECT_ALLOCATED;
  }
  void allocated() override { walk(); }
  void thrown() override { walk(); }

  void run() override {
    for (const Walk &one : walks_) notes.add(one);
  }

 private:
  void walk() {
    walks_.emplace_back();
    Walk &one = walks_.back();
    ULONG32 flags =
        walks_.size() % 2 == 0 ? COR_PRF_SNAPSHOT_DEFAULT : COR_PRF_SNAPSHOT_REGISTER_CONTEXT;
    one.clear(0, flags);
    one.tid = gettid();
    one.hr = info->DoStackSnapshot(0, collect, flags, &one, nullptr, 0);
  }

  std::vector<Walk> walks_;  // of one thread: the program's sites are all on one
};

// Walks any thread at any time, as on Windows. The profiler keeps the thread from ending meanwhile.
class Cross final : public Mode {
 public:
  DWORD events() const override { return COR_PRF_MONITOR_THREADS | COR_PRF_ENABLE_STACK_SNAPSHOT; }

  void run() override {
    long rounds = setting("GUEST_ROUNDS", 60);
    for (long round = 0; round < rounds; round++) {
      ULONG32 flags = round % 2 == 0 ? COR_PRF_SNAPSHOT_DEFAULT : COR_PRF_SNAPSHOT_REGISTER_CONTEXT;
      for (const auto &thread : threads.alive()) {
        std::lock_guard<std::mutex> keeps_it(thread->walked);
        if (thread->destroyed) continue;
        one(thread->id, flags);
        notes.add(walk_);
      }
      sleep_ms(3);
    }
    notes.say("walks tried again: %ld of %ld", again_, walks_);
  }

 private:
  // The documentation calls this result temporary: on a busy machine a thread may get no processor
  // for a long time.
  void one(ThreadID thread, ULONG32 flags) {
    for (int i = 0; i < 3; i++, again_++) {
      walks_++;
      walk_.clear(thread, flags);
      walk_.hr = info->DoStackSnapshot(thread, collect, flags, &walk_, nullptr, 0);
      if (walk_.hr != CORPROF_E_STACKSNAPSHOT_UNSAFE) return;
    }
  }

  Walk walk_;
  long walks_ = 0, again_ = 0;
};

}  // namespace

std::unique_ptr<Mode> make_suspend() {
  return std::make_unique<Suspend>();
}
std::unique_ptr<Mode> make_sites() {
  return std::make_unique<Sites>();
}
std::unique_ptr<Mode> make_cross() {
  return std::make_unique<Cross>();
}

}  // namespace guest
