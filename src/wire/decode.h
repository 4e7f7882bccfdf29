// SPDX-License-Identifier: MIT
// Decodes records into structures. Each function checks the record's kind and all sizes in it, and
// returns false if they are inconsistent. Texts point into the record, and are not terminated.
#pragma once

#include "wire/wire.h"

struct cs_text {
  const char *data;
  size_t len;
};

enum { CS_FN_MODULE, CS_FN_NAMESPACE, CS_FN_TYPE, CS_FN_METHOD, CS_FN_SIGNATURE, CS_FN_TEXTS };

bool cs_decode_start(const struct cs_wire_record *r, struct cs_wire_start *start,
                     struct cs_text *runtime);
bool cs_decode_thread(const struct cs_wire_record *r, struct cs_wire_thread *thread,
                      struct cs_text *name);
bool cs_decode_function(const struct cs_wire_record *r, struct cs_wire_function *function,
                        struct cs_text text[CS_FN_TEXTS]);
// *ranges points to map->count ranges in the record.
bool cs_decode_il_map(const struct cs_wire_record *r, struct cs_wire_il_map *map,
                      const struct cs_wire_il_range **ranges);
// *nodes and *mappings point into the record; `inlines` has their counts. Also returns false if the
// nodes are not a tree.
bool cs_decode_inlines(const struct cs_wire_record *r, struct cs_wire_inlines *inlines,
                       const struct cs_wire_inline_node **nodes,
                       const struct cs_wire_inline_mapping **mappings);
bool cs_decode_image(const struct cs_wire_record *r, struct cs_wire_image *image,
                     struct cs_text *path);
bool cs_decode_module(const struct cs_wire_record *r, struct cs_wire_module *module,
                      struct cs_text *path, struct cs_text *pdb);
// Decodes a record that is a structure without texts, such as struct cs_wire_ticks.
#define CS_DECODE(r, kind, out) cs_decode_plain(r, kind, out, sizeof *(out))
bool cs_decode_plain(const struct cs_wire_record *r, enum cs_wire_kind kind, void *out,
                     size_t size);
// *frames points to frame_count frames in the record, leaf first, and *label to the label, or is
// NULL.
bool cs_decode_sample(const struct cs_wire_record *r, struct cs_wire_sample *sample,
                      const uint64_t **frames, const struct cs_label **label);
enum { CS_ENGINE_WHY, CS_ENGINE_UNSEEN, CS_ENGINE_TEXTS };
bool cs_decode_engine(const struct cs_wire_record *r, struct cs_wire_engine *engine,
                      struct cs_text text[CS_ENGINE_TEXTS]);
bool cs_decode_events(const struct cs_wire_record *r, struct cs_wire_events *events);
bool cs_decode_scans(const struct cs_wire_record *r, struct cs_wire_scans *scans,
                     struct cs_text *why);
