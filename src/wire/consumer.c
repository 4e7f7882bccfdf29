// SPDX-License-Identifier: MIT
// The consumer's end of the ring. Invariant: no decision is based on a byte of the shared memory
// that is read again afterwards, so a broken producer can spoil its records but not this process.
// `tail` only moves to a position that the producer published as `head`, or record by record below
// it. One thread. Signal-safe: no.
#include "wire/consumer.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

void cs_consumer_publish_cpu(struct cs_consumer *c) {
  cs_store_release(&c->header->command_cpu_ns, cs_clock_read_ns(CLOCK_PROCESS_CPUTIME_ID));
}

void cs_consumer_hide(struct cs_consumer *c) {
  if (c->shown >= 0) (void)close(c->shown);
  c->shown = -1;
}

void cs_consumer_destroy(struct cs_consumer *c) {
  cs_consumer_hide(c);
  if (c->header != NULL) {
    (void)munmap(c->header, CS_WIRE_HEADER_BYTES + c->capacity);
    (void)close(c->fd);
  }
  free(c->record);
  *c = (struct cs_consumer){.fd = -1, .shown = -1};
}

static void advance(struct cs_consumer *c, uint64_t to) {
  c->tail = to;
  cs_store_release(&c->header->tail, to);
}

// The framing is lost; only `head` is known to be the end of a record, so reading continues there.
static void skip_to_head(struct cs_consumer *c, uint64_t head) {
  c->broken_records++;
  c->broken_bytes += head - c->tail;
  advance(c, head);
}

const struct cs_wire_record *cs_consumer_next(struct cs_consumer *c) {
  // A producer that is faster than this loop could go on writing padding forever.
  for (uint64_t first = c->tail; c->tail - first <= c->capacity;) {
    uint64_t head = cs_load_acquire(&c->header->head);
    uint64_t waiting = head - c->tail;
    if (waiting == 0) return NULL;
    uint64_t at = c->tail & (c->capacity - 1);
    uint64_t room = c->capacity - at;  // up to the ring's end, since records do not wrap
    struct cs_wire_record r;
    if (waiting > c->capacity || waiting % 8 != 0) {
      skip_to_head(c, head & ~7ull);  // no agent publishes such a head; no record follows
      return NULL;
    }
    memcpy(&r, c->ring + at, sizeof r);
    if (r.size < sizeof r || r.size % 8 != 0 || r.size > waiting || r.size > room) {
      skip_to_head(c, head);
      continue;
    }
    memcpy(c->record, c->ring + at, r.size);
    memcpy(c->record, &r, sizeof r);  // the head that was checked, which may have changed since
    advance(c, c->tail + r.size);
    if (r.kind != CS_WIRE_PAD) return (const struct cs_wire_record *)(const void *)c->record;
  }
  return NULL;
}

uint32_t cs_consumer_agent_pid(const struct cs_consumer *c) {
  return cs_load_acquire(&c->header->agent_pid);
}

enum cs_wire_agent_state cs_consumer_agent_state(const struct cs_consumer *c) {
  if (c->header == NULL) return CS_WIRE_AGENT_NONE;
  uint32_t state = cs_load_acquire(&c->header->agent_state);
  return state <= CS_WIRE_AGENT_REFUSED ? (enum cs_wire_agent_state)state : CS_WIRE_AGENT_NONE;
}

void cs_consumer_message(const struct cs_consumer *c, char *out, size_t cap) {
  char text[sizeof c->header->message];
  memcpy(text, c->header->message, sizeof text);
  size_t len = strnlen(text, sizeof text);
  if (len >= cap) len = cap - 1;
  for (size_t i = 0; i < len; i++) out[i] = (unsigned char)text[i] < 0x20 ? ' ' : text[i];
  out[len] = '\0';
}

void cs_consumer_stop(struct cs_consumer *c) {
  cs_store_release(&c->header->stop, 1u);
}

bool cs_consumer_has_label_hooks(const struct cs_consumer *c) {
  return cs_load_acquire(&c->header->label_hooks) != 0;
}

uint64_t cs_consumer_lost(const struct cs_consumer *c) {
  return cs_load_relaxed(&c->header->lost_records);
}
