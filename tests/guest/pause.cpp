// SPDX-License-Identifier: MIT
// Measures the pattern of today's profilers: when each round began and ended, and in which function
// the main thread was found. The benchmark (bench/dropin.py) has the program's own view of the same
// rounds. Threads: one native sampler. Signal-safe: no.
#include <algorithm>

#include <unistd.h>

#include "guest.hpp"

namespace guest {
namespace {

class Pause final : public Mode {
 public:
  DWORD events() const override { return COR_PRF_MONITOR_THREADS | COR_PRF_ENABLE_STACK_SNAPSHOT; }

  void run() override {
    struct Round {
      uint64_t begin, end;
    };
    std::vector<Round> rounds(static_cast<size_t>(setting("GUEST_ROUNDS", 500)));
    std::map<FunctionID, unsigned> leaves;
    unsigned walks = 0, failed = 0;
    for (Round &round : rounds) {
      sleep_ms(10);
      round.begin = now_ns();
      HRESULT suspended = info->SuspendRuntime();
      unsigned count = suspended == S_OK ? walk_all() : 0;
      if (suspended == S_OK) info->ResumeRuntime();
      round.end = now_ns();
      for (unsigned i = 0; i < count; i++) {
        const Walk &walk = walks_[i];
        walks++;
        if (walk.hr != S_OK) failed++;
        if (walk.tid == static_cast<uint32_t>(getpid()) && walk.count > 0)
          leaves[walk.frames[0].function]++;
      }
    }
    uint64_t longest = 0;
    for (const Round &round : rounds) longest = std::max(longest, round.end - round.begin);
    notes.say("longest %llu", static_cast<unsigned long long>(longest));
    for (const Round &round : rounds)
      notes.say("round %llu %llu", static_cast<unsigned long long>(round.begin),
                static_cast<unsigned long long>(round.end));
    for (const auto &leaf : leaves)
      notes.say("leaf %u %s", leaf.second,
                leaf.first != 0 ? function_name(leaf.first).c_str() : "[native]");
    notes.say("walks %u failed %u", walks, failed);
  }

 private:
  unsigned walk_all() {
    ICorProfilerThreadEnum *all = nullptr;
    if (FAILED(info->EnumThreads(&all))) return 0;
    unsigned count = 0;
    ThreadID id;
    ULONG got = 0;
    while (count < walks_.size() && all->Next(1, &id, &got) == S_OK && got == 1) {
      Walk &walk = walks_[count++];
      DWORD tid = 0;
      walk.clear(id, COR_PRF_SNAPSHOT_DEFAULT);
      info->GetThreadInfo(id, &tid);
      walk.tid = tid;
      walk.hr = info->DoStackSnapshot(id, collect, COR_PRF_SNAPSHOT_DEFAULT, &walk, nullptr, 0);
    }
    all->Release();
    return count;
  }

  std::vector<Walk> walks_ = std::vector<Walk>(64);
};

}  // namespace

std::unique_ptr<Mode> make_pause() {
  return std::make_unique<Pause>();
}

}  // namespace guest
