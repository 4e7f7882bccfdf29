// SPDX-License-Identifier: MIT
// clrsnap: DoStackSnapshot for .NET on Linux, for profilers that bring their own agent.
//
// What it gives: the stack of any managed thread, at any instruction, while the runtime runs on.
// The target walks itself in a signal handler; nothing is suspended, no lock of the runtime is
// taken while a target is interrupted (docs/signal-safety.md).
//
// Order of calls, from an ICorProfilerCallback object:
//   Initialize                    clrsnap_start, with COR_PRF_MONITOR_THREADS (and
//                                 COR_PRF_MONITOR_MODULE_LOADS, COR_PRF_ENABLE_STACK_SNAPSHOT) set
//   ThreadCreated, ThreadAssignedToOSThread, ThreadDestroyed, ModuleUnloadStarted,
//   DynamicMethodUnloaded         pass them on to the functions below
//   any time                      clrsnap_snapshot, clrsnap_walk, clrsnap_hold
//   Shutdown or detach            clrsnap_stop
// After an attach, clrsnap_start finds the threads that are there already by itself when it is
// called from ProfilerAttachComplete.
//
// Unless said otherwise a function may be called on any thread, several at a time, and none is
// async-signal-safe. No function keeps a pointer that it was given, but clrsnap_start keeps a
// reference to `info` until clrsnap_stop. "contract: C7" refers to docs/contract.md.
#ifndef CLRSNAP_CLRSNAP_H
#define CLRSNAP_CLRSNAP_H

#include <stddef.h>

#include "clrsnap/corprof.h"

