// SPDX-License-Identifier: MIT
// Gives every frame its name and kind, and rewrites the tree: addresses in one function become one
// node, neighbouring frames of a library without symbols become one "[library]", and an async
// method is one frame, although the compiler made two methods of it. Invariant: no sample is
// dropped or added. One thread. Signal-safe: no.
#include "naming/resolve.h"
#include "base/prefix.h"
#include "naming/endpoints.h"
#include "profile/blocked.h"
#include "profile/traces.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "demangle/demangle.h"
#include "naming/facts.h"
#include "naming/inlined.h"
#include "naming/module_kind.h"
#include "naming/pool_cause.h"
#include "naming/runtime_part.h"
#include "naming/thread_names.h"
#include "naming/type_name.h"

#define NAME_BYTES 4096  // longer names (generic nesting) are truncated
#define LEFT_OUT UINT32_MAX
#define NO_NAME 0u
#define AWAITS " [awaits]"
#define IN_KERNEL " [k]"

// How a frame of the recording is shown.
struct shown {
  uint32_t frame;  // frame of the profile, or LEFT_OUT
  uint32_t alone;  // the same without "(inlined)", where its caller is not shown below it
  bool collapses;  // neighbours with the same frame become one
  // If the method's name was demangled:
  enum cs_demangled kind;
  bool starts;    // it is between an async method and its body, which it starts
  bool resumes;   // it resumes a body
  bool awaits;    // it is not on the stack: it awaits its child
  uint32_t name;  // string id in `names`, without line and signature
};

struct resolver {
  const struct cs_recording *rec;
  struct cs_profile *profile;
  const struct cs_resolve_opts *opts;
  enum cs_wire_mode mode;
  const struct cs_inlined *raw;
  struct shown *shown;  // by frame of `raw`
  bool *used;           // by frame of `raw`: this mode has it
  uint32_t *node;       // by node of `raw`: the profile's, or LEFT_OUT
  bool *resuming;       // by node of `raw`: it is between a body and its awaiting method
  struct cs_strings names;
  uint32_t *thread;           // by thread of the recording: the profile's
  const uint32_t *endpoints;  // by function (endpoints.h); NULL: none
  struct cs_runtime_place runtime;
};

static uint32_t add_method(struct resolver *r, uint64_t frame, const char *method,
                           const char *module, enum cs_profile_kind kind, const char *suffix) {
  uint32_t i;
  char name[NAME_BYTES + 512];
  if (!r->opts->lines || !cs_map_get(&r->rec->place_ids, frame, &i)) {
    (void)snprintf(name, sizeof name, "%s%s", method, suffix);
    return cs_profile_frame(r->profile, name, module, kind);
  }
  const struct cs_rec_place *place = &r->rec->places[i];
  const char *path = cs_recording_get(r->rec, place->file);
  (void)snprintf(name, sizeof name, "%s (%.400s:%u)%s", method, cs_file_of_source(path),
                 place->line, suffix);
  uint32_t id = cs_profile_frame(r->profile, name, module, kind);
  cs_profile_line(r->profile, id, method, path, place->line);
  return id;
}

static uint32_t resolve_type(struct resolver *r, const char *raw) {
  char name[NAME_BYTES];
  cs_type_name(raw, name, sizeof name);
  return cs_profile_frame(r->profile, name, "", CS_KIND_TYPE);
}

static bool starts_async(const struct cs_mangled *m) {
  return strcmp(m->space, "System.Runtime.CompilerServices") == 0 &&
         strstr(m->type, "MethodBuilder") != NULL && cs_has_prefix(m->method, "Start<");
}

static bool resumes_async(const struct cs_mangled *m) {
  if (strcmp(m->space, "System.Threading") == 0)
    return strcmp(m->type, "ExecutionContext") == 0 && cs_has_prefix(m->method, "Run");
  if (strcmp(m->space, "System.Threading.Tasks") == 0)
    return strcmp(m->method, "ExecuteWithThreadLocal") == 0 ||
           strcmp(m->method, "InnerInvoke") == 0 || strcmp(m->type, "Task.<>c") == 0;
  return strcmp(m->space, "System.Runtime.CompilerServices") == 0 &&
         strstr(m->type, "StateMachineBox<") != NULL;
}

