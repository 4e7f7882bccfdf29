// SPDX-License-Identifier: MIT
// agent: the profiler that `clrsnap record` puts into a program: samples threads and sends what it
// finds through the wire. Not for handlers; what runs in a handler is signal/sample.c.
//
// Threads: callbacks come on the runtime's threads, several at a time. All that calls the CLR for
// names, writes to the wire or reads the sample ring is done by one thread of our own, ".clrsnap".
// It holds no lock while it calls the CLR (contract: C19), and a callback waits for it only for a
// bounded time.
#ifndef CS_SAMPLING_AGENT_H
#define CS_SAMPLING_AGENT_H

#include <time.h>

#include "life/epoch.h"
#include "life/function.h"
#include "life/images.h"
#include "life/start.h"
#include "signal/handler.h"
#include "signal/kernel.h"
#include "signal/perf.h"
#include "signal/request.h"
#include "signal/sample.h"
#include "snapshot/api.h"
#include "snapshot/il.h"
#include "snapshot/self.h"
#include "threads/altstack.h"
#include "threads/ask.h"
#include "threads/equip.h"
#include "threads/native_stack.h"
#include "threads/own_signal.h"
#include "threads/registry.h"
#include "threads/threads.h"
#include "wire/producer.h"

// PASSIVE -> WAITING -> RECORDING -> OVER -> PASSIVE, as often as a recording is attached. A
// process that ends while it is recorded stays OVER.
enum cs_agent_state {
  CS_AGENT_PASSIVE,    // loaded, but nobody records
  CS_AGENT_WAITING,    // until the runtime has run enough code to be checked against
  CS_AGENT_RECORDING,  // samples are taken
  CS_AGENT_OVER,       // CS_WIRE_END has been written, or there is nothing to write to
};

struct cs_agent {
  uint32_t state;    // enum cs_agent_state
  uint32_t stop;     // 1: the agent's thread is to end
  uint32_t exiting;  // 1: and so does the process: nothing is given back any more
  uint32_t wake;     // bumped to wake the agent's thread (a futex)
  uint32_t modes;    // CS_WIRE_MODE_BITs
  uint32_t hz;
  enum cs_wire_engine_kind engine;  // that the command wants
  bool kernel;                      // the kernel's frames are wanted
  uint32_t event;            // what is counted in place of CPU time (base/perf.h); 0: nothing
  uint64_t event_period;     // between two samples of that
  bool lines;                // the command wants methods' IL maps
  bool inlined;              // and what was inlined into them
  bool async_callers;        // and the methods that await
  bool attached;             // to a program that was running
  uint32_t attach_complete;  // 1: and the runtime has told of that
  uint32_t tid;              // of the agent's thread
  uint32_t command_pid;      // of the command that records, in its own PID namespace
  uint32_t budget_ppm;       // 0: none
  uint32_t event_rate;       // waits and exceptions that are walked, a second and mode; 0: by cost
  uint64_t alloc_interval;   // bytes between two objects that are walked; 0: by their cost
  uint64_t period_ns;        // between samples: 1 / hz, or longer for the budget's sake
  uint64_t start_ns;         // CLOCK_MONOTONIC, when the recording began
  bool walks_ended;          // after it: no handler is left that could write into the ring
  const IUnknown *client;    // what the library was started with
  ICorProfilerInfo15 *info;  // our own: cs_library.info may be another profiler's
  struct cs_producer wire;
  struct cs_sample_ring ring;
};
extern struct cs_agent cs_agent;

// ---- start.c: a recording's beginning and end ----
// How the command is met: by the path of its memory, or, by attach, upon an invitation, which
// nobody has checked yet. Neither: nobody wants a recording.
struct cs_agent_wish {
  bool attached;
  const char *path;
  const void *invitation;
  size_t size;
};
// Maps and claims the shared memory, starts the library and the agent's thread. Returns what
// Initialize is to return. A recording that is just ending is waited for (3 s at most). By attach
// the command waits to be told why there is no recording.
HRESULT cs_agent_start(IUnknown *info, const struct cs_agent_wish *wish);
// The process ends: ends the recording, if there is one, and waits until its last record is written
// (2 s at most). Any thread.
void cs_agent_stop(void);
// The agent's thread, when the recording is over and the program goes on: gives all back that the
// recording has taken, and has the runtime forget this profiler. The next one is a new attach.
void cs_agent_leave(void);
bool cs_agent_is_active(void);  // WAITING or RECORDING

