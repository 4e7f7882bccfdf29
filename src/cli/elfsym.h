// SPDX-License-Identifier: MIT
// Names of native functions, from the ELF files' symbol tables and from separate debug files where
// they are installed. Never asks a server. One thread.
#ifndef CS_ELFSYM_H
#define CS_ELFSYM_H

#include "base/base.h"

struct cs_elfsyms;  // the files that have been opened
struct cs_elfsyms *cs_elfsyms_new(void);
// The name, demangled, of the function that holds virtual address `vaddr` of the file at `path`;
// NULL when the file does not say. Valid until the next call.
const char *cs_elfsyms_find(struct cs_elfsyms *syms, const char *path, uint64_t vaddr);
void cs_elfsyms_free(struct cs_elfsyms *syms);

#endif
