// SPDX-License-Identifier: MIT
// A small, complete profiler: it prints the stack of the program's first managed thread once a
// second, wherever that thread is at the moment. It shows everything that a profiler has to do to
// use clrsnap: start it with the ICorProfilerInfo, forward the runtime's notifications of threads
// and code, take snapshots, and stop it.
//
// Threads: the callbacks run on the application's threads. The stack is taken and printed on a
// thread of the profiler's own, which never runs managed code.
//
// STACKPRINTER_MS sets the milliseconds between two stacks; the default is 1,000.
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "clrsnap/clrsnap.h"

static ICorProfilerInfo8 *info;
static _Atomic ThreadID first_thread;
static pthread_t printer;
static pthread_mutex_t stop_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t stop_changed = PTHREAD_COND_INITIALIZER;
static bool stop, printing;

// ---- Names ----

static void to_ascii(const WCHAR *from, char *to, size_t size) {
  size_t i = 0;
  for (; i + 1 < size && from[i] != 0; i++) to[i] = from[i] < 128 ? (char)from[i] : '?';
  to[i] = '\0';
}

static void method_name(IMetaDataImport *import, mdToken method, char *name, size_t size) {
  WCHAR type_name[256] = {0}, member_name[256] = {0};
  char type_text[256], member_text[256];
  mdTypeDef type = 0;
  ULONG length;
  DWORD flags, impl;
  PCCOR_SIGNATURE signature;
  ULONG signature_size, rva;
  mdToken base;
  if (import->lpVtbl->GetMethodProps(import, method, &type, member_name, 256, &length, &flags,
                                     &signature, &signature_size, &rva, &impl) != S_OK ||
      import->lpVtbl->GetTypeDefProps(import, type, type_name, 256, &length, &flags, &base) != S_OK)
    return;
  to_ascii(type_name, type_text, sizeof type_text);
  to_ascii(member_name, member_text, sizeof member_text);
  (void)snprintf(name, size, "%s.%s", type_text, member_text);
}

static void function_name(FunctionID function, char *name, size_t size) {
  IMetaDataImport *import = NULL;
  mdToken method = 0;
  (void)snprintf(name, size, "function 0x%llx", (unsigned long long)function);
  if (info->lpVtbl->GetTokenAndMetaDataFromFunction(info, function, &IID_IMetaDataImport,
                                                    (void **)&import, &method) != S_OK)
    return;
  method_name(import, method, name, size);
  import->lpVtbl->Release(import);
}

// ---- The stack ----

// Called once per managed frame and once per run of unmanaged frames, after the thread has been let
// go.
static HRESULT print_frame(FunctionID function, UINT_PTR ip, COR_PRF_FRAME_INFO frame_info,
                           ULONG32 context_size, BYTE context[], void *data) {
  char name[600] = "[unmanaged code]";
  (void)frame_info, (void)context_size, (void)context, (void)data;
  if (function != 0) function_name(function, name, sizeof name);
  printf("  %016llx %s\n", (unsigned long long)ip, name);
  return S_OK;
}

static void print_stack(void) {
  ThreadID thread = atomic_load(&first_thread);
  if (thread == 0 || clrsnap_ready() != S_OK) return;  // too early: nothing has run yet
  printf("stack of thread 0x%llx:\n", (unsigned long long)thread);
  HRESULT hr = clrsnap_snapshot(thread, print_frame, COR_PRF_SNAPSHOT_DEFAULT, NULL, NULL, 0);
  if (hr != S_OK) printf("  0x%08x: %s\n", (unsigned)hr, clrsnap_last_error());
  (void)fflush(stdout);
}

static void *print_stacks(void *arg) {
  const char *setting = getenv("STACKPRINTER_MS");
  long ms = setting != NULL ? atol(setting) : 1000;
  struct timespec next;
  (void)arg;
  (void)pthread_mutex_lock(&stop_lock);
  while (!stop) {
    (void)clock_gettime(CLOCK_REALTIME, &next);
    next.tv_nsec += ms % 1000 * 1000000;
    next.tv_sec += ms / 1000 + next.tv_nsec / 1000000000;
    next.tv_nsec %= 1000000000;
    (void)pthread_cond_timedwait(&stop_changed, &stop_lock, &next);
    if (stop) break;
    (void)pthread_mutex_unlock(&stop_lock);  // no lock is held during a call into the CLR
    print_stack();
    (void)pthread_mutex_lock(&stop_lock);
  }
  (void)pthread_mutex_unlock(&stop_lock);
  return NULL;
}

// ---- The profiler ----

typedef ICorProfilerCallback11 Callback;

