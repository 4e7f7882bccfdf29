// SPDX-License-Identifier: MIT
// Functions of a runtime without symbols that the file itself identifies. One thread.
#pragma once

#include <libelf.h>
#include <stdint.h>

struct cs_landmarks;  // points into the file, which must live longer
// Never NULL; a file of another form than expected has none.
struct cs_landmarks *cs_landmarks_read(Elf *elf);
// What the function at a virtual address of the file is: its name, if the runtime's table of native
// functions for managed code has it; or its class, as cs_runtime_class_text has it; or NULL.
const char *cs_landmarks_find(const struct cs_landmarks *marks, uint64_t vaddr);
void cs_landmarks_free(struct cs_landmarks *marks);
