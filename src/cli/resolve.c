// SPDX-License-Identifier: MIT
// Names and kinds for every frame, and the tree rewritten with them: addresses in one function
// become one node, neighbouring frames of a library without symbols become one "[library]".
// Invariant: no sample is dropped or added. One thread. Signal-safe: no.
#include "cli/resolve.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_BYTES 4096  // longer names (generic nesting) are cut
#define LEFT_OUT UINT32_MAX

struct resolver {
  const struct cs_recording *rec;
  struct cs_profile *profile;
  const struct cs_resolve_opts *opts;
  uint32_t *frame;  // per frame of the recording: the profile's frame, or LEFT_OUT
  bool *folds;      // per frame of the recording: one with its like next to it
};

static const char *base_name(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash != NULL ? slash + 1 : path;
}

static bool starts_with(const char *text, const char *prefix) {
  return strncmp(text, prefix, strlen(prefix)) == 0;
}

static bool any_prefix(const char *name, const char *const *prefixes) {
  for (; *prefixes != NULL; prefixes++) {
    if (starts_with(name, *prefixes)) return true;
  }
  return false;
}

// What comes with the SDK and is linked into everything. Microsoft.CodeAnalysis is not among it on
// purpose: whoever records the compiler wants to see it as the program.
static bool is_framework(const char *module) {
  static const char *const prefixes[] = {"System.",
                                         "mscorlib",
                                         "netstandard",
                                         "Microsoft.Extensions.",
                                         "Microsoft.AspNet",
                                         "Microsoft.Win32.",
                                         "Microsoft.CSharp.",
                                         "Microsoft.VisualBasic.",
                                         NULL};
  return any_prefix(module, prefixes);
}

static bool is_runtime_library(const char *name) {
  static const char *const prefixes[] = {"libcoreclr",    "libclr",         "libhostfxr",
                                         "libhostpolicy", "libSystem.",     "libmscordac",
                                         "dotnet",        "singlefilehost", NULL};
  return any_prefix(name, prefixes);
}

static const char *text(const struct cs_recording *rec, uint32_t id) {
  return cs_strings_get(&rec->strings, id, NULL);
}

static uint32_t add_method(struct resolver *r, uint64_t frame, const char *method,
                           const char *module, enum cs_profile_kind kind) {
  uint32_t i;
  if (!r->opts->lines || !cs_map_get(&r->rec->place_ids, frame, &i))
    return cs_profile_frame(r->profile, method, module, kind);
  const struct cs_rec_place *place = &r->rec->places[i];
  const char *path = text(r->rec, place->file);
  const char *file = base_name(path), *back = strrchr(file, '\\');
  char name[NAME_BYTES + 512];
  (void)snprintf(name, sizeof name, "%s (%.400s:%u)", method, back != NULL ? back + 1 : file,
                 place->line);
  uint32_t id = cs_profile_frame(r->profile, name, module, kind);
  cs_profile_line(r->profile, id, method, path, place->line);
  return id;
}

static uint32_t resolve_managed(struct resolver *r, uint64_t frame) {
  uint32_t i;
  if (!cs_map_get(&r->rec->function_ids, frame >> 32, &i)) {
    return cs_profile_frame(r->profile, "[method without a name]", "", CS_KIND_CUT);
  }
  const struct cs_rec_function *f = &r->rec->functions[i];
  const char *module = base_name(text(r->rec, f->text[CS_FN_MODULE]));
  const char *space = text(r->rec, f->text[CS_FN_NAMESPACE]);
  const char *type = text(r->rec, f->text[CS_FN_TYPE]);
  const char *method = text(r->rec, f->text[CS_FN_METHOD]);
  const char *signature = r->opts->signatures ? text(r->rec, f->text[CS_FN_SIGNATURE]) : "";
  char name[NAME_BYTES];
  (void)snprintf(name, sizeof name, "%s%s%s%s%s%s", space, space[0] != '\0' ? "." : "", type,
                 type[0] != '\0' ? "." : "", method[0] != '\0' ? method : "[method without a name]",
                 signature);
  enum cs_profile_kind kind = f->kind != CS_WIRE_FN_METHOD ? CS_KIND_DYNAMIC
                              : is_framework(module)       ? CS_KIND_FRAMEWORK
                                                           : CS_KIND_USER;
  return add_method(r, frame, name, module, kind);
}

static uint32_t resolve_native(struct resolver *r, uint64_t frame, bool *folds) {
  uint32_t i, id = (uint32_t)(frame >> 40) & 0x3FFFFFu;
  if (!cs_map_get(&r->rec->image_ids, id, &i)) {
    *folds = true;
    return cs_profile_frame(r->profile, "[unknown library]", "", CS_KIND_CUT);
  }
  const char *module = base_name(text(r->rec, r->rec->images[i].path));
  enum cs_profile_kind kind = is_runtime_library(module) ? CS_KIND_RUNTIME : CS_KIND_NATIVE;
  uint32_t symbol;
  if (cs_map_get(&r->rec->symbols, frame, &symbol))
    return cs_profile_frame(r->profile, text(r->rec, symbol), module, kind);
  char name[NAME_BYTES];
  bool bracketed = module[0] == '[';  // "[vdso]"
  (void)snprintf(name, sizeof name, bracketed ? "%s" : "[%s]", module);
  *folds = true;
  return cs_profile_frame(r->profile, name, module, kind);
}

static uint32_t resolve_cut(struct resolver *r, uint64_t frame) {
  char name[64];
  (void)snprintf(name, sizeof name, "[cut: %s]",
                 text(r->rec, r->rec->reasons[frame & ~CS_REC_CUT].token));
  return cs_profile_frame(r->profile, name, "", CS_KIND_CUT);
}

