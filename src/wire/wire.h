// SPDX-License-Identifier: MIT
// wire: the shared memory between the agent (the producer, in the target) and the command (the
// consumer): a header page, and a byte ring of records. docs/wire-format.md describes it in prose.
// A program that is started finds it by the path in CLRSNAP_SHM, that of a descriptor of the
// command. A running process makes it itself, in response to an invitation.
#pragma once

#include "base/base.h"
#include "base/label.h"
#include "wire/frame.h"

#define CS_WIRE_MAGIC 0x3150414E53524C43ull  // "CLRSNAP1"
#define CS_WIRE_VERSION 21u
#define CS_WIRE_ENV "CLRSNAP_SHM"
// If set, an agent that finds the file claimed waits for the next one.
#define CS_WIRE_CHILDREN_ENV "CLRSNAP_CHILDREN"
// The inode of the command's PID namespace. In another namespace the path in CLRSNAP_SHM is wrong.
#define CS_WIRE_NAMESPACE_ENV "CLRSNAP_PID_NAMESPACE"
#define CS_WIRE_HEADER_BYTES 4096u
// The name of a pseudo-thread, which has the samples of events without a stack.
#define CS_WIRE_UNWALKED "[stacks that were not walked]"

// What a sample shows. A recording may have several modes. Recording files use the same numbers.
enum cs_wire_mode {
  CS_WIRE_MODE_CPU = 1,    // a running thread
  CS_WIRE_MODE_WALL,       // any thread
  CS_WIRE_MODE_ALLOC,      // an object that was allocated
  CS_WIRE_MODE_LOCK,       // a wait for a lock, which has ended
  CS_WIRE_MODE_EXCEPTION,  // an exception that was thrown
  CS_WIRE_MODE_GC,         // a pause, which has ended: all managed threads were stopped
  CS_WIRE_MODE_WAIT,       // a wait for something other than a lock, which has ended or not
  CS_WIRE_MODE_ASYNC,      // an operation that awaits something; sampled by the command
  CS_WIRE_MODE_HOLDERS,    // the holder of a lock while others wait for it
  CS_WIRE_MODES,           // their number plus 1
};
#define CS_WIRE_MODE_BIT(mode) (1u << (mode))
// Modes that sample all threads over time; the others sample events of the runtime.
#define CS_WIRE_TIMED_MODES \
  (CS_WIRE_MODE_BIT(CS_WIRE_MODE_CPU) | CS_WIRE_MODE_BIT(CS_WIRE_MODE_WALL))
#define CS_WIRE_ALL_MODES (CS_WIRE_MODE_BIT(CS_WIRE_MODES) - CS_WIRE_MODE_BIT(CS_WIRE_MODE_CPU))
#define CS_WIRE_AGENT_MODES (CS_WIRE_ALL_MODES & ~CS_WIRE_MODE_BIT(CS_WIRE_MODE_ASYNC))

// What makes threads take samples of cpu mode, the best first.
enum cs_wire_engine_kind {
  CS_WIRE_ENGINE_AUTO,   // the best one available
  CS_WIRE_ENGINE_PERF,   // the kernel's perf events: a task clock for each thread
  CS_WIRE_ENGINE_CLOCK,  // at random times, samples the threads that have used CPU time
  CS_WIRE_ENGINES,       // their number
};
static inline const char *cs_wire_engine_name(enum cs_wire_engine_kind engine) {
  static const char *const names[] = {"auto", "perf", "clock"};
  return engine < CS_WIRE_ENGINES ? names[engine] : "unknown";
}

#define CS_WIRE_NO_LIMIT UINT32_MAX
#define CS_WIRE_WALK_LIMIT_US 500u

enum cs_wire_agent_state {
  CS_WIRE_AGENT_NONE,       // there is no agent yet
  CS_WIRE_AGENT_RECORDING,  // samples are being taken
  CS_WIRE_AGENT_DONE,       // the agent has written CS_WIRE_END, its last record
  CS_WIRE_AGENT_REFUSED,    // the agent cannot serve this runtime; `message` says why
};

struct cs_wire_header {
  uint64_t magic;
  uint32_t version;
  uint32_t header_bytes;
  uint64_t capacity;  // bytes of the ring after the header; a power of two

