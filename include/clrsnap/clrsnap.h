// SPDX-License-Identifier: MIT
// clrsnap: DoStackSnapshot for .NET on Linux, for authors of profilers.
//
// The library returns the stack of any managed thread, at any instruction, while the runtime keeps
// running. The target walks itself in a signal handler. Nothing is suspended, and no lock of the
// runtime is taken while a target is interrupted (docs/signal-safety.md).
//
// The order of calls, from an ICorProfilerCallback object:
//
//   in the callback                               call
//   --------------------------------------------  ---------------------------------------------
//   Initialize                                    clrsnap_start, with COR_PRF_MONITOR_THREADS,
//                                                 COR_PRF_MONITOR_MODULE_LOADS and
//                                                 COR_PRF_ENABLE_STACK_SNAPSHOT in the event mask
//   ThreadCreated                                 clrsnap_thread_created
//   ThreadAssignedToOSThread                      clrsnap_thread_assigned
//   ThreadDestroyed                               clrsnap_thread_destroyed
//   ModuleUnloadStarted                           clrsnap_module_unload_started
//   DynamicMethodUnloaded                         clrsnap_dynamic_method_unloaded
//   any, and at any time on other threads         clrsnap_snapshot, clrsnap_walk, clrsnap_hold
//   Shutdown, ProfilerDetachSucceeded             clrsnap_stop
//
// After an attach, call clrsnap_start from ProfilerAttachComplete: it then finds the threads that
// exist already.
//
// Unless a function says otherwise:
//   - it may be called on any thread, by several threads at a time;
//   - it is not async-signal-safe;
//   - it keeps no pointer that it was given;
//   - a failure sets the calling thread's clrsnap_last_error.
// "Contract: C7" refers to docs/contract.md, which numbers the promises of DoStackSnapshot.
#ifndef CLRSNAP_CLRSNAP_H
#define CLRSNAP_CLRSNAP_H

#include <stddef.h>

#include "clrsnap/corprof.h"

