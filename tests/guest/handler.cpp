// SPDX-License-Identifier: MIT
// DoStackSnapshot(0) from a SIGPROF handler of the profiler's own: the interrupted thread walks its
// own stack, wherever it is. Invariant: the handler takes a free record, makes the call, and
// returns. Threads: the handler runs on all of the program's threads; one native sampler sends the
// signals and reads the records. Signal-safe: the handler, if DoStackSnapshot is.
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>
#include <cerrno>
#include <csignal>

#include "guest.hpp"

namespace guest {
namespace {

struct Record {
  std::atomic<bool> done;
  Walk walk;
};

constexpr size_t kRecords = 2048;
Record *records;
std::atomic<size_t> taken;

void on_prof(int, siginfo_t *, void *) {
  int saved = errno;
  size_t mine = taken.fetch_add(1);
  if (mine < kRecords) {
    Walk &walk = records[mine].walk;
    walk.clear(0, mine % 2 == 0 ? COR_PRF_SNAPSHOT_DEFAULT : COR_PRF_SNAPSHOT_REGISTER_CONTEXT);
    walk.tid = gettid();
    walk.hr = info->DoStackSnapshot(0, collect, walk.flags, &walk, nullptr, 0);
    records[mine].done = true;
  }
  errno = saved;
}

class Handler final : public Mode {
 public:
  DWORD events() const override { return COR_PRF_MONITOR_THREADS | COR_PRF_ENABLE_STACK_SNAPSHOT; }

  void run() override {
    notes.say("CPU time before Initialize: %ld of %ld us", kept_waiting_ns / 1000,
              cpu_ns(CLOCK_PROCESS_CPUTIME_ID) / 1000);
    records = new Record[kRecords]();
    struct sigaction action = {};
    action.sa_sigaction = on_prof;
    action.sa_flags = SA_SIGINFO | SA_RESTART;
    sigaction(SIGPROF, &action, nullptr);
    // This thread is not one of the program's, so it blocks the signal.
    sigset_t prof;
    sigemptyset(&prof);
    sigaddset(&prof, SIGPROF);
    pthread_sigmask(SIG_BLOCK, &prof, nullptr);
    // The timer signals running threads; the loop below signals waiting ones.
    timer(2000);
    long rounds = setting("GUEST_ROUNDS", 60);
    for (long round = 0; round < rounds; round++) {
      for (const auto &thread : threads.alive()) {
        if (!thread->name.empty()) syscall(SYS_tgkill, getpid(), thread->tid, SIGPROF);
      }
      sleep_ms(10);
    }
    timer(0);
    report();
  }

 private:
  static void timer(long us) {
    itimerval every = {{0, us}, {0, us}};
    setitimer(ITIMER_PROF, &every, nullptr);
  }

  static void report() {
    size_t count = taken < kRecords ? taken.load() : kRecords;
    for (int wait = 0; wait < 100 && unfinished(count) != 0; wait++) sleep_ms(20);
    notes.say("walks that never ended: %zu", unfinished(count));
    for (size_t i = 0; i < count; i++) {
      if (records[i].done) notes.add(records[i].walk);
    }
  }

  static size_t unfinished(size_t count) {
    size_t out = 0;
    for (size_t i = 0; i < count; i++) out += !records[i].done;
    return out;
  }
};

}  // namespace

std::unique_ptr<Mode> make_handler() {
  return std::make_unique<Handler>();
}

}  // namespace guest
