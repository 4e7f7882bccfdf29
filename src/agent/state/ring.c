// SPDX-License-Identifier: MIT
// Reads the sample ring. Invariant: all bytes from head up to tail + capacity are zero. The reader
// clears a record before it moves the tail over it; nothing else frees space. The agent's thread
// only. Signal-safe: no.
#include "state/ring.h"

#include <string.h>
#include <sys/mman.h>

bool cs_sample_ring_open(struct cs_sample_ring *ring, uint64_t bytes, uint32_t max_depth) {
  memset(ring, 0, sizeof *ring);
  if (bytes < 65536 || (bytes & (bytes - 1)) != 0) return false;
  // Populated, so that handlers take no page faults.
  void *at =
      mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (at == MAP_FAILED) return false;
  ring->bytes = at;
  ring->capacity = bytes;
  ring->max_depth = max_depth;
  return true;
}

void cs_sample_ring_close(struct cs_sample_ring *ring) {
  if (ring->bytes != NULL) (void)munmap(ring->bytes, ring->capacity);
  memset(ring, 0, sizeof *ring);
}

static void skip(struct cs_sample_ring *ring, void *record, uint64_t size) {
  memset(record, 0, size);
  cs_store_release(&ring->tail, ring->tail + size);
}

const struct cs_sample *cs_sample_ring_peek(struct cs_sample_ring *ring) {
  for (;;) {
    struct cs_sample *sample = (void *)(ring->bytes + (ring->tail & (ring->capacity - 1)));
    uint64_t word = cs_load_acquire(&sample->word);
    switch (CS_SAMPLE_STATE(word)) {
      case CS_SAMPLE_READY:
        return sample;
      case CS_SAMPLE_PAD:
        skip(ring, sample, CS_SAMPLE_SIZE(word));
        break;
      default:
        return NULL;
    }
  }
}

void cs_sample_ring_pop(struct cs_sample_ring *ring, const struct cs_sample *sample) {
  skip(ring, (void *)(ring->bytes + (ring->tail & (ring->capacity - 1))),
       CS_SAMPLE_SIZE(sample->word));
}

uint64_t cs_sample_ring_used(const struct cs_sample_ring *ring) {
  uint64_t tail = cs_load_acquire(&ring->tail);
  return cs_load_acquire(&ring->head) - tail;
}