static uint32_t resolve_frame(struct resolver *r, uint64_t frame, bool *folds) {
  if (frame >= CS_REC_CUT) return resolve_cut(r, frame);
  switch (CS_WIRE_FRAME_KIND(frame)) {
    case CS_WIRE_FRAME_MANAGED:
      return resolve_managed(r, frame);
    case CS_WIRE_FRAME_NATIVE:
      return r->opts->native ? resolve_native(r, frame, folds) : LEFT_OUT;
    default:
      *folds = true;
      return r->opts->native ? cs_profile_frame(r->profile, "[unknown code]", "", CS_KIND_CUT)
                             : LEFT_OUT;
  }
}

static void resolve_threads(struct resolver *r) {
  for (size_t i = 0; i < r->rec->thread_count; i++) {
    const struct cs_rec_thread *t = &r->rec->threads[i];
    (void)cs_profile_thread(r->profile, text(r->rec, t->name), t->tid);
  }
}

// The profile's node for a node of the recording, given its parent's.
static uint32_t place(struct resolver *r, const struct cs_node *node, uint32_t parent) {
  struct cs_tree *tree = &r->profile->tree;
  if (node->parent == 0) return cs_tree_child(tree, 0, node->frame);  // a thread
  uint32_t frame = r->frame[node->frame];
  if (frame == LEFT_OUT) return parent;
  bool in_stack = tree->nodes[parent].parent != 0;
  if (r->folds[node->frame] && in_stack && tree->nodes[parent].frame == frame) return parent;
  return cs_tree_child(tree, parent, frame);
}

static void copy_samples(struct resolver *r, const uint32_t *map) {
  struct cs_profile *p = r->profile;
  p->samples = cs_allocate(r->rec->sample_count * sizeof *p->samples);
  p->sample_count = r->rec->sample_count;
  for (size_t i = 0; i < p->sample_count; i++) {
    const struct cs_rec_sample *s = &r->rec->samples[i];
    p->samples[i] =
        (struct cs_profile_sample){s->time_ns, s->weight_ns, map[s->leaf], s->held_ns == 0};
  }
}

static void rewrite_tree(struct resolver *r) {
  const struct cs_tree *raw = &r->rec->tree;
  uint32_t *map = cs_allocate(raw->count * sizeof *map);
  for (size_t i = 1; i < raw->count; i++) {
    const struct cs_node *node = &raw->nodes[i];
    // Never CS_TREE_FULL: no more nodes than the recording's tree.
    map[i] = place(r, node, map[node->parent]);
    r->profile->tree.nodes[map[i]].samples += node->samples;
    r->profile->tree.nodes[map[i]].weight_ns += node->weight_ns;
  }
  copy_samples(r, map);
  free(map);
}

static int by_count(const void *a, const void *b) {
  const struct cs_profile_stop *x = a, *y = b;
  return x->count < y->count ? 1 : x->count > y->count ? -1 : strcmp(x->token, y->token);
}

static void fill_stops(const struct cs_recording *rec, struct cs_facts *f) {
  f->complete = rec->stops[rec->complete];
  for (unsigned i = 0; i < rec->reason_count; i++) {
    if (i == rec->complete || rec->stops[i] == 0) continue;
    const struct cs_rec_reason *reason = &rec->reasons[i];
    f->stops[f->stop_count++] =
        (struct cs_profile_stop){text(rec, reason->token), text(rec, reason->text), rec->stops[i]};
  }
  qsort(f->stops, f->stop_count, sizeof *f->stops, by_count);
}

static void fill_facts(const struct cs_recording *rec, struct cs_facts *f) {
  memcpy(f->runtime, rec->runtime, sizeof f->runtime);
  f->program = text(rec, rec->meta.program);
  f->mode = rec->meta.mode == CS_WIRE_MODE_WALL ? "wall" : "cpu";
  f->hz = rec->meta.hz;
  f->pid = rec->start.pid;
  f->start_ns = rec->start.start_ns;
  f->duration_ns = rec->totals.recorded_ns > rec->last_ns ? rec->totals.recorded_ns : rec->last_ns;
  f->samples = rec->taken;
  f->lost_broken = rec->totals.broken + rec->broken;
  f->lost_full = rec->totals.full + rec->full;
  // The END record has it too, but a target that was killed has only the first one.
  f->lost_ring = rec->finished ? rec->totals.lost_ring : rec->end.lost_wire;
  fill_stops(rec, f);
  f->asleep = rec->asleep;
  f->held_count = rec->held.count;
  f->held_p50_ns = cs_held_percentile(&rec->held, 0.50);
  f->held_p99_ns = cs_held_percentile(&rec->held, 0.99);
  f->held_max_ns = rec->held.max_ns;
  f->ended = rec->ended;
  f->suspensions = rec->end.runtime_suspensions;
  f->overruns = rec->end.overruns;
  f->lost_target = rec->end.lost_ring;
}

void cs_resolve(const struct cs_recording *rec, const struct cs_resolve_opts *opts,
                struct cs_profile *profile) {
  struct resolver r = {.rec = rec, .profile = profile, .opts = opts};
  r.frame = cs_allocate(rec->frame_count * sizeof *r.frame);
  r.folds = cs_allocate(rec->frame_count * sizeof *r.folds);
  resolve_threads(&r);
  for (size_t i = 0; i < rec->frame_count; i++) {
    r.frame[i] = resolve_frame(&r, rec->frames[i], &r.folds[i]);
  }
  rewrite_tree(&r);
  fill_facts(rec, &profile->facts);
  if (opts->lines) profile->facts.lines = rec->line_facts;
  free(r.frame);
  free(r.folds);
}
