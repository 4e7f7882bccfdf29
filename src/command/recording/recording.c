// SPDX-License-Identifier: MIT
// From records to tables and a call tree. Invariant: a record is checked completely before it
// changes anything; ids that no record has described get an empty entry, so that every index in the
// tree is valid. One thread. Signal-safe: no.
#include "recording/recording.h"

#include <stdlib.h>
#include <string.h>

#include "metadata/elfsym.h"
#include "metadata/kallsyms.h"
#include "recording/inlines.h"

void cs_recording_init(struct cs_recording *rec) {
  memset(rec, 0, sizeof *rec);
  (void)cs_strings_add(&rec->strings, "", 0);  // id 0: no text
  cs_tree_init(&rec->tree);
  cs_labels_init(&rec->labels);
  _Static_assert((int)CS_STOP_COUNT <= CS_REC_MAX_REASONS, "a place for every reason");
  for (unsigned i = 0; i < CS_STOP_COUNT; i++) {
    rec->reasons[i].token = cs_recording_text(rec, cs_stop_token((enum cs_stop)i));
    rec->reasons[i].text = cs_recording_text(rec, cs_stop_text((enum cs_stop)i));
  }
  rec->reason_count = CS_STOP_COUNT;
  rec->complete = CS_STOP_BASE;
}

uint32_t cs_recording_text(struct cs_recording *rec, const char *text) {
  return cs_strings_add(&rec->strings, text, strnlen(text, UINT16_MAX));
}

const char *cs_recording_get(const struct cs_recording *rec, uint32_t string) {
  return cs_strings_get(&rec->strings, string, NULL);
}

const char *cs_recording_endpoint(const struct cs_recording *rec, const struct cs_label *label) {
  uint32_t i;
  uint32_t id = cs_label_endpoint(label);
  if (id == 0 || !cs_map_get(&rec->function_ids, id, &i)) return "";
  return cs_recording_get(rec, rec->functions[i].text[CS_FN_TYPE]);
}

uint32_t cs_recording_status(const struct cs_recording *rec, const struct cs_label *label) {
  uint32_t request = cs_label_request(label), status = 0;
  return request != 0 && cs_map_get(&rec->statuses, request, &status) ? status : 0;
}

void cs_recording_set_symbol(struct cs_recording *rec, uint64_t frame, const char *name) {
  bool added;
  (void)cs_map_put(&rec->symbols, frame, cs_recording_text(rec, name), &added);
}

void cs_recording_set_place(struct cs_recording *rec, uint64_t frame, uint32_t file,
                            uint32_t line) {
  bool added;
  (void)cs_map_put(&rec->place_ids, frame, (uint32_t)rec->place_count, &added);
  if (!added) return;
  CS_APPEND(rec->places, rec->place_count, rec->place_capacity,
            (struct cs_rec_place){frame, file, line});
}

static uint32_t add_text(struct cs_recording *rec, struct cs_text text) {
  return cs_strings_add(&rec->strings, text.data, text.len);
}

static bool add_function(struct cs_recording *rec, const struct cs_wire_record *r) {
  struct cs_wire_function f;
  struct cs_text text[CS_FN_TEXTS];
  if (!cs_decode_function(r, &f, text) || f.kind > CS_WIRE_FN_TYPE) return false;
  bool added;
  uint32_t i = cs_map_put(&rec->function_ids, f.id, (uint32_t)rec->function_count, &added);
  if (added) {
    rec->functions = cs_grow(rec->functions, rec->function_count++, &rec->function_capacity,
                             sizeof *rec->functions);
  }
  rec->functions[i].kind = (enum cs_wire_function_kind)f.kind;
  rec->functions[i].token = f.token;
  for (int t = 0; t < CS_FN_TEXTS; t++) rec->functions[i].text[t] = add_text(rec, text[t]);
  return true;
}

static bool add_il_map(struct cs_recording *rec, const struct cs_wire_record *r) {
  struct cs_wire_il_map head;
  const struct cs_wire_il_range *ranges;
  if (!cs_decode_il_map(r, &head, &ranges)) return false;
  bool added;
  uint32_t i = cs_map_put(&rec->il_map_ids, head.function, (uint32_t)rec->il_map_count, &added);
  if (!added) return false;  // ids are unique
  CS_APPEND(rec->il_maps, rec->il_map_count, rec->il_map_capacity,
            (struct cs_rec_il_map){head, NULL});
  if (head.count == 0) return true;
  rec->il_maps[i].ranges = cs_allocate(head.count * sizeof *ranges);
  memcpy(rec->il_maps[i].ranges, ranges, head.count * sizeof *ranges);
  return true;
}