static HRESULT initialize(Callback *self, IUnknown *unknown) {
  (void)self;
  if (unknown->lpVtbl->QueryInterface(unknown, &IID_ICorProfilerInfo8, (void **)&info) != S_OK)
    return E_FAIL;
  HRESULT hr = info->lpVtbl->SetEventMask2(
      info, COR_PRF_MONITOR_THREADS | COR_PRF_MONITOR_MODULE_LOADS | COR_PRF_ENABLE_STACK_SNAPSHOT,
      COR_PRF_HIGH_MONITOR_DYNAMIC_FUNCTION_UNLOADS);
  if (hr == S_OK) hr = clrsnap_start(unknown, NULL);
  if (hr != S_OK) {
    (void)fprintf(stderr, "stackprinter: 0x%08x %s\n", (unsigned)hr, clrsnap_last_error());
    return hr;
  }
  printing = pthread_create(&printer, NULL, print_stacks, NULL) == 0;
  return S_OK;
}

static HRESULT shut_down(Callback *self) {
  (void)self;
  (void)pthread_mutex_lock(&stop_lock);
  stop = true;
  (void)pthread_cond_signal(&stop_changed);
  (void)pthread_mutex_unlock(&stop_lock);
  if (printing) (void)pthread_join(printer, NULL);
  clrsnap_stop();
  return S_OK;
}

static HRESULT thread_created(Callback *self, ThreadID thread) {
  (void)self;
  clrsnap_thread_created(thread);
  return S_OK;
}

static HRESULT thread_assigned(Callback *self, ThreadID thread, DWORD os_thread) {
  ThreadID none = 0;
  (void)self;
  clrsnap_thread_assigned(thread, os_thread);
  (void)atomic_compare_exchange_strong(&first_thread, &none, thread);
  return S_OK;
}

static HRESULT thread_destroyed(Callback *self, ThreadID thread) {
  (void)self;
  clrsnap_thread_destroyed(thread);
  return S_OK;
}

static HRESULT module_unload_started(Callback *self, ModuleID module) {
  (void)self;
  clrsnap_module_unload_started(module);
  return S_OK;
}

static HRESULT dynamic_method_unloaded(Callback *self, FunctionID function) {
  (void)self;
  clrsnap_dynamic_method_unloaded(function);
  return S_OK;
}

static HRESULT not_only_notified(Callback *self, BOOL *notification_only) {
  (void)self;
  *notification_only = 0;
  return S_OK;
}

// ---- COM ----

static HRESULT query_interface(Callback *self, REFIID iid, void **out) {
  (void)iid;  // one table serves every number of ICorProfilerCallback
  *out = self;
  return S_OK;
}
static ULONG keep(Callback *self) {
  (void)self;
  return 1;
}
static HRESULT ignore(void) {
  return S_OK;
}  // for the slots of events that are not requested

static ICorProfilerCallback11Vtbl vtbl;
static Callback profiler = {&vtbl};

static HRESULT create_instance(IClassFactory *self, IUnknown *outer, REFIID iid, void **out) {
  void (*slots[sizeof vtbl / sizeof(void *)])(void);
  (void)self, (void)outer, (void)iid;
  for (size_t i = 0; i < sizeof slots / sizeof slots[0]; i++) slots[i] = (void (*)(void))ignore;
  memcpy(&vtbl, slots, sizeof vtbl);
  vtbl.QueryInterface = query_interface;
  vtbl.AddRef = keep;
  vtbl.Release = keep;
  vtbl.Initialize = initialize;
  vtbl.Shutdown = shut_down;
  vtbl.ThreadCreated = thread_created;
  vtbl.ThreadAssignedToOSThread = thread_assigned;
  vtbl.ThreadDestroyed = thread_destroyed;
  vtbl.ModuleUnloadStarted = module_unload_started;
  vtbl.DynamicMethodUnloaded = dynamic_method_unloaded;
  vtbl.LoadAsNotificationOnly = not_only_notified;
  *out = &profiler;
  return S_OK;
}

static HRESULT factory_query(IClassFactory *self, REFIID iid, void **out) {
  (void)iid;
  *out = self;
  return S_OK;
}
static ULONG factory_keep(IClassFactory *self) {
  (void)self;
  return 1;
}
static HRESULT lock_server(IClassFactory *self, BOOL lock) {
  (void)self, (void)lock;
  return S_OK;
}

HRESULT DllGetClassObject(REFCLSID clsid, REFIID iid, void **out);

__attribute__((visibility("default"))) HRESULT DllGetClassObject(REFCLSID clsid, REFIID iid,
                                                                 void **out) {
  static const IClassFactoryVtbl factory_vtbl = {factory_query, factory_keep, factory_keep,
                                                 create_instance, lock_server};
  static IClassFactory factory = {&factory_vtbl};
  (void)clsid, (void)iid;
  *out = &factory;
  return S_OK;
}