// ---- loop.c: the agent's thread ----
void *cs_agent_main(void *unused);
void cs_agent_wake(void);

// ---- threads.c: the threads that are sampled ----
// One for each; freed when the last sample that names it has been read.
struct cs_agent_thread {
  struct cs_agent_thread *next;
  struct cs_thread *thread;  // its entry in the registry
  uint64_t clr_thread;       // 0: a native thread
  uint32_t id;               // in the recording; never used twice
  uint32_t tid;              // 0: not assigned to an OS thread yet
  uint32_t announced;        // the wire has its name as it is now
  bool named;                // by the program, not by us
  bool started_by_pool;      // it had a pool worker's name before anybody could name it
  bool seen;                 // native threads: found by the scan that is under way
  bool unclear;              // and not for the first time, but nothing is known of its stack
  // Mode cpu: what makes it take samples; NULL: nothing does. The rest is engine.c's and theirs.
  const struct cs_engine *engine;
  uint64_t clock_from, clock_to;  // its CPU clock when that began, and at its last sample
  uint64_t event_id;              // engine_perf.c
  uint64_t looked_ns, enabled_ns;
  uint64_t stood_ns;  // engine_clock.c: what its samples stand for
  timer_t timer;
  // Its timer's period, and the one before, which samples older than `timer_set` (of the time-stamp
  // counter) were taken with.
  uint64_t timer_ns, timer_before_ns, timer_set;
  uint64_t spent_ns;    // its CPU time up to now, while it lacks the larger stack
  uint64_t last_ns;     // wall mode: up to when its time has been accounted for
  uint64_t asked_ns;    // when a signal was sent (ask.c)
  uint64_t dead_at;     // position of the ring that all samples of it lie before, when it has ended
  uint64_t written_to;  // and behind the last sample of it that the agent's thread has put there
  uint64_t held_ns;     // what its last sample by signal took
  uint64_t owed_ns;     // wall mode: time up to last_ns that its next sample by signal stands for
  uint64_t missed_until_ns;  // wall mode: when a sample by signal was last put off
  uint32_t put_off;          // signals of it that were put off, as far as they have been seen
  uint64_t waits_since;      // of the time-stamp counter: mode wait; 0: it does not
  uint64_t slept_runs;       // which was of a thread that slept and had this run count,
  bool repeatable;  // and is the wire's last wall sample of it; nothing in it changes meanwhile
  char given[16];   // what the kernel called it when it became a managed thread
  char name[128];
};
void cs_threads_assigned(ThreadID id, uint32_t tid);
void cs_threads_renamed(ThreadID id, const WCHAR *name, ULONG units);
void cs_threads_destroyed(ThreadID id);
// Entries of the registry that are not sampled yet, after an attach.
void cs_threads_adopt(void);
void cs_threads_add_native(uint32_t tid);
void cs_threads_see_native(uint32_t tid);  // it lives; and may be sampled by now
bool cs_threads_tell_rooms(void);  // CS_WIRE_ROOMS, if any stacks had no room. False: no room
// Calls `visit` for each thread that lives, with the lock held: no call into the CLR. False ends
// it.
void cs_threads_visit(bool (*visit)(struct cs_agent_thread *thread, void *data), void *data);
// Takes native threads out that have not been `seen`, and frees those that no sample names any
// more.
void cs_threads_sweep_native(void);
// Takes managed threads out that the kernel has no more.
void cs_threads_sweep_ended(void);
void cs_threads_free_dead(void);
// Sends the thread's record if the wire does not have it as it is. False: no room.
bool cs_threads_announce(struct cs_agent_thread *thread);
// Looks whether threads that the program has not named have another name by now.
void cs_threads_refresh_names(void);
// thread_name.c: of a name that the kernel has cut, all of it, if that can be read.
void cs_thread_whole_name(uint64_t clr_thread, char *name, size_t cap);
// The recording begins; it is over, no thread is sampled any more; and the last sample has been
// read: forgets all threads.
void cs_threads_start(void);
void cs_threads_stop(void);
void cs_threads_free_all(void);

