// SPDX-License-Identifier: MIT
// What works on this machine and with one process, and why the rest does not. Each finding comes
// from trying what the verbs do; nothing is inferred from a version.
#pragma once

#include <sys/types.h>

#include "base/error.h"

enum cs_finding_state {
  CS_FINDING_GOOD,
  CS_FINDING_NOTE,   // works, with a restriction
  CS_FINDING_FAULT,  // does not work
};
struct cs_finding {
  const char *name;  // "shared memory"
  enum cs_finding_state state;
  char text[512];  // the finding
  char cure[256];  // what to do about it; "": nothing
};

enum { CS_MAX_FINDINGS = 32 };
struct cs_doctor {
  struct cs_finding findings[CS_MAX_FINDINGS];
  unsigned count;
};

// Adds a finding. `cure` may be NULL.
__attribute__((format(printf, 5, 6))) void cs_doctor_note(struct cs_doctor *d,
                                                          enum cs_finding_state state,
                                                          const char *name, const char *cure,
                                                          const char *format, ...);
bool cs_doctor_has_fault(const struct cs_doctor *d);

void cs_doctor_machine(struct cs_doctor *d);             // doctor_machine.c
void cs_doctor_process(struct cs_doctor *d, pid_t pid);  // doctor_process.c
