// SPDX-License-Identifier: MIT
// From a recording (ids, addresses) to a profile (names). One thread.
#ifndef CS_RESOLVE_H
#define CS_RESOLVE_H

#include "cli/recording.h"

// Fills an initialised profile, all but the facts that only the caller knows. signatures: methods
// with their parameters, so that overloads are told apart. native: with native frames, or managed
// ones only.
void cs_resolve(const struct cs_recording *rec, bool native, bool signatures,
                struct cs_profile *profile);

#endif