  // What the command wants; set before the target starts.
  uint32_t modes;      // CS_WIRE_MODE_BITs
  uint32_t hz;         // samples per second and thread (CPU: per second of CPU time)
  uint32_t max_depth;  // frames per sample
  uint32_t stop;       // the command sets 1: stop sampling, write CS_WIRE_END
  uint32_t command_pid;
  uint32_t lines;           // CS_WIRE_LINES_*: what is wanted for each method
  uint32_t budget_ppm;      // share of a processor that recording may use, in ppm; 0: no limit
  uint32_t labels;          // 1: samples have the current Activity
  uint32_t async_callers;   // 1: with the frames of awaiting methods
  uint32_t engine;          // enum cs_wire_engine_kind
  uint32_t walk_limit_us;   // CPU time for the walk of a sample; 0: 500; CS_WIRE_NO_LIMIT
  uint32_t event_rate;      // waits and exceptions walked per second and mode; 0: by cost
  uint64_t alloc_interval;  // bytes between two objects that are walked; 0: by their cost
  uint32_t kernel;          // 1: with the kernel's frames
  uint32_t event;           // cpu mode: counted instead of CPU time (base/perf.h); 0: CPU time
  uint64_t event_period;    // about how many events there are between two samples
  uint64_t command_cpu_ns;  // CPU time that the command has used, as it last reported
  // What the agent reports.
  uint32_t agent_pid;    // claimed by compare-and-swap from 0: the first process wins
  uint32_t agent_state;  // enum cs_wire_agent_state
  char message[256];     // why it was refused, or what this recording cannot see
  uint32_t label_hooks;  // 1: the program reports its Activities (`labels`)

  _Alignas(64) uint64_t head;  // bytes ever written (producer, release)
  uint64_t lost_records;       // records that did not fit (producer)
  _Alignas(64) uint64_t tail;  // bytes ever read (consumer, release)
};

// The client data of an attach: the header of the memory that the agent is to make, with the ring
// after it, and the name of the file. If the memory has only a header, its message says why there
// is no ring.
struct cs_wire_invitation {
  struct cs_wire_header header;  // first, since every release begins with magic and version
  char name[32];
  uint64_t pid_namespace;  // of command_pid: the inode of /proc/PID/ns/pid
};

// A record is this head, then the payload, padded to 8 bytes. Records do not wrap: a CS_WIRE_PAD
// record fills the ring's end. Numbers are little-endian; a string is a u16 length and UTF-8,
// without a NUL.
struct cs_wire_record {
  uint32_t size;   // of the whole record, head and padding included
  uint16_t kind;   // enum cs_wire_kind
  uint16_t flags;  // of a sample: CS_WIRE_LABELLED
};

enum cs_wire_kind {
  CS_WIRE_PAD,
  CS_WIRE_START,     // struct cs_wire_start, string runtime ("10.0.12")
  CS_WIRE_THREAD,    // struct cs_wire_thread, string name; again when the name changes
  CS_WIRE_FUNCTION,  // struct cs_wire_function, strings: module, namespace, type, method, signature
  CS_WIRE_IMAGE,     // struct cs_wire_image, string path
  CS_WIRE_SAMPLE,    // struct cs_wire_sample, u64 frames[frame_count], leaf first; with
                     // CS_WIRE_LABELLED, struct cs_label
  CS_WIRE_END,       // struct cs_wire_end
  CS_WIRE_IL_MAP,    // struct cs_wire_il_map, struct cs_wire_il_range[count]; before its FUNCTION
  CS_WIRE_BUDGET,    // struct cs_wire_budget; before END, if there is a budget
  CS_WIRE_INLINES,   // struct cs_wire_inlines, nodes, mappings; before its FUNCTION, if any
  CS_WIRE_REPEAT,    // struct cs_wire_repeat
  CS_WIRE_STOPS,     // struct cs_wire_stops; before END, if the runtime was stopped
  CS_WIRE_TICKS,     // struct cs_wire_ticks; before END, if any were left out
  CS_WIRE_ENGINE,    // struct cs_wire_engine, strings: why, unseen; in cpu mode: at the start, when
                     // the engine changes, and before END
  CS_WIRE_PUT_OFF,   // struct cs_wire_put_off; before END, if any were
  CS_WIRE_EVENTS,    // struct cs_wire_events; before END, for each mode of events
  CS_WIRE_MODULE,    // struct cs_wire_module, strings: path, PDB; before its FUNCTIONs, with lines
  CS_WIRE_LOST_SIGNALS,  // struct cs_wire_lost_signals; before END, if there were any
  CS_WIRE_SMALL_STACKS,  // struct cs_wire_small_stacks; before END, if there are any
  CS_WIRE_SCANS,         // struct cs_wire_scans, string why; the last one counts. Not the agent's
  CS_WIRE_POOL,          // struct cs_wire_pool; the last one counts. Not the agent's
  CS_WIRE_STATUS,        // struct cs_wire_status; of a request that has samples with labels
  CS_WIRE_STARVED,       // struct cs_wire_starved; of each scan that found it so. Not the agent's
  CS_WIRE_TIMES,         // struct cs_wire_times; before END
};

