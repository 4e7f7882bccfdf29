// SPDX-License-Identifier: MIT
// Labels by number, and sums by stack and label. Invariant: number 0 means no label. One thread.
// Signal-safe: no.
#include "profile/labels.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void cs_labels_init(struct cs_labels *labels) {
  memset(labels, 0, sizeof *labels);
  (void)cs_strings_add(&labels->pool, "", 0);
}

uint32_t cs_labels_add(struct cs_labels *labels, const struct cs_label *label) {
  return cs_strings_add(&labels->pool, (const char *)label, sizeof *label);
}

uint32_t cs_labels_count(const struct cs_labels *labels) {
  return (uint32_t)labels->pool.count;
}

struct cs_label cs_labels_get(const struct cs_labels *labels, uint32_t number) {
  struct cs_label label = {{0}, {0}, 0};
  if (number != CS_NO_LABEL)
    memcpy(&label, cs_strings_get(&labels->pool, number, NULL), sizeof label);
  return label;
}

void cs_labels_free(struct cs_labels *labels) {
  cs_strings_free(&labels->pool);
}

struct cs_label_sum *cs_label_sums_at(struct cs_label_sums *sums, uint32_t node, uint32_t label) {
  bool added;
  uint64_t key = (uint64_t)node << 32 | label;
  uint32_t i = cs_map_put(&sums->ids, key, (uint32_t)sums->count, &added);
  if (added)
    CS_APPEND(sums->items, sums->count, sums->capacity, (struct cs_label_sum){node, label, 0, 0});
  return &sums->items[i];
}

static int by_node_and_label(const void *a, const void *b) {
  const struct cs_label_sum *x = a, *y = b;
  return CS_ORDER(x->node, y->node) ?: CS_ORDER(x->label, y->label);
}

void cs_label_sums_sort(struct cs_label_sums *sums) {
  if (sums->count > 0) cs_sort(sums->items, sums->count, sizeof *sums->items, by_node_and_label);
  cs_map_free(&sums->ids);
}

size_t cs_label_sums_find(const struct cs_label_sums *sums, uint32_t node, uint32_t label) {
  const struct cs_label_sum wanted = {node, label, 0, 0};
  return CS_FIRST_NOT(i, 0, sums->count, by_node_and_label(&sums->items[i], &wanted) < 0);
}

void cs_label_sums_free(struct cs_label_sums *sums) {
  free(sums->items);
  cs_map_free(&sums->ids);
  memset(sums, 0, sizeof *sums);
}

static void put_hex(char *out, const uint8_t *bytes, size_t count) {
  bool any = false;
  for (size_t i = 0; i < count; i++) {
    (void)snprintf(out + 2 * i, 3, "%02x", bytes[i]);
    any |= bytes[i] != 0;
  }
  if (!any) out[0] = '\0';
}

struct cs_label_text cs_label_in_hex(const struct cs_label *label) {
  struct cs_label_text text;
  put_hex(text.trace, label->trace, sizeof label->trace);
  put_hex(text.span, label->span, sizeof label->span);
  return text;
}
