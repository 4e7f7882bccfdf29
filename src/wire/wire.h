// SPDX-License-Identifier: MIT
// wire: the shared memory between the agent (one producer, in the target) and the command (one
// consumer): a header page and a byte ring of records. docs/wire-format.md has it in prose.
// A program that is started finds it by the path in CLRSNAP_SHM, a descriptor of the command's. A
// process that runs makes it itself, upon an invitation.
#ifndef CS_WIRE_WIRE_H
#define CS_WIRE_WIRE_H

#include "base/base.h"
#include "base/label.h"
#include "wire/frame.h"

#define CS_WIRE_MAGIC 0x3150414E53524C43ull  // "CLRSNAP1"
#define CS_WIRE_VERSION 18u
#define CS_WIRE_ENV "CLRSNAP_SHM"
#define CS_WIRE_CHILDREN_ENV \
  "CLRSNAP_CHILDREN"  // set: who finds the file claimed waits for the next
// The command's namespace of process numbers, by its inode: in another one the above leads nowhere.
#define CS_WIRE_NAMESPACE_ENV "CLRSNAP_PID_NAMESPACE"
#define CS_WIRE_HEADER_BYTES 4096u

// What a sample is of; several in one recording. Numbers are also the recording file's.
enum cs_wire_mode {
  CS_WIRE_MODE_CPU = 1,    // a thread that runs
  CS_WIRE_MODE_WALL,       // any thread
  CS_WIRE_MODE_ALLOC,      // an object that was allocated
  CS_WIRE_MODE_LOCK,       // a wait for a lock that has ended
  CS_WIRE_MODE_EXCEPTION,  // an exception that was thrown
  CS_WIRE_MODE_GC,         // a pause that has ended: the runtime had stopped all managed threads
  CS_WIRE_MODE_WAIT,       // a wait for something else than a lock: it has ended, or goes on
  CS_WIRE_MODES,           // one more than there are
};
#define CS_WIRE_MODE_BIT(mode) (1u << (mode))
// Those whose samples are taken in time; the others are events of the runtime.
#define CS_WIRE_TIMED_MODES \
  (CS_WIRE_MODE_BIT(CS_WIRE_MODE_CPU) | CS_WIRE_MODE_BIT(CS_WIRE_MODE_WALL))
#define CS_WIRE_ALL_MODES (CS_WIRE_MODE_BIT(CS_WIRE_MODES) - CS_WIRE_MODE_BIT(CS_WIRE_MODE_CPU))

// What makes threads take their samples of mode cpu. The best first.
enum cs_wire_engine_kind {
  CS_WIRE_ENGINE_AUTO,   // the best that can be had
  CS_WIRE_ENGINE_PERF,   // the kernel's perf events: a task clock for each thread
  CS_WIRE_ENGINE_CLOCK,  // looks at random intervals at the threads that have used CPU time
  CS_WIRE_ENGINE_TIMER,  // POSIX timers of CPU clocks, which expire at the kernel's tick
  CS_WIRE_ENGINES,       // one more than there are
};
static inline const char *cs_wire_engine_name(enum cs_wire_engine_kind engine) {
  static const char *const names[] = {"auto", "perf", "clock", "timer"};
  return engine < CS_WIRE_ENGINES ? names[engine] : "unknown";
}

#define CS_WIRE_NO_LIMIT UINT32_MAX
#define CS_WIRE_WALK_LIMIT_US 500u

enum cs_wire_agent_state {
  CS_WIRE_AGENT_NONE,       // nobody has come yet
  CS_WIRE_AGENT_RECORDING,  // samples are being taken
  CS_WIRE_AGENT_DONE,       // the agent has written CS_WIRE_END and will write no more
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
  uint32_t lines;           // CS_WIRE_LINES_... that are wanted for each method
  uint32_t budget_ppm;      // what recording may use of one processor, in millionths; 0: no limit
  uint32_t labels;          // 1: samples with the Activity that was current
  uint32_t async_callers;   // 1: frames of who awaits are wanted
  uint32_t engine;          // enum cs_wire_engine_kind
  uint32_t walk_limit_us;   // CPU time that a sample's walk may use; 0: 500; CS_WIRE_NO_LIMIT
  uint32_t event_rate;      // waits and exceptions that are walked, a second and mode; 0: by cost
  uint64_t alloc_interval;  // bytes between two objects that are walked; 0: by their cost
  uint32_t kernel;          // 1: with the kernel's frames
  uint32_t event;           // mode cpu: what is counted in place of CPU time (base/perf.h); 0: that
  uint64_t event_period;    // and about how many of it lie between two samples
  uint64_t command_cpu_ns;  // what the command has used itself, as far as it has said so

