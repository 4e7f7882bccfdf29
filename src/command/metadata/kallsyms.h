// SPDX-License-Identifier: MIT
// Names of the running kernel's functions, from /proc/kallsyms. One thread.
#pragma once

#include <stdint.h>

struct cs_kallsyms;

// If the file is unreadable or hides addresses, there are no names. Tests read another file.
struct cs_kallsyms *cs_kallsyms_read(void);
struct cs_kallsyms *cs_kallsyms_read_from(const char *path);
// Returns the function at the address, or NULL if that is unknown. Valid as long as `k`.
const char *cs_kallsyms_find(const struct cs_kallsyms *k, uint64_t address);
// Returns why there are no names at all, and what to allow; "" if there are names.
const char *cs_kallsyms_refused(const struct cs_kallsyms *k);
void cs_kallsyms_free(struct cs_kallsyms *k);
