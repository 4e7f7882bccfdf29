// SPDX-License-Identifier: MIT
// Classes of the runtime's frames, from their callers down: the tree has callers first, so one pass
// does. Invariants: a frame without a sign of its own has the class of a caller from which only
// native frames lead to it, or none; no sample is dropped. One thread. Signal-safe: no.
#include "naming/runtime_part.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/path.h"

#define CORELIB "System.Private.CoreLib.dll"

static enum cs_runtime_class class_of_method(const struct cs_recording *rec, uint64_t key) {
  uint32_t i;
  char type[256];
  if (!cs_map_get(&rec->function_ids, cs_wire_frame_function(key), &i)) return CS_RUNTIME_UNKNOWN;
  const struct cs_rec_function *f = &rec->functions[i];
  if (strcmp(cs_file_of(cs_recording_get(rec, f->text[CS_FN_MODULE])), CORELIB) != 0)
    return CS_RUNTIME_UNKNOWN;
  (void)snprintf(type, sizeof type, "%s.%s", cs_recording_get(rec, f->text[CS_FN_NAMESPACE]),
                 cs_recording_get(rec, f->text[CS_FN_TYPE]));
  return cs_runtime_class_by(CS_SIGN_METHOD, type);
}

static struct cs_runtime_frame native_frame(const struct cs_recording *rec, uint64_t key) {
  struct cs_runtime_frame frame = {.native = true};
  uint32_t i, symbol;
  if (!cs_map_get(&rec->image_ids, cs_wire_frame_image(key), &i)) return frame;
  const char *file = cs_file_of(cs_recording_get(rec, rec->images[i].path));
  bool coreclr = (rec->images[i].image.flags & CS_WIRE_IMAGE_RUNTIME) != 0;
  enum cs_runtime_class by_library = cs_runtime_class_by(CS_SIGN_LIBRARY, file);
  if (!coreclr && by_library == CS_RUNTIME_UNKNOWN) return frame;
  frame.class = by_library;
  frame.runtime = true;
  if (!cs_map_get(&rec->symbols, key, &symbol)) return frame;
  const char *name = cs_recording_get(rec, symbol);
  enum cs_runtime_class landmark = cs_runtime_class_shown(name);
  frame.runtime = landmark != CS_RUNTIME_UNKNOWN;
  if (by_library == CS_RUNTIME_UNKNOWN)
    frame.class = frame.runtime ? landmark : cs_runtime_class_by(CS_SIGN_SYMBOL, name);
  return frame;
}

struct cs_runtime_frame cs_runtime_frame_of(const struct cs_recording *rec, uint64_t key) {
  switch (cs_key_kind(key)) {
    case CS_KEY_NATIVE:
      return native_frame(rec, key);
    case CS_KEY_MANAGED:
      return (struct cs_runtime_frame){.class = class_of_method(rec, key)};
    case CS_KEY_KERNEL:
      return (struct cs_runtime_frame){.native = true};
    default:
      return (struct cs_runtime_frame){.native = false};
  }
}

void cs_runtime_part_make(struct cs_runtime_part *part, const struct cs_inlined *raw) {
  const struct cs_recording *rec = raw->rec;
  const struct cs_tree *tree = raw->tree;
  struct cs_runtime_frame *frames = cs_allocate((raw->frame_count + 1) * sizeof *frames);
  part->nodes = cs_allocate(tree->count * sizeof *part->nodes);
  for (size_t i = 0; i < raw->frame_count; i++)
    frames[i] = cs_runtime_frame_of(rec, raw->frames[i]);
  for (size_t i = 1; i < tree->count; i++) {
    const struct cs_node *node = &tree->nodes[i];
    struct cs_runtime_node *to = &part->nodes[i];
    if (node->parent == 0) {
      const struct cs_rec_thread *thread = &rec->threads[rec->roots[node->frame].thread];
      to->class = (uint8_t)cs_runtime_class_by(CS_SIGN_THREAD, cs_recording_get(rec, thread->name));
      continue;
    }
    const struct cs_runtime_frame *frame = &frames[node->frame];
    to->runtime = frame->runtime;
    to->class = (uint8_t)frame->class;
    if (frame->class == CS_RUNTIME_UNKNOWN && frame->native)
      to->class = part->nodes[node->parent].class;
  }
  free(frames);
}

