// SPDX-License-Identifier: MIT
// What the known users of DoStackSnapshot do: all threads while the runtime is suspended; the
// current one in a callback; and, as on Windows, other threads without more ado. Threads: one
// native sampler, and the program's own in callbacks. Signal-safe: no.
#include "guest.hpp"

namespace guest {
namespace {

// SuspendRuntime -> EnumThreads -> DoStackSnapshot for each -> ResumeRuntime. Between the first and
// the last nothing is allocated or named: a suspended thread may own any of the runtime's locks.
class Suspend final : public Mode {
 public:
  DWORD events() const override { return COR_PRF_MONITOR_THREADS | COR_PRF_ENABLE_STACK_SNAPSHOT; }

  void run() override {
    long rounds = setting("GUEST_ROUNDS", 60);
    long failed = 0;
    for (long round = 0; round < rounds; round++) {
      ULONG32 flags = round % 2 == 0 ? COR_PRF_SNAPSHOT_DEFAULT : COR_PRF_SNAPSHOT_REGISTER_CONTEXT;
      unsigned count = 0;
      HRESULT suspended = info->SuspendRuntime();
      if (suspended == S_OK) {
        count = walk_all(flags);
        HRESULT resumed = info->ResumeRuntime();
        if (resumed != S_OK) notes.say("ResumeRuntime: 0x%08x", static_cast<unsigned>(resumed));
      } else {
        failed++;
      }
      for (unsigned i = 0; i < count; i++) notes.add(walks_[i]);
      sleep_ms(3);
    }
    notes.say("rounds that could not suspend: %ld", failed);
  }

 private:
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

// As on Windows: any thread at any time. The profiler keeps the thread from going away meanwhile.
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
        walk_.clear(thread->id, flags);
        walk_.hr = info->DoStackSnapshot(thread->id, collect, flags, &walk_, nullptr, 0);
        notes.add(walk_);
      }
      sleep_ms(3);
    }
  }

 private:
  Walk walk_;
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
