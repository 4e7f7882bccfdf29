// SPDX-License-Identifier: MIT
// A small CLR profiler on which the proofs are built: prof.c implements the loading protocol, and a
// proof (sync.c, known.c, ...) implements the callbacks that it needs. One shared object per proof;
// the program under test calls into the same object by P/Invoke (oracle_finish and what the proof
// exports).
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "clrsnap/corprof.h"

#define ORACLE_EXPORT __attribute__((visibility("default")))

// What a proof provides.
extern const char *const oracle_name;
// Called in Initialize, with `oracle_info` set. Overrides slots of the callback table and returns
// the event mask. `*high` is 0 at entry.
DWORD oracle_setup(ICorProfilerCallback11Vtbl *vtbl, DWORD *high);
// Called when the program is done, on its thread: prints the report, and returns the exit code (0
// pass, 1 fail, 77 skip).
int oracle_report(void);

extern ICorProfilerInfo15 *oracle_info;

// Reports and counts a failed expectation; oracle_finish returns 1 if there was any.
void oracle_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
uint32_t oracle_failures(void);
#define ORACLE_CHECK(condition, ...)            \
  do {                                          \
    if (!(condition)) oracle_fail(__VA_ARGS__); \
  } while (0)

// An excuse of a comparison: prints how often it was used, and fails if it was used more than
// `per_million` times per million of `of`, plus `besides`. The bounds are what was seen and a
// margin.
void oracle_excuse(const char *what, uint64_t times, uint64_t of, uint64_t per_million,
                   uint64_t besides);
// A fault that was put into what is compared: every one has to be found, and there must be some.
void oracle_faults(const char *what, uint64_t put, uint64_t found);

int64_t oracle_env(const char *name, int64_t otherwise);
uint64_t oracle_now_ns(void);
uint32_t oracle_gettid(void);

// Returns "Namespace.Type.Method" for a FunctionID, without arguments ("Proofs.Known.Spin"), or
// "(dynamic) name" for a dynamic method. The string is cached and lives as long as the process.
// Must not be called while a thread is held.
const char *oracle_function_name(FunctionID id);
// Whether the function is a P/Invoke; the code that runs under its ID is a stub.
bool oracle_function_is_pinvoke(FunctionID id);
// Whether the function's module is the program under test.
bool oracle_function_is_ours(FunctionID id);

// All managed threads that are alive, according to the runtime's callbacks (kept by prof.c if the
// mask has COR_PRF_MONITOR_THREADS). The hooks below run after prof.c's own bookkeeping.
struct oracle_thread {
  ThreadID id;
  uint32_t tid;
};
uint32_t oracle_threads(struct oracle_thread *out, uint32_t capacity);
// Set by code that wants to be notified of threads as well (ours.c).
extern void (*oracle_on_thread_assigned)(ThreadID id, uint32_t tid);
extern void (*oracle_on_thread_destroyed)(ThreadID id);
