// SPDX-License-Identifier: MIT
// Building a profile. Invariant: a (name, module) is one frame. One thread. Signal-safe: no.
#include "profile/profile.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/print.h"

void cs_profile_init(struct cs_profile *p) {
  memset(p, 0, sizeof *p);
  cs_tree_init(&p->tree);
}

uint32_t cs_profile_frame(struct cs_profile *p, const char *name, const char *module,
                          enum cs_profile_kind kind) {
  uint32_t n = cs_strings_add(&p->strings, name, strlen(name));
  uint32_t m = cs_strings_add(&p->strings, module, strlen(module));
  bool added;
  uint32_t id = cs_map_put(&p->frame_ids, (uint64_t)n << 32 | m, (uint32_t)p->frame_count, &added);
  if (!added) return id;
  CS_APPEND(p->frames, p->frame_count, p->frame_capacity,
            (struct cs_profile_frame){n, m, kind, CS_NO_TEXT, CS_NO_TEXT, 0, false});
  return id;
}

void cs_profile_line(struct cs_profile *p, uint32_t frame, const char *method, const char *file,
                     uint32_t line) {
  p->frames[frame].method = cs_strings_add(&p->sources, method, strlen(method));
  p->frames[frame].file = cs_strings_add(&p->sources, file, strlen(file));
  p->frames[frame].line = line;
}

void cs_profile_inlined(struct cs_profile *p, uint32_t frame, const char *method) {
  p->frames[frame].inlined = true;
  p->frames[frame].method = cs_strings_add(&p->sources, method, strlen(method));
}

void cs_profile_inlining(struct cs_profile *p, const char *method, const char *into) {
  struct cs_profile_inlining pair = {cs_strings_add(&p->strings, method, strlen(method)),
                                     cs_strings_add(&p->strings, into, strlen(into))};
  bool added;
  (void)cs_map_put(&p->inlining_ids, (uint64_t)pair.method << 32 | pair.into, 0, &added);
  if (!added) return;
  CS_APPEND(p->inlining, p->inlining_count, p->inlining_capacity, pair);
}

// A thread that does not exist: it has no tid.
static bool is_unwalked(const struct cs_profile *p, uint32_t thread) {
  const struct cs_profile_thread *t = &p->threads[thread];
  return t->tid == 0 && strcmp(cs_strings_get(&p->strings, t->name, NULL), CS_WIRE_UNWALKED) == 0;
}

void cs_profile_add_unwalked(struct cs_profile *p) {
  const struct cs_node *nodes = p->tree.nodes;
  for (size_t i = 1; i < p->tree.count; i++) {
    const struct cs_node *above = &nodes[nodes[i].parent];
    if (nodes[i].parent == 0 || above->parent != 0 || !is_unwalked(p, above->frame)) continue;
    p->facts.unwalked += nodes[i].samples;
    p->facts.unwalked_weight += nodes[i].weight;
  }
}

const char *cs_profile_method(const struct cs_profile *p, uint32_t frame, size_t *len) {
  const struct cs_profile_frame *f = &p->frames[frame];
  return f->method != CS_NO_TEXT ? cs_strings_get(&p->sources, f->method, len)
                                 : cs_strings_get(&p->strings, f->name, len);
}

const char *cs_profile_module(const struct cs_profile *p, uint32_t frame, size_t *len) {
  return cs_strings_get(&p->strings, p->frames[frame].module, len);
}

const char *cs_profile_file(const struct cs_profile *p, uint32_t frame, size_t *len) {
  if (p->frames[frame].file == CS_NO_TEXT) return NULL;
  return cs_strings_get(&p->sources, p->frames[frame].file, len);
}

uint32_t cs_profile_thread(struct cs_profile *p, const char *name, uint32_t tid) {
  uint32_t n = cs_strings_add(&p->strings, name, strlen(name));
  CS_APPEND(p->threads, p->thread_count, p->thread_capacity, (struct cs_profile_thread){n, tid});
  return (uint32_t)p->thread_count - 1;
}

static uint32_t copy_frame(struct cs_profile *to, const struct cs_profile *from, uint32_t frame) {
  const struct cs_profile_frame *f = &from->frames[frame];
  const char *name = cs_strings_get(&from->strings, f->name, NULL);
  uint32_t id = cs_profile_frame(to, name, cs_profile_module(from, frame, NULL), f->kind);
  if (f->file != CS_NO_TEXT)
    cs_profile_line(to, id, cs_profile_method(from, frame, NULL),
                    cs_profile_file(from, frame, NULL), f->line);
  if (f->inlined) cs_profile_inlined(to, id, cs_profile_method(from, frame, NULL));
  return id;
}

uint32_t *cs_profile_join(struct cs_profile *to, const struct cs_profile *from,
                          const uint32_t *thread) {
  uint32_t *frame = cs_allocate(from->frame_count * sizeof *frame);
  for (uint32_t i = 0; i < from->frame_count; i++) frame[i] = copy_frame(to, from, i);
  uint32_t *node = cs_tree_join(&to->tree, &from->tree, thread, frame);
  free(frame);
  for (size_t i = 0; i < from->inlining_count; i++)
    cs_profile_inlining(to, cs_strings_get(&from->strings, from->inlining[i].method, NULL),
                        cs_strings_get(&from->strings, from->inlining[i].into, NULL));
  return node;
}

void cs_profile_free(struct cs_profile *p) {
  cs_strings_free(&p->strings);
  cs_strings_free(&p->sources);
  cs_map_free(&p->frame_ids);
  cs_map_free(&p->inlining_ids);
  cs_tree_free(&p->tree);
  cs_label_sums_free(&p->labelled);
  free(p->frames);
  free(p->threads);
  free(p->samples);
  free(p->inlining);
  free(p->endpoints);
  free(p->statuses);
  memset(p, 0, sizeof *p);
}

void cs_put_samples(FILE *out, const struct cs_facts *f) {
  const struct cs_mode *mode = cs_mode_of(f);
  bool some = !mode->timed && f->events > f->samples;
  bool pauses = f->mode == CS_WIRE_MODE_GC && f->events > 0;
  uint64_t count = some || pauses ? f->events : f->samples;
  const char *what = f->part ? (count == 1 ? "sample" : "samples") : mode->what[count != 1];
  cs_print(out, "%" PRIu64 " %s", count, what);
  if (some) cs_print(out, ", %" PRIu64 " of them walked", f->samples - f->unwalked);
}

bool cs_facts_have_all(const struct cs_facts *f) {
  return !f->part && !cs_mode_of(f)->timed && f->mode != CS_WIRE_MODE_ALLOC &&
         f->mode != CS_WIRE_MODE_HOLDERS && f->event == 0 && f->samples >= f->events &&
         f->lost_samples == 0;
}

bool cs_facts_are_by_count(const struct cs_facts *f) {
  return f->mode == CS_WIRE_MODE_ALLOC && strncmp(f->runtime, "9.", 2) == 0;
}

uint64_t cs_facts_whole(const struct cs_facts *f) {
  return f->events > 0 ? f->events_value : f->weight;
}

static const struct {
  const char *token, *label;
} kinds[] = {
#define NAMES(name, token, label) {token, label},
    CS_FRAME_KINDS(NAMES)
#undef NAMES
};

const char *cs_kind_token(enum cs_profile_kind kind) {
  return kinds[kind].token;
}

const char *cs_kind_label(enum cs_profile_kind kind) {
  return kinds[kind].label;
}
