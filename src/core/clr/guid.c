// SPDX-License-Identifier: MIT
// GUIDs. Invariant: cs_clsid_clrsnap and CS_CLSID_TEXT are the same number (a unit test parses the
// text). Any thread. Signal-safe: no (memcmp).
#include <string.h>

#include "clr/clr.h"

const CLSID cs_clsid_clrsnap = {
    0x8F3E6C1A, 0x5B2D, 0x4E7F, {0x9A, 0x41, 0xC6, 0xD0, 0xE2, 0xB7, 0xF5, 0x19}};

bool cs_guid_equal(const GUID *a, const GUID *b) {
  return memcmp(a, b, sizeof *a) == 0;
}