// For methods with metadata; the runtime names all others.
static void demangle(struct resolver *r, const struct cs_mangled *m, char *name, size_t cap,
                     struct shown *shown) {
  struct cs_mangled plain = *m;
  plain.show_signature = false;
  shown->kind = cs_demangle(&plain, name, cap);
  shown->starts = starts_async(m);
  shown->resumes = resumes_async(m);
  shown->name = cs_strings_add(&r->names, name, strlen(name));
  if (m->show_signature) (void)cs_demangle(m, name, cap);
}

static void write_raw(const struct cs_mangled *m, char *name, size_t cap) {
  (void)snprintf(name, cap, "%s%s%s%s%s%s", m->space, m->space[0] != '\0' ? "." : "", m->type,
                 m->type[0] != '\0' ? "." : "",
                 m->method[0] != '\0' ? m->method : "[method without a name]",
                 m->show_signature ? m->signature : "");
}

static void write_name(struct resolver *r, const struct cs_rec_function *f, char name[NAME_BYTES],
                       struct shown *shown) {
  struct cs_mangled m = {.space = cs_recording_get(r->rec, f->text[CS_FN_NAMESPACE]),
                         .type = cs_recording_get(r->rec, f->text[CS_FN_TYPE]),
                         .method = cs_recording_get(r->rec, f->text[CS_FN_METHOD]),
                         .signature = cs_recording_get(r->rec, f->text[CS_FN_SIGNATURE]),
                         .show_signature = r->opts->signatures};
  if (r->opts->raw_names || f->kind != CS_WIRE_FN_METHOD || m.method[0] == '\0')
    write_raw(&m, name, NAME_BYTES);
  else
    demangle(r, &m, name, NAME_BYTES, shown);
}

// The delegate of an endpoint has the endpoint's name. Returns whether it is one.
static bool write_endpoint(const struct resolver *r, uint32_t function, char name[NAME_BYTES]) {
  uint32_t endpoint = r->endpoints != NULL ? r->endpoints[function] : 0;
  if (endpoint != 0 && !r->opts->raw_names)
    (void)snprintf(name, NAME_BYTES, CS_ENDPOINT_PREFIX "%s",
                   cs_recording_get(r->rec, r->rec->functions[endpoint - 1].text[CS_FN_TYPE]));
  return endpoint != 0;
}

static void resolve_managed(struct resolver *r, uint64_t frame, struct shown *shown) {
  uint32_t i;
  if (!cs_map_get(&r->rec->function_ids, cs_wire_frame_function(frame), &i)) {
    shown->frame = cs_profile_frame(r->profile, "[method without a name]", "", CS_KIND_CUT);
    return;
  }
  const struct cs_rec_function *f = &r->rec->functions[i];
  if (f->kind == CS_WIRE_FN_TYPE) {
    shown->frame = resolve_type(r, cs_recording_get(r->rec, f->text[CS_FN_TYPE]));
    return;
  }
  const char *module = cs_file_of(cs_recording_get(r->rec, f->text[CS_FN_MODULE]));
  char name[NAME_BYTES];
  write_name(r, f, name, shown);
  // It counts as own code: the JIT inlines small handlers into it.
  enum cs_profile_kind kind = write_endpoint(r, i, name)       ? CS_KIND_USER
                              : f->kind != CS_WIRE_FN_METHOD   ? CS_KIND_DYNAMIC
                              : cs_module_is_framework(module) ? CS_KIND_FRAMEWORK
                                                               : CS_KIND_USER;
  shown->awaits = cs_key_awaits(frame);
  if (shown->awaits && r->opts->async_callers) {
    (void)strncat(name, AWAITS, sizeof name - strlen(name) - 1);
    shown->frame = cs_profile_frame(r->profile, name, module, CS_KIND_AWAITS);
    return;
  }
  if (shown->awaits) shown->frame = LEFT_OUT;
  if (shown->awaits) return;
  shown->alone = shown->frame = add_method(r, frame, name, module, kind, "");
  if (!cs_key_is_inlined(frame)) return;
  shown->frame = add_method(r, frame, name, module, kind, " (inlined)");
  cs_profile_inlined(r->profile, shown->frame, name);
}