static bool add_inlines(struct cs_recording *rec, const struct cs_wire_record *r) {
  struct cs_wire_inlines head;
  const struct cs_wire_inline_node *nodes;
  const struct cs_wire_inline_mapping *mappings;
  bool added = false;
  if (!cs_decode_inlines(r, &head, &nodes, &mappings)) return false;
  uint32_t i = cs_map_put(&rec->inlines_ids, head.function, (uint32_t)rec->inlines_count, &added);
  if (!added) return false;  // ids are unique
  rec->inlines =
      cs_grow(rec->inlines, rec->inlines_count++, &rec->inlines_capacity, sizeof *rec->inlines);
  struct cs_rec_inlines *in = &rec->inlines[i];
  *in = (struct cs_rec_inlines){head, cs_allocate(head.nodes * sizeof *nodes),
                                cs_allocate(head.mappings * sizeof *mappings), NULL};
  memcpy(in->nodes, nodes, head.nodes * sizeof *nodes);
  memcpy(in->mappings, mappings, head.mappings * sizeof *mappings);
  cs_inlines_find_calls(rec, in);
  return true;
}

static uint32_t thread_index(struct cs_recording *rec, uint32_t id) {
  bool added;
  uint32_t i = cs_map_put(&rec->thread_ids, id, (uint32_t)rec->thread_count, &added);
  if (added)
    CS_APPEND(rec->threads, rec->thread_count, rec->thread_capacity,
              (struct cs_rec_thread){.id = id});
  return i;
}

static uint32_t root_index(struct cs_recording *rec, uint32_t thread, enum cs_wire_mode mode) {
  bool added;
  uint64_t key = (uint64_t)mode << 32 | thread;
  uint32_t i = cs_map_put(&rec->root_ids, key, (uint32_t)rec->root_count, &added);
  if (added)
    CS_APPEND(rec->roots, rec->root_count, rec->root_capacity,
              (struct cs_rec_root){thread_index(rec, thread), mode});
  return i;
}

static bool add_thread(struct cs_recording *rec, const struct cs_wire_record *r) {
  struct cs_wire_thread t;
  struct cs_text name;
  if (!cs_decode_thread(r, &t, &name)) return false;
  uint32_t i = thread_index(rec, t.id);
  rec->threads[i].tid = t.tid;
  // A thread that ends may lose its name: the last one that it had is kept.
  if (name.len > 0) rec->threads[i].name = add_text(rec, name);
  return true;
}

static bool add_image(struct cs_recording *rec, const struct cs_wire_record *r) {
  struct cs_rec_image image;
  struct cs_text path;
  if (!cs_decode_image(r, &image.image, &path)) return false;
  image.path = add_text(rec, path);
  bool added;
  uint32_t i = cs_map_put(&rec->image_ids, image.image.id, (uint32_t)rec->image_count, &added);
  if (added) {
    rec->images =
        cs_grow(rec->images, rec->image_count++, &rec->image_capacity, sizeof *rec->images);
  }
  rec->images[i] = image;
  return true;
}

static bool add_module(struct cs_recording *rec, const struct cs_wire_record *r) {
  struct cs_rec_module module;
  struct cs_text path, pdb;
  if (!cs_decode_module(r, &module.module, &path, &pdb)) return false;
  module.path = add_text(rec, path);
  module.pdb = add_text(rec, pdb);
  CS_APPEND(rec->modules, rec->module_count, rec->module_capacity, module);
  return true;
}

static uint32_t frame_index(struct cs_recording *rec, uint64_t key) {
  bool added;
  uint32_t i = cs_map_put(&rec->frame_ids, key, (uint32_t)rec->frame_count, &added);
  if (added) CS_APPEND(rec->frames, rec->frame_count, rec->frame_capacity, key);
  return i;
}

