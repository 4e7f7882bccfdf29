// SPDX-License-Identifier: MIT
// The data contract descriptor of a runtime, perhaps in another process: from JSON to a layout.
#include "contract/descriptor.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const uint64_t pointers[] = {0x1000, 0x2000, 0x3000, 0, 0x5000, 0x6000};
  struct cs_layout layout;
  struct cs_error err;
  if (cs_descriptor_parse((const char *)data, size, pointers, CS_COUNT(pointers), &layout, &err) &&
      !cs_descriptor_check_limits(&layout, &err))
    __builtin_trap();
  return 0;
}
