// SPDX-License-Identifier: MIT
// The state while a thread is stepped, and the counters.
#pragma once

#include "remote/remote.h"
#include "shadow.h"
#include "tools/handlers_walk.h"
#include "tracee.h"

enum code_group {  // of the instruction that the thread stands at
  GROUP_JIT,
  GROUP_FUNCLET,
  GROUP_R2R,
  GROUP_STUB,
  GROUP_PLT,
  GROUP_CORECLR,
  GROUP_CLRJIT,
  GROUP_LIBC,
  GROUP_OTHER_NATIVE,
  GROUP_UNKNOWN,
  GROUP_COUNT
};

enum verdict { VERDICT_RIGHT, VERDICT_CUT, VERDICT_WRONG };

struct tally {
  uint64_t walked, cut, wrong;
};

// What the comparison accepts although the walk does not equal the executed calls, and what the
// stepper takes as true although no call has made it so. Each excuse is counted and bounded
// (report.c), and each has a condition that a wrong walk does not meet.
enum excuse {
  EXCUSE_ELSEWHERE,  // the leaf is about to go on elsewhere: the walk says where, and it gets there
  EXCUSE_STALE,      // cut until all that had been read was read anew
  EXCUSE_STALE_WRONG,  // even wrong until then
  EXCUSE_OPEN,         // the stepping ended before it was seen whether the thread gets there
  EXCUSE_TRIP,         // a return to the runtime's trip wire
  EXCUSE_BUILT,        // such a walk has the next one's frame already
  EXCUSE_MADE,         // the runtime has built a frame where it leaves the alternate stack
  EXCUSE_RESTORED,     // a whole context was loaded
  EXCUSE_UNSTEPPED,    // a call into the JIT that was run to its end: calls that were not seen
  EXCUSE_EXCLUSIVE,    // instructions from an exclusive load to its store, which cannot be stepped
  EXCUSE_COUNT
};

// How often an excuse may be needed: a share of a million walks, and a fixed number besides.
struct bound {
  uint64_t per_million, besides;
};
enum { CUT_PER_MILLION = 1, CUT_BESIDES = 1 };  // of walks that are cut

enum { MAX_SCENES = 128, MAX_FINDINGS = 256, SCENE_NAME = 64, MAX_SKIPPED = 1024 };

struct scene {
  char name[SCENE_NAME];
  uint64_t executed;  // instructions, walked at or not
  struct tally tally;
};

struct finding {  // a place where walks were cut or wrong
  enum verdict verdict;
  enum cs_stop stop;
  uint64_t ip;
  uint64_t count;
  char where[128];
  char why[192];
};

struct options {
  uint64_t per_scene;  // instructions of one visit to a scene that are stepped; then it runs
  uint64_t per_jit;    // instructions that are stepped of one call into the JIT; then it runs
  unsigned sample;     // one of so many instructions of libclrjit is walked at
  uint64_t seed;       // of what is chosen at random
  unsigned bait;  // one of so many walks is compared once more with a fault put in, which has to be
                  // found (bait.c); 0: none
  unsigned show;  // wrong walks that are printed whole
  bool first;     // ends at the first walk that is wrong
};

// The prediction that the thread continues at `ip`, and at none of the callers that the walk has
// left out before it.
struct prediction {
  bool made, broken;
  uint64_t ip, sp;
  bool builds;  // the runtime builds the caller of that place by hand until then:
  uint64_t built_ip, built_sp;
  unsigned depth;  // of the call stack: a signal handler in between does not count
  unsigned skipped;
  struct entry skip[MAX_SKIPPED];
};

enum { MAX_COMPARED = 4096 };

struct walked {  // one exact walk
  unsigned count;
  bool cut_off;  // at the frame that is fixed for the scene
  enum cs_stop stop;
  uint64_t stop_ip;
  struct cs_frame frame[MAX_COMPARED];
};

struct comparison {
  enum verdict verdict;
  enum cs_stop stop;
  unsigned frames;  // that were right
  char why[192];
  bool bridged;  // native frames were left out
  bool resumes;  // the walk says that the thread goes on elsewhere, here:
  uint64_t resume_ip, resume_sp;
  bool builds;  // ... with a caller that is not there yet, off the alternate stack
  uint64_t built_ip, built_sp;
  unsigned skip_from, skip_to;    // of what is wanted, if it does
  uint64_t caller_ip, caller_sp;  // of the leaf
};