#define CS_WIRE_LABELLED 1u
#define CS_WIRE_LINES_IL 1u       // CS_WIRE_IL_MAP
#define CS_WIRE_LINES_INLINED 2u  // and CS_WIRE_INLINES

struct cs_wire_start {
  uint64_t start_ns;  // CLOCK_REALTIME
  uint32_t pid, hz, modes;
  uint32_t processors;  // on which the program's threads may run; 0: unknown
};
struct cs_wire_thread {
  uint32_t id;  // unique in the recording, while tids are reused
  uint32_t tid;
};
struct cs_wire_function {
  uint32_t id, kind;
  uint32_t token;  // CS_WIRE_FN_METHOD: its mdMethodDef in the module; else 0
};
enum cs_wire_function_kind {
  CS_WIRE_FN_METHOD,
  CS_WIRE_FN_DYNAMIC,
  CS_WIRE_FN_STUB,
  CS_WIRE_FN_UNKNOWN,
  CS_WIRE_FN_TYPE,  // no code, but the subject of an event, as its leaf; `type` is its name
};
// The IL from which a method's machine code was made, as the runtime reports it.
struct cs_wire_il_map {
  uint32_t function, count;
  int32_t result;  // HRESULT; on failure there is no map, and count is 0
};
#define CS_WIRE_E_IL_REPLACED ((int32_t)0x80070678u)  // ERROR_NOT_SAME_OBJECT: not the module's IL
struct cs_wire_il_range {
  uint32_t il;          // IL offset, or one of those below
  uint32_t begin, end;  // offsets from the method's start
};
#define CS_WIRE_IL_NO_MAPPING 0xFFFFFFFFu
#define CS_WIRE_IL_PROLOG 0xFFFFFFFEu
#define CS_WIRE_IL_EPILOG 0xFFFFFFFDu
// The methods that were inlined into a method, and their parts of its machine code. Without nodes:
// the runtime's data could not be understood.
struct cs_wire_inlines {
  uint32_t function, nodes, mappings, pad;
};
struct cs_wire_inline_node {  // a tree: node 0 is the method itself, and parents come first
  uint32_t function;          // a FUNCTION id without machine code; of node 0 the method itself
  uint32_t parent;            // the node into which it was inlined
  uint32_t il;                // the IL offset of the call there, or CS_WIRE_IL_NO_MAPPING
};
struct cs_wire_inline_mapping {
  uint32_t begin;     // offset from the method's start; ends where the next mapping begins
  uint32_t node, il;  // the IL offset in its method, or CS_WIRE_IL_*
};
#define CS_WIRE_BUILD_ID 20  // a longer one is truncated
struct cs_wire_image {
  uint32_t id;
  uint16_t build_id_size;  // 0: it has none
  uint16_t flags;          // CS_WIRE_IMAGE_*
  uint64_t begin, end, bias;
  uint64_t inode;   // of the mapped file, from /proc/PID/maps
  uint32_t device;  // major << 20 | minor
  uint8_t build_id[CS_WIRE_BUILD_ID];
};
#define CS_WIRE_IMAGE_RUNTIME 1u  // contains the runtime: libcoreclr.so, or a single-file program
// What a managed module, as loaded in memory, says about its PDB.
#define CS_WIRE_PDB_ID 20
struct cs_wire_module {
  uint32_t flags;  // CS_WIRE_MODULE_*
  uint8_t pdb_id[CS_WIRE_PDB_ID];
};
#define CS_WIRE_MODULE_READ 1u      // it could be read; if not, nothing is known about it
#define CS_WIRE_MODULE_HAS_ID 2u    // it names a portable PDB
#define CS_WIRE_MODULE_EMBEDDED 4u  // which is embedded in it
struct cs_wire_sample {
  uint64_t time_ns;  // since start_ns
  uint64_t weight;   // what the sample stands for, in its mode's unit: see docs/wire-format.md
  uint64_t stop_ip;
  uint32_t thread;           // cs_wire_thread.id
  uint32_t held_ns;          // how long the thread was in the handler; 0: walked while it slept
#define CS_WIRE_NOT_HELD 1u  // it did not sleep, and was not held either: there is no walk
  uint16_t stop;             // enum cs_stop
  uint16_t mode;             // enum cs_wire_mode
  uint32_t frame_count;
};
// Repeats the thread's last sample of wall mode: it has slept ever since.
struct cs_wire_repeat {
  uint64_t time_ns, weight;  // as in a sample
  uint32_t thread, pad;
};
struct cs_wire_end {
  uint64_t samples, lost_ring,
      lost_wire;                 // taken; lost for lack of room in the target, in the ring
  uint64_t signals, unused;      // signals handled; 0
  uint64_t asleep;               // threads walked while they slept, without a signal
  uint64_t runtime_suspensions;  // how often this agent stopped the runtime: counted, not assumed
  uint64_t events;               // events of the runtime that were to become samples
  uint64_t lost[16];             // lost_ring and lost_wire together, by mode
};

