// SPDX-License-Identifier: MIT
// The supported versions. Every version check uses this header, except the check of unwind data,
// which depends on the architecture (contract/machine.h). docs/new-runtime.md says what to verify
// before raising a number here. The versions of the data contracts are in contract/descriptor.c,
// beside the fields that each describes. Signal-safe: yes.
#pragma once

#include "base/base.h"

enum {
  // The major version of .NET that is tested. Its contract does not describe these layouts, so they
  // are read on no other version, unless the file says so:
  //   ExInfo's words                                          contract/contract.c
  //   the words after a method's code header                  codemap/method.c
  //   the words after ThreadStore.DeadCount, and g_dacTable   remote/collector.c
  //   FieldDesc, and the class in DynamicStaticsInfo          objects/{classes,heap}.c
  //   a monitor                                               codemap/monitor.c
  //   what a thread waits for                                 objects/objects.c
  CS_SUPPORTED_RUNTIME = 10,
  // The major version whose descriptor is known from the runtime's sources only; no test has run on
  // it.
  CS_PREPARED_RUNTIME = 11,
  // The first major version that samples allocations at random (agent/events/allocations.c).
  CS_SAMPLING_RUNTIME = 10,
  // The first major version that reads DOTNET_PROFILER and the like (process/profiler_env.h).
  CS_DOTNET_NAMES_RUNTIME = 11,
  // The major version of ReadyToRun images whose debug info remote/il.c decodes.
  CS_SUPPORTED_R2R = 16,  // the first one that packs its debug info this way
};

// Builds that do not describe their code map, and are read by clrsnap's own description of their
// major version (contract/net9.json). Both ends of a range have been measured
// (docs/new-runtime.md).
struct cs_builds {
  unsigned major, first, last;  // MAJOR.0.first to MAJOR.0.last
};
static inline const struct cs_builds *cs_builds_of(unsigned long major) {
  static const struct cs_builds net9 = {9, 18, 22};
  return major == net9.major ? &net9 : NULL;
}
static inline bool cs_build_is_described(unsigned long major, unsigned minor, unsigned build) {
  const struct cs_builds *b = cs_builds_of(major);
  return b != NULL && minor == 0 && build >= b->first && build <= b->last;
}

// Returns whether the heap, classes, fields and monitors are read on this version, where they are
// the same as on CS_SUPPORTED_RUNTIME.
static inline bool cs_objects_are_measured(unsigned long major) {
  return major == CS_SUPPORTED_RUNTIME || cs_builds_of(major) != NULL;
}

static inline bool cs_runtime_is_accepted(unsigned long major) {
  return major == CS_SUPPORTED_RUNTIME || major == CS_PREPARED_RUNTIME ||
         cs_builds_of(major) != NULL;
}
