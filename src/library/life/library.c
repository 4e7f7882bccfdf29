// SPDX-License-Identifier: MIT
// The state of the library, and the count of public calls that are under way. Any thread.
// Signal-safe: yes.
//
// Invariant: cs_library_enter first counts, then reads `running`; clrsnap_stop first clears
// `running`, then reads the count. So at least one sees the other.
#include "life/library.h"

struct cs_library cs_library;

bool cs_library_enter(void) {
  cs_add_seq(&cs_library.users, 1);
  if (__atomic_load_n(&cs_library.running, __ATOMIC_SEQ_CST)) return true;
  cs_library_leave();
  return false;
}

void cs_library_leave(void) {
  cs_add_seq(&cs_library.users, (uint32_t)-1);
}