#ifdef __cplusplus
extern "C" {
#endif

#define CLRSNAP_API __attribute__((visibility("default")))

// Returns the library's version, "0.1.0". The string is static. Async-signal-safe.
CLRSNAP_API const char *clrsnap_version(void);

// Returns why the last clrsnap function that failed on this thread did so, in one sentence: what
// failed, why, and what to do. The string is never NULL; it is "" if no function has failed. It
// belongs to the library and is valid until this thread's next call of a clrsnap function.
CLRSNAP_API const char *clrsnap_last_error(void);

// ---- Start and stop ----------------------------------------------------------------------------

enum clrsnap_flag {
  // clrsnap_snapshot holds the target until the last callback has returned, for a profiler that
  // reads the target's stack itself. Without this flag the target records its frames and runs on,
  // and the callbacks see a faithful copy.
  CLRSNAP_HOLD_TARGET = 1,
  // clrsnap_snapshot also reports methods without metadata (dynamic methods, IL stubs). CoreCLR's
  // own walk leaves them out, and so does clrsnap_snapshot by default.
  CLRSNAP_REPORT_DYNAMIC = 2,
  // Threads that are blocked in the kernel are interrupted by a signal, as running ones are.
  // Without this flag they are walked from outside where that is sound, and are not woken (see
  // CLRSNAP_WALK_ASLEEP).
  CLRSNAP_ALWAYS_SIGNAL = 4,
};

struct clrsnap_opts {
  // sizeof(struct clrsnap_opts), set by the caller; it identifies the version of this struct.
  size_t size;
  // The real-time signal to use, 35 to 64. 0: the highest unused one.
  int signal_number;
  // How long to wait for a target to answer, in milliseconds. 0: 1,000.
  uint32_t answer_timeout_ms;
  // How long a target may be held, in milliseconds. After that it continues, released or not.
  // 0: 2,000.
  uint32_t hold_timeout_ms;
  // Physical frames per walk, at most 1,048,576. 0: 65,536.
  uint32_t max_depth;
  // enum clrsnap_flag, combined.
  uint32_t flags;
  // CPU time that a target's walk of itself may take, in microseconds. A longer walk is cut, with
  // the stop reason "time". 0: no limit; a stack is then reported whole, however long that takes.
  // 1,000 frames take some 20 us, and ten times as long in code that is walked for the first time.
  uint32_t walk_limit_us;
};

// Starts the library in this process: reads the runtime's data contract, prepares unwind tables for
// all loaded images, and installs a handler for an unused signal (SA_SIGINFO | SA_RESTART; never
// SA_ONSTACK; SIGSEGV is not touched).
//
//   info   the object that the profiler received in Initialize or InitializeForAttach. The library
//          holds a reference to it until clrsnap_stop.
//   opts   the options, or NULL for the defaults.
//
// Threads that exist already, after an attach, need a larger signal stack before they can be sent
// the library's signal (docs/signal-safety.md, "After an attach"). A thread of the library installs
// it soon after this call, while the runtime keeps running. If other code has replaced the
// runtime's handler of SIGSEGV, this stops the runtime for a few milliseconds at most. Until then,
// a walk of such a thread while it runs waits for up to answer_timeout_ms; called by a thread that
// runs managed code, it returns CORPROF_E_STACKSNAPSHOT_UNSAFE.
//
// Returns:
//   S_OK                                          started
//   S_FALSE                                       already started, with its first options
//   CORPROF_E_PROFILEE_INCOMPATIBLE_WITH_TRIGGER  this runtime is not supported or not known; the
//                                                 process runs on unharmed
//   E_INVALIDARG                                  an option is out of range, or the signal is taken
//   E_NOINTERFACE                                 `info` has no ICorProfilerInfo8
//   E_OUTOFMEMORY
CLRSNAP_API HRESULT clrsnap_start(IUnknown *info, const struct clrsnap_opts *opts);

// Stops the library: no new walk begins; walks in progress are waited for, and so are holds, for
// hold_timeout_ms at most; and the reference to `info` is released. The handler stays installed and
// ignores every signal, since one may still be pending; alternate stacks stay with their threads.
// The library may be started again. Must not be called from the callback of a walk.
CLRSNAP_API void clrsnap_stop(void);

// Returns whether walks can be taken now. The other functions call it themselves. Until it has
// returned S_OK once, it calls the CLR: call it from a native thread or inside a profiler callback
// only.
//
// Returns:
//   S_OK                                          walks can be taken
//   CORPROF_E_STACKSNAPSHOT_UNSAFE                the runtime has not run enough code yet for its
//                                                 layout to be checked; try again later
//   CORPROF_E_PROFILEE_INCOMPATIBLE_WITH_TRIGGER  the check has failed, for good
CLRSNAP_API HRESULT clrsnap_ready(void);

// ---- What the profiler passes on ---------------------------------------------------------------

// To be called from ICorProfilerCallback::ThreadCreated. Optional.
CLRSNAP_API void clrsnap_thread_created(ThreadID thread);

// To be called from ThreadAssignedToOSThread, on that thread. Records the bounds of the thread's
// stack, and gives the thread an alternate signal stack that is large enough for the profiler's
// signal and a managed null reference at the same time.
CLRSNAP_API void clrsnap_thread_assigned(ThreadID thread, DWORD os_thread_id);

// To be called from ThreadDestroyed, on that thread. Waits until no walk of the thread is in
// progress, restores its old alternate stack, and forgets the thread. Contract: C18.
CLRSNAP_API void clrsnap_thread_destroyed(ThreadID thread);

// To be called from ModuleUnloadStarted and DynamicMethodUnloaded. They wait (some microseconds)
// until no walk reads the code that is about to be unloaded.
CLRSNAP_API void clrsnap_module_unload_started(ModuleID module);
CLRSNAP_API void clrsnap_dynamic_method_unloaded(FunctionID function);

// ---- Snapshots ---------------------------------------------------------------------------------

// ICorProfilerInfo2::DoStackSnapshot with its documented contract, on Linux, for any thread.
//
//   thread        a managed thread's id, or 0 for the calling thread. Contract: C7.
//   callback      called on the calling thread before this function returns, leaf first: once for
//                 each managed frame, and once for each run of unmanaged frames with funcId 0. A
//                 return value other than S_OK ends the walk. It may call clrsnap functions,
//                 including this one. Contract: C1, C2, C5.
//   info_flags    COR_PRF_SNAPSHOT_DEFAULT, or COR_PRF_SNAPSHOT_REGISTER_CONTEXT for a CONTEXT of
//                 each frame. It has the size that this runtime uses and is valid during the
//                 callback; docs/contexts.md lists which of its registers are defined.
//                 Contract: C4.
//   client_data   passed to the callback as is. Contract: C3.
//   context       a seed (a CONTEXT of the architecture), or NULL. A seed is not needed: walks
//                 without one are complete. It is used only while the target is in cooperative
//                 mode. Contract: C13.
//   context_size  the seed's size in bytes, at least 1,232 (on arm64 912).
//
// A managed thread may call this function for another one without a deadlock, but not with
// CLRSNAP_HOLD_TARGET (contract: C17).
//
// Returns, checked in CoreCLR's order:
//   S_OK                                        done; or there was no callback, because `thread` is
//                                               not a managed thread, or has no managed frames yet
//                                               and the runtime's own frames are on its stack
//   CORPROF_E_STACKSNAPSHOT_UNSAFE              the library is not ready yet; or the target did not
//                                               answer in time, because it blocks the signal, is
//                                               stopped by a debugger, or gets no processor
//                                               (clrsnap_last_error says which)
//   CORPROF_E_INCONSISTENT_WITH_FLAGS           COR_PRF_ENABLE_STACK_SNAPSHOT is not set
//   E_INVALIDARG                                `callback` is NULL, a flag is unknown, or the seed
//                                               is too small or its sp is not on the target's stack
//   CORPROF_E_STACKSNAPSHOT_INVALID_TGT_THREAD  the thread has been destroyed
//   CORPROF_E_STACKSNAPSHOT_UNMANAGED_CTX       the seed's ip is not in managed code
//   CORPROF_E_STACKSNAPSHOT_ABORTED             a callback returned something other than S_OK
//   E_FAIL                                      the walk ended early, and the frames up to there
//                                               were reported; or the thread has no frames but
//                                               native ones, and nothing was reported.
//                                               clrsnap_last_error has the reason
CLRSNAP_API HRESULT clrsnap_snapshot(ThreadID thread, StackSnapshotCallback *callback,
                                     ULONG32 info_flags, void *client_data, BYTE context[],
                                     ULONG32 context_size);

// ---- In the profiler's own signal handler ------------------------------------------------------

// Takes a snapshot of the calling thread as the signal interrupted it, at any instruction: the
// thread may hold any lock, and may be inside malloc, the JIT or the collector. Contract: C12.
//
//   ucontext      the third argument of the handler (SA_SIGINFO). The walk starts there.
//   context       a seed to start at instead, as for clrsnap_snapshot.
//   (the others)  as for clrsnap_snapshot.
//
// Async-signal-safe, errno included, as far as the callback is: it takes no lock, allocates
// nothing, waits for nothing, and never calls the CLR. It needs 12 KiB of the handler's stack. It
// may be called once clrsnap_ready has returned S_OK. A thread whose stack is being unwound by an
// exception is walked in the way in which clrsnap_snapshot walks another thread.
//
// A library that was loaded since clrsnap_ready or clrsnap_thread_assigned was last called is
// unknown to this function, and a walk ends there. A program that starts no threads calls
// clrsnap_ready from time to time.
//
// Returns what clrsnap_snapshot returns, and also CORPROF_E_STACKSNAPSHOT_UNSAFE while 64 walks are
// in progress, and E_FAIL for a method that only the CLR can identify. Does not set
// clrsnap_last_error.
CLRSNAP_API HRESULT clrsnap_snapshot_from_signal(const void *ucontext,
                                                 StackSnapshotCallback *callback,
                                                 ULONG32 info_flags, void *client_data,
                                                 BYTE context[], ULONG32 context_size);

// For the calling thread, clrsnap_snapshot and clrsnap_walk detect whether they are called in a
// signal handler, by the signal frame between them and the newest managed frame. They are then just
// as safe, and the walk continues through the kernel's signal frame.

// ---- The physical walk -------------------------------------------------------------------------

enum clrsnap_frame_kind {
  CLRSNAP_FRAME_MANAGED_JIT = 1,
  CLRSNAP_FRAME_MANAGED_R2R = 2,  // ReadyToRun, compiled ahead of time
  CLRSNAP_FRAME_STUB = 3,
  CLRSNAP_FRAME_NATIVE = 4,
};
enum clrsnap_frame_flag {
  CLRSNAP_FRAME_EXACT = 1,     // `ip` is where the code was interrupted, not a return address
  CLRSNAP_FRAME_SIGNAL = 2,    // the kernel's signal trampoline
  CLRSNAP_FRAME_BRIDGED = 4,   // reached through the runtime's explicit frames
  CLRSNAP_FRAME_HIJACKED = 8,  // the runtime had replaced its return address
  CLRSNAP_FRAME_FUNCLET = 16,  // a catch, finally or filter handler, not the method's main body
};

struct clrsnap_frame {
  UINT_PTR ip, sp;
  UINT_PTR method_start;  // in a managed frame, where the method's code starts; else 0
  FunctionID function;    // in a managed frame, the method; else 0
  uint32_t kind;          // enum clrsnap_frame_kind
  uint32_t flags;         // enum clrsnap_frame_flag, combined
};

struct clrsnap_walk_opts {
  size_t size;            // sizeof(struct clrsnap_walk_opts), set by the caller
  uint32_t no_functions;  // 1: leave `function` 0 where finding it needs a call into the CLR
};

struct clrsnap_walk_result {
  size_t size;       // sizeof(struct clrsnap_walk_result), set by the caller
  uint32_t stop;     // why the walk ended, for clrsnap_stop_text. 1: the stack's base was reached
  uint32_t frames;   // found; the callback may have ended the report before the last one
  UINT_PTR stop_ip;  // where the walk ended
  uint64_t held_ns;  // time that the target was in the handler, in nanoseconds; 0 for the calling
                     // thread, and for one that was not woken
  uint32_t flags;    // enum clrsnap_walk_flag, combined
};
enum clrsnap_walk_flag {
  // The target was blocked in a system call, in preemptive mode, and the caller walked it over a
  // copy of its stack. The target was not woken, and none of its calls returned EINTR; its run
  // count proves that it did not run meanwhile. No managed frame is missing. Native frames that are
  // reported before the first managed one may be missing, if their callers can only be found
  // through registers that the kernel does not show (the next frame is then CLRSNAP_FRAME_BRIDGED).
  CLRSNAP_WALK_ASLEEP = 1,
};

// Called leaf first. A return value other than S_OK ends the report. `frame` is valid during the
// call.
typedef HRESULT clrsnap_frame_callback(const struct clrsnap_frame *frame, void *data);

// Walks a thread and reports every frame on its stack, native ones and stubs included, and the
// reason why the walk ended.
//
//   thread    as for clrsnap_snapshot.
//   callback  called for each frame, on the calling thread.
//   data      passed to the callback as is.
//   opts      the options, or NULL for the defaults.
//   result    filled in, or NULL.
//
// Returns what clrsnap_snapshot returns, but S_OK for a walk that ended early: `result->stop` then
// says why.
CLRSNAP_API HRESULT clrsnap_walk(ThreadID thread, clrsnap_frame_callback *callback, void *data,
                                 const struct clrsnap_walk_opts *opts,
                                 struct clrsnap_walk_result *result);

// Walks the calling thread in a signal handler, from where it was interrupted, like clrsnap_walk.
// The rules are those of clrsnap_snapshot_from_signal. Native threads may be walked, too.
CLRSNAP_API HRESULT clrsnap_walk_from_signal(const void *ucontext, clrsnap_frame_callback *callback,
                                             void *data, struct clrsnap_walk_result *result);

// Return a sentence for clrsnap_walk_result.stop, and a short token for files ("base", "bad-sp").
// The strings are static. Async-signal-safe.
CLRSNAP_API const char *clrsnap_stop_text(uint32_t stop);
CLRSNAP_API const char *clrsnap_stop_token(uint32_t stop);

// ---- Source lines ------------------------------------------------------------------------------

// What the runtime reports instead of an IL offset for code that does not come from the method's
// IL.
#define CLRSNAP_IL_NO_MAPPING 0xFFFFFFFFu
#define CLRSNAP_IL_PROLOG 0xFFFFFFFEu
#define CLRSNAP_IL_EPILOG 0xFFFFFFFDu

// Finds the IL offset of an instruction in its method, which the method's symbols map to a source
// line.
//
//   ip         in managed code: jitted code of any version (tier, OSR, ReJIT), or ReadyToRun code.
//   flags      of the frame (enum clrsnap_frame_flag). Without CLRSNAP_FRAME_EXACT, `ip` is a
//              return address, and the result is that of the call before it.
//   il_offset  receives the offset.
//
// Calls the CLR: call it from a native thread or inside a profiler callback, and not while a thread
// is held. The method must be alive, which it is while its frame is on a stack.
//
// Returns:
//   S_OK                          *il_offset is the offset
//   S_FALSE                       *il_offset is one of CLRSNAP_IL_*
//   E_INVALIDARG                  `il_offset` is NULL, or `ip` is in no managed method
//   E_OUTOFMEMORY
//   CORPROF_E_DEBUGGING_DISABLED  DOTNET_EnableDiagnostics_Debugger=0 is set
//   E_FAIL                        the method is dynamic
//   others                        whatever the CLR returns
CLRSNAP_API HRESULT clrsnap_il_offset(UINT_PTR ip, uint32_t flags, ULONG32 *il_offset);

// ---- Holding a thread: SuspendThread and GetThreadContext for Linux ----------------------------

struct clrsnap_hold;

// Stops a managed thread in its signal handler, until clrsnap_release or until hold_timeout_ms have
// passed since this call, whichever comes first. Contract: C14.
//
//   thread  the managed thread to hold.
//   out     receives the hold, which the same thread passes to clrsnap_release.
//
// Only a thread that never runs managed code may hold another (contract: C17). A held thread may
// own any lock, malloc's included, so the holder must not allocate, log or call the CLR until it
// has released it; nor does the library. Meanwhile the holder may call clrsnap_hold_context,
// clrsnap_hold_unwind_to_managed, and clrsnap_snapshot and clrsnap_walk of the held thread, which
// is walked from where it was stopped, or from a seed if one is given and needed.
//
// Returns what clrsnap_snapshot returns, and CORPROF_E_STACKSNAPSHOT_UNSAFE to a managed thread,
// for any other thread while one is held, and for every call with the hold after it has timed out.
CLRSNAP_API HRESULT clrsnap_hold(ThreadID thread, struct clrsnap_hold **out);

// Copies the registers with which the held thread was interrupted.
//
//   hold     from clrsnap_hold.
//   context  receives a CONTEXT of the architecture: AMD64_CONTEXT or ARM64_CONTEXT.
//   size     its size in bytes: at least 1,232 (on arm64 912) and a multiple of 16, else
//            E_INVALIDARG.
//
// Async-signal-safe; takes no lock.
CLRSNAP_API HRESULT clrsnap_hold_context(const struct clrsnap_hold *hold, BYTE context[],
                                         ULONG32 size);

// Copies the registers of the topmost managed frame of the held thread: a seed for DoStackSnapshot.
// Registers that an unmanaged frame above it does not preserve are 0. Parameters as for
// clrsnap_hold_context. Returns CORPROF_E_STACKSNAPSHOT_UNMANAGED_CTX if there is no managed frame.
// Async-signal-safe; takes no lock. Contract: C14.
CLRSNAP_API HRESULT clrsnap_hold_unwind_to_managed(const struct clrsnap_hold *hold, BYTE context[],
                                                   ULONG32 size);

// Lets a held thread continue, and frees `hold`. To be called for each hold, even if it has timed
// out or the library has been stopped: otherwise, the hold keeps one of the 64 slots for walks.
// Returns S_OK, also for NULL, or S_FALSE if the thread runs already because the hold has timed
// out.
CLRSNAP_API HRESULT clrsnap_release(struct clrsnap_hold *hold);

#ifdef __cplusplus
}
#endif

#endif
