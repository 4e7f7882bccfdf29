// SPDX-License-Identifier: MIT
// /proc/kallsyms: a line for each symbol, "ffffffff81001000 T name", and "[module]" after a tab.
// Invariant: an address has a name only if the symbol before it is a function, and near enough to
// hold it: the file has no sizes, and code that it does not list (eBPF programs) follows code that
// it lists. One thread. Signal-safe: no.
#include "metadata/kallsyms.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/map.h"

enum { LARGEST = 256 << 10 };  // bytes of a function

struct symbol {
  uint64_t address;
  size_t name;  // offset in `names`
  uint32_t order;
  bool function;
};

struct cs_kallsyms {
  struct symbol *symbols;
  size_t count, capacity;
  char *names;
  size_t used, names_capacity;
  char refused[256];
};

static void add(struct cs_kallsyms *k, uint64_t address, char type, const char *name) {
  size_t len = strlen(name) + 1;
  CS_RESERVE(k->names, k->used + len, k->names_capacity);
  k->symbols = cs_grow(k->symbols, k->count, &k->capacity, sizeof *k->symbols);
  k->symbols[k->count] =
      (struct symbol){address, k->used, (uint32_t)k->count, strchr("tTwW", type) != NULL};
  k->count++;
  memcpy(k->names + k->used, name, len);
  k->used += len;
}

static int by_address(const void *a, const void *b) {
  const struct symbol *x = a, *y = b;
  return CS_ORDER(x->address, y->address) ?: CS_ORDER(x->order, y->order);
}

static void read_lines(struct cs_kallsyms *k, FILE *in) {
  char line[1024], type, name[512];
  unsigned long long address;
  while (fgets(line, sizeof line, in) != NULL)
    if (sscanf(line, "%llx %c %511s", &address, &type, name) == 3 && address != 0)
      add(k, address, type, name);
  cs_sort(k->symbols, k->count, sizeof *k->symbols, by_address);
}

struct cs_kallsyms *cs_kallsyms_read_from(const char *path) {
  struct cs_kallsyms *k = cs_allocate(sizeof *k);
  FILE *in = fopen(path, "re");
  if (in == NULL) {
    (void)snprintf(k->refused, sizeof k->refused, "%s cannot be read: %s", path, strerror(errno));
    return k;
  }
  read_lines(k, in);
  (void)fclose(in);
  if (k->count == 0)
    (void)snprintf(k->refused, sizeof k->refused,
                   "%s hides its addresses: set kernel.kptr_restrict to 0 and "
                   "kernel.perf_event_paranoid to 1, or run clrsnap with CAP_SYSLOG",
                   path);
  return k;
}

struct cs_kallsyms *cs_kallsyms_read(void) {
  return cs_kallsyms_read_from("/proc/kallsyms");
}

// The first of several symbols at one address is the function's own name; aliases follow.
const char *cs_kallsyms_find(const struct cs_kallsyms *k, uint64_t address) {
  size_t at = CS_FIRST_NOT(i, 0, k->count, k->symbols[i].address <= address);
  if (at-- == 0) return NULL;
  while (at > 0 && k->symbols[at - 1].address == k->symbols[at].address) at--;
  const struct symbol *s = &k->symbols[at];
  return s->function && address - s->address < LARGEST ? k->names + s->name : NULL;
}

const char *cs_kallsyms_refused(const struct cs_kallsyms *k) {
  return k->refused;
}

void cs_kallsyms_free(struct cs_kallsyms *k) {
  if (k == NULL) return;
  free(k->symbols);
  free(k->names);
  free(k);
}
