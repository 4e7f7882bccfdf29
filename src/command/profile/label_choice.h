// SPDX-License-Identifier: MIT
// Chooses samples by their label.
#pragma once

#include "base/error.h"
#include "base/label.h"

// The samples to show: those of a trace or of one of its spans, of a route with any HTTP method, of
// requests that end with a status, or those that fit more than one of these.
struct cs_label_choice {
  bool any_trace, any_span;
  struct cs_label label;               // its trace and span
  const char *route;                   // or the whole name of an endpoint; NULL: any
  uint32_t least_status, most_status;  // least_status 0: any, also an unknown one
};
// "TRACE" or "TRACE:SPAN", 32 and 16 hexadecimal digits.
bool cs_parse_trace(const char *text, struct cs_label_choice *out, struct cs_error *err);
// A status, "404", or a group of them, "5xx".
bool cs_parse_status(const char *text, struct cs_label_choice *out, struct cs_error *err);
// `endpoint`: the name of the label's endpoint. `status`: that of its request; 0: unknown.
bool cs_label_is_chosen(const struct cs_label_choice *choice, const struct cs_label *label,
                        const char *endpoint, uint32_t status);
