// SPDX-License-Identifier: MIT
// contract: from the runtime's data contract descriptor to struct cs_layout, and the checks that
// make the layout worth trusting. Not for handlers.
//
// Order at start-up:
//   1. cs_contract_read        in Initialize or InitializeForAttach. A refusal is final: say it,
//   stay
//                              out of the way.
//   2. cs_contract_check_thread  for each thread as it becomes known (ThreadAssignedToOSThread, on
//   the
//                              thread itself; EnumThreads in ProfilerAttachComplete).
//   3. cs_contract_check_code  from a thread of our own, or in a callback, again and again until it
//                              answers something else than CS_CHECK_NOT_YET: at Initialize no
//                              method has been jitted yet, and nothing else names code that the
//                              profiling API vouches for. Once a few milliseconds is often enough.
// Nothing may be walked before one thread has passed, and either the code or (NOT_YET, but with
// images in the report) ReadyToRun images: then there is no jitted code yet. A failure is final.
#ifndef CS_CONTRACT_H
#define CS_CONTRACT_H

#include "base/error.h"
#include "clrsnap/corprof.h"
#include "contract/layout.h"
#include "mem/mem.h"

#define CS_KNOWN_MAJOR 10  // the runtimes that are supported

struct cs_runtime_version {
  uint16_t major, minor, build;  // 0.0.0: not known
};

// What the runtime says of itself. False when it does not (an ICorProfilerInfo before 3).
bool cs_runtime_version_get(IUnknown *info, struct cs_runtime_version *out);

// Finds the runtime in this process (libcoreclr.so, or the executable of a single-file
// application), reads and validates its descriptor, and fills `out`. `version` may be NULL: the
// path of libcoreclr then tells. Takes the dynamic loader's lock. On failure `err` has one sentence
// for the user: the runtime is not supported yet, not known, or its descriptor is not what it
// should be.
bool cs_contract_read(struct cs_layout *out, const struct cs_runtime_version *version,
                      struct cs_error *err);

// A runtime that somebody else has found, in another process or in this one.
struct cs_contract_place {
  uint64_t descriptor;  // its address, 0: the runtime has none
  uint64_t begin, end;  // of the runtime's mapping, [begin, end)
  struct cs_runtime_version version;
};
// The same over any source of memory, whose reads must fail instead of faulting.
bool cs_contract_read_at(struct cs_layout *out, const struct cs_mem *mem,
                         const struct cs_contract_place *place, struct cs_error *err);

// Looks for the hijack fields in a Thread (see cs_contract_check_thread); fills layout->hijack when
// that thread shows them. `mem` as above.
void cs_contract_find_hijack(struct cs_layout *layout, const struct cs_mem *mem, uint64_t thread);

enum cs_check {
  CS_CHECK_PASSED,
  CS_CHECK_NOT_YET,  // there was nothing to check against so far
  CS_CHECK_FAILED,   // `err` says what did not fit; do not walk
};

// Checks the Thread offsets against what the profiling API says: the thread's OS id, and a frame
// chain that is empty or starts at a plausible address. Also finds the hijack fields, which no
// descriptor has: a thread that was never hijacked has the runtime's filler 0xCC... in both, one
// pair of words in all of the object (docs/runtime-offsets.md). Until some thread has shown
// them layout->hijack stays 0 and hijacked frames end a walk instead of being guessed.
enum cs_check cs_contract_check_thread(struct cs_layout *layout, ThreadID thread, DWORD os_tid,
                                       struct cs_error *err);

struct cs_code_check {
  uint32_t methods;     // jitted methods whose code header was right
  uint32_t unmatched;   // methods of which no code address had a header: only their ReadyToRun code
                        // is left, or they were unloaded meanwhile
  uint32_t images;      // ReadyToRun modules whose tables were right
  FunctionID function;  // one of the methods, for further checks
  UINT_PTR code_start;
};

// Checks code headers and ReadyToRun tables against all methods and modules that the profiling API
// names at this moment. Calls EnumJITedFunctions2 and EnumModules: from a native thread or inside a
// callback only. All memory is read guarded: wrong offsets make it fail, not fault.
enum cs_check cs_contract_check_code(const struct cs_layout *layout, ICorProfilerInfo15 *info,
                                     struct cs_code_check *report, struct cs_error *err);

// The same for one method, for who knows one: `code_start` must be a jitted version's address
// (JITCompilationFinished, DynamicMethodJITCompilationFinished), not a ReadyToRun one.
bool cs_contract_check_method(const struct cs_layout *layout, FunctionID function,
                              UINT_PTR code_start, struct cs_error *err);

#endif
