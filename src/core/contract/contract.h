// SPDX-License-Identifier: MIT
// contract: makes struct cs_layout from the runtime's data contract descriptor, and checks it.
// Not for handlers.
//
// The order at start:
//
//   1. cs_contract_read          in Initialize or InitializeForAttach. A failure is final: report
//                                it, and do nothing more.
//   2. cs_contract_check_thread  for each thread as it becomes known: in ThreadAssignedToOSThread,
//                                on that thread; for those of EnumThreads, in
//                                ProfilerAttachComplete.
//   3. cs_contract_check_code    on a thread of the library or in a callback, repeatedly (every few
//                                milliseconds), until it returns something other than
//                                CS_CHECK_NOT_YET. At Initialize no method has been jitted, and the
//                                profiling API names no other code to compare with.
//
// Walks may begin after one thread has passed, and either the code has passed or (NOT_YET, with
// images in the report) ReadyToRun images have: there is no jitted code then. A failure is final.
#pragma once

#include "base/error.h"
#include "clrsnap/corprof.h"
#include "contract/layout.h"
#include "mem/mem.h"

struct cs_runtime_version {
  uint16_t major, minor, build;  // 0.0.0 if unknown
};

// Gets the version from the profiling API. Returns false if there is no ICorProfilerInfo3.
bool cs_runtime_version_get(IUnknown *info, struct cs_runtime_version *out);

// Finds the runtime in this process (libcoreclr.so, or the executable of a single-file
// application), reads and validates its descriptor, and fills in `out`. If `version` is NULL, the
// version is taken from the path of libcoreclr.so. Takes the dynamic loader's lock. On failure
// returns false, with a sentence for the user in `err`: the runtime is not supported yet, is
// unknown, or has an unexpected descriptor.
bool cs_contract_read(struct cs_layout *out, const struct cs_runtime_version *version,
                      struct cs_error *err);

// Where a runtime is, in this process or another one.
struct cs_contract_place {
  uint64_t descriptor;  // its address, 0: the runtime has none
  uint64_t begin, end;  // of the runtime's mapping, [begin, end)
  struct cs_runtime_version version;
  uint64_t debug_table;  // the address of its table for its debugger, 0: it has none
};
// Like cs_contract_read, for a runtime whose place is known, over any source of memory that fails
// instead of faulting.
bool cs_contract_read_at(struct cs_layout *out, const struct cs_mem *mem,
                         const struct cs_contract_place *place, struct cs_error *err);

// Fills in the fields that no descriptor has, as measured on this version (layout->runtime_major),
// or CS_NO_FIELD.
void cs_contract_add_measured(struct cs_layout *layout);

// Looks for the hijack fields of a Thread (see cs_contract_check_thread), and fills in
// layout->hijack if this thread shows them. `mem` as above.
void cs_contract_find_hijack(struct cs_layout *layout, const struct cs_mem *mem, uint64_t thread);

enum cs_check {
  CS_CHECK_PASSED,
  CS_CHECK_NOT_YET,  // there was nothing to compare with yet
  CS_CHECK_FAILED,   // `err` says what did not match; nothing may be walked
};

// Compares the Thread offsets with what the profiling API says: the OS id must be equal, and the
// chain of explicit frames empty or at a plausible address. Also finds the hijack fields, which no
// descriptor contains: in a thread that has never been hijacked both have the runtime's filler,
// 0xCC..., and no other pair of words in the object has it (docs/runtime-offsets.md). Until a
// thread has shown them, layout->hijack is 0, and a hijacked frame ends a walk.
enum cs_check cs_contract_check_thread(struct cs_layout *layout, ThreadID thread, DWORD os_tid,
                                       struct cs_error *err);

struct cs_code_check {
  uint32_t methods;    // jitted methods whose code header matched
  uint32_t unmatched;  // methods without a code header before them
  uint32_t images;     // ReadyToRun modules whose tables matched
};

// Code that the runtime never frees (codemap/permanent.h finds it).
struct cs_permanent {
  uint32_t starts, modules;
  uint64_t start[64];    // of jitted methods
  uint64_t module[256];  // ModuleIDs of ReadyToRun images
  uint64_t image[256];   // an address in each of these images
};

// Compares code headers and ReadyToRun tables with what the profiling API says about the code in
// `code`. The API must not be asked about other code, which may be freed meanwhile. Calls
// EnumModules, so only a native thread or a callback may call it. All reads are guarded, so wrong
// offsets make it fail instead of fault.
enum cs_check cs_contract_check_code(const struct cs_layout *layout, ICorProfilerInfo15 *info,
                                     const struct cs_permanent *code, struct cs_code_check *report,
                                     struct cs_error *err);

// The same for a single method. `code_start` must be the address of a jitted version of it, as
// JITCompilationFinished and DynamicMethodJITCompilationFinished report it, not of ReadyToRun code.
bool cs_contract_check_method(const struct cs_layout *layout, FunctionID function,
                              UINT_PTR code_start, struct cs_error *err);