#ifdef __cplusplus
extern "C" {
#endif

#define CLRSNAP_API __attribute__((visibility("default")))

// The library's version, "0.1.0". Static. Signal-safe.
CLRSNAP_API const char *clrsnap_version(void);

// Why the last clrsnap function that failed on this thread did: one sentence (what failed, why,
// what to do). Never NULL; "" if none failed. Valid until this thread's next call into clrsnap.
CLRSNAP_API const char *clrsnap_last_error(void);

// ---- Start and stop ----

enum clrsnap_flag {
  // clrsnap_snapshot holds the target until the last callback has returned, for a profiler that
  // reads the target's stack itself. Without it the target writes its frames and runs on, and the
  // callbacks see a faithful copy.
  CLRSNAP_HOLD_TARGET = 1,
  // clrsnap_snapshot reports methods without metadata too (dynamic methods, IL stubs). CoreCLR's
  // own walk leaves them out, and so does ours by default.
  CLRSNAP_REPORT_DYNAMIC = 2,
  // Threads that are blocked in the kernel are asked by signal, too, as running ones are. Without
  // it
  // they are walked from outside where that is sound, and do not wake: see CLRSNAP_WALK_ASLEEP.
  CLRSNAP_ALWAYS_SIGNAL = 4,
};

struct clrsnap_opts {
  size_t size;                 // sizeof(struct clrsnap_opts): tells versions apart
  int signal_number;           // the real-time signal to use, 35 to 64. 0: the highest free one
  uint32_t answer_timeout_ms;  // how long to wait for a target's answer. 0: 1,000
  uint32_t hold_timeout_ms;    // after this a held target runs on, released or not. 0: 2,000
  uint32_t max_depth;          // physical frames per walk. 0: 65,536; at most 1,048,576
  uint32_t flags;              // enum clrsnap_flag
  // CPU time that a target's walk of itself may use, in microseconds: what is longer is cut, with
  // the reason "time". 0: no limit, and a stack is reported whole however long that takes. A caller
  // that asks often sets one: 1,000 frames take some 20 us, 10 times as long in code that is walked
  // for the first time.
  uint32_t walk_limit_us;
};

// Starts the library in this process: reads the runtime's data contract, prepares unwind tables of
// all loaded images, chooses a signal that nobody uses and installs its handler (SA_SIGINFO |
// SA_RESTART; never SA_ONSTACK; SIGSEGV is not touched).
// Threads that are there already, after an attach, must have a larger signal stack before they can
// be sent a signal (docs/signal-safety.md, "After an attach"): the runtime is stopped for that,
// once and for a millisecond or some, from a thread of the library's own, soon after this. Until
// then, a walk of such a thread while it runs waits for it (answer_timeout_ms at most), or answers
// CORPROF_E_STACKSNAPSHOT_UNSAFE to a caller that runs managed code.
//   info  what the profiler got in Initialize or InitializeForAttach.
//   opts  NULL: defaults.
// S_OK; S_FALSE: it runs already, with its first options.
// CORPROF_E_PROFILEE_INCOMPATIBLE_WITH_TRIGGER: this runtime is not supported or not known; the
// process runs on unharmed. E_INVALIDARG: options out of range, or the signal asked for is taken.
// E_OUTOFMEMORY. E_NOINTERFACE: `info` has no ICorProfilerInfo8.
CLRSNAP_API HRESULT clrsnap_start(IUnknown *info, const struct clrsnap_opts *opts);

// Stops: no walk begins any more, walks under way are waited for, `info` is released. The handler
// stays installed and ignores everything, since a signal may still be on its way. Alternate stacks
// stay with their threads. Not from a callback of a walk. May be started again.
CLRSNAP_API void clrsnap_stop(void);

// May walks be taken by now? S_OK, or why not: CORPROF_E_STACKSNAPSHOT_UNSAFE while the runtime has
// run too little code to check its layout against (try again later),
// CORPROF_E_PROFILEE_INCOMPATIBLE_ WITH_TRIGGER when the check has failed for good. Until it has
// passed once, this calls the CLR: from a native thread or inside a callback only. The other
// functions call it themselves.
CLRSNAP_API HRESULT clrsnap_ready(void);

// ---- What the profiler passes on ----

// ICorProfilerCallback::ThreadCreated. Optional.
CLRSNAP_API void clrsnap_thread_created(ThreadID thread);
// ThreadAssignedToOSThread, on that thread itself, as the runtime calls it: notes the thread's
// stack bounds and gives it an alternate signal stack on which a profiler's signal and a managed
// null reference can meet.
CLRSNAP_API void clrsnap_thread_assigned(ThreadID thread, DWORD os_thread_id);
// ThreadDestroyed, on that thread itself. Waits until no walk of the thread is under way (contract:
// C18), puts its old alternate stack back and forgets it.
CLRSNAP_API void clrsnap_thread_destroyed(ThreadID thread);
// ModuleUnloadStarted and DynamicMethodUnloaded: waits (microseconds) until no walk reads code that
// is about to go, and starts a new generation of FunctionIDs.
CLRSNAP_API void clrsnap_module_unload_started(ModuleID module);
CLRSNAP_API void clrsnap_dynamic_method_unloaded(FunctionID function);

// ---- Snapshots ----

// ICorProfilerInfo2::DoStackSnapshot with the documented contract, on Linux, for any thread.
//   thread      0: the calling thread. Else any managed thread's id (contract: C7).
//   callback    called on the calling thread, before this returns, leaf first: once per managed
//               frame, and once per run of unmanaged frames with funcId 0. Anything but S_OK ends
//               the walk. It may call clrsnap functions, this one too.
//   info_flags  COR_PRF_SNAPSHOT_DEFAULT or COR_PRF_SNAPSHOT_REGISTER_CONTEXT: a CONTEXT per frame,
//               of the size that this runtime uses, valid during the callback (docs/contexts.md
//               has which registers of it are defined).
//   context     a seed (an AMD64 CONTEXT of at least 1,232 bytes), or NULL. Not needed: unseeded
//               walks are complete. Used only when the target is in cooperative mode.
// Checks in CoreCLR's order, and answers with
//   S_OK                                        done; or `thread` is no managed thread (no
//   callback) CORPROF_E_STACKSNAPSHOT_UNSAFE              not ready yet; or the target did not
//   answer in time:
//                                               it blocks the signal, is stopped by a debugger, or
//                                               gets no processor (clrsnap_last_error says which)
//   CORPROF_E_INCONSISTENT_WITH_FLAGS           COR_PRF_ENABLE_STACK_SNAPSHOT is not set
//   E_INVALIDARG                                NULL callback, unknown flags, a context that is too
//                                               small or whose sp is not on the target's stack
//   CORPROF_E_STACKSNAPSHOT_INVALID_TGT_THREAD  the thread has been destroyed
//   CORPROF_E_STACKSNAPSHOT_UNMANAGED_CTX       the seed's ip is not in managed code
//   CORPROF_E_STACKSNAPSHOT_ABORTED             a callback did not answer S_OK
//   E_FAIL                                      the walk ended early; the frames up to there were
//                                               reported. Or the thread has no managed frames, yet
//                                               or any more, and nothing was reported, as CoreCLR
//                                               answers. clrsnap_last_error has the reason
// A managed thread may call it for another (no deadlock), but not with CLRSNAP_HOLD_TARGET
// (contract: C17): CORPROF_E_STACKSNAPSHOT_UNSAFE.
CLRSNAP_API HRESULT clrsnap_snapshot(ThreadID thread, StackSnapshotCallback *callback,
                                     ULONG32 info_flags, void *client_data, BYTE context[],
                                     ULONG32 context_size);

// ---- In a signal handler of one's own (contract: C12) ----

// A snapshot of the calling thread as the signal has interrupted it, at any instruction: it may own
// any lock, be in malloc, the JIT or the collector. Async-signal-safe, errno included, as far as
// the callback is; takes no lock, allocates nothing, waits for nothing, never calls the CLR.
//   ucontext  what the handler (SA_SIGINFO) got as its third argument. The walk starts there.
//   context   a seed to start at instead, as in clrsnap_snapshot.
// Once clrsnap_ready has answered S_OK. It needs 12 KiB of the handler's stack. HRESULTs as
// clrsnap_snapshot, but CORPROF_E_STACKSNAPSHOT_UNSAFE too when 64 walks are under way, and E_FAIL
// for a method that can be told only by the CLR; clrsnap_last_error says nothing of it. A library
// that was loaded lately is unknown to it, and its walks end there, until clrsnap_ready or
// clrsnap_thread_assigned is called again: now and then, where nothing else is. A thread
// that an exception is unwinding is walked, as if another thread had asked.
CLRSNAP_API HRESULT clrsnap_snapshot_from_signal(const void *ucontext,
                                                 StackSnapshotCallback *callback,
                                                 ULONG32 info_flags, void *client_data,
                                                 BYTE context[], ULONG32 context_size);
// clrsnap_snapshot and clrsnap_walk with the calling thread as target find out by themselves when
// they are in a handler (a signal frame lies between them and the newest managed frame), and are
// then just as safe; their stacks go on through the kernel's signal frame.

// ---- The physical walk ----

enum clrsnap_frame_kind {
  CLRSNAP_FRAME_MANAGED_JIT = 1,
  CLRSNAP_FRAME_MANAGED_R2R = 2,  // ReadyToRun (ahead of time)
  CLRSNAP_FRAME_STUB = 3,
  CLRSNAP_FRAME_NATIVE = 4,
};
enum clrsnap_frame_flag {
  CLRSNAP_FRAME_EXACT = 1,     // ip is where the code was interrupted, not a return address
  CLRSNAP_FRAME_SIGNAL = 2,    // the kernel's signal trampoline
  CLRSNAP_FRAME_BRIDGED = 4,   // reached through the runtime's explicit frames
  CLRSNAP_FRAME_HIJACKED = 8,  // its return address had been replaced by the runtime
  CLRSNAP_FRAME_FUNCLET = 16,  // a catch, finally or filter handler, not the method's main body
};

struct clrsnap_frame {
  UINT_PTR ip, sp;
  UINT_PTR method_start;  // managed: where the method's code starts; else 0
  FunctionID function;    // managed: the method; 0 for others
  uint32_t kind;          // enum clrsnap_frame_kind
  uint32_t flags;         // enum clrsnap_frame_flag
};

struct clrsnap_walk_opts {
  size_t size;            // sizeof(struct clrsnap_walk_opts)
  uint32_t no_functions;  // 1: leave `function` 0 where finding it needs a call into the CLR
};

struct clrsnap_walk_result {
  size_t size;       // sizeof(struct clrsnap_walk_result), set by the caller
  uint32_t stop;     // why it ended: 1 = the stack's base, a complete walk. clrsnap_stop_text
  uint32_t frames;   // found; not more than were reported
  UINT_PTR stop_ip;  // where it ended
  uint64_t held_ns;  // how long the target was in the handler; 0 for the calling thread, and asleep
  uint32_t flags;    // enum clrsnap_walk_flag
};
enum clrsnap_walk_flag {
  // The target was blocked in a system call, in preemptive mode, and was walked by the caller over
  // a
  // copy of its stack. It was not woken, and no call of it returned EINTR; that it did not run
  // meanwhile was proven by its run count. All managed frames are there; of the native frames above
  // the first one some may be missing, those whose callers can only be found through registers that
  // the kernel does not tell (the next frame is then CLRSNAP_FRAME_BRIDGED).
  CLRSNAP_WALK_ASLEEP = 1,
};

// Called leaf first; anything but S_OK ends the report. The frame is valid during the call.
typedef HRESULT clrsnap_frame_callback(const struct clrsnap_frame *frame, void *data);

// All frames as they lie on the stack, native ones and stubs included, with a reason for the end.
// `opts` and `result` may be NULL. HRESULTs as clrsnap_snapshot, but S_OK also for a walk that
// ended early: `result->stop` tells.
CLRSNAP_API HRESULT clrsnap_walk(ThreadID thread, clrsnap_frame_callback *callback, void *data,
                                 const struct clrsnap_walk_opts *opts,
                                 struct clrsnap_walk_result *result);
// The same of the calling thread in a signal handler, from where it was interrupted, as
// clrsnap_snapshot_from_signal. Native threads may be walked, too.
CLRSNAP_API HRESULT clrsnap_walk_from_signal(const void *ucontext, clrsnap_frame_callback *callback,
                                             void *data, struct clrsnap_walk_result *result);
// A sentence for clrsnap_walk_result.stop, and a short token for files ("base", "bad-sp"). Static.
CLRSNAP_API const char *clrsnap_stop_text(uint32_t stop);
CLRSNAP_API const char *clrsnap_stop_token(uint32_t stop);

// ---- Lines ----

// What the runtime tells instead of an IL offset, of code that comes from no IL of the method.
#define CLRSNAP_IL_NO_MAPPING 0xFFFFFFFFu
#define CLRSNAP_IL_PROLOG 0xFFFFFFFEu
#define CLRSNAP_IL_EPILOG 0xFFFFFFFDu

// Which of its method's IL an ip belongs to; with the method's symbols that is the source line.
//   ip     in managed code: jitted code of any version (tier, OSR, ReJIT), or ReadyToRun code.
//   flags  of the frame (enum clrsnap_frame_flag). Without CLRSNAP_FRAME_EXACT the ip is a return
//          address, and the answer is for the call before it.
// S_OK: *il_offset. S_FALSE: *il_offset is one of CLRSNAP_IL_*. E_INVALIDARG: NULL, or an ip in no
// managed method. E_OUTOFMEMORY. Else what the CLR answers: CORPROF_E_DEBUGGING_DISABLED where
// DOTNET_EnableDiagnostics_Debugger=0 is set, E_FAIL for dynamic methods.
// Calls the CLR: from a native thread or inside a callback, not while a thread is held. The method
// must be alive, as it is while its frame is on a stack.
CLRSNAP_API HRESULT clrsnap_il_offset(UINT_PTR ip, uint32_t flags, ULONG32 *il_offset);

// ---- Holding a thread: what SuspendThread and GetThreadContext are elsewhere (contract: C14) ----

struct clrsnap_hold;

// Makes a managed thread stand still in its signal handler, until clrsnap_release or until
// hold_timeout_ms have passed since this call, whichever is first. Only from a thread that never
// runs managed code (contract: C17): CORPROF_E_STACKSNAPSHOT_UNSAFE for a managed thread.
// While a thread is held it may own any lock, malloc's included: the holder must not allocate, log
// or call the CLR. The library itself does none of that between hold and release.
// Between the two the holder may call clrsnap_hold_context, clrsnap_hold_unwind_to_managed, and
// clrsnap_snapshot and clrsnap_walk of the held thread: it is walked as it stands, from the seed if
// one is given and needed. Other threads may not be held, walked or snapshot by it meanwhile:
// CORPROF_E_STACKSNAPSHOT_UNSAFE; so is what comes after the hold's time is up.
// S_OK: *out is to be given to clrsnap_release, by the same thread. Else HRESULTs as above.
CLRSNAP_API HRESULT clrsnap_hold(ThreadID thread, struct clrsnap_hold **out);
// The interrupted registers, as a CONTEXT. `size` at least 1,232 and a multiple of 16, else
// E_INVALIDARG. Async-signal-safe, takes no lock.
CLRSNAP_API HRESULT clrsnap_hold_context(const struct clrsnap_hold *hold, BYTE context[],
                                         ULONG32 size);
// The registers of the topmost managed frame: a seed for DoStackSnapshot (contract: C14). Registers
// that an unmanaged frame above does not preserve are 0. CORPROF_E_STACKSNAPSHOT_UNMANAGED_CTX:
// there is no managed frame. Async-signal-safe, takes no lock.
CLRSNAP_API HRESULT clrsnap_hold_unwind_to_managed(const struct clrsnap_hold *hold, BYTE context[],
                                                   ULONG32 size);
// Lets the thread run on. S_OK; S_FALSE: it runs already, the hold's time was up. NULL: S_OK.
CLRSNAP_API HRESULT clrsnap_release(struct clrsnap_hold *hold);

#ifdef __cplusplus
}
#endif

#endif