// Returns the node of the sample's leaf, or CS_TREE_FULL.
static uint32_t find_leaf(struct cs_recording *rec, const struct cs_wire_sample *s,
                          const uint64_t *frames) {
  uint32_t root = root_index(rec, s->thread, (enum cs_wire_mode)s->mode);
  uint32_t node = cs_tree_child(&rec->tree, 0, root);
  if (node != CS_TREE_FULL && s->stop != CS_STOP_BASE) {
    node = cs_tree_child(&rec->tree, node, frame_index(rec, cs_key_of_cut(s->stop)));
  }
  for (uint32_t i = s->frame_count; i-- > 0 && node != CS_TREE_FULL;) {
    node =
        cs_tree_child(&rec->tree, node, frame_index(rec, cs_key_of(frames[i], i == 0, rec->lines)));
  }
  return node;
}

static void count_sample(struct cs_recording *rec, enum cs_wire_mode mode,
                         const struct cs_rec_sample *s) {
  struct cs_rec_sums *sums = &rec->sums[mode];
  rec->tree.nodes[s->leaf].samples++;
  rec->tree.nodes[s->leaf].weight += s->weight;
  rec->tree.nodes[s->leaf].squares += (double)s->weight * (double)s->weight;
  rec->taken++;
  sums->samples++;
  sums->weight += s->weight;
  sums->stops[s->stop]++;
  if (s->label != CS_NO_LABEL) {
    struct cs_label_sum *sum = cs_label_sums_at(&rec->labelled, s->leaf, s->label);
    sum->samples++;
    sum->weight += s->weight;
    sums->labelled++;
  }
  if (s->time_ns > rec->last_ns) rec->last_ns = s->time_ns;
  // In wall mode, a sleeping thread is read without being held.
  if (s->held_ns > 0) {
    if (s->held_ns != CS_WIRE_NOT_HELD) cs_held_add(&rec->held, s->held_ns);
  } else {
    sums->asleep++;
    sums->asleep_weight += s->weight;
  }
  if (!rec->keep_samples) return;
  CS_APPEND(rec->samples, rec->sample_count, rec->sample_capacity, *s);
}

static uint32_t label_number(struct cs_recording *rec, const struct cs_label *label) {
  if (label == NULL) return CS_NO_LABEL;
  if (rec->labelled.count < CS_LABELS_MAX) return cs_labels_add(&rec->labels, label);
  rec->labels_full++;
  return CS_NO_LABEL;
}

// Leaf 0: the tree had no room for it.
static void count_if_there(struct cs_recording *rec, enum cs_wire_mode mode,
                           const struct cs_rec_sample *sample) {
  if (sample->leaf != 0)
    count_sample(rec, mode, sample);
  else
    rec->full++;
}

static bool add_sample(struct cs_recording *rec, const struct cs_wire_record *r) {
  struct cs_wire_sample s;
  const uint64_t *frames;
  const struct cs_label *label;
  if (!cs_decode_sample(r, &s, &frames, &label) || s.stop >= CS_STOP_COUNT || s.mode == 0 ||
      s.mode >= CS_WIRE_MODES)
    return false;
  uint32_t leaf = find_leaf(rec, &s, frames), thread = thread_index(rec, s.thread);
  struct cs_rec_sample sample = {s.time_ns, s.weight, leaf != CS_TREE_FULL ? leaf : 0,
                                 s.held_ns, s.stop,   label_number(rec, label)};
  if (s.mode == CS_WIRE_MODE_WALL) rec->threads[thread].wall = sample;
  count_if_there(rec, (enum cs_wire_mode)s.mode, &sample);
  return true;
}

static bool add_again(struct cs_recording *rec, const struct cs_wire_record *r) {
  struct cs_wire_repeat again;
  if (!CS_DECODE(r, CS_WIRE_REPEAT, &again)) return false;
  uint32_t thread = thread_index(rec, again.thread);
  struct cs_rec_sample sample = rec->threads[thread].wall;
  sample.time_ns = again.time_ns;
  sample.weight = again.weight;
  sample.held_ns = 0;
  rec->threads[thread].wall = sample;
  count_if_there(rec, CS_WIRE_MODE_WALL, &sample);
  return true;
}

