// SPDX-License-Identifier: MIT
// What `clrsnap diff --fail-if` asks of a comparison:
//
//   [MODE:](self|total)(GLOB) > +N%     it has grown by more than N percent of what it was
//                             > +Npt    its share of the whole has grown by more than N points
//                             > N%      its share of the whole is now more than N percent
//
// A GLOB is matched with whole names of methods; * is any text, ? any character. One thread.
#pragma once

#include "base/error.h"
#include "profile/diff.h"

struct cs_condition {
  const char *text;        // the whole; must live as long
  enum cs_wire_mode mode;  // 0: the first mode that is compared
  bool total;              // stacks with such a frame anywhere; otherwise as what runs
  const char *glob;        // in `text`
  size_t glob_len;
  enum cs_change_kind kind;
  double limit;  // as cs_change_chance takes it
};

struct cs_verdict {
  struct cs_comparison comparison;
  size_t names;        // of frames that match, in either recording
  double chance;       // that of a false alarm
  bool measured_more;  // than the limit
  bool holds;          // it has, and the chance is below CS_CHANGE_SIGNIFICANCE
};

// Returns false, with the reason in *err, and *at is where in the text it is wrong.
bool cs_condition_parse(const char *text, struct cs_condition *out, size_t *at,
                        struct cs_error *err);
bool cs_glob_matches(const char *glob, size_t glob_len, const char *name, size_t len);
struct cs_verdict cs_condition_check(const struct cs_condition *condition,
                                     const struct cs_diff *diff);
