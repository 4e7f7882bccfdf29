// SPDX-License-Identifier: MIT
// A profiler that does, from its Initialize on and all at once, what a profiler should not do:
// walks in a signal handler of its own, on every thread of the process and in the middle of malloc;
// native threads that walk all threads, including threads that have ended or never existed; walks
// in every callback; nonsense as seeds and IDs; C++ exceptions thrown out of the walk's callback;
// and a detach while all of this is under way. The program must end in time, with the right result.
// GUEST_PART=1 leaves out the walks in callbacks, GUEST_PART=2 leaves only those, and GUEST_PART=0
// makes no walk at all, but the callbacks take their time. Threads: the program's, the runtime's,
// and GUEST_THREADS of each kind of the profiler's own. Signal-safe: on_prof, if DoStackSnapshot
// is.
#include <dirent.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <thread>

#include "guest.hpp"

namespace guest {
namespace {

// ---- The calls and their results ----
enum Ask {
  kHandlerSelf,
  kHandlerSeeded,
  kHandlerNobody,
  kWalkerOther,
  kWalkerSeeded,
  kWalkerNobody,
  kWalkerThrows,
  kCallbackSelf,
  kCallbackSeeded,
  kCallbackOther,
  kCallbackNobody,
  kCallbackThrows,
  kFirstMethod,
  kAsks
};
constexpr const char *kNames[kAsks] = {
    "handler, itself",  "handler, seeded",   "handler, nobody",  "walker, another",
    "walker, seeded",   "walker, nobody",    "walker, throws",   "callback, itself",
    "callback, seeded", "callback, another", "callback, nobody", "callback, throws",
    "first method",
};
std::array<Answers, kAsks> answers;
std::array<std::atomic<long>, kAsks> with_frames;  // walks that reported a method
std::atomic<uint64_t> turns;
std::atomic<UINT_PTR> managed_ip;

struct Seen {
  unsigned frames = 0;
  bool throws = false;
};

HRESULT see(FunctionID function, UINT_PTR ip, COR_PRF_FRAME_INFO, ULONG32, BYTE[], void *data) {
  auto *seen = static_cast<Seen *>(data);
  if (function == 0) return S_OK;
  managed_ip.store(ip, std::memory_order_relaxed);
  if (++seen->frames == 2 && seen->throws) throw 2;
  return S_OK;
}

HRESULT ask(Ask what, ThreadID thread, ULONG32 flags = COR_PRF_SNAPSHOT_DEFAULT,
            BYTE *context = nullptr, ULONG32 size = 0) {
  Seen seen;
  HRESULT hr = info->DoStackSnapshot(thread, see, flags, &seen, context, size);
  answers[what].add(hr);
  if (seen.frames > 0) with_frames[what]++;
  return hr;
}

void ask_and_throw(Ask what, ThreadID thread) {
  Seen seen;
  seen.throws = true;
  try {
    answers[what].add(info->DoStackSnapshot(thread, see, 0, &seen, nullptr, 0));
  } catch (int) {
    with_frames[what]++;
  }
}

// ---- Nonsense ----
constexpr size_t kPage = 4096;
BYTE *area;  // two pages of noise, and one that cannot be read
BYTE *gone;  // was mapped once
void *freed;

uint64_t mix(uint64_t x) {
  x = (x ^ x >> 31) * 0x7FB5D329728EA185u;
  return (x ^ x >> 27) * 0x81DADEF4BC2DD44Du;
}

void make_nonsense() {
  void *at = mmap(nullptr, 5 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) abort();
  area = static_cast<BYTE *>(at);
  for (size_t i = 0; i < 2 * kPage; i += 8) {
    uint64_t noise = mix(i + 1);
    memcpy(area + i, &noise, 8);
  }
  mprotect(area + 2 * kPage, kPage, PROT_NONE);
  gone = area + 3 * kPage;
  munmap(gone, 2 * kPage);
  void *volatile block = malloc(600);  // as large as a Thread
  freed = block;
  free(block);
}

ThreadID nobody(uint64_t turn) {
  uint64_t noise = mix(turn);
  const ThreadID all[] = {
      1,
      8,
      ~ThreadID{0},
      noise,
      noise & 0x7FFFFFFFFFF8u,
      reinterpret_cast<ThreadID>(area),
      reinterpret_cast<ThreadID>(area) + 4,
      reinterpret_cast<ThreadID>(area) + 2 * kPage - 8,
      reinterpret_cast<ThreadID>(area) + 2 * kPage,
      reinterpret_cast<ThreadID>(gone),
      reinterpret_cast<ThreadID>(freed),
      reinterpret_cast<ThreadID>(&noise),
      reinterpret_cast<ThreadID>(info),
      gettid(),
      ThreadID{1} << 63 | gettid(),
  };
  return all[turn % (sizeof all / sizeof *all)];
}

// A walk from a seed that makes little or no sense: in managed code, with a wild stack pointer.
void ask_seeded(Ask what, ThreadID thread, uint64_t turn) {
  static const ULONG32 sizes[] = {sizeof(Context), 0, 1, sizeof(Context) - 1, 3232, ~0u};
  Context context;
  memset(&context, static_cast<int>(turn), sizeof context);
  const uint64_t stacks[] = {mix(turn), 0, reinterpret_cast<uint64_t>(gone),
                             reinterpret_cast<uint64_t>(&context) + turn % 64,
                             reinterpret_cast<uint64_t>(area) + 2 * kPage - 8};
  context.*kIp = turn % 3 == 0 ? mix(turn) : managed_ip.load(std::memory_order_relaxed);
  context.*kSp = stacks[turn % 5];
  context.*kFp = stacks[turn / 5 % 5];
  BYTE *const places[] = {
      reinterpret_cast<BYTE *>(&context),
      reinterpret_cast<BYTE *>(&context),
      reinterpret_cast<BYTE *>(&context),
      area + 1,
      area + 2 * kPage - sizeof context,
      area + 2 * kPage - 100,  // its end cannot be read
      gone,
      reinterpret_cast<BYTE *>(16),
  };
  ask(what, thread, turn % 2 == 0 ? COR_PRF_SNAPSHOT_DEFAULT : COR_PRF_SNAPSHOT_REGISTER_CONTEXT,
      places[turn % 8], turn % 8 < 3 ? sizes[turn / 8 % 6] : sizeof context);
}

// ---- The threads of ThreadCreated, in a table that a handler may read ----
constexpr size_t kIds = 256;
std::array<std::atomic<ThreadID>, kIds> ids;
std::atomic<size_t> next_id;

ThreadID any_id(uint64_t turn) {
  size_t count = next_id < kIds ? next_id.load() : kIds;
  return count == 0 ? nobody(turn) : ids[turn % count].load();
}

// ---- In a signal handler ----
std::atomic<long> inside;

void on_prof(int, siginfo_t *, void *) {
  int saved = errno;
  inside++;
  uint64_t turn = turns++;
  switch (turn % 8) {
    case 0:
      ask_seeded(kHandlerSeeded, 0, turn / 8);
      break;
    case 1:
      ask(kHandlerNobody, nobody(turn / 8));
      break;
    case 2:
      ask(kHandlerSelf, 0, COR_PRF_SNAPSHOT_REGISTER_CONTEXT);
      break;
    default:
      ask(kHandlerSelf, 0);
  }
  inside--;
  errno = saved;
}

void block_prof() {
  sigset_t prof;
  sigemptyset(&prof);
  sigaddset(&prof, SIGPROF);
  pthread_sigmask(SIG_BLOCK, &prof, nullptr);
}

void shoot_at_all(uint32_t self) {
  DIR *tasks = opendir("/proc/self/task");
  if (tasks == nullptr) return;
  while (const dirent *entry = readdir(tasks)) {
    long tid = strtol(entry->d_name, nullptr, 10);
    if (tid > 0 && tid != self) syscall(SYS_tgkill, getpid(), tid, SIGPROF);
  }
  closedir(tasks);
}

// ---- The mode ----
class Hostile final : public Mode {
 public:
  DWORD events() const override {
    DWORD all = COR_PRF_MONITOR_CLASS_LOADS | COR_PRF_MONITOR_MODULE_LOADS |
                COR_PRF_MONITOR_ASSEMBLY_LOADS | COR_PRF_MONITOR_APPDOMAIN_LOADS |
                COR_PRF_MONITOR_JIT_COMPILATION | COR_PRF_MONITOR_EXCEPTIONS |
                COR_PRF_MONITOR_THREADS | COR_PRF_MONITOR_SUSPENDS |
                COR_PRF_MONITOR_CACHE_SEARCHES | COR_PRF_ENABLE_STACK_SNAPSHOT;
    // A profiler with these events cannot detach.
    if (!detaches_)
      all |=
          COR_PRF_MONITOR_GC | COR_PRF_MONITOR_OBJECT_ALLOCATED | COR_PRF_ENABLE_OBJECT_ALLOCATED;
    return all;
  }
  DWORD events_high() const override { return COR_PRF_HIGH_MONITOR_DYNAMIC_FUNCTION_UNLOADS; }

