// SPDX-License-Identifier: MIT
// deliver: from a capture to DoStackSnapshot callbacks. Async-signal-safe with a NULL `err`.
#pragma once

#include "base/error.h"
#include "clrsnap/clrsnap.h"
#include "signal/request.h"

struct cs_delivery {
  StackSnapshotCallback *callback;
  void *data;
  ULONG32 info_flags;
  uint32_t context_flags;         // ContextFlags of the first contexts of a walk without a seed
  uint32_t flags;                 // enum clrsnap_flag
  uint32_t seed_flags;            // ContextFlags of the seed
  const struct cs_request *held;  // not NULL: its target is held until the last callback
};

// Calls the callback for each frame of a capture whose functions have been resolved. `err` may be
// NULL.
HRESULT cs_deliver(const struct cs_capture *capture, const struct cs_delivery *to,
                   struct cs_error *err);
// The same for the frames that were kept of an earlier capture that succeeded.
HRESULT cs_deliver_reported(const struct cs_reported *reported, uint32_t count,
                            const struct cs_delivery *to, struct cs_error *err);
