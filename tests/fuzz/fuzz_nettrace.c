// SPDX-License-Identifier: MIT
// The stream of a runtime's counters, in chunks of a size that the first byte gives.
#include "fuzz.h"
#include "process/nettrace.h"

static void found(void *context, const uint8_t *payload, size_t size) {
  struct cs_bytes s = {payload, size};
  char text[64];
  (void)context;
  while (cs_nettrace_text(&s, text, sizeof text)) {
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct cs_nettrace reader = {
      .provider = "System.Runtime", .event = "EventCounters", .found = found};
  struct cs_error err;
  if (size == 0) return 0;
  size_t chunk = data[0] + 1u;
  for (size_t at = 1; at < size; at += chunk)
    if (!cs_nettrace_feed(&reader, data + at, size - at < chunk ? size - at : chunk, &err)) break;
  cs_nettrace_free(&reader);
  return 0;
}