  void before_mask() override { make_nonsense(); }

  void after_mask() override {
    if (part_ == 0 || part_ == 2) return;
    struct sigaction action = {};
    action.sa_sigaction = on_prof;
    action.sa_flags = SA_SIGINFO | SA_RESTART;
    sigaction(SIGPROF, &action, nullptr);
    long count = setting("GUEST_THREADS", 2);
    for (long i = 0; i < count; i++) own_.emplace_back([this, i] { use_malloc(i); });
    for (long i = 0; i < count; i++) own_.emplace_back([this, i] { walk_everybody(i); });
    shooter_ = std::thread([this] { shoot(); });
    if (setting("GUEST_SUSPENDS", 1) != 0) own_.emplace_back([this] { walk_suspended(); });
  }

  void every_callback(const char *name) override {
    static thread_local bool within;
    if (over_ || within || part_ == 1) return;
    if (part_ == 0) return linger(name);
    within = true;
    uint64_t turn = turns++;
    if (strcmp(name, "JITCompilationStarted") == 0 && !first_method_.exchange(true))
      ask(kFirstMethod, 0);
    // There are too many allocations to walk at each of them.
    if (name[0] != 'O' || turn % 32 == 0) in_callback(turn);
    within = false;
  }

  void created(ThreadID id) override { ids[next_id++ % kIds] = id; }

