// SPDX-License-Identifier: MIT
// The command's options: NUL-terminated words. The first byte chooses the verb.
#include <sanitizer/lsan_interface.h>
#include <stdlib.h>
#include <string.h>

#include "cli/verbs.h"
#include "fuzz.h"

enum { MOST_WORDS = 32, MOST_BYTES = 4096, MOST_OPTIONS_BYTES = 65536 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const struct cs_command *const verbs[] = {
      &cs_record_command, &cs_report_command,       &cs_diff_command,
      &cs_top_command,    &cs_stack_command,        &cs_doctor_command,
      &cs_ps_command,     &cs_run_profiler_command, &cs_async_command};
  static char text[MOST_BYTES + 1];
  static _Alignas(16) char options[MOST_OPTIONS_BYTES];
  char *words[MOST_WORDS + 2] = {(char[]){"verb"}};
  struct cs_error err;
  bool help;
  int count = 1;
  if (size == 0 || size > MOST_BYTES) return 0;
  memcpy(text, data, size);
  text[size] = '\0';
  for (size_t at = 1; at < size && count <= MOST_WORDS; at += strlen(text + at) + 1)
    words[count++] = text + at;
  const struct cs_command *verb = verbs[data[0] % (sizeof verbs / sizeof *verbs)];
  if (verb->size > sizeof options) abort();
  // A verb runs once in a process, and what its options refer to stays until the end.
  __lsan_disable();
  (void)cs_command_parse(verb, options, count, words, &help, &err);
  __lsan_enable();
  return 0;
}
