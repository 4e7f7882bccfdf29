// SPDX-License-Identifier: MIT
// What is known while a thread is stepped, and what was counted.
#ifndef STEP_ORACLE_H
#define STEP_ORACLE_H

#include "remote/remote.h"
#include "shadow.h"
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

enum { MAX_SCENES = 128, MAX_FINDINGS = 256, SCENE_NAME = 64 };

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
};

struct options {
  uint64_t per_scene;  // instructions of one visit to a scene that are stepped; then it runs
  uint64_t per_jit;    // instructions that are stepped of one call into the JIT; then it runs
  unsigned sample;     // one of so many instructions of libclrjit is walked at
  uint64_t seed;       // of what is chosen at random
  unsigned hide;  // one of so many walks is compared with a call stack that lacks a call, and has
                  // to be found wrong; 0: none
  unsigned show;  // wrong walks that are printed whole
};

struct prediction {  // that the thread goes on there, and nowhere before
  bool made;
  uint64_t ip, sp;
  unsigned depth;  // of the call stack: a signal handler in between does not count
};

struct oracle {
  struct prediction prediction;
  struct options options;
  struct tracee tracee;
  struct cs_remote *remote;
  struct cs_remote_thread thread;  // its registers are those of the present instruction
  struct shadow shadow;
  uint64_t random;
  // The frames that were there when the scene began: fixed from `base` on.
  unsigned base;  // index into shadow.entry
  struct cs_regs base_regs;
  struct scene scene[MAX_SCENES];
  unsigned scenes;
  struct tally group[GROUP_COUNT];
  uint64_t stops[CS_STOP_COUNT];
  uint64_t stale;  // walks that were right after all pages had been read anew
  uint64_t signals, trips, resumptions;
  uint64_t hidden, hidden_found;
  struct finding finding[MAX_FINDINGS];
  unsigned findings;
  unsigned shown;
};

// Takes the walk at a scene's begin as the stack that is there. False: that walk is not complete.
bool oracle_begin(struct oracle *oracle, struct cs_error *err);
// Walks where the thread stands, and compares.
void oracle_check(struct oracle *oracle, struct scene *scene);
// A full walk, to the stack's base.
void oracle_check_whole(struct oracle *oracle, struct scene *scene);
void oracle_invalidate(struct oracle *oracle);
uint64_t oracle_random(struct oracle *oracle);

// Prints the tables. True: no wrong walk, and at most one in 10,000 cut.
bool report(const struct oracle *oracle);
// Which code an address is in, for people: "libc.so.6+0x1234", "jit 0x... +0x10".
void describe(const struct oracle *oracle, uint64_t ip, char *text, size_t size);

#endif
