// SPDX-License-Identifier: MIT
// Labels of samples, and what the samples of each stack come to under each. Beside the call tree,
// not in it: a server has a new label with every request, and few stacks. One thread.
#ifndef CS_PROFILE_LABELS_H
#define CS_PROFILE_LABELS_H

#include "base/label.h"
#include "util/map.h"

#define CS_NO_LABEL 0u
// Stacks under labels that are told apart; about 200 bytes each with their label, 800 MiB at the
// limit.
#define CS_LABELS_MAX (4u << 20)

struct cs_label_sum {
  uint32_t node, label;  // the leaf; never CS_NO_LABEL
  uint64_t samples, weight;
};

struct cs_label_sums {
  struct cs_label_sum *items;
  size_t count, capacity;
  struct cs_map ids;  // node << 32 | label -> index
};

// Distinct labels by number, from 1.
struct cs_labels {
  struct cs_strings pool;
};
void cs_labels_init(struct cs_labels *labels);
uint32_t cs_labels_add(struct cs_labels *labels, const struct cs_label *label);
uint32_t cs_labels_count(const struct cs_labels *labels);  // CS_NO_LABEL among them
struct cs_label cs_labels_get(const struct cs_labels *labels, uint32_t number);
void cs_labels_free(struct cs_labels *labels);

// The sum of that stack under that label, made if need be. Valid until the next call.
struct cs_label_sum *cs_label_sums_at(struct cs_label_sums *sums, uint32_t node, uint32_t label);
// By node and then by label, from now on; there is no cs_label_sums_at behind it.
void cs_label_sums_sort(struct cs_label_sums *sums);
// Of sorted ones: the place of the first that is not before this one; `label` CS_NO_LABEL: of the
// node's first, if it has any.
size_t cs_label_sums_find(const struct cs_label_sums *sums, uint32_t node, uint32_t label);
void cs_label_sums_free(struct cs_label_sums *sums);

// As hexadecimal digits. A trace or a span that is all zero is an empty text.
struct cs_label_text {
  char trace[33], span[17];
};
struct cs_label_text cs_label_in_hex(const struct cs_label *label);

#endif
