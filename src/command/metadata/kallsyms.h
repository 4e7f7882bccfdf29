// SPDX-License-Identifier: MIT
// Names of the running kernel's functions, from /proc/kallsyms. One thread.
#ifndef CS_METADATA_KALLSYMS_H
#define CS_METADATA_KALLSYMS_H

#include <stdint.h>

struct cs_kallsyms;

// Where the file says nothing there are no names. From another file: for tests.
struct cs_kallsyms *cs_kallsyms_read(void);
struct cs_kallsyms *cs_kallsyms_read_from(const char *path);
// The function that holds the address; NULL: it is not known. Valid as long as `k`.
const char *cs_kallsyms_find(const struct cs_kallsyms *k, uint64_t address);
// Why there are no names at all: what to allow. Empty: there are some.
const char *cs_kallsyms_refused(const struct cs_kallsyms *k);
void cs_kallsyms_free(struct cs_kallsyms *k);

#endif