// ---- samplers ----
// engine.h: what makes threads take samples of mode cpu.
// ask.c: has a thread take a sample, by a signal; CS_ASKED_ bit, what it stands for
// (CS_ASKED_LOOK). Does nothing if it has been asked for the same and has not done it yet. The
// thread is pinned or the list's lock is held. The agent's thread only.
void cs_ask(struct cs_agent_thread *thread, struct cs_thread *entry, enum cs_asked what,
            uint64_t weight);
void cs_asks_begin(void);
void cs_asks_turn(uint64_t now_ns);
void cs_asks_count(uint64_t now_ns);  // those in vain, before the threads are forgotten
void cs_asks_end(void);               // there will be no more
bool cs_asks_tell(void);              // CS_WIRE_ASKS, if any were in vain. False: no room
// urg.c: SIGURG, for samples. False: the program uses it. Lost: the program has begun to.
bool cs_urg_take(struct cs_error *why);
void cs_urg_give_back(void);
bool cs_urg_is_had(void);
bool cs_urg_is_lost(void);
// sampler_wall.c: samples every managed thread: those that sleep as they are, others by signal.
// One part of the threads, of so many parts.
void cs_wall_tick(uint64_t now_ns, uint32_t part, uint32_t parts);
// One sample of a thread that waits, if it still does: because of an event.
void cs_wall_walk_waiting(struct cs_agent_thread *thread, struct cs_thread *pinned,
                          const struct cs_sample_event *event);
void cs_wall_free(void);
// native_threads.c: finds threads of the process that the runtime knows nothing of.
void cs_native_threads_scan(void);

// ---- equip.c: larger alternate stacks for threads that were there before us ----
// The agent's thread. Before the first signal; and now and then: for those that slept meanwhile,
// and run by now. A thread is sent signals, and has a timer, only once it has the stack.
void cs_equip_begin(void);
void cs_equip_turn(uint64_t now_ns);
uint64_t cs_equip_stops(void);  // of the runtime, in this recording
bool cs_equip_tell(void);       // CS_WIRE_STOPS, if there were any. False: no room
// threads.c: starts the engine for all threads for which it could not be started before.
void cs_threads_start_engines(void);
void cs_threads_start_unstarted(void);  // of threads that had none for libraries that were new
void cs_threads_stop_engines(void);     // no thread may be sent a signal any more

// ---- budget.c: the rate is lowered to what the budget allows; the agent's thread only ----
void cs_budget_start(uint64_t now_ns);
void cs_budget_add_held(uint64_t ticks);  // of the time-stamp counter, by a handler
void cs_budget_turn(uint64_t now_ns);
bool cs_budget_tell(uint64_t now_ns);  // CS_WIRE_BUDGET, if there is a budget. False: no room
// What part of a processor the walks of a mode's events may take; negative: there is no budget.
double cs_budget_share(enum cs_wire_mode mode);
// threads.c: the time between samples from now on, for the threads that there are and will be. When
// the ring has just been read: of a thread's last two periods only are known.
void cs_threads_set_period(uint64_t period_ns);

// ---- gate.c: which of the runtime's events are walked ----
void cs_gate_start(uint64_t now_ns);
// One event, of so much in its mode's unit. False: it is counted, and not to be walked. *weight:
// what it stands for if it is. Any thread; the next two as well.
bool cs_gate_take(enum cs_wire_mode mode, uint64_t value, uint64_t *weight);
void cs_gate_add_walk(enum cs_wire_mode mode);
void cs_gate_add_cost(enum cs_wire_mode mode, uint64_t ticks);  // of the time-stamp counter
// The agent's thread.
void cs_gate_turn(uint64_t now_ns);
// What part of a processor all walks that are allowed without a budget would take.
double cs_gate_demand(enum cs_wire_mode mode);
double cs_gate_used(enum cs_wire_mode mode);  // what part those that are walked take
// What a sample costs besides, in the command.
void cs_gate_set_beside(double ns);
bool cs_gate_tell(void);  // CS_WIRE_EVENTS for each mode. False: no room

