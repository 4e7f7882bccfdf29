// SPDX-License-Identifier: MIT
// An image's .eh_frame: searched for, and compiled into rows.
#include <stdlib.h>

#include "fuzz.h"
#include "native/cfi.h"
#include "native/search.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  enum { ADDRESS = 0x10000 };
  static struct cs_rules rules;  // making them takes longer than all the rest
  struct cs_found found;
  struct cs_rows rows = {0};
  struct cs_cfi_stats stats = {0};
  struct cs_error err;
  if (rules.rule == NULL && !cs_rules_init(&rules)) abort();
  (void)cs_eh_frame_search(data, size, &found);
  struct cs_cfi_section section = {.bytes = data, .size = size, .address = ADDRESS};
  (void)cs_cfi_compile(&section, 0x1000, 0x9000000, &rules, &rows, &stats, &err);
  for (uint32_t i = 1; i < rows.count; i++)
    if (rows.ip[i - 1] >= rows.ip[i]) __builtin_trap();
  cs_rows_free(&rows);
  if (rules.count > CS_RULES_MAX / 2) {
    cs_rules_free(&rules);
    rules.rule = NULL;
  }
  return 0;
}
