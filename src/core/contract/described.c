// SPDX-License-Identifier: MIT
// The texts are the files net8.json and net9.json, from which the build makes string literals.
// scripts/measure-runtime.sh compares every number in them with running builds. Invariant: only
// builds that were measured are described (contract/supported.h). Any thread. Signal-safe: yes.
#include "contract/described.h"

#include "described_json.h"

const struct cs_description *cs_described(unsigned major) {
  static const struct cs_description net9 = {CS_NET9_JSON, sizeof CS_NET9_JSON - 1};
  return major == 9 ? &net9 : NULL;
}