// ---- events.c: what the runtime tells of allocations, locks, exceptions and collections ----
// Has it tell, on the thread that it happens to, of what the modes need and of nothing else; does
// nothing if they need nothing. Before the first sample. False: it refuses, *err says why.
bool cs_events_start(struct cs_error *err);
// And no more. A callback that is under way ends before cs_epoch_wait returns.
void cs_events_stop(void);
// Before: waits that have not ended become samples, too.
void cs_events_end_waits(void);
void cs_events_free(void);                                           // when none is left
void cs_events_take(uint32_t id, const uint8_t *data, size_t size);  // the callback's
// types.c: the names of what events are about, by number. Any thread puts them in; 0: no memory.
uint32_t cs_type_intern(const uint8_t *utf16, size_t bytes);
uint32_t cs_type_intern_text(const char *text);
// So many events of the type are in no sample yet. Any thread. Returns how many there are now;
// take: for the sample that stands for them, and none are left.
void cs_type_owe(uint32_t type, uint64_t events);
uint64_t cs_type_take(uint32_t type);
// The agent's thread: the wire's function id of a type. False: no room.
bool cs_type_to_wire(uint32_t type, uint32_t *id);
// And those that no sample stands for at the end. False: no room.
bool cs_types_tell_owed(bool (*tell)(uint32_t type, uint64_t events));
void cs_types_free(void);

// ---- labels.c: what Activity is current on a thread, as managed code of ours tells it ----
// A recording that wants labels begins, or ends. Nothing is begun for one that does not.
void cs_labels_begin(void);
void cs_labels_end(void);
// Has that code come? It may never: a program can be built without startup hooks.
bool cs_labels_have_hooks(void);
// A thread that is sampled from now on, but had its label's slot before.
void cs_labels_link(struct cs_thread *thread);

// ---- from the ring to the wire; the agent's thread only ----
bool cs_drain_init(struct cs_error *err);
// A thread has slept since its last sample: that counts once more. False: it has not been sent, or
// something in it may be otherwise by now; the thread is to be walked.
bool cs_drain_again(struct cs_agent_thread *thread, uint64_t now_ns);
// Wall mode: did the thread put off a signal since the last look? What it missed is its next
// signal's then, and it may be sent one again.
void cs_drain_note_put_off(struct cs_agent_thread *thread, uint64_t now_ns);
// And of one that would put it off, and is sent none.
void cs_drain_put_off(struct cs_agent_thread *thread, uint64_t now_ns);
bool cs_drain_tell(void);  // CS_WIRE_PUT_OFF, if any were. False: no room
bool cs_drain_unwalked(uint32_t type, uint64_t events);  // at the end. False: no room
void cs_drain(void);                                     // everything that is in the ring
void cs_drain_end(void);                                 // there will be no more
void cs_drain_free(void);
// Samples that were to have kernel frames, of which it is not known whether there were any.
uint64_t cs_drain_kernel_unknown(void);
void cs_drain_losses(uint64_t lost[CS_SAMPLE_MODES]);  // samples, by mode, up to now
// frames.c: a frame of a sample as the wire has it. False: no room for a record that it needs.
struct cs_frame_origin {  // of a sample's frames
  uint32_t code_generation;
  const struct cs_images *images;  // those of the process at that time, or NULL
  bool all;  // they are all that there were; else only those that the walk has found are right
};
bool cs_frame_to_wire(uint64_t frame, const struct cs_frame_origin *origin, uint64_t *out);
void cs_frames_forget(void);  // the wire's ids are another recording's from now on
// functions.c: methods that have been named.
struct cs_method_at {
  uint64_t start, function_id;
  bool collectible;
  uint32_t generation;
};
// Answers the id under which the wire knows the method; false: no room.
bool cs_function_to_wire(const struct cs_method_at *method, uint32_t *id);
// Is a method part of the runtime's own exception dispatch, which stands above all who throw?
bool cs_function_is_dispatch(uint32_t id);
// Is a method one of the runtime's that wait? *name: for what, unless that is known from a method
// further in. Static.
bool cs_function_waits(uint32_t id, const char **name);
// waiters.c: knows those by their names.
struct cs_method_name;
void cs_waiters_note(uint32_t id, const struct cs_method_name *name);
void cs_waiters_free(void);
// An id for what is no code. False: no room.
bool cs_named_to_wire(const char *type, uint32_t *id);
// The name of all code that has gone before it could be named, and of stubs by their kind.
bool cs_unloaded_to_wire(uint32_t *id);
bool cs_stub_to_wire(uint32_t stub_kind, uint32_t *id);
// The same for code that no map knows but that looks like a stub; *id 0: it does not.
bool cs_unknown_to_wire(uint64_t ip, uint32_t *id);
// unknown.c: what it looks like. Static; NULL: like nothing that is known.
const char *cs_unknown_code_name(uint64_t ip);
// An id for a method that was inlined: whatever code it has of its own. `into` is alive. False: no
// room.
bool cs_inlinee_to_wire(uint64_t function_id, const struct cs_method_at *into, uint32_t *id);
// inlines.c: sends what was inlined into a method, whose id is `id`, if the runtime has kept that.
// While the method is alive. False: no room.
bool cs_inlines_to_wire(const struct cs_method_at *method, uint32_t id);
// A method's record of its own, for what has no code on the stack. False: no room.
struct cs_method_name;
bool cs_method_to_wire(const struct cs_method_name *name, uint32_t *id);
// modules.c: sends what the method's module says of its PDB, if the wire does not have it. False:
// no room.
bool cs_module_to_wire(const struct cs_method_name *name);
// images.c: native images. False: no room.
bool cs_image_to_wire(const struct cs_image *image, uint32_t *id);
// The recording is over: the next one gives ids of its own.
void cs_known_functions_free(void);
size_t cs_known_functions_bytes(void);  // what is kept of them
void cs_known_images_free(void);
void cs_known_modules_free(void);

