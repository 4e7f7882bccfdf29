// SPDX-License-Identifier: MIT
// The PDBs of modules, for the look-up of source lines. They are read from the image in memory,
// because its file may have been replaced, or may not exist (single-file programs). Invariant: the
// record of each (path, PDB) is on the wire before the first method of the module. All reads are
// guarded. The agent's thread only, while the module is loaded. Signal-safe: no.
#include "reporting/modules.h"

#include <stdlib.h>
#include <string.h>

#include "life/library.h"
#include "pe/pe.h"
#include "state/state.h"

struct known {
  struct known *next;
  struct cs_wire_module module;
  char path[];
};
static struct known *known;  // the last one that was looked up comes first

static bool read_loaded(void *from, uint64_t offset, void *out, size_t size) {
  return cs_mem_read_guarded(&cs_library.world.mem, *(const uint64_t *)from + offset, out, size);
}

bool cs_module_contains(const struct cs_method_name *name, uint64_t at) {
  struct cs_pe pe;
  uint64_t base = name->base;
  if (base == 0 || !cs_pe_open_loaded(&pe, read_loaded, &base)) return true;
  return at - base < pe.image_size;
}

static bool is_known(const char *path, const struct cs_wire_module *module) {
  struct known **link = &known, *k;
  while ((k = *link) != NULL &&
         (memcmp(&k->module, module, sizeof *module) != 0 || strcmp(k->path, path) != 0))
    link = &k->next;
  if (k == NULL) return false;
  *link = k->next;
  k->next = known;
  known = k;
  return true;
}

bool cs_module_to_wire(const struct cs_method_name *name) {
  static struct cs_pe_debug debug;
  struct cs_wire_module module = {0};
  struct cs_pe pe;
  uint64_t base = name->base;
  debug.path[0] = '\0';
  if (base != 0 && cs_pe_open_loaded(&pe, read_loaded, &base)) {
    (void)cs_pe_read_debug(&pe, &debug);
    module.flags = CS_WIRE_MODULE_READ | (debug.has_id ? CS_WIRE_MODULE_HAS_ID : 0) |
                   (debug.embedded_size != 0 ? CS_WIRE_MODULE_EMBEDDED : 0);
    _Static_assert(sizeof module.pdb_id == sizeof debug.id, "the whole id");
    memcpy(module.pdb_id, debug.id, sizeof module.pdb_id);
  }
  if (is_known(name->module, &module)) return true;
  const char *strings[] = {name->module, debug.path};
  if (!cs_producer_put(&cs_agent.wire, CS_WIRE_MODULE, &module, sizeof module, strings, 2))
    return false;
  size_t size = strlen(name->module) + 1;
  struct known *k = malloc(sizeof *k + size);
  if (k == NULL) return true;  // it is sent again with its next method
  k->module = module;
  memcpy(k->path, name->module, size);
  k->next = known;
  known = k;
  return true;
}

void cs_modules_free(void) {
  for (struct known *next; known != NULL; known = next) {
    next = known->next;
    free(known);
  }
}
