// SPDX-License-Identifier: MIT
// Chooses samples by their label.
#ifndef CS_RECORDING_LABEL_CHOICE_H
#define CS_RECORDING_LABEL_CHOICE_H

#include "base/error.h"
#include "base/label.h"

// Samples of a trace, or of one of its spans.
struct cs_label_choice {
  bool any_span;
  struct cs_label label;
};
// "TRACE" or "TRACE:SPAN", 32 and 16 hexadecimal digits.
bool cs_parse_trace(const char *text, struct cs_label_choice *out, struct cs_error *err);
bool cs_label_is_chosen(const struct cs_label_choice *choice, const struct cs_label *label);

#endif
