// SPDX-License-Identifier: MIT
// snapshot: DoStackSnapshot on top of the walk. This header is for the rooms inside the library
// (agent, drop-in, tests); the public contract is include/clrsnap/clrsnap.h. Not for handlers.
#ifndef CS_SNAPSHOT_SNAPSHOT_H
#define CS_SNAPSHOT_SNAPSHOT_H

#include "base/error.h"
#include "clrsnap/clrsnap.h"
#include "signal/request.h"
#include "snapshot/registry.h"

// ---- The library's one instance (start.c) ----
struct cs_core {
  ICorProfilerInfo15 *info;  // at least number 8. NULL: not started, or native walks only (tests)
  struct clrsnap_opts opts;  // with the defaults filled in
  int signal_number;
  bool running;
  uint32_t users;                    // public calls under way: clrsnap_stop waits for them
  bool met_unknown_code;             // by a walk in a handler, which could not look for new images
  uint32_t module_deaths;            // modules whose unloading has begun
  uint32_t stopped_by;               // the thread that has called SuspendRuntime, if it tells; 0
  uint32_t resolving;                // calls into the CLR under way about code that can be unloaded
  void (*thread_ends)(ThreadID id);  // told before a thread is forgotten, on the thread itself
  char small_stacks[256];  // with cs_signal.small_stacks: why, and what works all the same
  struct cs_world world;
};
extern struct cs_core cs_core;

// clrsnap_start with the reason for a refusal. Several profilers of a process may share the
// library, each with an `info` of its own: S_FALSE for all but the first.
HRESULT cs_core_start(IUnknown *info, const struct clrsnap_opts *opts, struct cs_error *err);
// The same in two parts: what must be known at once (a fraction of a millisecond), and what takes
// long: the tables of native images, the clock. The second is done once a start, by whoever comes
// first; the others wait for it. After an attach the caller adopts the threads that are there.
HRESULT cs_core_begin(IUnknown *info, const struct clrsnap_opts *opts, struct cs_error *err);
HRESULT cs_core_prepare(struct cs_error *err);
bool cs_core_is_prepared(void);
// The part of it that needs no CLR; the world is published at once and walks are native. For tests.
HRESULT cs_core_start_native(const struct clrsnap_opts *opts, struct cs_error *err);
// Of the one that has started with `info`; the last one's stop ends the library.
void cs_core_stop(const IUnknown *info);
// Around every use of the core by a public call. False: it is not running.
bool cs_core_enter(void);
void cs_core_leave(void);
// clrsnap_ready with the reason. Publishes the world (cs_signal.world) when the checks have passed.
HRESULT cs_core_ready(struct cs_error *err);
// How far that has come, by a few loads: S_OK, CORPROF_E_STACKSNAPSHOT_UNSAFE (not yet), or
// CORPROF_E_PROFILEE_INCOMPATIBLE_WITH_TRIGGER (never). Async-signal-safe.
HRESULT cs_core_state(void);
// One more look at what is not checked yet: cs_core_ready, and cs_function_check. Calls the CLR.
// True, and cs_core_is_settled: no further look is of use.
bool cs_core_look(void);
bool cs_core_is_settled(void);
// Looks for ELF images that were loaded or unloaded since, and publishes the new table. One read of
// /proc/self/maps when nothing has changed: for now and then, and when a walk met unknown code.
bool cs_core_refresh_images(void);  // true: there is another table now
// For who names frames later, by the table that they were walked by: tables from that number on are
// kept (UINT32_MAX: none), and the one of a walk can be had (native/native.h). One such user.
uint32_t cs_core_images_sequence(void);  // of the newest
void cs_core_images_keep(uint32_t sequence);
const struct cs_images *cs_core_images_of(uint64_t loaded, uint32_t sequence, bool *exact);
// Have images come or gone since the table was made, and is that over? A few loads.
bool cs_core_images_are_old(void);
bool cs_images_init(void);  // at start; false: no memory
// Refreshes if a walk in a handler has met unknown code.
void cs_core_refresh_after_handlers(void);
// Threads that exist already (EnumThreads): after an attach, from ProfilerAttachComplete.
void cs_core_adopt_threads(void);
// Those of an earlier time that the runtime does not know any more: when the library starts again.
void cs_core_forget_ended_threads(void);
// Gives threads that were there before us their larger alternate stacks, in one short stop of the
// runtime (equip.c); only those that are not asleep in foreign code, if there are any. Calls the
// CLR; not from a callback. S_OK: the runtime was stopped, *told says what for; S_FALSE: nobody to
// stop it for; else what SuspendRuntime has answered.
struct cs_equipment {
  uint32_t given;        // threads that have theirs now, from this stop
  uint32_t asleep;       // left to sleep in foreign code
  uint32_t unanswered;   // have not answered in time, or could not be walked to the end
  uint64_t stopping_ns;  // SuspendRuntime: until the last thread stood still
  uint64_t stopped_ns;   // and all of them did, with ResumeRuntime
};
#define CS_EQUIP_FIRST_GAP_NS 100000000ull  // between two stops; then twice as long each time,
#define CS_EQUIP_MOST_GAP_NS 10000000000ull
static inline uint64_t cs_equip_gap_after(uint64_t gap_ns) {
  return gap_ns < CS_EQUIP_MOST_GAP_NS / 2 ? gap_ns * 2 : CS_EQUIP_MOST_GAP_NS;
}
HRESULT cs_core_equip_threads(ICorProfilerInfo15 *info, struct cs_equipment *told);
// The same from a thread of its own, if there is anybody to do it for (equip_soon.c); not more
// often than now and then, unless `at_once`: when the library has been started.
void cs_core_equip_soon(bool at_once);
// May the thread be asked by signal, by the caller, now? Waits for a stop that is under way, for a
// bounded time. If it is the caller who has stopped the runtime, *flags has CS_REQUEST_EQUIP then.
bool cs_core_may_ask(struct cs_thread *thread, uint32_t *flags, struct cs_error *err);
// Nobody uses the library any more: gives back what it keeps of living threads for speed.
void cs_core_rest_threads(void);
// Checks the runtime's Thread layout against a thread that is known by now.
void cs_core_check_thread(uint64_t clr_thread, uint32_t tid);
// Code is about to die: waits for walks under way, and begins a new generation. `module`: of a
// whole module, whose methods' FunctionIDs are then forgotten too. A dynamic method's need not be:
// whatever comes to live at its address is a dynamic method again.
void cs_core_code_died(bool module);
// From now on cs_core_code_died is called for all code that dies, or no more. Before a recording's
// first walk; after its last one.
void cs_core_deaths_are_told(bool told);

