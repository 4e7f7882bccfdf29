// SPDX-License-Identifier: MIT
// The text is the file net9.json, from which the build makes a string literal.
// scripts/measure-runtime.sh compares every number in it with running builds. Invariant: only
// builds that were measured are described (contract/supported.h). Any thread. Signal-safe: yes.
#include "contract/described.h"

#include "described_json.h"

const struct cs_description *cs_described(unsigned major) {
  static const struct cs_description net9 = {CS_NET9_JSON, sizeof CS_NET9_JSON - 1};
  return major == 9 ? &net9 : NULL;
}
