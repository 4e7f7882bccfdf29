// SPDX-License-Identifier: MIT
// The ring as a producer may leave it: the first 16 bytes are its head and the consumer's tail, the
// rest its content.
#include <string.h>

#include "fuzz.h"
#include "naming/resolve.h"
#include "wire/consumer.h"

enum { RING = 4096 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static struct cs_wire_header header;
  static _Alignas(8) uint8_t ring[RING], record[RING];
  static struct cs_recording rec;
  struct cs_consumer c = {
      .header = &header, .ring = ring, .capacity = RING, .record = record, .fd = -1, .shown = -1};
  const struct cs_wire_record *r;
  struct cs_profile profile;
  if (size < 16) return 0;
  memcpy(&header.head, data, 8);
  memcpy(&c.tail, data + 8, 8);
  c.tail &= ~7ull;
  header.head = c.tail + header.head % (RING + 64);
  size_t used = size - 16 < RING ? size - 16 : RING;
  memset(ring, 0, sizeof ring);
  memcpy(ring, data + 16, used);
  cs_recording_init(&rec);
  while ((r = cs_consumer_next(&c)) != NULL) cs_recording_add(&rec, r);
  for (unsigned mode = 1; mode < CS_WIRE_MODES; mode++) {
    const struct cs_resolve_opts opts = {.native = true};
    (void)cs_resolve(&rec, CS_WIRE_MODE_BIT(mode), &opts, &profile);
    cs_profile_free(&profile);
  }
  cs_recording_free(&rec);
  return 0;
}
