// SPDX-License-Identifier: MIT
// A reader of the nettrace stream, which a runtime sends for an EventPipe session. It finds the
// events of one provider and name.
// https://github.com/microsoft/perfview/blob/main/src/TraceEvent/EventPipe/NetTraceFormat_v5.md
#pragma once

#include "base/base.h"
#include "base/bytes.h"
#include "base/error.h"

#define CS_NETTRACE_KINDS 16

struct cs_nettrace {
  const char *provider, *event;  // the events to find
  // Called for each such event with its payload, which is valid during the call.
  void (*found)(void *context, const uint8_t *payload, size_t size);
  void *context;

  uint8_t *bytes;  // that have arrived and are not parsed yet
  size_t used, capacity;
  uint64_t offset;  // of bytes[0] in the stream
  bool begun, ended;
  uint32_t kinds[CS_NETTRACE_KINDS];  // metadata ids of the events to find
  unsigned kind_count;
};

// Parses the next part of the stream. Returns false on failure; *err says what is wrong with it,
// and the reader must not be fed again.
bool cs_nettrace_feed(struct cs_nettrace *reader, const void *data, size_t size,
                      struct cs_error *err);
void cs_nettrace_free(struct cs_nettrace *reader);

// Reads a UTF-16 text with its NUL from the front of a payload, as UTF-8; what does not fit is cut
// off. Returns false if it has no end.
bool cs_nettrace_text(struct cs_bytes *bytes, char *out, size_t cap);
