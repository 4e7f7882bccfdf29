// SPDX-License-Identifier: MIT
// Event masks. The guest sets and reads its own mask; the runtime's also has the library's events.
// Invariant: if the runtime refuses a mask, the guest gets the runtime's HRESULT, and no mask
// changes. Threads: the guest's, several at a time. Not for handlers.
#include "base/base.h"
#include "dropin/guest.h"

#define OURS_LOW \
  (COR_PRF_ENABLE_STACK_SNAPSHOT | COR_PRF_MONITOR_THREADS | COR_PRF_MONITOR_MODULE_LOADS)

// The runtime calls DynamicMethodUnloaded of ICorProfilerCallback9 without checking that the
// profiler has it. A proxy has it.
static DWORD ours_high(const struct cs_guest *guest) {
  bool has_it = guest->version >= 9 || guest->proxy != NULL;
  return has_it ? COR_PRF_HIGH_MONITOR_DYNAMIC_FUNCTION_UNLOADS : 0;
}

static HRESULT set(ICorProfilerInfo15 *self, DWORD low, DWORD high) {
  ICorProfilerInfo15 *theirs = THEIRS(self, ICorProfilerInfo15, SetEventMask2);
  struct cs_guest *guest = cs_wrapped_of(self)->guest;
  bool ours = cs_load_acquire(&guest->walks);
  // The proxy that the runtime sees has these callbacks; the guest has not.
  if ((high & COR_PRF_HIGH_IN_MEMORY_SYMBOLS_UPDATED) != 0 && guest->proxy != NULL &&
      guest->version < 7)
    return CORPROF_E_CALLBACK7_REQUIRED;
  HRESULT hr = theirs->lpVtbl->SetEventMask2(theirs, low | (ours ? OURS_LOW : 0),
                                             high | (ours ? ours_high(guest) : 0));
  if (FAILED(hr)) return hr;
  cs_store_release(&guest->low_mask, low);
  cs_store_release(&guest->high_mask, high);
  return hr;
}

static HRESULT set_event_mask(ICorProfilerInfo15 *self, DWORD low) {
  return set(self, low, 0);  // as the runtime's own does
}

static HRESULT set_event_mask2(ICorProfilerInfo15 *self, DWORD low, DWORD high) {
  return set(self, low, high);
}

static DWORD shown(DWORD real, DWORD asked, DWORD ours) {
  return (real & ~ours) | (asked & ours);
}

static HRESULT get_event_mask(ICorProfilerInfo15 *self, DWORD *low) {
  ICorProfilerInfo15 *theirs = THEIRS(self, ICorProfilerInfo15, GetEventMask);
  struct cs_guest *guest = cs_wrapped_of(self)->guest;
  HRESULT hr = theirs->lpVtbl->GetEventMask(theirs, low);
  if (SUCCEEDED(hr) && guest->walks) *low = shown(*low, guest->low_mask, OURS_LOW);
  return hr;
}

static HRESULT get_event_mask2(ICorProfilerInfo15 *self, DWORD *low, DWORD *high) {
  ICorProfilerInfo15 *theirs = THEIRS(self, ICorProfilerInfo15, GetEventMask2);
  struct cs_guest *guest = cs_wrapped_of(self)->guest;
  HRESULT hr = theirs->lpVtbl->GetEventMask2(theirs, low, high);
  if (FAILED(hr) || !guest->walks) return hr;
  *low = shown(*low, guest->low_mask, OURS_LOW);
  *high = shown(*high, guest->high_mask, ours_high(guest));
  return hr;
}

bool cs_mask_settle(struct cs_guest *guest, struct cs_error *err) {
  ICorProfilerInfo15 *info = guest->info;
  DWORD low, high, ours = ours_high(guest);
  if (!guest->walks) return true;
  HRESULT hr = info->lpVtbl->GetEventMask2(info, &low, &high);
  if (SUCCEEDED(hr) && ((low & OURS_LOW) != OURS_LOW || (high & ours) != ours))
    hr = info->lpVtbl->SetEventMask2(info, low | OURS_LOW, high | ours);
  return SUCCEEDED(hr) ||
         cs_error_set(err,
                      "the runtime refuses the events of threads and of unloaded code (0x%08x)",
                      (unsigned)hr);
}

void cs_mask_take_over(ICorProfilerInfo15Vtbl *vtbl) {
  vtbl->SetEventMask = set_event_mask;
  vtbl->SetEventMask2 = set_event_mask2;
  vtbl->GetEventMask = get_event_mask;
  vtbl->GetEventMask2 = get_event_mask2;
}
