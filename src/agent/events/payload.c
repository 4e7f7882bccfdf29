// SPDX-License-Identifier: MIT
// Texts in the payload of an event. Invariant: nothing is read beyond its end. Any thread of the
// runtime's. Signal-safe: no.
#include "events/payload.h"

#include "state/event_names.h"

// The length of a text in bytes, without the NUL that ends it. Returns false if nothing ends it.
static bool length_of_text(const struct cs_bytes *p, size_t *len) {
  for (*len = 0; *len + 2 <= p->left; *len += 2)
    if (p->at[*len] == 0 && p->at[*len + 1] == 0) return true;
  return false;
}

bool cs_payload_pass_text(struct cs_bytes *p) {
  size_t len;
  return length_of_text(p, &len) && cs_take(p, NULL, len + 2);
}

bool cs_payload_take_name(struct cs_bytes *p, uint64_t class, uint32_t *name) {
  size_t len;
  *name = cs_event_name_again(p->at, p->left, class, &len);
  if (*name != 0) return cs_take(p, NULL, len + 2);
  if (!length_of_text(p, &len)) return false;
  *name = len > 0 ? cs_event_name_of_utf16(p->at, len, class) : cs_event_name_of("?");
  return cs_take(p, NULL, len + 2) && *name != 0;
}
