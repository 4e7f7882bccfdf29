// SPDX-License-Identifier: MIT
// A record of the wire, put together piece by piece. One thread.
#pragma once

#include <string.h>

#include "wire/wire.h"

static _Alignas(8) uint8_t record[1 << 20];
static size_t used;

static void put(const void *data, size_t len) {
  memcpy(record + used, data, len);
  used += len;
}

static void put_text(const char *text) {
  uint16_t len = (uint16_t)strlen(text);
  put(&len, sizeof len);
  put(text, len);
}

static void begin(void) {
  used = sizeof(struct cs_wire_record);
}

// Writes the record's head, whose size is then `used`.
static const struct cs_wire_record *complete(enum cs_wire_kind kind, uint16_t flags) {
  while (used % 8 != 0) record[used++] = 0;
  struct cs_wire_record head = {(uint32_t)used, (uint16_t)kind, flags};
  memcpy(record, &head, sizeof head);
  return (const void *)record;
}