static uint32_t resolve_native(struct resolver *r, uint64_t frame, bool *collapses) {
  uint32_t i;
  if (!cs_map_get(&r->rec->image_ids, cs_wire_frame_image(frame), &i)) {
    *collapses = true;
    return cs_profile_frame(r->profile, "[unknown library]", "", CS_KIND_CUT);
  }
  const struct cs_rec_image *image = &r->rec->images[i];
  const char *module = cs_file_of(cs_recording_get(r->rec, image->path));
  bool named = cs_module_is_runtime(module);
  bool runtime = named || (image->image.flags & CS_WIRE_IMAGE_RUNTIME) != 0;
  enum cs_profile_kind kind = runtime ? CS_KIND_RUNTIME : CS_KIND_NATIVE;
  uint32_t symbol;
  // The cost of recording on the program's threads is shown as one frame.
  if (!r->opts->raw_names && strcmp(module, "libclrsnap.so") == 0) {
    *collapses = true;
    return cs_profile_frame(r->profile, "[clrsnap]", module, kind);
  }
  if (cs_map_get(&r->rec->symbols, frame, &symbol) &&
      cs_runtime_class_shown(cs_recording_get(r->rec, symbol)) == CS_RUNTIME_UNKNOWN)
    return cs_profile_frame(r->profile, cs_recording_get(r->rec, symbol), module, kind);
  char name[NAME_BYTES];
  bool bracketed = module[0] == '[';                        // "[vdso]"
  const char *part = runtime && !named ? ": runtime" : "";  // in a single-file program
  (void)snprintf(name, sizeof name, bracketed ? "%s" : "[%s%s]", module, part);
  *collapses = true;
  return cs_profile_frame(r->profile, name, module, kind);
}

static uint32_t resolve_kernel(struct resolver *r, uint64_t frame, bool *collapses) {
  uint32_t symbol;
  char name[NAME_BYTES];
  *collapses = !cs_map_get(&r->rec->symbols, frame, &symbol);
  (void)snprintf(name, sizeof name, "%.4000s%s",
                 *collapses ? "[kernel]" : cs_recording_get(r->rec, symbol),
                 *collapses ? "" : IN_KERNEL);
  return cs_profile_frame(r->profile, name, "[kernel]", CS_KIND_KERNEL);
}

static uint32_t resolve_cut(struct resolver *r, uint64_t frame) {
  char name[64];
  (void)snprintf(name, sizeof name, "[cut: %s]",
                 cs_recording_get(r->rec, r->rec->reasons[cs_key_cut_reason(frame)].token));
  return cs_profile_frame(r->profile, name, "", CS_KIND_CUT);
}

static void resolve_frame(struct resolver *r, uint64_t frame, struct shown *shown) {
  enum cs_key_kind kind = cs_key_kind(frame);
  if (kind != CS_KEY_CUT && kind != CS_KEY_MANAGED && !r->opts->native) {
    shown->frame = LEFT_OUT;
    return;
  }
  switch (kind) {
    case CS_KEY_CUT:
      shown->frame = resolve_cut(r, frame);
      break;
    case CS_KEY_MANAGED:
      resolve_managed(r, frame, shown);
      break;
    case CS_KEY_NATIVE:
      shown->frame = resolve_native(r, frame, &shown->collapses);
      break;
    case CS_KEY_KERNEL:
      shown->frame = resolve_kernel(r, frame, &shown->collapses);
      break;
    default:
      shown->collapses = true;
      shown->frame = cs_profile_frame(r->profile, "[unknown code]", "", CS_KIND_CUT);
  }
}