bool cs_recording_add_node(struct cs_recording *rec, uint32_t parent, uint64_t frame) {
  struct cs_tree *tree = &rec->tree;
  size_t before = tree->count;
  if (parent >= before) return false;
  if (parent == 0) {
    uint64_t mode = frame >> 32;
    if (mode == 0 || mode >= CS_WIRE_MODES) return false;
    uint32_t root = root_index(rec, (uint32_t)frame, (enum cs_wire_mode)mode);
    return cs_tree_child(tree, 0, root) == before;
  }
  if (cs_key_kind(frame) == CS_KEY_CUT && cs_key_cut_reason(frame) >= rec->reason_count)
    return false;
  return cs_tree_child(tree, parent, frame_index(rec, frame)) == before;
}

bool cs_recording_add_sample(struct cs_recording *rec, enum cs_wire_mode mode,
                             const struct cs_rec_sample *sample) {
  if (sample->leaf == 0 || sample->leaf >= rec->tree.count || sample->stop >= rec->reason_count ||
      sample->label >= cs_labels_count(&rec->labels))
    return false;
  struct cs_label label = cs_labels_get(&rec->labels, sample->label);
  if (rec->only == NULL || cs_label_is_chosen(rec->only, &label, cs_recording_endpoint(rec, &label),
                                              cs_recording_status(rec, &label)))
    count_sample(rec, mode, sample);
  return true;
}

// Keeps only the labels of sleeping threads' stacks, and renumbers them.
static void forget_labels(struct cs_recording *rec) {
  struct cs_labels old = rec->labels;
  cs_labels_init(&rec->labels);
  for (size_t i = 0; i < rec->thread_count; i++) {
    struct cs_rec_sample *wall = &rec->threads[i].wall;
    if (wall->leaf == 0 || wall->label == CS_NO_LABEL) continue;
    struct cs_label label = cs_labels_get(&old, wall->label);
    wall->label = cs_labels_add(&rec->labels, &label);
  }
  cs_labels_free(&old);
  cs_label_sums_free(&rec->labelled);
}

void cs_recording_forget_samples(struct cs_recording *rec) {
  struct cs_tree *tree = &rec->tree;
  uint32_t *moved = cs_allocate(tree->count * sizeof *moved);
  for (size_t i = 0; i < tree->count; i++) {
    tree->nodes[i].samples = tree->nodes[i].weight = 0;
    tree->nodes[i].squares = 0;
  }
  for (size_t i = 0; i < rec->thread_count; i++) tree->nodes[rec->threads[i].wall.leaf].samples = 1;
  cs_tree_prune(tree, moved);
  for (size_t i = 0; i < rec->thread_count; i++)
    rec->threads[i].wall.leaf = moved[rec->threads[i].wall.leaf];
  for (size_t i = 0; i < tree->count; i++) tree->nodes[i].samples = 0;
  free(moved);
  rec->pool_waits.count = 0;
  cs_map_free(&rec->statuses);
  forget_labels(rec);
}

static bool add_start(struct cs_recording *rec, const struct cs_wire_record *r) {
  struct cs_text runtime;
  if (rec->started || !cs_decode_start(r, &rec->start, &runtime)) return false;
  rec->started = true;
  size_t len = runtime.len < sizeof rec->runtime ? runtime.len : sizeof rec->runtime - 1;
  memcpy(rec->runtime, runtime.data, len);
  return true;
}

static bool add_engine(struct cs_recording *rec, const struct cs_wire_record *r) {
  struct cs_wire_engine engine;
  struct cs_text text[CS_ENGINE_TEXTS];
  if (!cs_decode_engine(r, &engine, text)) return false;
  rec->engine = engine;
  for (int i = 0; i < CS_ENGINE_TEXTS; i++)
    rec->engine_text[i] = cs_strings_add(&rec->strings, text[i].data, text[i].len);
  return true;
}

static bool add_scans(struct cs_recording *rec, const struct cs_wire_record *r) {
  struct cs_text why;
  if (!cs_decode_scans(r, &rec->scans, &why)) return false;
  rec->scans_why = add_text(rec, why);
  return true;
}

static bool add_status(struct cs_recording *rec, const struct cs_wire_record *r) {
  struct cs_wire_status status;
  bool added;
  if (!CS_DECODE(r, CS_WIRE_STATUS, &status)) return false;
  (void)cs_map_put(&rec->statuses, status.request, status.status, &added);
  return true;
}

static bool add_events(struct cs_recording *rec, const struct cs_wire_record *r) {
  struct cs_wire_events events;
  if (!cs_decode_events(r, &events)) return false;
  rec->events[events.mode] = events;
  return true;
}

