// SPDX-License-Identifier: MIT
// A CLR profiler as another vendor would write it: in C++, against the documented COM interfaces,
// without any knowledge of clrsnap. GUEST_MODE chooses what it does. It writes what it sees to the
// file GUEST_OUT, in a form that can be compared between two runs (compare.py). It follows the
// documentation's advice and the practice of existing profilers.
#pragma once

#include <atomic>
#include <cstdarg>
#include <cstdint>
#include <ctime>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "corprof.hxx"

namespace guest {

// ---- The registers of a frame ----
#ifdef __aarch64__
using Context = ARM64_CONTEXT;
constexpr DWORD64 Context::*kIp = &Context::Pc, Context::*kSp = &Context::Sp,
                  Context::*kFp = &Context::Fp;
#else
using Context = AMD64_CONTEXT;
constexpr DWORD64 Context::*kIp = &Context::Rip, Context::*kSp = &Context::Rsp,
                  Context::*kFp = &Context::Rbp;
#endif

// ---- A stack, as DoStackSnapshot's callback reports it ----
struct Frame {
  FunctionID function;  // 0: a run of unmanaged frames
  UINT_PTR ip;
  ULONG32 context_size;  // 0: no context
  DWORD64 sp, pc;        // of the context
};

struct Walk {
  static constexpr unsigned kMax = 512;
  ThreadID thread = 0;
  uint32_t tid = 0;
  ULONG32 flags = 0;
  HRESULT hr = S_OK;
  unsigned count = 0, dropped = 0;
  Frame frames[kMax];

  void clear(ThreadID who, ULONG32 how) {
    thread = who, flags = how, hr = S_OK, count = 0, dropped = 0;
  }
};

// The callback, whose client data is a Walk. It writes to the Walk and does nothing else, so it may
// run in a signal handler and while a thread is held.
HRESULT collect(FunctionID function, UINT_PTR ip, COR_PRF_FRAME_INFO info, ULONG32 context_size,
                BYTE context[], void *walk);

// ---- The threads, as callbacks report them ----
struct Thread {
  ThreadID id = 0;
  uint32_t tid = 0;
  std::string name;
  std::mutex walked;  // ThreadDestroyed waits for it (contract: C18)
  bool destroyed = false;
};

class Threads {
 public:
  void created(ThreadID id);
  void assigned(ThreadID id, uint32_t tid);
  void named(ThreadID id, const WCHAR *name, ULONG length);
  void destroyed(ThreadID id);
  std::vector<std::shared_ptr<Thread>> alive();
  std::string name_of(ThreadID id);  // of the last thread of that id, even if it has ended
  std::string name_of_tid(uint32_t tid);

 private:
  std::mutex lock_;
  std::map<ThreadID, std::shared_ptr<Thread>> threads_;
};

// ---- The notes ----
class Notes {
 public:
  // Names the walk's functions, and counts equal walks. Must not be called while a thread is held
  // or the runtime is suspended.
  void add(const Walk &walk);
  // Adds a "key value" line; the lines are in the order of the calls.
  void say(const char *format, ...) __attribute__((format(printf, 2, 3)));
  void write();

 private:
  std::string text_of(const Walk &walk);
  std::mutex lock_;
  std::map<std::string, uint64_t> walks_;
  std::vector<std::string> lines_;
};

// Counts how many times each HRESULT was returned, over all threads. It allocates nothing, because
// a target may be held, and because a signal handler may count.
class Answers {
 public:
  void add(HRESULT hr);
  long count(HRESULT hr) const;
  void tell(const char *what);  // to the notes

 private:
  static constexpr HRESULT kEmpty = 0x7FFFFFFF;
  struct One {
    std::atomic<HRESULT> hr{kEmpty};
    std::atomic<long> count{0};
  };
  One all_[16];
};

// "Namespace.Type.Method", by metadata.
std::string function_name(FunctionID function);

// ---- The ways to use the API: one class per GUEST_MODE ----
class Mode {
 public:
  virtual ~Mode() = default;
  virtual DWORD events() const = 0;
  virtual DWORD events_high() const { return 0; }
  // Called in Initialize, before and after the event mask is set.
  virtual void before_mask() {}
  virtual void after_mask() {}
  // Called on a thread of the profiler that never runs managed code, once the program is in place.
  virtual void run() {}
  virtual void allocated() {}
  virtual void thrown() {}
  virtual void any_callback(const char *) {}  // of those that not all modes ask for
  virtual void every_callback(const char *) {}
  virtual void created(ThreadID) {}
  virtual void detached() {}
  virtual bool has_enough() { return true; }  // may the program end?
};
std::unique_ptr<Mode> make_suspend();  // SuspendRuntime, EnumThreads, DoStackSnapshot, Resume
std::unique_ptr<Mode> make_sites();    // DoStackSnapshot(0) in ObjectAllocated, ExceptionThrown
std::unique_ptr<Mode> make_cross();    // DoStackSnapshot of others, nothing suspended
std::unique_ptr<Mode> make_recipe();   // hold, find the first managed frame, seed
std::unique_ptr<Mode> make_pause();    // the first of these, measured
std::unique_ptr<Mode> make_rounds();   // the same for GUEST_SECONDS, each round timed
std::unique_ptr<Mode> make_endings();  // what may be asked of threads that end in a round
std::unique_ptr<Mode> make_late();     // callbacks that outlast a hold
std::unique_ptr<Mode> make_circle();   // walkers that each want what the other one holds
std::unique_ptr<Mode> make_handler();  // DoStackSnapshot(0) in a SIGPROF handler
std::unique_ptr<Mode> make_calls();    // every odd call, and what it returns
std::unique_ptr<Mode> make_crowd();    // many threads at once, refusing and nesting
std::unique_ptr<Mode> make_throw();    // a C++ exception out of the callback
std::unique_ptr<Mode> make_detach();   // RequestProfilerDetach while walks are under way
std::unique_ptr<Mode> make_hostile();  // all of it at once, from the first instruction on
std::unique_ptr<Mode> make_leave();    // the same in a program that does not know the profiler

extern ICorProfilerInfo10 *info;
extern Threads &threads;
extern Notes &notes;
extern Mode *mode;

// The number in the environment variable `name`.
long setting(const char *name, long otherwise);
uint32_t gettid();
long cpu_ns(clockid_t clock);
// The CPU time of the main thread between the creation of the object and its Initialize.
extern long kept_waiting_ns;
uint64_t now_ns();
void sleep_ms(long ms);

}  // namespace guest
