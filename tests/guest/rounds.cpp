// SPDX-License-Identifier: MIT
// Rounds as today's sampling profilers make them, for GUEST_SECONDS: what a round over all threads
// of the program costs (tests/apps/Guest/Mix.cs). GUEST_STOP=0 leaves out the suspension,
// GUEST_WALK=0 leaves out the walks, and GUEST_GAP_MS is the time between two rounds. Used by tests
// (tests/guest/rounds.sh) and by bench/rounds.py. Threads: one native sampler; Circle has two.
// Signal-safe: no.
#include <algorithm>
#include <cstring>
#include <set>
#include <string_view>
#include <thread>

#include "guest.hpp"

namespace guest {
namespace {

// What a walk has shown: how many frames, and the oldest managed method.
struct Walk {
  unsigned frames = 0;
  FunctionID oldest = 0;
};

HRESULT look_at_frame(FunctionID function, UINT_PTR, COR_PRF_FRAME_INFO, ULONG32, BYTE[],
                      void *data) {
  auto *walk = static_cast<Walk *>(data);
  walk->frames++;
  if (function != 0) walk->oldest = function;
  return S_OK;
}

HRESULT count_frame(FunctionID, UINT_PTR, COR_PRF_FRAME_INFO, ULONG32, BYTE[], void *data) {
  ++*static_cast<unsigned *>(data);
  return S_OK;
}

class Rounds final : public Mode {
 public:
  DWORD events() const override { return COR_PRF_MONITOR_THREADS | COR_PRF_ENABLE_STACK_SNAPSHOT; }

  void run() override {
    uint64_t until = now_ns() + static_cast<uint64_t>(setting("GUEST_SECONDS", 3)) * 1000000000u;
    long gap = setting("GUEST_GAP_MS", 10);
    bool stop = setting("GUEST_STOP", 1) != 0, walk = setting("GUEST_WALK", 1) != 0;
    std::vector<uint64_t> times;
    while (now_ns() < until) {
      sleep_ms(gap);
      if (!walk) continue;
      uint64_t begin = now_ns();
      if (stop && info->SuspendRuntime() != S_OK) continue;
      walk_all();
      if (stop) info->ResumeRuntime();
      times.push_back(now_ns() - begin);
    }
    std::sort(times.begin(), times.end());
    auto at = [&times](double share) {
      return times.empty()
                 ? 0
                 : times[static_cast<size_t>(share * static_cast<double>(times.size() - 1))];
    };
    notes.say("rounds %zu p10 %llu p50 %llu p90 %llu max %llu", times.size(), ns(at(0.1)),
              ns(at(0.5)), ns(at(0.9)), ns(at(1)));
    notes.say("walks %lu frames %lu", walks_, frames_);
    notes.say("oldest methods %zu", oldest_.size());
    for (const auto &one : answers_)
      notes.say("answer 0x%08x %lu", static_cast<unsigned>(one.first), one.second);
  }

 private:
  static unsigned long long ns(uint64_t value) { return value; }

  void walk_all() {
    ICorProfilerThreadEnum *all = nullptr;
    if (FAILED(info->EnumThreads(&all))) return;
    ThreadID id;
    ULONG got = 0;
    while (all->Next(1, &id, &got) == S_OK && got == 1) {
      Walk walk;
      DWORD tid = 0;
      info->GetThreadInfo(id, &tid);
      HRESULT hr =
          info->DoStackSnapshot(id, look_at_frame, COR_PRF_SNAPSHOT_DEFAULT, &walk, nullptr, 0);
      walks_++;
      frames_ += walk.frames;
      if (hr == S_OK) oldest_.insert(walk.oldest);
      answers_[hr]++;
    }
    all->Release();
  }

  unsigned long walks_ = 0, frames_ = 0;
  std::set<FunctionID> oldest_;  // a walk that is cut short ends in another method
  std::map<HRESULT, unsigned long> answers_;
};

// Long rounds in a program whose threads end all the time: counts in turn how many threads end
// during rounds and how many end without one, and makes every call that takes a ThreadID with
// threads that may have ended since they were enumerated.
class Endings final : public Mode {
 public:
  DWORD events() const override { return COR_PRF_MONITOR_THREADS | COR_PRF_ENABLE_STACK_SNAPSHOT; }