// Returns the node of `raw` that this one replaces, because both are the same method in the source:
// an async method that has just started its body, which is this node. 0: none. A body that calls
// its own method again replaces nothing.
static uint32_t started_by(const struct resolver *r, const struct cs_node *node) {
  const struct cs_node *nodes = r->raw->tree->nodes;
  const struct shown *shown = &r->shown[node->frame];
  bool body = shown->kind == CS_DEMANGLED_BODY;
  uint32_t i = node->parent;
  while (body && nodes[i].parent != 0 && r->shown[nodes[i].frame].starts) i = nodes[i].parent;
  if (shown->name == NO_NAME || nodes[i].parent == 0) return 0;
  const struct shown *other = &r->shown[nodes[i].frame];
  bool fits = body ? i != node->parent && other->kind != CS_DEMANGLED_BODY
                   : other->kind == CS_DEMANGLED_ENTRY;
  return fits && other->name == shown->name ? i : 0;
}

// Returns the parent of a node in the profile. The frames that have resumed an async method, down
// to the thread's first frame, are not its callers: the methods that await it take their place, and
// the outermost of those is a child of the thread.
static uint32_t parent_of(struct resolver *r, uint32_t i, const uint32_t *map) {
  const struct cs_node *nodes = r->raw->tree->nodes, *node = &nodes[i];
  bool on_thread = nodes[node->parent].parent == 0;
  const struct shown *shown = &r->shown[node->frame];
  const struct shown *below = &r->shown[nodes[node->parent].frame];
  bool awaited = !on_thread && below->awaits;
  r->resuming[i] = shown->resumes && !on_thread && (awaited || r->resuming[node->parent]);
  if (!shown->awaits || awaited) return map[node->parent];
  uint32_t thread = node->parent;
  while (nodes[thread].parent != 0) thread = nodes[thread].parent;
  return map[thread];
}

// Returns the profile's node for a node of `raw`. `map` has those of all nodes before it.
static uint32_t place(struct resolver *r, uint32_t i, const uint32_t *map) {
  const struct cs_node *node = &r->raw->tree->nodes[i];
  struct cs_tree *tree = &r->profile->tree;
  if (node->parent == 0)
    return cs_tree_child(tree, 0, r->thread[r->rec->roots[node->frame].thread]);
  const struct shown *shown = &r->shown[node->frame];
  uint32_t parent = map[node->parent], other = started_by(r, node);
  if (r->opts->async_callers) parent = parent_of(r, i, map);
  if (shown->frame == LEFT_OUT || (r->opts->async_callers && r->resuming[i])) return parent;
  uint32_t of_runtime;
  if (cs_runtime_place(&r->runtime, i, shown->frame, &parent, &of_runtime)) return of_runtime;
  // A sibling of the replaced node, since the line may differ.
  if (other != 0) parent = tree->nodes[map[other]].parent;
  if (other != 0) return cs_tree_child(tree, parent, shown->alone);
  bool in_stack = tree->nodes[parent].parent != 0;
  if (shown->collapses && in_stack && tree->nodes[parent].frame == shown->frame) return parent;
  return cs_tree_child(tree, parent, shown->frame);
}

// Finds the nodes (r->node) and frames (r->used) of this mode.
static void find_used(struct resolver *r) {
  const struct cs_tree *raw = r->raw->tree;
  for (size_t i = 1; i < raw->count; i++) {
    const struct cs_node *node = &raw->nodes[i];
    bool in_mode = node->parent == 0 ? r->rec->roots[node->frame].mode == r->mode
                                     : r->node[node->parent] != LEFT_OUT;
    r->node[i] = in_mode ? 0 : LEFT_OUT;
    if (in_mode && node->parent != 0) r->used[node->frame] = true;
  }
}

// Returns the profile's node for a node of the recording, or LEFT_OUT.
static uint32_t shown_at(const struct resolver *r, uint32_t node) {
  return r->node[r->raw->node != NULL ? r->raw->node[node] : node];
}