  // What the agent says.
  uint32_t agent_pid;    // claimed by compare-and-swap from 0: the first process wins
  uint32_t agent_state;  // enum cs_wire_agent_state
  char message[256];     // a sentence: why it was refused, or what this recording cannot see
  uint32_t label_hooks;  // 1: the program tells of its Activities (`labels`)

  _Alignas(64) uint64_t head;  // bytes ever written (producer, release)
  uint64_t lost_records;       // records that did not fit (producer)
  _Alignas(64) uint64_t tail;  // bytes ever read (consumer, release)
};

// What InitializeForAttach is told: the head of the memory that the agent is to make, which then
// has the ring behind it, and the name it is to give it. The head alone has no ring and says why.
struct cs_wire_invitation {
  struct cs_wire_header header;  // first, as magic and version are in every release
  char name[32];
  uint64_t pid_namespace;  // in which command_pid means something: inode of /proc/PID/ns/pid
};

// A record: this head, then the payload, padded to 8 bytes. Never wraps: a CS_WIRE_PAD record fills
// the ring's end. All numbers little-endian; strings are u16 length + UTF-8, no NUL.
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
  CS_WIRE_BUDGET,    // struct cs_wire_budget; before END, if there is one
  CS_WIRE_INLINES,   // struct cs_wire_inlines, nodes, mappings; before its FUNCTION, if there are
                     // any
  CS_WIRE_AGAIN,     // struct cs_wire_again
  CS_WIRE_STOPS,     // struct cs_wire_stops; before END, if the runtime was stopped
  CS_WIRE_TICKS,     // struct cs_wire_ticks; before END, if any were left out
  CS_WIRE_ENGINE,  // struct cs_wire_engine, strings: why, unseen; of mode cpu: when it begins, when
                   // the engine changes, and before END
  CS_WIRE_PUT_OFF,  // struct cs_wire_put_off; before END, if any were
  CS_WIRE_EVENTS,   // struct cs_wire_events; before END, for each mode that is one of events
  CS_WIRE_MODULE,   // struct cs_wire_module, strings: path, PDB; before its FUNCTIONs, with lines
  CS_WIRE_ASKS,     // struct cs_wire_asks; before END, if any threads were asked in vain
  CS_WIRE_ROOMS,    // struct cs_wire_rooms; before END, if there are any
};

#define CS_WIRE_LABELLED 1u
#define CS_WIRE_LINES_IL 1u       // CS_WIRE_IL_MAP
#define CS_WIRE_LINES_INLINED 2u  // and CS_WIRE_INLINES