  void any_callback(const char *what) override {
    if (strcmp(what, "ThreadDestroyed") == 0) ended_++;
  }

  void run() override {
    uint64_t beside = 0, alone = 0;
    const long turns = 12;
    for (long turn = 0; turn < turns; turn++) {
      uint64_t from = now_ns(), before = ended_;
      sleep_ms(kTurnMs);
      alone += per_second(ended_ - before, now_ns() - from);
      from = now_ns(), before = ended_;
      while (now_ns() - from < kTurnMs * 1000000u) round();
      beside += per_second(ended_ - before, now_ns() - from);
    }
    notes.say("ended alone %llu beside %llu", ull(alone / turns), ull(beside / turns));
    for (const auto &one : answers_)
      notes.say("%s 0x%08x %lu", one.first.first.data(), static_cast<unsigned>(one.first.second),
                one.second);
  }

 private:
  static constexpr long kTurnMs = 150, kRoundMs = 20;
  static unsigned long long ull(uint64_t value) { return value; }
  static uint64_t per_second(uint64_t count, uint64_t ns) { return count * 1000000000u / ns; }

  void round() {
    HRESULT hr = info->SuspendRuntime();
    note("SuspendRuntime", hr);
    if (hr != S_OK) return;
    ICorProfilerThreadEnum *all = nullptr;
    std::vector<ThreadID> ids;
    ThreadID id;
    ULONG got = 0;
    if (SUCCEEDED(info->EnumThreads(&all))) {
      while (all->Next(1, &id, &got) == S_OK && got == 1) ids.push_back(id);
      all->Release();
    }
    sleep_ms(kRoundMs);
    for (ThreadID one : ids) ask(one);
    info->ResumeRuntime();
  }

  void ask(ThreadID id) {
    unsigned frames = 0;
    DWORD tid = 0;
    HANDLE handle = nullptr;
    ContextID context = 0;
    AppDomainID domain = 0;
    note("GetThreadInfo", info->GetThreadInfo(id, &tid));
    note("GetHandleFromThread", info->GetHandleFromThread(id, &handle));
    note("GetThreadContext", info->GetThreadContext(id, &context));
    note("GetThreadAppDomain", info->GetThreadAppDomain(id, &domain));
    note("DoStackSnapshot",
         info->DoStackSnapshot(id, count_frame, COR_PRF_SNAPSHOT_DEFAULT, &frames, nullptr, 0));
  }

  void note(const char *what, HRESULT hr) { answers_[{what, hr}]++; }

  std::atomic<uint64_t> ended_{0};
  std::map<std::pair<std::string_view, HRESULT>, unsigned long> answers_;
};

// A callback that takes longer than the 2 s for which a target is held, and then walks another
// thread.
class Late final : public Mode {
 public:
  DWORD events() const override { return COR_PRF_MONITOR_THREADS | COR_PRF_ENABLE_STACK_SNAPSHOT; }

  void run() override {
    ThreadID id = 0;
    for (const auto &thread : threads.alive()) {
      if (thread->name == "Generic") id = thread->id;
      if (thread->name == "Wait") other_ = thread->id;
    }
    HRESULT hr = CORPROF_E_STACKSNAPSHOT_UNSAFE;
    // On a busy machine the target may get no processor in time; the callback has not been called
    // then.
    for (int i = 0; i < 20 && calls_ == 0 && hr == CORPROF_E_STACKSNAPSHOT_UNSAFE; i++)
      hr = info->DoStackSnapshot(id, late, COR_PRF_SNAPSHOT_DEFAULT, this, nullptr, 0);
    notes.say("late 0x%08x after %u callbacks, within 0x%08x", static_cast<unsigned>(hr), calls_,
              static_cast<unsigned>(within_));
  }

