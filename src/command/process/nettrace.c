// SPDX-License-Identifier: MIT
// The nettrace stream, version 4: a sequence of objects. Some of them are blocks of events, whose
// headers contain only what has changed since the one before. Invariant: every size is checked
// against the bytes that are there, and what is not needed is skipped by its size. One thread.
// Signal-safe: no.
#include "process/nettrace.h"
#include "base/base.h"
#include "base/utf16.h"

#include <stdlib.h>
#include <string.h>

#define MAX_BUFFER (64u << 20)  // the runtime's blocks have 100 KiB

static const char head[] = "Nettrace\x14\0\0\0!FastSerialization.1";
enum { HEAD_BYTES = 32 };
enum { TAG_NULL = 1, TAG_BEGIN = 5, TAG_END = 6 };
enum { TRACE_BYTES = 48 };

bool cs_nettrace_text(struct cs_bytes *s, char *out, size_t cap) {
  uint16_t wide[128], unit;
  size_t units = 0;
  for (;;) {
    if (!cs_take(s, &unit, sizeof unit)) return false;
    if (unit == 0) break;
    if (units < CS_COUNT(wide)) wide[units++] = unit;
  }
  (void)cs_utf16_to_utf8(out, cap, wide, units, NULL);
  return true;
}

// 7 bits per byte, the lowest first.
static bool take_var(struct cs_bytes *s, uint64_t *out) {
  uint8_t byte = 0x80;
  *out = 0;
  for (unsigned shift = 0; (byte & 0x80) != 0; shift += 7) {
    if (shift >= 64 || !cs_take(s, &byte, 1)) return false;
    *out |= (uint64_t)(byte & 0x7F) << shift;
  }
  return true;
}

// ---- Events ----

static bool is_wanted(const struct cs_nettrace *r, uint64_t kind) {
  for (unsigned i = 0; i < r->kind_count; i++)
    if (r->kinds[i] == kind) return true;
  return false;
}

// The definition of a kind of event: id, provider, number, name, and fields that are not needed.
static void take_metadata(struct cs_nettrace *r, struct cs_bytes payload) {
  uint32_t id, number;
  char provider[128], event[128];
  if (!cs_take(&payload, &id, sizeof id) ||
      !cs_nettrace_text(&payload, provider, sizeof provider) ||
      !cs_take(&payload, &number, sizeof number) ||
      !cs_nettrace_text(&payload, event, sizeof event))
    return;
  if (strcmp(provider, r->provider) != 0 || strcmp(event, r->event) != 0) return;
  if (!is_wanted(r, id) && r->kind_count < CS_NETTRACE_KINDS) r->kinds[r->kind_count++] = id;
}

enum { HAS_KIND = 1, HAS_SEQUENCE = 2, HAS_THREAD = 4, HAS_STACK = 8 };
enum { HAS_ACTIVITY = 16, HAS_RELATED = 32, HAS_SIZE = 128 };

// A compressed header. *kind and *size keep their values if it does not contain them.
static bool take_head(struct cs_bytes *s, uint64_t *kind, uint64_t *size) {
  uint8_t flags;
  uint64_t skipped;
  bool good = cs_take(s, &flags, 1);
  if (good && (flags & HAS_KIND) != 0) good = take_var(s, kind);
  if (good && (flags & HAS_SEQUENCE) != 0)
    good = take_var(s, &skipped) && take_var(s, &skipped) && take_var(s, &skipped);
  if (good && (flags & HAS_THREAD) != 0) good = take_var(s, &skipped);
  if (good && (flags & HAS_STACK) != 0) good = take_var(s, &skipped);
  good = good && take_var(s, &skipped);  // the time since the event before
  if (good && (flags & HAS_ACTIVITY) != 0) good = cs_take(s, NULL, 16);
  if (good && (flags & HAS_RELATED) != 0) good = cs_take(s, NULL, 16);
  if (good && (flags & HAS_SIZE) != 0) good = take_var(s, size);
  return good && *size <= s->left;
}

static bool take_events(struct cs_nettrace *r, struct cs_bytes s, bool metadata) {
  uint16_t head_bytes, flags;
  uint64_t kind = 0, size = 0;
  if (!cs_take(&s, &head_bytes, 2) || !cs_take(&s, &flags, 2) || head_bytes < 4 ||
      (flags & 1) == 0 || !cs_take(&s, NULL, head_bytes - 4u))
    return false;
  while (s.left > 0) {
    if (!take_head(&s, &kind, &size)) return false;
    struct cs_bytes payload = {s.at, (size_t)size};
    (void)cs_take(&s, NULL, (size_t)size);
    if (metadata)
      take_metadata(r, payload);
    else if (is_wanted(r, kind))
      r->found(r->context, payload.at, (size_t)size);
  }
  return true;
}