struct cs_wire_budget {
  uint64_t recorded_ns;                             // duration of the recording
  uint64_t agent_ns, handlers_ns, command_ns;       // CPU time used by each of them
  uint32_t budget_ppm, hz_least, hz_last, changes;  // changes of the rate
};

// The stops that gave larger signal stacks to threads that existed before an attach.
struct cs_wire_stops {
  uint64_t stopped_ns;    // total time, from the first thread that was stopped
  uint64_t threads;       // threads that were given a larger one
  uint64_t unsampled_ns;  // CPU time, without samples, of threads that did not have one yet
};

// Samples that were put off so that no thread spends more than a tenth of its time on samples.
struct cs_wire_put_off {
  uint64_t samples;     // not taken when they were due; the thread's next one carries their weight
  uint64_t events;      // samples without a stack
  uint64_t longest_ns;  // CPU time of the longest sample that caused others to be put off,
  uint32_t thread;      // and the thread that took it
  uint32_t stackless_thread;  // the thread with most of `events`; 0: not known
};

struct cs_wire_ticks {
  uint64_t taken, left_out;  // wall mode: scans of all threads; scans left out for lack of time
  uint64_t uncovered_ns;     // time of threads that no sample stands for: before the first scan
                             // that found them, and after the last one if they have ended
  uint64_t native;  // threads that have never run managed code: those at the end, and those
                    // that have ended and were found before
};

// A value of 0 is unknown.
struct cs_wire_times {
  // Wall mode: for how long the whole process did not run because a signal, a debugger or a freezer
  // had stopped it. There are no samples of that time.
  uint64_t halted_ns;
  uint64_t process_ns;  // CPU time of the process while it was recorded, without the agent's thread
  uint64_t waited_ns;   // for how long the agent's thread has waited for a processor,
  uint64_t lasted_ns;   // during this time, from the recording's start to this record
};

// Signals that ask threads for samples, but were not sent or not taken.
struct cs_wire_lost_signals {
  uint64_t unsent;     // not sent, because of the limit of pending signals
  uint64_t silent_ns;  // total time for which `silent` threads had not taken theirs at the end
  uint32_t silent, reserved;
};

// The scans for suspended operations, in async mode (session/scans.h). The string `why` says why
// the last failed scan failed, or is empty.
struct cs_wire_scans {
  uint64_t succeeded, failed;       // scans
  uint64_t stopped_ns, longest_ns;  // how long the program was stopped: in total, at most by a scan
  uint64_t operations;              // seen by all successful scans together
  uint64_t covered_ns;              // time that the scans stand for
  uint32_t ended;                   // 1: scanning was given up before the recording's end
  uint32_t unread;                  // `operations` whose label could not be read
};

// The scans of the thread pool (session/pool_scans.c).
struct cs_wire_pool {
  uint64_t scans, failed;   // successful ones, failed ones
  uint64_t workers_sum;     // over all successful scans
  uint64_t most_queued;     // items in its queues
  uint64_t most_queued_ns;  // when: CLOCK_MONOTONIC; in a recording, since its start
  uint32_t least_workers, most_workers;
  uint32_t starved, pad;  // scans that found it starved, by the rule of docs/thread-pool.md
};

// The HTTP status with which a request has ended. `request` is its number in labels (base/label.h).
struct cs_wire_status {
  uint32_t request, status;
};

// The thread pool at a scan that found it starved.
struct cs_wire_starved {
  uint64_t time_ns, queued;  // like most_queued_ns; items in its queues
  uint32_t workers, pad;
};

// Threads that were sent no signal, because the signal's frame might not fit on their stacks.
struct cs_wire_small_stacks {
  uint32_t small;    // stacks below 64 KiB
  uint32_t unknown;  // native threads with stacks of unknown size
};

// The strings are sentences, or empty: `why` says why a better engine was not available, and what
// to permit for it, `unseen` what this engine does not see.
struct cs_wire_engine {
  uint64_t cpu_ns;           // CPU time of threads while they were sampled; only before END
  uint32_t requested, used;  // enum cs_wire_engine_kind
  uint32_t others;           // threads that another engine has sampled instead
  uint32_t without;          // threads without any engine
};

// The events of a mode, some of which have samples.
struct cs_wire_events {
  uint32_t mode, pad;
  uint64_t events, value, walked;  // value: the sum over all events, in the mode's unit
};

_Static_assert(CS_WIRE_MODES <= 16, "struct cs_wire_end has a place for every mode");
