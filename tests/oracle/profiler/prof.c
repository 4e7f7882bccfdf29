// SPDX-License-Identifier: MIT
// The loading protocol and the thread list of the proofs' profilers. At first every slot of the
// callback table returns S_OK; a proof overrides the slots that it needs. Threads: Initialize runs
// on the main thread before any other callback; the thread list has a lock. Signal-safe: no.
#include "prof.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

ICorProfilerInfo15 *oracle_info;
void (*oracle_on_thread_assigned)(ThreadID id, uint32_t tid);
void (*oracle_on_thread_destroyed)(ThreadID id);

static uint32_t failures;

void oracle_fail(const char *format, ...) {
  // Only the first failures print their message in full; further messages would add nothing.
  if (__atomic_fetch_add(&failures, 1, __ATOMIC_RELAXED) >= 40) return;
  char text[2048];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof(text), format, args);
  va_end(args);
  fprintf(stdout, "FAIL: %s\n", text);
  fflush(stdout);
}

uint32_t oracle_failures(void) {
  return __atomic_load_n(&failures, __ATOMIC_RELAXED);
}

void oracle_excuse(const char *what, uint64_t times, uint64_t of, uint64_t per_million,
                   uint64_t besides) {
  uint64_t most = of * per_million / 1000000 + besides;
  printf("  %10lu %s, at most %lu\n", (unsigned long)times, what, (unsigned long)most);
  ORACLE_CHECK(times <= most, "excused more often than is known to be needed: %s", what);
}

void oracle_faults(const char *what, uint64_t put, uint64_t found) {
  printf("  %10lu faults put in: %s; %lu found\n", (unsigned long)put, what, (unsigned long)found);
  ORACLE_CHECK(put > 10 && found == put, "faults are overlooked: %s", what);
}

int64_t oracle_env(const char *name, int64_t otherwise) {
  const char *text = getenv(name);
  return text != NULL && *text != '\0' ? strtoll(text, NULL, 0) : otherwise;
}

uint64_t oracle_now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint32_t oracle_gettid(void) {
  return (uint32_t)syscall(SYS_gettid);
}

// ---- Threads ----
enum { MAX_THREADS = 4096 };
static pthread_mutex_t threads_lock = PTHREAD_MUTEX_INITIALIZER;
static struct oracle_thread threads[MAX_THREADS];
static uint32_t thread_count;

uint32_t oracle_threads(struct oracle_thread *out, uint32_t capacity) {
  pthread_mutex_lock(&threads_lock);
  uint32_t n = thread_count < capacity ? thread_count : capacity;
  memcpy(out, threads, n * sizeof(*out));
  pthread_mutex_unlock(&threads_lock);
  return n;
}

static HRESULT thread_assigned(ICorProfilerCallback11 *self, ThreadID id, DWORD tid) {
  (void)self;
  if (oracle_on_thread_assigned != NULL) oracle_on_thread_assigned(id, tid);
  pthread_mutex_lock(&threads_lock);
  if (thread_count < MAX_THREADS) threads[thread_count++] = (struct oracle_thread){id, tid};
  pthread_mutex_unlock(&threads_lock);
  return S_OK;
}

static HRESULT thread_destroyed(ICorProfilerCallback11 *self, ThreadID id) {
  (void)self;
  pthread_mutex_lock(&threads_lock);
  for (uint32_t i = 0; i < thread_count; i++) {
    if (threads[i].id == id) threads[i--] = threads[--thread_count];
  }
  pthread_mutex_unlock(&threads_lock);
  if (oracle_on_thread_destroyed != NULL) oracle_on_thread_destroyed(id);
  return S_OK;
}

// ---- COM ----
static HRESULT answer_ok(void) {
  return S_OK;
}
static ULONG count_one(ICorProfilerCallback11 *self) {
  (void)self;
  return 1;
}
static HRESULT query(ICorProfilerCallback11 *self, REFIID iid, void **out) {
  (void)iid;  // one table serves every ICorProfilerCallback
  *out = self;
  return S_OK;
}

static HRESULT initialize(ICorProfilerCallback11 *self, IUnknown *unknown) {
  void *info = NULL;
  HRESULT hr = unknown->lpVtbl->QueryInterface(unknown, &IID_ICorProfilerInfo15, &info);
  if (FAILED(hr))  // .NET 8; nothing here uses what ICorProfilerInfo15 adds
    hr = unknown->lpVtbl->QueryInterface(unknown, &IID_ICorProfilerInfo14, &info);
  if (FAILED(hr)) return hr;
  oracle_info = info;
  DWORD high = 0;
  DWORD low = oracle_setup((ICorProfilerCallback11Vtbl *)self->lpVtbl, &high);
  hr = oracle_info->lpVtbl->SetEventMask2(oracle_info, low, high);
  if (FAILED(hr)) oracle_fail("SetEventMask2(%#x, %#x): %#x", low, high, (unsigned)hr);
  return hr;
}

static ICorProfilerCallback11Vtbl callback_vtbl;
static ICorProfilerCallback11 callback = {&callback_vtbl};

static HRESULT factory_query(IClassFactory *self, REFIID iid, void **out) {
  (void)iid;
  *out = self;
  return S_OK;
}
static ULONG factory_count(IClassFactory *self) {
  (void)self;
  return 1;
}
static HRESULT factory_create(IClassFactory *self, IUnknown *outer, REFIID iid, void **out) {
  (void)self, (void)outer, (void)iid;
  void **slots = (void **)&callback_vtbl;
  for (size_t i = 0; i < sizeof(callback_vtbl) / sizeof(void *); i++) slots[i] = (void *)answer_ok;
  callback_vtbl.QueryInterface = query;
  callback_vtbl.AddRef = count_one;
  callback_vtbl.Release = count_one;
  callback_vtbl.Initialize = initialize;
  callback_vtbl.ThreadAssignedToOSThread = thread_assigned;
  callback_vtbl.ThreadDestroyed = thread_destroyed;
  *out = &callback;
  return S_OK;
}
static HRESULT factory_lock(IClassFactory *self, BOOL lock) {
  (void)self, (void)lock;
  return S_OK;
}

ORACLE_EXPORT HRESULT DllGetClassObject(REFCLSID clsid, REFIID iid, void **out);
HRESULT DllGetClassObject(REFCLSID clsid, REFIID iid, void **out) {
  static const IClassFactoryVtbl vtbl = {factory_query, factory_count, factory_count,
                                         factory_create, factory_lock};
  static IClassFactory factory = {&vtbl};
  (void)clsid, (void)iid;
  *out = &factory;
  return S_OK;
}

// ---- Called by the program under test ----
ORACLE_EXPORT int oracle_finish(void);
// Runs on a native thread: a managed thread may not read metadata outside of a callback.
static void *report(void *code) {
  *(int *)code = oracle_report();
  return NULL;
}
int oracle_finish(void) {
  int code = 1;
  pthread_t thread;
  if (pthread_create(&thread, NULL, report, &code) != 0 || pthread_join(thread, NULL) != 0)
    oracle_fail("the report's thread could not be made");
  if (code == 0 && oracle_failures() != 0) code = 1;
  printf("%s: %s (%u failed expectations)\n", oracle_name,
         code == 0    ? "pass"
         : code == 77 ? "skip"
                      : "FAIL",
         oracle_failures());
  fflush(stdout);
  return code;
}