static void copy_samples(struct resolver *r) {
  struct cs_profile *p = r->profile;
  p->samples = cs_allocate(r->rec->sample_count * sizeof *p->samples);
  for (size_t i = 0; i < r->rec->sample_count; i++) {
    const struct cs_rec_sample *s = &r->rec->samples[i];
    uint32_t leaf = shown_at(r, s->leaf);
    if (leaf == LEFT_OUT) continue;
    p->samples[p->sample_count++] =
        (struct cs_profile_sample){s->time_ns, s->weight, leaf, s->label, s->held_ns == 0};
  }
}

static void copy_labels(struct resolver *r) {
  struct cs_profile *p = r->profile;
  p->labels = &r->rec->labels;
  for (size_t i = 0; i < r->rec->labelled.count; i++) {
    const struct cs_label_sum *from = &r->rec->labelled.items[i];
    uint32_t node = shown_at(r, from->node);
    if (node == LEFT_OUT) continue;
    struct cs_label_sum *to = cs_label_sums_at(&p->labelled, node, from->label);
    to->samples += from->samples;
    to->weight += from->weight;
  }
  cs_label_sums_sort(&p->labelled);
  if (p->labelled.count == 0) return;
  p->endpoints = cs_endpoints_by_label(r->rec);
  p->statuses = cs_statuses_by_label(r->rec);
}

static void rewrite_tree(struct resolver *r) {
  const struct cs_tree *raw = r->raw->tree;
  for (size_t i = 1; i < raw->count; i++) {
    const struct cs_node *node = &raw->nodes[i];
    if (r->node[i] == LEFT_OUT) continue;
    // Never CS_TREE_FULL: there are no more nodes than in `raw`.
    r->node[i] = place(r, (uint32_t)i, r->node);
    r->profile->tree.nodes[r->node[i]].samples += node->samples;
    r->profile->tree.nodes[r->node[i]].weight += node->weight;
    r->profile->tree.nodes[r->node[i]].squares += node->squares;
  }
  // If all stacks of a method were moved to its body's node, the method's own node is empty.
  uint32_t *moved = cs_allocate(r->profile->tree.count * sizeof *moved);
  cs_tree_prune(&r->profile->tree, moved);
  for (size_t i = 1; i < raw->count; i++)
    if (r->node[i] != LEFT_OUT) r->node[i] = moved[r->node[i]];
  free(moved);
  copy_samples(r);
  copy_labels(r);
}

static bool name_of_function(struct resolver *r, uint32_t function, char name[NAME_BYTES]) {
  uint32_t i;
  struct shown unused = {0};
  if (!cs_map_get(&r->rec->function_ids, function, &i)) return false;
  write_name(r, &r->rec->functions[i], name, &unused);
  return true;
}

// What was inlined into this mode's methods, whether or not there are samples of it.
static void add_inlining(struct resolver *r) {
  char method[NAME_BYTES], into[NAME_BYTES];
  struct cs_map sampled = {0};
  bool added;
  uint32_t unused;
  for (size_t i = 0; i < r->raw->frame_count; i++)
    if (r->used[i] && cs_key_kind(r->raw->frames[i]) == CS_KEY_MANAGED)
      (void)cs_map_put(&sampled, cs_wire_frame_function(r->raw->frames[i]), 0, &added);
  for (size_t i = 0; i < r->rec->inlines_count; i++) {
    const struct cs_rec_inlines *in = &r->rec->inlines[i];
    if (!cs_map_get(&sampled, in->head.function, &unused) ||
        !name_of_function(r, in->head.function, into))
      continue;
    for (uint32_t n = 1; n < in->head.nodes; n++)
      if (name_of_function(r, in->nodes[n].function, method))
        cs_profile_inlining(r->profile, method, into);
  }
  cs_map_free(&sampled);
}