// ---- awaits.c: who awaits an async method (signal/awaits.h) ----
bool cs_awaits_start(bool attached, struct cs_error *err);  // does nothing if it is not wanted
void cs_awaits_publish(void);                               // handlers use it from now on
void cs_awaits_free(void);                                  // when none is left
void cs_awaits_stop_begins(void);  // the callbacks' of the runtime's suspensions: all stand still
void cs_awaits_stop_ends(void);    // and go on
void cs_awaits_forget(void);       // a module has gone: what was learnt of its classes, too
// A method that has been named: is it one that runs a box? struct cs_await_site.class, else 0. Asks
// the CLR. And under which id the wire knows it.
uint64_t cs_awaits_box_class(FunctionID function, const struct cs_method_name *name);
void cs_awaits_note_method(uint32_t id, const struct cs_method_name *name, uint64_t box_class);
// Learns from a sample what handlers do not know yet, and answers the frames of who awaits, the
// next one first: how many; CS_AWAITS_MOST at most. `wire`: the sample's own frames.
uint32_t cs_awaits_to_wire(const struct cs_sample *s, const uint64_t *wire, uint64_t *out);
void cs_awaits_tell(void);  // the log, how often there were any

// ---- await_source.c: an async method that is awaited by no Task ----
struct cs_class;
struct cs_await_source;
bool cs_await_is_pooled_box(const struct cs_class *class);
bool cs_await_is_resumer(const struct cs_class *class);  // CS_AWAIT_RESUMER
// Where a box has its source; and Delegate's target, which is needed then. False: it has none.
bool cs_await_find_source(const struct cs_class *box, struct cs_await_source *out,
                          uint32_t *target);

// ---- unload.c: code that is about to die ----
// In ModuleUnloadStarted and DynamicMethodUnloaded: lets the agent's thread name what the ring
// still has of it (20 ms at most), then tells the library.
void cs_unload(bool module);
void cs_unload_drained(void);  // by the agent's thread, when it has been through the ring
// May a frame in code that can die, of a sample of this generation, be named by what is there now?
bool cs_unload_is_alive(uint32_t generation);
// So many deaths ago that it never may be again.
bool cs_unload_is_forgotten(uint32_t generation);
// Around every call into the CLR that is about code which can die. False: it may have died already.
bool cs_unload_begin_naming(uint32_t generation);
void cs_unload_end_naming(void);

#endif
