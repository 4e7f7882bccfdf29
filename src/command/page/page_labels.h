// SPDX-License-Identifier: MIT
// What the page knows of labels: routes, and the traces that lasted longest. One thread.
#pragma once

#include "formats/json.h"
#include "profile/profile.h"

struct cs_page_trace {
  uint32_t label;              // one of the trace's
  uint64_t first_ns, last_ns;  // times of its samples
  uint64_t samples, weight;
};

struct cs_page_labels {
  const struct cs_profile *p;
  // By label, numbers from 1 in the tables below; 0: it has none. NULL: nothing has a label.
  uint32_t *route, *trace;
  char **routes;
  uint32_t route_count;
  struct cs_page_trace *traces;  // the longest first
  uint32_t trace_count;
};

void cs_page_labels_init(struct cs_page_labels *l, const struct cs_profile *p);
// "routes":["GET /cart/{id}",...],"byRoute":false,"traces":[[route, trace id, first ms, ms,
// samples, weight],...]. `unit`: the divisor of weights.
void cs_page_labels_put(const struct cs_page_labels *l, uint64_t unit, struct cs_json_writer *j);
void cs_page_labels_free(struct cs_page_labels *l);