// clrsnap_snapshot with options of this call's own (enum clrsnap_flag). With CS_SNAPSHOT_QUIET the
// caller may be in a signal handler on any thread, a native one included: whether the library is
// ready is looked at and not worked on, the CLR is not asked about the runtime's state (that the
// event mask allows snapshots is for the caller to know), a thread that has not been passed on is
// none of the runtime's, and there is no error text.
#define CS_SNAPSHOT_QUIET (1u << 31)
HRESULT cs_snapshot(uint32_t flags, ThreadID thread, StackSnapshotCallback *callback,
                    ULONG32 info_flags, void *client_data, BYTE context[], ULONG32 context_size);

// Waits until every walk that is under way now is over (epoch.c). False: one did not end in 2 s
// (its thread gets no processor); a log line says so.
bool cs_epoch_wait(void);
// Is cs_core.signal_number still taken by our handler? One that the program has reset is installed
// again: the signal's default would end the process. False: the program uses it, so nothing may be
// sent. Any thread.
bool cs_core_has_signal(struct cs_error *err);
void cs_block_all_but_faults(sigset_t *set);  // what a handler of ours blocks while it runs

// ---- Asking a thread (ask.c) ----
enum cs_ask {
  CS_ASK_ANSWERED,   // DONE or HELD: request->answer and ->capture are there
  CS_ASK_GONE,       // no such thread
  CS_ASK_NO_ANSWER,  // not in time, or the signal could not be sent; `err` says why
};
// A slot of one's own, with memory for the deepest walk. NULL: none was to be had in time.
struct cs_request *cs_request_claim(struct cs_error *err);
// The same without waiting, async-signal-safe. Giving such a slot back is so, too.
struct cs_request *cs_request_claim_now(void);
// Gives a slot back that is CLAIMED, DONE, HELD (the target then runs on) or EXPIRED. False: it was
// EXPIRED, the target had run on by itself.
bool cs_request_release(struct cs_request *request);
// Fills in a claimed slot for a pinned thread, asks, and waits for the answer. Asks the thread to
// introduce itself first when its stack bounds are not known. On anything but CS_ASK_ANSWERED the
// slot is no longer the caller's.
enum cs_ask cs_request_ask(struct cs_request *request, struct cs_thread *thread, uint32_t flags,
                           struct cs_error *err);
// The same in steps, to ask several threads at once: fills in a claimed slot, and asks the thread
// for its stack's bounds first if they are not known; sends the signal; waits for the answer. After
// anything but CS_ASK_ANSWERED the slot is no longer the caller's.
enum cs_ask cs_request_introduce(struct cs_request *request, struct cs_thread *thread,
                                 uint32_t flags, struct cs_error *err);
enum cs_ask cs_request_post(struct cs_request *request, uint32_t flags, uint64_t *asked,
                            struct cs_error *err);
