// SPDX-License-Identifier: MIT
// What a profiler should not do, or not as often: many threads that walk all threads at once,
// refuse frames and walk within their callbacks; a C++ exception thrown out of the callback; a
// detach while walks are under way. The program must run to its end, as it does without clrsnap.
// Threads: several of the profiler's own. Signal-safe: no.
#include <stdexcept>
#include <thread>

#include "guest.hpp"

namespace guest {
namespace {

// A walk whose callback makes walks: of the calling thread, of another thread, and of the same one.
struct Within {
  Walk walk;
  ThreadID other = 0;
  Walk *inner = nullptr;
  Answers *answers = nullptr;
};

HRESULT walk_within(FunctionID function, UINT_PTR ip, COR_PRF_FRAME_INFO frame, ULONG32 size,
                    BYTE context[], void *data) {
  auto *within = static_cast<Within *>(data);
  if (within->walk.count < 3) {
    for (ThreadID thread : {ThreadID{0}, within->other, within->walk.thread}) {
      HRESULT hr = CORPROF_E_STACKSNAPSHOT_UNSAFE;
      for (int i = 0; i < 4 && hr == CORPROF_E_STACKSNAPSHOT_UNSAFE; i++) {
        within->inner->clear(thread, COR_PRF_SNAPSHOT_DEFAULT);
        hr = info->DoStackSnapshot(thread, collect, COR_PRF_SNAPSHOT_DEFAULT, within->inner,
                                   nullptr, 0);
      }
      within->answers->add(hr);
    }
  }
  return collect(function, ip, frame, size, context, &within->walk);
}

HRESULT refuse_third(FunctionID, UINT_PTR, COR_PRF_FRAME_INFO, ULONG32, BYTE[], void *data) {
  return ++*static_cast<int *>(data) == 3 ? E_ABORT : S_OK;
}

// GUEST_THREADS native threads, each of which walks all threads all the time, in one of several
// ways.
class Crowd final : public Mode {
 public:
  DWORD events() const override { return COR_PRF_MONITOR_THREADS | COR_PRF_ENABLE_STACK_SNAPSHOT; }

  void run() override {
    std::vector<std::thread> walkers;
    long count = setting("GUEST_THREADS", 8), rounds = setting("GUEST_ROUNDS", 60);
    // With CLRSNAP_HOLD=1, walkers that each want the other's target are refused (Circle,
    // rounds.cpp).
    long kinds = setting("GUEST_NEST", 1) != 0 ? 4 : 3;
    for (long i = 0; i < count; i++) {
      walkers.emplace_back([this, i, rounds, kinds] {
        for (long round = 0; round < rounds; round++) everybody(static_cast<int>(i % kinds));
      });
    }
    for (std::thread &walker : walkers) walker.join();
    plain_.tell("walk");
    refused_.tell("refused");
    nested_.tell("within a callback");
    notes.say("walks tried again: %ld of %ld", again_.load(), tries_.load());
  }

 private:
  void everybody(int how) {
    auto within = std::make_unique<Within>();
    auto inner = std::make_unique<Walk>();
    within->inner = inner.get();
    within->answers = &nested_;
    for (const auto &thread : threads.alive()) {
      // No lock is needed: this program's threads do not end, and walks of one thread may overlap
      // (contract: C9).
      if (thread->name.empty()) continue;
      one(how, thread->id, within.get());
      within->other = thread->id;
    }
  }

  void one(int how, ThreadID thread, Within *within) {
    ULONG32 flags = how == 1 ? COR_PRF_SNAPSHOT_REGISTER_CONTEXT : COR_PRF_SNAPSHOT_DEFAULT;
    HRESULT hr = CORPROF_E_STACKSNAPSHOT_UNSAFE;
    // The target, or the last of eight walkers, may get no processor for as long as a walk waits.
    for (int i = 0; i < 4 && hr == CORPROF_E_STACKSNAPSHOT_UNSAFE; i++) {
      int calls = 0;
      again_ += i > 0;
      tries_++;
      within->walk.clear(thread, flags);
      hr = how == 2   ? info->DoStackSnapshot(thread, refuse_third, flags, &calls, nullptr, 0)
           : how == 3 ? info->DoStackSnapshot(thread, walk_within, flags, within, nullptr, 0)
                      : info->DoStackSnapshot(thread, collect, flags, &within->walk, nullptr, 0);
    }
    if (how == 2) {
      refused_.add(hr);
      return;
    }
    within->walk.hr = hr;
    plain_.add(hr);
    notes.add(within->walk);
  }

  std::atomic<long> again_{0}, tries_{0};
  Answers plain_, refused_, nested_;
};

// A callback that throws. The API does not define what happens; the next walk must succeed.
class Throw final : public Mode {
 public:
  DWORD events() const override {
    return COR_PRF_MONITOR_THREADS | COR_PRF_ENABLE_STACK_SNAPSHOT | COR_PRF_MONITOR_EXCEPTIONS;
  }

  // Walks the calling managed thread.
  void thrown() override {
    if (thrown_++ < 3) one("in a callback", 0);
  }

  // Walks other threads from a native thread while the runtime is suspended, as the runtime's own
  // walk requires.
  void run() override {
    for (const auto &thread : threads.alive()) {
      if (thread->name.empty()) continue;
      HRESULT hr = info->SuspendRuntime();
      for (int i = 0; i < 500 && hr == CORPROF_E_SUSPENSION_IN_PROGRESS; i++) {
        sleep_ms(2);
        hr = info->SuspendRuntime();
      }
      if (hr != S_OK) notes.say("SuspendRuntime: 0x%08x", static_cast<unsigned>(hr));
      one(thread->name.c_str(), thread->id);
      info->ResumeRuntime();
    }
  }

