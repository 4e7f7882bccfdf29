// SPDX-License-Identifier: MIT
// A label: the distributed trace that a thread was working for, its span, and the endpoint of the
// request. The bytes of the first two are in the order of W3C trace context. A label of all zeros
// means none. Plain data. Signal-safe: yes.
#pragma once

#include "base/base.h"

struct cs_label {
  _Alignas(8) uint8_t trace[16];
  uint8_t span[8];
  // Lower half: the endpoint, 0 if it is unknown; in a slot a number of state/event_names.h, on
  // the wire and in files the id of a function of the kind CS_WIRE_FN_TYPE. Upper half: the number
  // of the request; 0: unknown.
  uint64_t endpoint;
};
_Static_assert(sizeof(struct cs_label) == 32, "it is on the wire and in files");

CS_ISLAND static inline uint32_t cs_label_endpoint(const struct cs_label *label) {
  return (uint32_t)label->endpoint;
}

CS_ISLAND static inline uint32_t cs_label_request(const struct cs_label *label) {
  return (uint32_t)(label->endpoint >> 32);
}