enum cs_ask cs_request_await(struct cs_request *request, uint64_t asked, uint32_t ms,
                             struct cs_error *err);
// When the first of the holds is over that the calling thread has, `otherwise` if that is sooner:
// what it asks for in a hold's callback must not outlast that hold (hold.c).
uint64_t cs_hold_end(uint64_t otherwise);
// Is the thread that the request has been posted to kept still by somebody who waits for one that
// the caller keeps still, or by the caller itself?
bool cs_hold_is_circular(const struct cs_request *request);
// Looks up what a fast walk has left open: method starts, and functions from code headers
// (complete.c).
void cs_capture_complete(struct cs_capture *capture);

// ---- The calling thread (self.c) ----
// The registers of the function that calls this, as they will be when it goes on.
void cs_regs_here(struct cs_regs *regs);
// The stack that the calling thread is on. `thread`: its entry, or NULL. Async-signal-safe.
void cs_self_bounds(const struct cs_thread *thread, const struct cs_regs *from,
                    struct cs_stack *stack);
// Walks the calling thread from `regs`, into a slot that is and stays CLAIMED. Async-signal-safe.
enum cs_request_answer cs_walk_self(struct cs_request *request, const struct cs_regs *regs,
                                    uint64_t clr_thread, const struct cs_regs *seed);

// ---- FunctionIDs (function.c) ----
enum cs_eh_role {
  CS_EH_NONE,
  CS_EH_DISPATCH,       // the runtime's own managed exception dispatch
  CS_EH_FILTER_CALLER,  // the part of it that calls exception filters
};
// Finds out which methods are exception dispatch (eh.c). Calls the CLR; before the first walk.
void cs_eh_init(void);
// Which role has the method `token` of `module`? Async-signal-safe.
enum cs_eh_role cs_eh_role_of(uint64_t module, uint32_t token);
// Holds what is read of methods in the runtime's memory against what the CLR says of them; only
// then is it used. Calls the CLR; after cs_eh_init. False: there is no method yet; try again.
bool cs_function_check(void);
bool cs_function_checked(void);  // by now, with whatever result
// Fill in a managed record's function, and answer whether it is resolved now. The first from the
// cache and the runtime's memory: no call, no allocation, no wait; async-signal-safe. The second
// asks the CLR if need be: not while a thread is held.
bool cs_function_read(struct cs_record *record);
bool cs_function_resolve(struct cs_record *record);
void cs_functions_forget(void);

// ---- Lines (il.c) ----
// A method's machine code, and the IL that it comes from. Offsets are from the method's start.
struct cs_il_range {
  uint32_t il, begin, end;  // il: an IL offset, or one of CLRSNAP_IL_*
};
enum { CS_IL_MAP_RANGES = 16384 };  // 192 KiB; a method with more has no lines, and says so
#define CS_E_IL_MAP_TOO_LARGE ((HRESULT)0x8007007Au)  // ERROR_INSUFFICIENT_BUFFER
struct cs_il_map {
  HRESULT result;  // as the CLR answered; failed: no ranges
  uint32_t count;
  struct cs_il_range ranges[CS_IL_MAP_RANGES];
};
// Calls the CLR, while the method is alive.
void cs_il_map_read(ICorProfilerInfo15 *info, uint64_t method_start, struct cs_il_map *map);
bool cs_il_map_find(const struct cs_il_map *map, uint32_t offset, uint32_t *il);

// ---- Contexts (context.c) ----
enum { CS_CONTEXT_MIN = 1232 };  // the part of a CONTEXT that all runtimes share
void cs_context_of_regs(BYTE *context, size_t size, const struct cs_regs *regs, uint32_t flags);
void cs_context_of_record(BYTE *context, size_t size, const struct cs_record *record,
                          uint32_t flags);
void cs_context_read(const BYTE *context, struct cs_regs *regs);

// ---- The logical view (logical.c) ----
// Of a capture whose managed records have been resolved.
struct cs_logical_frame {
  const struct cs_record *record;  // the managed frame, or a run's first (youngest) frame
  FunctionID function;             // 0: a run of unmanaged frames
};
struct cs_logical {
  const struct cs_capture *capture;
  uint32_t next;
  bool report_dynamic;
  bool managed_seen;  // a managed frame has been passed: unmanaged ones make runs from now on
  bool in_run;        // the last frame was unmanaged
  bool in_dispatch;   // the last managed frame was exception dispatch
  const struct cs_record *unresolved;  // not NULL: the view ended early, because of this frame
};
void cs_logical_begin(struct cs_logical *view, const struct cs_capture *capture);
bool cs_logical_next(struct cs_logical *view, struct cs_logical_frame *frame);

// The last error of this thread, as clrsnap_last_error gives it (error.c).
struct cs_error *cs_last_error(void);

#endif
