// SPDX-License-Identifier: MIT
// A server's response to a pushed profile: the protobuf message of a partial success.
#include <stdlib.h>
#include <string.h>

#include "formats/otlp.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  char message[64];
  memset(message, 'x', sizeof message);
  (void)cs_otlp_rejected(data, size, message, sizeof message);
  if (memchr(message, '\0', sizeof message) == NULL) __builtin_trap();
  return 0;
}
