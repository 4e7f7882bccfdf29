// SPDX-License-Identifier: MIT
// Makes the layout of a process: finds the runtime, checks that its version is supported, and
// parses a copy of its descriptor, or clrsnap's own description of the runtime. Invariant: `out` is
// only filled in as a whole. The descriptor's memory is read guarded, so a wrong pointer leads to a
// refusal. Threads: any, at start. Signal-safe: no.
#include "contract/contract.h"

#include <stdlib.h>
#include <string.h>

#include "contract/described.h"
#include "contract/descriptor.h"
#include "contract/guarded.h"
#include "contract/runtime.h"
#include "contract/supported.h"

static bool refuse_old(const struct cs_runtime_version *v, struct cs_error *err) {
  const struct cs_builds *builds = cs_builds_of(v->major);
  if (builds == NULL)
    return cs_error_set(
        err, "this program runs on .NET %u.%u.%u, which is not supported yet (.NET 9 and %d are)",
        v->major, v->minor, v->build, CS_SUPPORTED_RUNTIME);
  return cs_error_set(err,
                      "this program runs on .NET %u.%u.%u, which clrsnap has not measured; of .NET "
                      "%u it knows %u.%u.%u to %u.%u.%u",
                      v->major, v->minor, v->build, v->major, v->major, 0, builds->first, v->major,
                      0, builds->last);
}

// clrsnap's own description may be used instead of a descriptor.
static bool check_version(const struct cs_runtime_version *v, bool has_descriptor,
                          struct cs_error *err) {
  if (cs_build_is_described(v->major, v->minor, v->build)) return true;
  if (v->major != 0 && v->major < CS_SUPPORTED_RUNTIME) return refuse_old(v, err);
  if (v->major != 0 && v->major != CS_SUPPORTED_RUNTIME && v->major != CS_PREPARED_RUNTIME) {
    return cs_error_set(err,
                        "this program runs on .NET %u.%u.%u, which this version of clrsnap does "
                        "not support (.NET %d is supported, and .NET %d is prepared for)",
                        v->major, v->minor, v->build, CS_SUPPORTED_RUNTIME, CS_PREPARED_RUNTIME);
  }
  if (!has_descriptor) {
    return cs_error_set(err, "the runtime has no data contract descriptor, so this is not .NET %d",
                        CS_SUPPORTED_RUNTIME);
  }
  return true;
}

typedef bool use_descriptor(const char *json, size_t len, const uint64_t *pointers, uint32_t count,
                            struct cs_layout *layout, struct cs_error *err);

// Passes a copy of the runtime's own descriptor to `use`.
static bool with_descriptor(const struct cs_mem *mem, uint64_t at, use_descriptor *use,
                            struct cs_layout *layout, struct cs_error *err) {
  struct cs_descriptor_head head;
  if (!cs_mem_read(mem, at, &head, sizeof head))
    return cs_error_set(err, "the runtime's data contract descriptor cannot be read");
  if (!cs_descriptor_check_head(&head, err)) return false;
  uint64_t *pointers = calloc(head.pointer_count + 1, sizeof *pointers);
  char *json = malloc(head.json_bytes);
  bool ok = false;
  if (pointers == NULL || json == NULL) {
    (void)cs_error_set(err, "out of memory for the runtime's data contract descriptor");
  } else if (!cs_mem_read(mem, head.json, json, head.json_bytes) ||
             !cs_mem_read(mem, head.pointers, pointers, head.pointer_count * sizeof *pointers)) {
    (void)cs_error_set(err, "the runtime's data contract descriptor cannot be read");
  } else {
    ok = use(json, head.json_bytes, pointers, head.pointer_count, layout, err);
  }
  free(json);
  free(pointers);
  return ok;
}

// Parses clrsnap's own description. Whatever the runtime's descriptor has as well must be the same
// there. A single-file program of .NET 9 does not export its descriptor, and has not been tried.
static bool parse_description(const struct cs_mem *mem, const struct cs_contract_place *place,
                              const struct cs_description *ours, struct cs_layout *out,
                              struct cs_error *err) {
  uint64_t table[CS_DEBUG_TABLE_ENTRIES];
  if (place->descriptor == 0)
    return cs_error_set(err,
                        "the runtime does not export its data contract descriptor: single-file "
                        "programs of .NET %u are not supported",
                        place->version.major);
  if (place->debug_table == 0 || !cs_mem_read(mem, place->debug_table, table, sizeof table))
    return cs_error_set(err, "the runtime has no table for its debugger (g_dacTable)");
  for (size_t i = 0; i < CS_COUNT(table); i++)
    if (table[i] < place->begin || table[i] > place->end - 8) table[i] = 0;
  return cs_descriptor_parse(ours->json, ours->bytes, table, CS_COUNT(table), out, err) &&
         with_descriptor(mem, place->descriptor, cs_descriptor_compare, out, err);
}

void cs_contract_add_measured(struct cs_layout *layout) {
  layout->exception_info.handler_entered = CS_NO_FIELD;
  if (layout->runtime_major != CS_SUPPORTED_RUNTIME && cs_builds_of(layout->runtime_major) == NULL)
    return;
  layout->exception_info.handler_entered = 60;
  layout->exception_info.flags = 64;
  layout->exception_info.unwound_lo = 128;
  layout->exception_info.unwound_hi = 136;
}

static bool read_at(struct cs_layout *out, const struct cs_mem *mem,
                    const struct cs_contract_place *place, struct cs_error *err) {
  struct cs_layout layout;
  const struct cs_description *ours = cs_described(place->version.major);
  memset(&layout, 0, sizeof layout);
  if (ours != NULL ? !parse_description(mem, place, ours, &layout, err)
                   : !with_descriptor(mem, place->descriptor, cs_descriptor_parse, &layout, err))
    return false;
  layout.coreclr_begin = place->begin;
  layout.coreclr_end = place->end;
  layout.runtime_major = place->version.major;
  layout.runtime_minor = place->version.minor;
  layout.runtime_build = place->version.build;
  cs_contract_add_measured(&layout);
  // Handlers read this variable directly.
  if (layout.jit_manager != 0 &&
      (layout.jit_manager < place->begin || layout.jit_manager > place->end - 8)) {
    return cs_error_set(err,
                        "the runtime's data contract descriptor has EEJitManagerAddress outside of "
                        "the runtime");
  }
  *out = layout;
  return true;
}

bool cs_contract_read_at(struct cs_layout *out, const struct cs_mem *mem,
                         const struct cs_contract_place *place, struct cs_error *err) {
  return check_version(&place->version, place->descriptor != 0, err) &&
         read_at(out, mem, place, err);
}

bool cs_contract_read(struct cs_layout *out, const struct cs_runtime_version *version,
                      struct cs_error *err) {
  static struct cs_runtime runtime;  // too large for the stack of the thread that loads the library
  struct cs_contract_place place = {.descriptor = 0};
  if (!cs_runtime_find(&runtime)) {
    return cs_error_set(err,
                        "no CoreCLR was found in this process: neither libcoreclr.so nor a "
                        "single-file host");
  }
  uint16_t parts[3];
  if (version != NULL && version->major != 0) {
    place.version = *version;
  } else if (cs_runtime_path_version(runtime.path, parts)) {
    place.version = (struct cs_runtime_version){parts[0], parts[1], parts[2]};
  }
  place.descriptor = cs_runtime_descriptor(&runtime);
  place.debug_table = cs_runtime_debug_table(&runtime);
  place.begin = runtime.begin;
  place.end = runtime.end;
  return check_version(&place.version, place.descriptor != 0, err) &&
         read_at(out, &cs_guarded_self, &place, err);
}