enum bait {       // a fault that is put into a walk, to see that it is found
  BAIT_SKIPPED,   // a frame is missing
  BAIT_CALLER,    // the leaf's caller is
  BAIT_RETURNED,  // the same, and found only when the thread has returned to it
  BAIT_IP,        // another ip
  BAIT_SP,        // another sp
  BAIT_EXACT,     // exact, or not
  BAIT_BRIDGED,   // a frame is missing, and the walk says that it may be
  BAIT_CUT,       // ends early, with a reason
  BAIT_BASE,      // ends early, as if that were the base
  BAIT_REGISTER,  // a callee-saved register of the scene's caller
  BAIT_WORD,      // the handler's walk has another ip
  BAIT_KIND,      // ... another kind of code
  BAIT_LENGTH,    // ... a frame less
  BAIT_BUILT,     // a frame that the runtime builds has another ip
  BAIT_COUNT
};

struct bait_tally {
  uint64_t put, found;
};

struct oracle {
  struct prediction prediction;
  struct options options;
  struct tracee tracee;
  struct cs_remote *remote;
  struct cs_remote_thread thread;  // its registers are those of the present instruction
  struct handlers_walk *handlers;
  struct shadow shadow;
  uint64_t
      loaded_sp;  // what the last instruction that loads a whole sp has loaded; 0: none, or the
                  // thread has called or gone on since
  uint64_t random;
  // The frames that were there when the scene began; they are fixed from `base` on.
  unsigned base;  // index into shadow.entry
  struct cs_regs base_regs;
  struct walked walked;
  struct scene scene[MAX_SCENES];
  unsigned scenes;
  struct tally group[GROUP_COUNT];
  uint64_t stops[CS_STOP_COUNT];
  uint64_t excuse[EXCUSE_COUNT];
  uint64_t signals, resumptions;
  uint64_t hijacked;  // walks over a return address that the runtime had replaced
  struct bait_tally bait[BAIT_COUNT];
  struct prediction bait_prediction;  // of a walk without the leaf's caller: must be broken
  struct finding finding[MAX_FINDINGS];
  unsigned findings;
  unsigned shown;
};

// Takes the walk at a scene's begin as the true stack. Returns false if that walk is not complete.
bool oracle_begin(struct oracle *oracle, struct cs_error *err);
// Walks from where the thread is, and compares. `whole`: walks to the stack's base.
void oracle_check(struct oracle *oracle, struct scene *scene, bool whole);
// Called when one instruction has brought the thread here: checks whether this is a caller that a
// walk has left out.
void oracle_went(struct oracle *oracle, uint64_t ip, uint64_t sp);
// Called when the runtime has built a frame by hand: checks whether it is as a walk has said.
void oracle_built(struct oracle *oracle, const struct entry *entry);
// Called when the stepping ends.
void oracle_end(struct oracle *oracle);
uint64_t oracle_random(struct oracle *oracle);

// ---- step.c ----
_Noreturn void oracle_die(const char *what, const char *why);
void oracle_read_registers(struct oracle *oracle);
// A word of the stack as it is now.
uint64_t oracle_stack_word(struct oracle *oracle, uint64_t address);

// ---- compare.c ----
// The walk against the stepper's call stack. `want` is that, with `count` entries.
struct comparison oracle_compare(const struct oracle *oracle, const struct walked *walked,
                                 const struct entry *const *want, unsigned count, bool whole);

// ---- predict.c ----
void prediction_make(struct prediction *p, const struct oracle *oracle,
                     const struct comparison *result, const struct entry *const *want);
// Once a walk has predicted where the thread continues, every walk must predict the same until the
// thread is there.
void prediction_check(struct oracle *oracle, struct comparison *result,
                      const struct entry *const *want);

// ---- bait.c: repeats a comparison with a fault put in ----
void bait_check(struct oracle *oracle, const struct entry *const *want, unsigned count);

// ---- report.c ----
// Prints the tables. Returns true if no walk was wrong, no fault was overlooked, and no excuse was
// used more often than it is known to be needed.
bool report(const struct oracle *oracle);
// Tests each bound with a tally that exceeds it by one. Returns true if all are enforced.
bool report_self_test(void);
// The code that an address is in, for people: "libc.so.6+0x1234", "jit 0x... +0x10".
void describe(const struct oracle *oracle, uint64_t ip, char *text, size_t size);