struct cs_wire_start {
  uint64_t start_ns;
  uint32_t pid, hz, modes, pad;
};  // CLOCK_REALTIME
struct cs_wire_thread {
  uint32_t id, tid;
};  // id: unique in the recording; tids are reused
struct cs_wire_function {
  uint32_t id, kind;
  uint32_t token;  // CS_WIRE_FN_METHOD: its mdMethodDef in the module; else 0
};
enum cs_wire_function_kind {
  CS_WIRE_FN_METHOD,
  CS_WIRE_FN_DYNAMIC,
  CS_WIRE_FN_STUB,
  CS_WIRE_FN_UNKNOWN,
  CS_WIRE_FN_TYPE,  // no code: what an event is about, as its stack's leaf. `type` has the name
};
// Which IL a method's machine code comes from, as the runtime tells it.
struct cs_wire_il_map {
  uint32_t function, count;
  int32_t result;  // HRESULT; failed: the runtime gave none, and count is 0
};
struct cs_wire_il_range {
  uint32_t il;          // IL offset, or one of those below
  uint32_t begin, end;  // offsets from the method's start
};
#define CS_WIRE_IL_NO_MAPPING 0xFFFFFFFFu
#define CS_WIRE_IL_PROLOG 0xFFFFFFFEu
#define CS_WIRE_IL_EPILOG 0xFFFFFFFDu
// Which methods were inlined into a method, and which of its machine code is theirs. Without nodes:
// the runtime had kept something that could not be understood.
struct cs_wire_inlines {
  uint32_t function, nodes, mappings, pad;
};
struct cs_wire_inline_node {  // in a tree: node 0 is the method itself, parents come first
  uint32_t function;          // a FUNCTION id that no machine code has; node 0: the method's own
  uint32_t parent;            // the node into which it was inlined
  uint32_t il;                // and the IL offset of the call there, or CS_WIRE_IL_NO_MAPPING
};
struct cs_wire_inline_mapping {
  uint32_t begin;     // offset from the method's start; up to the next mapping's
  uint32_t node, il;  // and the IL offset in its method, or CS_WIRE_IL_*
};
#define CS_WIRE_BUILD_ID 20  // bytes that are kept of a longer one
struct cs_wire_image {
  uint32_t id;
  uint16_t build_id_size;  // 0: it has none
  uint16_t flags;          // CS_WIRE_IMAGE_*
  uint64_t begin, end, bias;
  uint64_t inode;   // of the file that is mapped, as /proc/PID/maps has it;
  uint32_t device;  // major << 20 | minor
  uint8_t build_id[CS_WIRE_BUILD_ID];
};
#define CS_WIRE_IMAGE_RUNTIME 1u  // the runtime is in it: libcoreclr.so, or the program as one file
// What a managed module, as it is in memory, says of its PDB.
#define CS_WIRE_PDB_ID 20
struct cs_wire_module {
  uint32_t flags;  // CS_WIRE_MODULE_*
  uint8_t pdb_id[CS_WIRE_PDB_ID];
};
#define CS_WIRE_MODULE_READ 1u      // it could be read; else nothing is known of it
#define CS_WIRE_MODULE_HAS_ID 2u    // it names a portable PDB
#define CS_WIRE_MODULE_EMBEDDED 4u  // which is embedded in it
struct cs_wire_sample {
  uint64_t time_ns;  // since start_ns
  uint64_t weight;   // what this sample stands for, in its mode's unit: see docs/wire-format.md
  uint64_t stop_ip;
  uint32_t thread;   // cs_wire_thread.id
  uint32_t held_ns;  // for how long it stood still for us; 0: walked while it slept
  uint16_t stop;     // enum cs_stop
  uint16_t mode;     // enum cs_wire_mode
  uint32_t frame_count;
};
// The thread's last sample of mode wall once more: it has slept ever since.
struct cs_wire_again {
  uint64_t time_ns, weight;  // as in a sample
  uint32_t thread, pad;
};
struct cs_wire_end {
  uint64_t samples, lost_ring,
      lost_wire;                 // taken; lost for want of room in the target / in this ring
  uint64_t signals, overruns;    // signals handled; timer expirations that the kernel merged
  uint64_t asleep;               // threads walked while they slept, without a signal
  uint64_t runtime_suspensions;  // how often this agent stopped the runtime: counted, not assumed
  uint64_t events;               // of the runtime, that were to become samples
  uint64_t lost[8];              // of both lost_ring and lost_wire, by mode
};

struct cs_wire_budget {
  uint64_t recorded_ns;                             // how long
  uint64_t agent_ns, handlers_ns, command_ns;       // CPU time used in it, by whom
  uint32_t budget_ppm, hz_least, hz_last, changes;  // changes of the rate
};

// To give threads that were there before an attach larger signal stacks.
struct cs_wire_stops {
  uint64_t stopped_ns;    // in all, from the first thread that stood still
  uint64_t threads;       // that have got one
  uint64_t unsampled_ns;  // CPU time of threads that had none yet: there are no samples of it
};

// Samples that were put off, so that no thread spends more than a tenth of its time on them.
struct cs_wire_put_off {
  uint64_t samples;      // not taken when they were due: the thread's next one has their weight
  uint64_t events;       // samples without a stack
  uint64_t longest_ns;   // the longest sample that any was put off for,
  uint32_t thread, pad;  // and the thread that took it
};

struct cs_wire_ticks {
  uint64_t taken, left_out;  // mode wall: looks at all threads; those that there was no time for
};

// Threads are asked for samples by signals.
struct cs_wire_asks {
  uint64_t unsent;     // that could not be sent: the limit of pending signals
  uint64_t silent_ns;  // how long `silent` threads have not taken theirs at the end, in all
  uint32_t silent, reserved;
};

// Threads that were sent no signal, since it would not fit on their stacks.
struct cs_wire_rooms {
  uint32_t small;    // stacks below 64 KiB
  uint32_t unknown;  // native threads whose stacks' sizes are not known
};

// `why`: why a better engine was not had, and what to allow for it; `unseen`: what this one does
// not see. Sentences; empty: nothing.
struct cs_wire_engine {
  uint64_t cpu_ns;      // CPU time that threads have used while they were sampled; only before END
  uint32_t asked, had;  // enum cs_wire_engine_kind
  uint32_t others;      // threads that the engine was not had for, and that another one has sampled
  uint32_t without;     // threads that none was had for
};

// How many there were in a mode, of which some are samples.
struct cs_wire_events {
  uint32_t mode, pad;
  uint64_t events, value, walked;  // value: all that they add up to, in the mode's unit
};

_Static_assert(CS_WIRE_MODES <= 8, "struct cs_wire_end has a place for every mode");

#endif