// ---- Objects ----

enum progress { MORE_NEEDED, READ, BROKEN };

// The part of an object after its type. All of it, its end tag included, must have arrived before
// any of it is used.
static enum progress take_content(struct cs_nettrace *r, const char *name, struct cs_bytes *s) {
  uint32_t size = TRACE_BYTES;
  uint8_t end;
  bool block = strcmp(name, "Trace") != 0;
  if (block) {
    if (!cs_take(s, &size, sizeof size)) return MORE_NEEDED;
    if (size > MAX_BUFFER / 2) return BROKEN;
    // Blocks begin at a multiple of 4 in the stream.
    uint64_t at = r->offset + (uint64_t)(s->at - r->bytes);
    if (!cs_take(s, NULL, (size_t)(-at & 3))) return MORE_NEEDED;
  }
  struct cs_bytes content = {s->at, size};
  if (!cs_take(s, NULL, size) || !cs_take(s, &end, 1)) return MORE_NEEDED;
  if (end != TAG_END) return BROKEN;
  bool metadata = strcmp(name, "MetadataBlock") == 0;
  if (!metadata && strcmp(name, "EventBlock") != 0) return READ;
  return take_events(r, content, metadata) ? READ : BROKEN;
}

static enum progress take_object(struct cs_nettrace *r, struct cs_bytes *s) {
  static const uint8_t begin[] = {TAG_BEGIN, TAG_BEGIN, TAG_NULL};
  uint8_t tags[3], end;
  uint32_t numbers[3];  // version, least reader's version, length of the name
  char name[32] = "";
  struct cs_bytes ahead = *s;
  if (*s->at == TAG_NULL) {
    (void)cs_take(s, NULL, 1);
    r->ended = true;
    return READ;
  }
  if (!cs_take(&ahead, tags, sizeof tags) || !cs_take(&ahead, numbers, sizeof numbers))
    return MORE_NEEDED;
  if (memcmp(tags, begin, sizeof begin) != 0 || numbers[2] >= sizeof name) return BROKEN;
  if (!cs_take(&ahead, name, numbers[2]) || !cs_take(&ahead, &end, 1)) return MORE_NEEDED;
  if (end != TAG_END) return BROKEN;
  enum progress progress = take_content(r, name, &ahead);
  if (progress == READ) *s = ahead;
  return progress;
}

static enum progress take_next(struct cs_nettrace *r, struct cs_bytes *s) {
  if (r->begun) return take_object(r, s);
  if (s->left < HEAD_BYTES) return MORE_NEEDED;
  if (memcmp(s->at, head, HEAD_BYTES) != 0) return BROKEN;
  r->begun = cs_take(s, NULL, HEAD_BYTES);
  return READ;
}

static bool append(struct cs_nettrace *r, const void *data, size_t size) {
  if (r->used + size > r->capacity) {
    size_t want = 2 * (r->used + size);
    uint8_t *more = want <= MAX_BUFFER ? realloc(r->bytes, want) : NULL;
    if (more == NULL) return false;
    r->bytes = more;
    r->capacity = want;
  }
  memcpy(r->bytes + r->used, data, size);
  r->used += size;
  return true;
}

bool cs_nettrace_feed(struct cs_nettrace *reader, const void *data, size_t size,
                      struct cs_error *err) {
  enum progress progress = READ;
  if (!append(reader, data, size))
    return cs_error_set(err, "a block of the event stream does not end");
  struct cs_bytes s = {reader->bytes, reader->used};
  while (progress == READ && !reader->ended && s.left > 0) progress = take_next(reader, &s);
  size_t done = (size_t)(s.at - reader->bytes);
  if (done > 0) memmove(reader->bytes, reader->bytes + done, reader->used - done);
  reader->used -= done;
  reader->offset += done;
  return progress != BROKEN || cs_error_set(err, "the event stream is not nettrace version 4");
}

void cs_nettrace_free(struct cs_nettrace *reader) {
  free(reader->bytes);
  reader->bytes = NULL;
}