 private:
  static HRESULT late(FunctionID, UINT_PTR, COR_PRF_FRAME_INFO, ULONG32, BYTE[], void *data) {
    auto *self = static_cast<Late *>(data);
    unsigned frames = 0;
    if (self->calls_++ > 0) return S_OK;
    sleep_ms(2500);
    self->within_ = info->DoStackSnapshot(self->other_, count_frame, COR_PRF_SNAPSHOT_DEFAULT,
                                          &frames, nullptr, 0);
    return S_OK;
  }

  ThreadID other_ = 0;
  unsigned calls_ = 0;
  HRESULT within_ = S_OK;
};

// Two walkers hold one target each, and each walks the other's target in its callback. The second
// of these two walks closes a circle and is refused at once; its target then runs on, and the first
// walk succeeds. The yardstick for "at once" is how long a walk takes if only its time-out ends it:
// a walk of a target whose holder does not wait for another thread.
class Circle final : public Mode {
 public:
  DWORD events() const override { return COR_PRF_MONITOR_THREADS | COR_PRF_ENABLE_STACK_SNAPSHOT; }

  void run() override {
    for (const auto &thread : threads.alive()) {
      if (thread->name == "Generic") walkers_[0].target = thread->id;
      if (thread->name == "Wait") walkers_[1].target = thread->id;
    }
    for (bool closes : {true, false})
      for (int round = 0; round < (closes ? kRounds : 1); round++) one_round(closes);
  }

 private:
  static constexpr int kRounds = 10, kTries = 20;
  struct Walker {
    Walker *other = nullptr;
    ThreadID target = 0;
    bool walks = true;               // the other's target
    std::atomic<bool> holds{false};  // its own
    std::atomic<bool> is_done{false};
    HRESULT within = S_OK;
    uint64_t ns = 0;
  };
  Walker walkers_[2];

  void one_round(bool closes) {
    // On a busy machine a target may get no processor in time; it is not held then.
    for (int i = 0; i < kTries; i++) {
      begin(closes);
      std::thread first(hold, &walkers_[0]), second(hold, &walkers_[1]);
      first.join();
      second.join();
      if (walkers_[0].holds && walkers_[1].holds) break;
    }
    for (const Walker &walker : walkers_)
      if (walker.walks)
        notes.say("%s 0x%08x %llu ns", closes ? "circle" : "time",
                  static_cast<unsigned>(walker.within), static_cast<unsigned long long>(walker.ns));
  }

  void begin(bool closes) {
    for (int i = 0; i < 2; i++) {
      Walker &walker = walkers_[i];
      walker.other = &walkers_[1 - i];
      walker.walks = closes || i == 0;
      walker.holds = walker.is_done = false;
    }
  }

  static void hold(Walker *walker) {
    info->DoStackSnapshot(walker->target, held, COR_PRF_SNAPSHOT_DEFAULT, walker, nullptr, 0);
    walker->is_done = true;
  }

  static HRESULT held(FunctionID, UINT_PTR, COR_PRF_FRAME_INFO, ULONG32, BYTE[], void *data) {
    auto *walker = static_cast<Walker *>(data);
    Walker *other = walker->other;
    if (walker->holds.exchange(true)) return S_OK;
    while (!other->holds && !other->is_done) sleep_ms(1);
    if (!walker->walks) {
      while (!other->is_done) sleep_ms(1);
      return S_OK;
    }
    unsigned frames = 0;
    uint64_t begin = now_ns();
    walker->within = info->DoStackSnapshot(other->target, count_frame, COR_PRF_SNAPSHOT_DEFAULT,
                                           &frames, nullptr, 0);
    walker->ns = now_ns() - begin;
    return S_OK;
  }
};

}  // namespace

std::unique_ptr<Mode> make_circle() {
  return std::make_unique<Circle>();
}
std::unique_ptr<Mode> make_late() {
  return std::make_unique<Late>();
}
std::unique_ptr<Mode> make_endings() {
  return std::make_unique<Endings>();
}
std::unique_ptr<Mode> make_rounds() {
  return std::make_unique<Rounds>();
}

}  // namespace guest