static void resolve_mode(const struct cs_inlined *raw, enum cs_wire_mode mode,
                         const struct cs_resolve_opts *opts, const uint32_t *endpoints,
                         const struct cs_runtime_part *runtime, struct cs_profile *profile) {
  const struct cs_recording *rec = raw->rec;
  struct resolver r = {.rec = rec, .profile = profile, .opts = opts, .mode = mode, .raw = raw};
  r.endpoints = endpoints;
  cs_profile_init(profile);
  r.shown = cs_allocate(raw->frame_count * sizeof *r.shown);
  r.used = cs_allocate(raw->frame_count * sizeof *r.used);
  r.node = cs_allocate(raw->tree->count * sizeof *r.node);
  r.resuming = cs_allocate(raw->tree->count * sizeof *r.resuming);
  (void)cs_strings_add(&r.names, "", 0);  // NO_NAME
  r.thread = cs_thread_names(rec, opts->group_threads, profile);
  find_used(&r);
  if (runtime != NULL) cs_runtime_place_begin(&r.runtime, runtime, raw, profile);
  for (size_t i = 0; i < raw->frame_count; i++) {
    if (r.used[i]) resolve_frame(&r, raw->frames[i], &r.shown[i]);
  }
  rewrite_tree(&r);
  add_inlining(&r);
  cs_facts_fill(&profile->facts, rec, mode);
  cs_profile_add_unwalked(profile);
  cs_blocked_find(profile);
  if (mode == CS_WIRE_MODE_WALL) cs_pool_cause_find(profile, rec, r.raw->node, r.node, LEFT_OUT);
  if (opts->lines) profile->facts.lines = rec->line_facts;
  if (opts->native) profile->facts.symbols = rec->symbol_facts;
  if (runtime != NULL) cs_runtime_place_end(&r.runtime, r.node, LEFT_OUT);
  cs_strings_free(&r.names);
  free(r.shown);
  free(r.used);
  free(r.node);
  free(r.resuming);
  free(r.thread);
}

size_t cs_resolve(const struct cs_recording *rec, uint32_t modes,
                  const struct cs_resolve_opts *opts, struct cs_profile *profiles) {
  struct cs_inlined raw;
  size_t count = 0;
  uint32_t *endpoints = cs_endpoints_of_functions(rec);
  struct cs_runtime_part runtime = {NULL};
  cs_inlined_make(&raw, rec);
  if (opts->native && !opts->raw_names) cs_runtime_part_make(&runtime, &raw);
  for (unsigned mode = 0; mode < CS_WIRE_MODES; mode++)
    if ((modes & CS_WIRE_MODE_BIT(mode)) != 0)
      resolve_mode(&raw, (enum cs_wire_mode)mode, opts, endpoints,
                   runtime.nodes != NULL ? &runtime : NULL, &profiles[count++]);
  cs_runtime_part_free(&runtime);
  cs_inlined_free(&raw);
  free(endpoints);
  return count;
}

static bool is_announced(const struct cs_recording *rec, uint64_t frame) {
  uint32_t i;
  enum cs_key_kind kind = cs_key_kind(frame);
  if (kind == CS_KEY_MANAGED)
    return cs_map_get(&rec->function_ids, cs_wire_frame_function(frame), &i);
  return kind != CS_KEY_NATIVE || cs_map_get(&rec->image_ids, cs_wire_frame_image(frame), &i);
}

bool cs_resolve_frame(const struct cs_recording *rec, size_t frame, struct cs_profile *profile,
                      struct cs_resolved *out) {
  const struct cs_resolve_opts opts = {.native = true, .async_callers = true};
  struct resolver r = {.rec = rec, .profile = profile, .opts = &opts};
  uint64_t chain[CS_INLINED_DEPTH];
  size_t count = cs_inlined_at(rec, rec->frames[frame], chain);
  bool known = true;
  if (count == 0) chain[count++] = rec->frames[frame];
  *out = (struct cs_resolved){.count = count};
  for (size_t i = 0; i < count; i++) {
    struct shown shown = {.alone = LEFT_OUT};
    resolve_frame(&r, chain[i], &shown);
    out->methods[i] =
        cs_key_is_inlined(chain[i]) && shown.alone != LEFT_OUT ? shown.alone : shown.frame;
    out->awaits = shown.awaits;
    out->resumes = shown.resumes;
    known = known && is_announced(rec, chain[i]);
  }
  cs_strings_free(&r.names);
  return known;
}
