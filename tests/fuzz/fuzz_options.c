// SPDX-License-Identifier: MIT
// The command's options: words that end with a NUL. The first byte chooses the verb.
#include <string.h>

#include "cli/options.h"
#include "cli/options_diff.h"
#include "cli/options_top.h"
#include "fuzz.h"

enum { MOST_WORDS = 32, MOST_BYTES = 4096 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static char text[MOST_BYTES + 1];
  static struct cs_record_options record;
  static struct cs_report_options report;
  static struct cs_diff_options diff;
  static struct cs_top_options top;
  char *words[MOST_WORDS + 2] = {(char[]){"verb"}};
  struct cs_error err;
  int count = 1;
  if (size == 0 || size > MOST_BYTES) return 0;
  memcpy(text, data, size);
  text[size] = '\0';
  for (size_t at = 1; at < size && count <= MOST_WORDS; at += strlen(text + at) + 1)
    words[count++] = text + at;
  memset(&record, 0, sizeof record);
  memset(&report, 0, sizeof report);
  memset(&diff, 0, sizeof diff);
  memset(&top, 0, sizeof top);
  if (data[0] % 4 == 0) (void)cs_record_options_parse(&record, count, words, &err);
  if (data[0] % 4 == 1) (void)cs_report_options_parse(&report, count, words, &err);
  if (data[0] % 4 == 2) (void)cs_diff_options_parse(&diff, count, words, &err);
  if (data[0] % 4 == 3) (void)cs_top_options_parse(&top, count, words, &err);
  return 0;
}
