// SPDX-License-Identifier: MIT
// The documentation's recipe for another thread's stack: stop the thread, read its registers, call
// GetFunctionFromIP, unwind native frames to the first managed one, seed DoStackSnapshot with it,
// and let the thread run. Linux has no SuspendThread, so the profiler implements one with a signal
// of its own, whose handler publishes its ucontext and waits. Invariant: nothing is allocated
// between hold and release, because the target may own malloc's lock, and the target resumes by
// itself after a while. Threads: one native sampler (contract: C17) that has made one successful
// call before (C20); the targets run the handler. Signal-safe: the handler.
#define UNW_LOCAL_ONLY
#include <libunwind.h>

#include <linux/futex.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>
#include <csignal>
#include <ctime>

#include <cerrno>
#include <cstring>

#include "guest.hpp"

namespace guest {
namespace {

// ---- Holding a thread ----
enum : uint32_t { kIdle, kAsked, kHeld, kReleased, kGone };

std::atomic<uint32_t> state;
ucontext_t *held_context;

time_t now_s() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec;
}

// Waits until the state changes, for at most `seconds`. The wait is a loop because the runtime's
// own signals interrupt a futex.
void wait_while(uint32_t value, time_t seconds) {
  const timespec nap = {0, 100000000};
  for (time_t end = now_s() + seconds; state == value && now_s() < end;) {
    syscall(SYS_futex, &state, FUTEX_WAIT_PRIVATE, value, &nap, nullptr, 0);
  }
}

void change(uint32_t value) {
  state = value;
  syscall(SYS_futex, &state, FUTEX_WAKE_PRIVATE, 64, nullptr, nullptr, 0);
}

// Runs on the target. It waits for a few seconds and then resumes; the sampler sees that it has.
void on_hold(int, siginfo_t *, void *context) {
  int saved = errno;
  held_context = static_cast<ucontext_t *>(context);
  uint32_t asked = kAsked;
  if (state.compare_exchange_strong(asked, kHeld)) {
    change(kHeld);
    wait_while(kHeld, 4);
    change(kGone);
  }
  errno = saved;
}

bool hold(uint32_t tid) {
  state = kAsked;
  if (syscall(SYS_tgkill, getpid(), tid, SIGUSR2) != 0) return false;
  wait_while(kAsked, 4);
  uint32_t asked = kAsked;
  return !state.compare_exchange_strong(asked, kIdle);
}

// False: the target had already resumed by itself, so what was read of it is worthless.
bool release() {
  uint32_t held = kHeld;
  bool was_held = state.compare_exchange_strong(held, kReleased);
  if (was_held) change(kReleased);
  while (state != kGone) wait_while(kReleased, 1);
  return was_held;
}

// ---- From its registers to a seed ----
void copy_registers(unw_cursor_t *cursor, AMD64_CONTEXT *seed) {
  static const struct {
    unw_regnum_t from;
    DWORD64 AMD64_CONTEXT::*to;
  } registers[] = {
      {UNW_X86_64_RIP, &AMD64_CONTEXT::Rip}, {UNW_X86_64_RSP, &AMD64_CONTEXT::Rsp},
      {UNW_X86_64_RBP, &AMD64_CONTEXT::Rbp}, {UNW_X86_64_RBX, &AMD64_CONTEXT::Rbx},
      {UNW_X86_64_R12, &AMD64_CONTEXT::R12}, {UNW_X86_64_R13, &AMD64_CONTEXT::R13},
      {UNW_X86_64_R14, &AMD64_CONTEXT::R14}, {UNW_X86_64_R15, &AMD64_CONTEXT::R15},
  };
  memset(seed, 0, sizeof(*seed));
  seed->ContextFlags = CONTEXT_AMD64_CONTROL | CONTEXT_AMD64_INTEGER;
  for (const auto &one : registers) {
    unw_word_t value = 0;
    if (unw_get_reg(cursor, one.from, &value) == 0) seed->*one.to = value;
  }
}

// Returns the number of native frames above the first managed one, or -1 if none was found. Where
// there is no unwind information (in the runtime's stubs), libunwind would guess, and the seed
// would be wrong. A seed beyond the runtime's trip wire for collections would be wrong, too: the
// trip wire's unwind information is one word off and leads to an address on the stack.
int find_managed(ucontext_t *context, AMD64_CONTEXT *seed) {
  unw_cursor_t cursor;
  if (unw_init_local2(&cursor, context, UNW_INIT_SIGNAL_FRAME) != 0) return -1;
  for (int native = 0; native < 128; native++) {
    unw_word_t ip = 0;
    FunctionID function = 0;
    if (unw_get_reg(&cursor, UNW_REG_IP, &ip) != 0 || ip == 0) return -1;
    HRESULT hr = info->GetFunctionFromIP(reinterpret_cast<LPCBYTE>(ip), &function);
    if (SUCCEEDED(hr) && function != 0) {
      copy_registers(&cursor, seed);
      return native;
    }
    // libunwind reports code for which it has no information as one byte long.
    unw_proc_info_t known;
    if (unw_get_proc_info(&cursor, &known) != 0 || known.end_ip - known.start_ip <= 1 ||
        unw_step(&cursor) <= 0) {
      return -1;
    }
  }
  return -1;
}

class Recipe final : public Mode {
 public:
  DWORD events() const override { return COR_PRF_MONITOR_THREADS | COR_PRF_ENABLE_STACK_SNAPSHOT; }

