// SPDX-License-Identifier: MIT
// A method's map from native to IL offsets, as .NET 10 packs it. Invariant: a map is used only if
// it fills its bytes, and its ranges are those that the runtime derives from it for debuggers and
// profilers: an entry for a call site begins no range, and an entry that repeats the IL offset
// before it continues that range. One thread. Signal-safe: no.
#include "base/nibbles.h"
#include "remote/il.h"

enum { SOURCE_BITS = 2, SOURCE_CALL = 1 };

struct packed {
  const uint8_t *bytes;
  uint64_t next;  // bit
  uint32_t count, delta_bits, il_bits;
};

static uint32_t bits(struct packed *p, uint32_t count) {
  uint64_t value = 0;
  for (uint32_t i = 0; i < count; i++, p->next++)
    value |= (uint64_t)(p->bytes[p->next / 8] >> p->next % 8 & 1u) << i;
  return (uint32_t)value;
}

// Returns false if the entries do not fill their bytes; crossgen may add zeros.
static bool open_packed(struct packed *p, const uint8_t *bounds, size_t size) {
  struct cs_nibbles n = {bounds, size, 0};
  uint32_t delta, il;
  if (!cs_nibbles_u32(&n, &p->count) || !cs_nibbles_u32(&n, &delta) || !cs_nibbles_u32(&n, &il) ||
      p->count == 0 || delta >= 32 || il >= 32)
    return false;
  size_t head = (n.next + 1) / 2;
  p->bytes = bounds + head;
  p->next = 0;
  p->delta_bits = delta + 1;
  p->il_bits = il + 1;
  uint64_t needed = (uint64_t)p->count * (SOURCE_BITS + p->delta_bits + p->il_bits);
  if (needed > (size - head) * UINT64_C(8)) return false;
  for (size_t i = head + (size_t)((needed + 7) / 8); i < size; i++)
    if (bounds[i] != 0) return false;
  return true;
}

struct entry {
  uint32_t native, il;
  bool call;
};

// The JIT repeats an IL offset if no code of its own comes between; a call site may.
static bool repeats(const struct entry *e, const struct entry *last, const struct entry *before) {
  if (e->call || last == NULL) return false;
  if (last->call) last = before;
  return last != NULL && !last->call && last->il == e->il;
}

bool cs_il_of_bounds(const uint8_t *bounds, size_t size, uint32_t offset, uint32_t *il) {
  struct packed p;
  struct entry e = {0, 0, false}, last = e, before = e;
  uint32_t kept = 0;
  bool found = false;
  if (!open_packed(&p, bounds, size)) return false;
  for (uint32_t i = 0; i < p.count; i++) {
    e.call = (bits(&p, SOURCE_BITS) & SOURCE_CALL) != 0;
    uint32_t delta = bits(&p, p.delta_bits);
    if (delta > UINT32_MAX - e.native) return false;
    e.native += delta;
    e.il = bits(&p, p.il_bits) + CS_IL_EPILOG;  // the least possible value
    if (repeats(&e, kept > 0 ? &last : NULL, kept > 1 ? &before : NULL)) continue;
    before = last;
    last = e;
    kept++;
    if (e.call || e.native > offset) continue;
    *il = e.il;
    found = true;
  }
  // If call sites end the map, the range before them ends where the last of them begins.
  return found && !(last.call && offset >= last.native);
}