static bool add_end(struct cs_recording *rec, const struct cs_wire_record *r) {
  if (!CS_DECODE(r, CS_WIRE_END, &rec->end)) return false;
  rec->ended = true;
  return true;
}

// Returns false, and changes nothing, if the record is invalid.
static bool add(struct cs_recording *rec, const struct cs_wire_record *r) {
  switch (r->kind) {
    case CS_WIRE_START:
      return add_start(rec, r);
    case CS_WIRE_THREAD:
      return add_thread(rec, r);
    case CS_WIRE_FUNCTION:
      return add_function(rec, r);
    case CS_WIRE_IMAGE:
      return add_image(rec, r);
    case CS_WIRE_MODULE:
      return add_module(rec, r);
    case CS_WIRE_IL_MAP:
      return add_il_map(rec, r);
    case CS_WIRE_INLINES:
      return add_inlines(rec, r);
    case CS_WIRE_SAMPLE:
      return add_sample(rec, r);
    case CS_WIRE_REPEAT:
      return add_again(rec, r);
    case CS_WIRE_ENGINE:
      return add_engine(rec, r);
    case CS_WIRE_EVENTS:
      return add_events(rec, r);
    case CS_WIRE_STATUS:
      return add_status(rec, r);
    case CS_WIRE_SCANS:
      return add_scans(rec, r);
    case CS_WIRE_POOL:
      return CS_DECODE(r, CS_WIRE_POOL, &rec->pool);
    case CS_WIRE_TICKS:
      return CS_DECODE(r, CS_WIRE_TICKS, &rec->ticks);
    case CS_WIRE_TIMES:
      return CS_DECODE(r, CS_WIRE_TIMES, &rec->times);
    case CS_WIRE_PUT_OFF:
      return CS_DECODE(r, CS_WIRE_PUT_OFF, &rec->put_off);
    case CS_WIRE_LOST_SIGNALS:
      return CS_DECODE(r, CS_WIRE_LOST_SIGNALS, &rec->lost_signals);
    case CS_WIRE_SMALL_STACKS:
      return CS_DECODE(r, CS_WIRE_SMALL_STACKS, &rec->small_stacks);
    case CS_WIRE_STOPS:
      return CS_DECODE(r, CS_WIRE_STOPS, &rec->stops);
    case CS_WIRE_BUDGET:
      return CS_DECODE(r, CS_WIRE_BUDGET, &rec->budget);
    case CS_WIRE_END:
      return add_end(rec, r);
    default:
      return true;
  }
}

void cs_recording_add(struct cs_recording *rec, const struct cs_wire_record *r) {
  rec->bytes += r->size;
  if (!add(rec, r)) rec->broken++;
}

void cs_recording_free(struct cs_recording *rec) {
  cs_strings_free(&rec->strings);
  cs_tree_free(&rec->tree);
  cs_labels_free(&rec->labels);
  cs_label_sums_free(&rec->labelled);
  cs_map_free(&rec->function_ids);
  cs_map_free(&rec->thread_ids);
  cs_map_free(&rec->root_ids);
  cs_map_free(&rec->image_ids);
  cs_map_free(&rec->frame_ids);
  for (size_t i = 0; i < rec->il_map_count; i++) free(rec->il_maps[i].ranges);
  cs_map_free(&rec->il_map_ids);
  for (size_t i = 0; i < rec->inlines_count; i++) {
    free(rec->inlines[i].nodes);
    free(rec->inlines[i].mappings);
    free(rec->inlines[i].calls);
  }
  cs_map_free(&rec->inlines_ids);
  cs_map_free(&rec->statuses);
  cs_map_free(&rec->symbols);
  cs_map_free(&rec->place_ids);
  free(rec->places);
  free(rec->modules);
  if (rec->native != NULL) cs_elfsyms_free(rec->native);
  cs_kallsyms_free(rec->kernel);
  cs_target_free(rec->target);
  free(rec->samples);
  free(rec->pool_waits.items);
  free(rec->il_maps);
  free(rec->inlines);
  free(rec->functions);
  free(rec->threads);
  free(rec->roots);
  free(rec->images);
  free(rec->frames);
  memset(rec, 0, sizeof *rec);
}