  void run() override {
    if (detaches_) {
      for (int i = 0; i < 3000 && !over_; i++) sleep_ms(10);
    } else {
      stop();
    }
    notes.say("detached: %s", detaches_ && over_ ? "yes" : "no");
    notes.say("blocks damaged: %ld", damaged_.load());
    for (int i = 0; i < kAsks; i++) {
      notes.say("%s: %ld with frames", kNames[i], with_frames[i].load());
      answers[i].tell(kNames[i]);
    }
  }

  void detached() override { stop(); }
  bool has_enough() override { return over_ || has_asked_enough(); }

 private:
  // How many calls of each kind have been made depends on the machine and its load.
  bool has_asked_enough() const {
    constexpr long kEnough = 20;  // of each that compare.py counts
    bool by_threads = part_ == 1 || part_ == 3, in_callbacks = part_ == 2 || part_ == 3;
    if (by_threads && (with_frames[kHandlerSelf] < kEnough || with_frames[kWalkerOther] < kEnough ||
                       answers[kHandlerNobody].count(S_OK) < kEnough ||
                       answers[kWalkerNobody].count(S_OK) < kEnough))
      return false;
    return !in_callbacks ||
           (with_frames[kCallbackSelf] >= kEnough && with_frames[kCallbackThrows] >= kEnough &&
            answers[kCallbackNobody].count(S_OK) >= kEnough);
  }

  // Once this returns, no code of this library runs any more, so the library may be closed.
  void stop() {
    stop_ = true;
    if (shooter_.joinable()) shooter_.join();
    signal(SIGPROF, SIG_IGN);
    sleep_ms(20);
    while (inside != 0) sleep_ms(1);
    for (std::thread &one : own_) one.join();
    over_ = true;
  }

