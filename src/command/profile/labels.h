// SPDX-License-Identifier: MIT
// Labels of samples, and sums of samples by stack and label. They are kept apart from the call
// tree, not in it: a server has a new label for every request, but few stacks. One thread.
#pragma once

#include "base/label.h"
#include "util/map.h"

#define CS_NO_LABEL 0u
// The most pairs of a stack and a label that are kept: about 200 bytes each, 800 MiB at the limit.
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

// Distinct labels, numbered from 1.
struct cs_labels {
  struct cs_strings pool;
};
void cs_labels_init(struct cs_labels *labels);
uint32_t cs_labels_add(struct cs_labels *labels, const struct cs_label *label);
uint32_t cs_labels_count(const struct cs_labels *labels);  // includes CS_NO_LABEL
struct cs_label cs_labels_get(const struct cs_labels *labels, uint32_t number);
void cs_labels_free(struct cs_labels *labels);

// Returns the sum of that stack and label, created on first use. Valid until the next call.
struct cs_label_sum *cs_label_sums_at(struct cs_label_sums *sums, uint32_t node, uint32_t label);
// Sorts by node, then by label. No cs_label_sums_at after it.
void cs_label_sums_sort(struct cs_label_sums *sums);
// In sorted sums, the index of the first one at or after (node, label). With CS_NO_LABEL that is
// the node's first one, if it has any.
size_t cs_label_sums_find(const struct cs_label_sums *sums, uint32_t node, uint32_t label);
void cs_label_sums_free(struct cs_label_sums *sums);

// In hexadecimal digits. An id of zeros is an empty string.
struct cs_label_text {
  char trace[33], span[17];
};
struct cs_label_text cs_label_in_hex(const struct cs_label *label);