 private:
  static HRESULT throws(FunctionID, UINT_PTR, COR_PRF_FRAME_INFO, ULONG32, BYTE[], void *) {
    throw std::runtime_error("out of the callback");
  }

  static void one(const char *where, ThreadID thread) {
    // More walks than any table of walks under way could have room for.
    long times = setting("GUEST_THROWS", 200);
    int answered = 0, thrown = 0;
    for (long i = 0; i < times; i++) {
      try {
        info->DoStackSnapshot(thread, throws, COR_PRF_SNAPSHOT_DEFAULT, nullptr, nullptr, 0);
        answered++;
      } catch (const std::runtime_error &) {
        thrown++;
      }
    }
    auto walk = std::make_unique<Walk>();
    walk->clear(thread, COR_PRF_SNAPSHOT_DEFAULT);
    walk->hr = info->DoStackSnapshot(thread, collect, 0, walk.get(), nullptr, 0);
    notes.say("%s: %d answered, %d thrown, and then 0x%08x, %u frames", where, answered, thrown,
              static_cast<unsigned>(walk->hr), walk->count);
  }

  int thrown_ = 0;
};

// RequestProfilerDetach while GUEST_THREADS threads walk. The threads are joined when the runtime
// reports that the detach has succeeded, as the documentation asks.
class Detach final : public Mode {
 public:
  DWORD events() const override {
    return COR_PRF_MONITOR_THREADS | COR_PRF_MONITOR_MODULE_LOADS | COR_PRF_ENABLE_STACK_SNAPSHOT;
  }

  void run() override {
    for (long i = 0; i < setting("GUEST_THREADS", 3); i++) {
      walkers_.emplace_back([this] { walk_until_told(); });
    }
    for (int i = 0; i < 1000 && tries_ < 60; i++) sleep_ms(10);
    asked_ = true;
    notes.say("RequestProfilerDetach: 0x%08x",
              static_cast<unsigned>(info->RequestProfilerDetach(100)));
    HRESULT again = info->RequestProfilerDetach(100);
    DWORD mask = 0;
    HRESULT get = info->GetEventMask(&mask), set = info->SetEventMask(0);
    notes.say("and again: 0x%08x, GetEventMask: 0x%08x, SetEventMask: 0x%08x",
              static_cast<unsigned>(again), static_cast<unsigned>(get), static_cast<unsigned>(set));
    int waited = 0;
    while (!done_ && waited++ < 2000) sleep_ms(10);
    notes.say("ProfilerDetachSucceeded: %s", done_ ? "yes" : "no");
    notes.say("callbacks after it: %d", after_.load());
    before_.tell("before");
    since_.tell("since the request");
  }

  void any_callback(const char *) override {
    if (done_) after_++;
  }

  // The runtime's last call; the library may be closed after it.
  void detached() override {
    stop_ = true;
    for (std::thread &walker : walkers_) walker.join();
    done_ = true;
  }

 private:
  void walk_until_told() {
    auto walk = std::make_unique<Walk>();
    while (!stop_) {
      for (const auto &thread : threads.alive()) {
        if (thread->name.empty()) continue;
        walk->clear(thread->id, COR_PRF_SNAPSHOT_DEFAULT);
        bool before = !asked_;
        HRESULT hr = info->DoStackSnapshot(thread->id, collect, 0, walk.get(), nullptr, 0);
        tries_++;
        // One that has reported frames was under way before the request, and must succeed.
        (before && (hr == S_OK || walk->count > 0 || !asked_) ? before_ : since_).add(hr);
      }
    }
  }

  std::vector<std::thread> walkers_;
  std::atomic<bool> stop_{false}, done_{false}, asked_{false};
  std::atomic<int> after_{0};
  std::atomic<long> tries_{0};
  Answers before_, since_;
};

// Detaches from a thread that Initialize has started, in a program that does not know the profiler.
// The runtime then closes the library, and nothing may refer to it any more.
class Leave final : public Mode {
 public:
  DWORD events() const override { return COR_PRF_MONITOR_THREADS | COR_PRF_ENABLE_STACK_SNAPSHOT; }

  void after_mask() override {
    thread_ = std::thread([this] {
      HRESULT hr = CORPROF_E_RUNTIME_UNINITIALIZED;
      for (int i = 0; i < 500 && hr == CORPROF_E_RUNTIME_UNINITIALIZED; i++) {
        sleep_ms(10);
        hr = info->RequestProfilerDetach(50);
      }
      notes.say("RequestProfilerDetach: 0x%08x", static_cast<unsigned>(hr));
    });
  }

  void detached() override {
    thread_.join();
    notes.say("ProfilerDetachSucceeded");
    notes.write();
  }

 private:
  std::thread thread_;
};

}  // namespace

std::unique_ptr<Mode> make_leave() {
  return std::make_unique<Leave>();
}
std::unique_ptr<Mode> make_crowd() {
  return std::make_unique<Crowd>();
}
std::unique_ptr<Mode> make_throw() {
  return std::make_unique<Throw>();
}
std::unique_ptr<Mode> make_detach() {
  return std::make_unique<Detach>();
}

}  // namespace guest