  // Only takes time, in the two callbacks during which a GC hole of the runtime is open
  // (Hostile.cs).
  static void linger(const char *name) {
    if (strcmp(name, "ExceptionSearchFilterEnter") != 0 &&
        strcmp(name, "ExceptionCatcherEnter") != 0)
      return;
    timespec nap = {0, 200000};
    nanosleep(&nap, nullptr);
  }

  static void in_callback(uint64_t turn) {
    switch (turn % 16) {
      case 0:
        ask_and_throw(kCallbackThrows, 0);
        break;
      case 1:
        ask(kCallbackNobody, nobody(turn / 16));
        break;
      case 2:
        ask_seeded(kCallbackSeeded, 0, turn / 16);
        break;
      case 3:
      case 4:
        ask(kCallbackOther, any_id(turn / 16));
        break;
      default:
        ask(kCallbackSelf, 0,
            turn % 2 == 0 ? COR_PRF_SNAPSHOT_DEFAULT : COR_PRF_SNAPSHOT_REGISTER_CONTEXT);
    }
  }

  void shoot() {
    block_prof();
    uint32_t self = gettid();
    long pause_us = setting("GUEST_PERIOD_US", 500);
    bool requested = false;
    for (long round = 0; !stop_; round++) {
      shoot_at_all(self);
      timespec pause = {0, pause_us * 1000};
      nanosleep(&pause, nullptr);
      if (detaches_ && !requested && round >= 400 && has_asked_enough()) {
        request_detach();
        requested = true;
      }
    }
  }

  static void request_detach() {
    HRESULT hr = CORPROF_E_RUNTIME_UNINITIALIZED;
    for (int i = 0; i < 500 && hr == CORPROF_E_RUNTIME_UNINITIALIZED; i++) {
      hr = info->RequestProfilerDetach(50);
      if (hr == CORPROF_E_RUNTIME_UNINITIALIZED) sleep_ms(10);
    }
    notes.say("RequestProfilerDetach: 0x%08x", static_cast<unsigned>(hr));
  }

  // A signal handler on this thread often interrupts malloc, whose locks the thread then owns.
  void use_malloc(long number) {
    constexpr size_t kBlocks = 64;
    std::array<unsigned char *, kBlocks> blocks = {};
    std::array<size_t, kBlocks> sizes = {};
    for (uint64_t turn = static_cast<uint64_t>(number) << 40; !stop_; turn++) {
      uint64_t noise = mix(turn);
      size_t i = noise % kBlocks, size = 16 + noise / kBlocks % 4000;
      if (blocks[i] != nullptr && (blocks[i][0] != i || blocks[i][sizes[i] - 1] != i)) damaged_++;
      free(blocks[i]);
      blocks[i] = static_cast<unsigned char *>(malloc(size));
      memset(blocks[i], static_cast<int>(i), sizes[i] = size);
    }
    for (unsigned char *block : blocks) free(block);
  }

  void walk_everybody(long number) {
    for (uint64_t turn = static_cast<uint64_t>(number) << 40; !stop_; turn++) {
      switch (turn % 8) {
        case 0:
          ask_and_throw(kWalkerThrows, any_id(turn / 8));
          break;
        case 1:
          ask_seeded(kWalkerSeeded, any_id(turn / 8), turn / 8);
          break;
        case 2:
          ask(kWalkerNobody, nobody(turn / 8));
          break;
        default:
          ask(kWalkerOther, any_id(turn));
      }
      if (turn % 32 == 0) sleep_ms(1);
    }
  }

  // The usual round of a sampling profiler, concurrent with everything else.
  void walk_suspended() {
    while (!stop_) {
      sleep_ms(5);
      if (info->SuspendRuntime() != S_OK) continue;
      for (uint64_t i = 0; i < 16; i++) ask(kWalkerOther, any_id(i));
      info->ResumeRuntime();
    }
  }

  const long part_ = setting("GUEST_PART", 3);
  const bool detaches_ = setting("GUEST_DETACH", 0) != 0;
  std::atomic<bool> stop_{false}, over_{false}, first_method_{false};
  std::atomic<long> damaged_{0};
  std::vector<std::thread> own_;
  std::thread shooter_;
};

}  // namespace

std::unique_ptr<Mode> make_hostile() {
  return std::make_unique<Hostile>();
}

}  // namespace guest
