// SPDX-License-Identifier: MIT
// The search for .eh_frame in an image that was linked without .eh_frame_hdr (ld --no-eh-frame-hdr,
// some static linkers): .eh_frame is in a loaded segment, but no program header leads to it, and
// the section headers are not loaded; the file may be gone. The section begins with a CIE, which
// has three known values in a row: the code alignment (1 or that of instructions), the data
// alignment (-8) and the return register. Each FDE that follows refers to a CIE. The longest run of
// such records is the section. Invariant: a result consists of whole records, includes the CIE of
// every FDE, and has at least one FDE. Not for handlers.
#include "native/search.h"

#include <string.h>

#include "native/dwarf.h"

enum { ALIGNMENT = 4, MIN_CIE = 12, MAX_CIE = 256, MAX_AUGMENTATION = 8 };

static uint32_t word_at(const uint8_t *bytes) {
  uint32_t word;
  memcpy(&word, bytes, sizeof word);
  return word;
}

// Returns whether `bytes` start with a CIE and its length.
static bool is_cie(const uint8_t *bytes, size_t size) {
  enum { DATA_ALIGN = 0x78, KNOWN = 3 };  // -8
  if (size < 4 + MIN_CIE || word_at(bytes) < MIN_CIE || word_at(bytes) > MAX_CIE ||
      word_at(bytes) > size - 4 || word_at(bytes + 4) != 0 || (bytes[8] != 1 && bytes[8] != 3))
    return false;
  const char *augmentation = (const char *)bytes + 9;
  size_t n = 0;
  while (n < MAX_AUGMENTATION && augmentation[n] != '\0') n++;
  if (n == MAX_AUGMENTATION || (n != 0 && augmentation[0] != 'z') ||
      strspn(augmentation, "zRLPSB") != n || 9 + n + 1 + KNOWN > 4 + word_at(bytes))
    return false;
  const uint8_t *known = bytes + 9 + n + 1;
  return (known[0] == 1 || known[0] == CS_DWARF_CODE_ALIGN) && known[1] == DATA_ALIGN &&
         known[2] == CS_DWARF_RA;
}

// Follows the records that begin with a CIE, as long as they are plausible.
static void follow(const uint8_t *bytes, size_t size, size_t begin, struct cs_found *found) {
  size_t at = begin;
  *found = (struct cs_found){.begin = begin, .last = begin};
  while (size - at >= 8 && word_at(bytes + at) != 0) {
    size_t length = word_at(bytes + at), id_at = at + 4, id = word_at(bytes + id_at);
    if (length < 8 || length > size - id_at) break;
    bool cie = id == 0;
    if (cie ? !is_cie(bytes + at, size - at)
            : id > id_at - begin || !is_cie(bytes + id_at - id, size - (id_at - id)))
      break;
    found->fdes += !cie;
    found->last = at;
    at += 4 + length;
  }
  found->end = at;
}

bool cs_eh_frame_search(const uint8_t *bytes, size_t size, struct cs_found *found) {
  struct cs_found run;
  *found = (struct cs_found){.fdes = 0};
  for (size_t at = 0; at + 4 + MIN_CIE <= size; at += ALIGNMENT) {
    if (!is_cie(bytes + at, size - at)) continue;
    follow(bytes, size, at, &run);
    // A run that begins at a later record of this run goes no further, so none is followed twice.
    // But the last record may only look like one, and hide the start of another run.
    if (run.fdes == 0) {
      at = run.last - run.last % ALIGNMENT;
      continue;
    }
    if (run.fdes > found->fdes) *found = run;
    at = run.end - run.end % ALIGNMENT;
  }
  return found->fdes != 0;
}