void cs_runtime_part_free(struct cs_runtime_part *part) {
  free(part->nodes);
  *part = (struct cs_runtime_part){NULL};
}

// ---- In a profile ----

// Returns the file of the runtime's own image, or "" if there is none.
static const char *runtime_file(const struct cs_recording *rec) {
  for (size_t i = 0; i < rec->image_count; i++)
    if ((rec->images[i].image.flags & CS_WIRE_IMAGE_RUNTIME) != 0)
      return cs_file_of(cs_recording_get(rec, rec->images[i].path));
  return "";
}

void cs_runtime_place_begin(struct cs_runtime_place *p, const struct cs_runtime_part *part,
                            const struct cs_inlined *raw, struct cs_profile *profile) {
  *p = (struct cs_runtime_place){
      .part = part, .raw = raw, .profile = profile, .file = runtime_file(raw->rec)};
  p->leads = cs_allocate(raw->tree->count * sizeof *p->leads);
  p->shown = cs_allocate(raw->tree->count * sizeof *p->shown);
}

// A class is one frame, whichever of the runtime's libraries its functions are in: what the
// compiler asks of libcoreclr is [JIT], too.
static uint32_t add_class(struct cs_runtime_place *p, uint32_t parent, uint32_t like,
                          enum cs_runtime_class class) {
  char module[256];
  const struct cs_profile_frame *frame = &p->profile->frames[like];
  const char *file = p->file;
  if (file[0] == '\0') file = cs_strings_get(&p->profile->strings, frame->module, NULL);
  (void)snprintf(module, sizeof module, "%s", file);
  uint32_t id = cs_profile_frame(p->profile, cs_runtime_class_text(class), module, CS_KIND_RUNTIME);
  return cs_tree_child(&p->profile->tree, parent, id);
}

bool cs_runtime_place(struct cs_runtime_place *p, uint32_t i, uint32_t shown, uint32_t *parent,
                      uint32_t *node) {
  if (p->part == NULL) return false;
  uint32_t caller = p->raw->tree->nodes[i].parent, begin = p->leads[caller];
  const struct cs_runtime_node *own = &p->part->nodes[i], *its = &p->part->nodes[caller];
  p->shown[i] = shown;
  if (own->class == CS_RUNTIME_UNKNOWN) {
    if (own->runtime) p->leads[i] = begin != 0 ? begin : *parent;
    return false;
  }
  if (begin != 0) *parent = begin;
  // A method of a class: the frames that lead to it are its class's, too.
  if (begin != 0 && !own->runtime)
    *parent = add_class(p, begin, p->shown[caller], (enum cs_runtime_class)own->class);
  if (!own->runtime) return false;
  bool same = its->runtime && its->class == own->class;
  *node = same ? *parent : add_class(p, *parent, shown, (enum cs_runtime_class)own->class);
  return true;
}

void cs_runtime_place_end(struct cs_runtime_place *p, const uint32_t *node, uint32_t left_out) {
  const struct cs_tree *tree = p->raw->tree;
  for (size_t i = 1; i < tree->count; i++) {
    const struct cs_runtime_node *own = &p->part->nodes[i];
    if (node[i] == left_out || !own->runtime) continue;
    p->profile->facts.runtime_weight += tree->nodes[i].weight;
    if (own->class == CS_RUNTIME_UNKNOWN)
      p->profile->facts.unclassed_weight += tree->nodes[i].weight;
  }
  free(p->leads);
  free(p->shown);
}