  void run() override {
    struct sigaction action = {};
    action.sa_sigaction = on_hold;
    action.sa_flags = SA_SIGINFO | SA_RESTART;
    sigaction(SIGUSR2, &action, nullptr);
    // The first call from this thread is made while no thread is held (contract: C20).
    walk_.clear(0, COR_PRF_SNAPSHOT_DEFAULT);
    notes.say("first call: 0x%08x", static_cast<unsigned>(info->DoStackSnapshot(
                                        0, collect, COR_PRF_SNAPSHOT_DEFAULT, &walk_, nullptr, 0)));
    long rounds = setting("GUEST_ROUNDS", 60);
    // On a busy machine the threads that compute are seldom met outside of the runtime's stubs.
    for (long round = 0; round < rounds || (at_once_ == 0 && round < 20 * rounds); round++) {
      for (const auto &thread : threads.alive()) {
        // A thread that dispatches an exception may own the loader's lock, which libunwind needs,
        // too.
        if (thread->name.empty() || thread->name == "Raise") continue;
        one(thread.get(),
            round % 2 == 0 ? COR_PRF_SNAPSHOT_DEFAULT : COR_PRF_SNAPSHOT_REGISTER_CONTEXT);
      }
      sleep_ms(3);
    }
    notes.say("threads that could not be held: %ld", not_held_);
    notes.say("threads that did not wait: %ld", too_late_);
    notes.say("seeds: %ld in managed code, %ld below native frames, %ld none", at_once_, below_,
              no_seed_);
  }

 private:
  void one(Thread *thread, ULONG32 flags) {
    std::lock_guard<std::mutex> keeps_it(thread->walked);  // contract: C18
    if (thread->destroyed) return;
    if (!hold(thread->tid)) {
      not_held_++;
      return;
    }
    AMD64_CONTEXT seed;
    int native = find_managed(held_context, &seed);
    walk_.clear(thread->id, flags);
    walk_.hr = info->DoStackSnapshot(thread->id, collect, flags, &walk_,
                                     native >= 0 ? reinterpret_cast<BYTE *>(&seed) : nullptr,
                                     native >= 0 ? sizeof(seed) : 0);
    if (!release()) {
      too_late_++;
      return;
    }
    (native < 0 ? no_seed_ : native == 0 ? at_once_ : below_)++;
    notes.add(walk_);
  }

  Walk walk_;
  long not_held_ = 0, too_late_ = 0, at_once_ = 0, below_ = 0, no_seed_ = 0;
};

}  // namespace

std::unique_ptr<Mode> make_recipe() {
  return std::make_unique<Recipe>();
}

}  // namespace guest
