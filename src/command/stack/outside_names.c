// SPDX-License-Identifier: MIT
// Names of the frames of a stopped process. The runtime's memory says which method a frame is of
// (codemap/method.h), and the module's metadata, which is in memory too, what it is called; names
// of native code are in ELF files. Invariants: nothing of the process is used before it is read
// completely; of a managed module no file but its PDB is read, so its own file may be gone; a frame
// without a name is shown as what it is. One thread. Signal-safe: no.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "base/prefix.h"
#include "codemap/method.h"
#include "demangle/demangle.h"
#include "images/images.h"
#include "metadata/elfsym.h"
#include "naming/place.h"
#include "objects/generics.h"
#include "objects/text.h"
#include "profile/waits.h"
#include "remote/il.h"
#include "stack/outside.h"
#include "util/map.h"

enum { MAX_NAME = 4096 };

struct cs_outside_names {
  const struct cs_world *world;
  struct cs_heap_modules *modules;
  struct cs_heap_generics *generics;
  const struct cs_image **images;  // by number; owned by the remote's table
  size_t image_count, image_capacity;
  struct cs_elfsyms *syms;
  struct cs_map il;      // by ip: deep recursions have few
  struct cs_map native;  // by address: the index in `native_names`
  char **native_names;
  size_t native_count, native_capacity;
  bool raw;
};

struct cs_outside_names *cs_outside_names_new(struct cs_heap_modules *modules,
                                              const struct cs_target *target, bool raw) {
  struct cs_outside_names *names = cs_allocate(sizeof *names);
  names->world = cs_heap_modules_world(modules);
  names->modules = modules;
  names->generics = cs_heap_generics_new(modules);
  names->syms = cs_elfsyms_new(target);
  names->raw = raw;
  return names;
}

void cs_outside_names_free(struct cs_outside_names *names) {
  cs_map_free(&names->il);
  cs_map_free(&names->native);
  for (size_t i = 0; i < names->native_count; i++) free(names->native_names[i]);
  free(names->native_names);
  free(names->images);
  cs_elfsyms_free(names->syms);
  cs_heap_generics_free(names->generics);
  free(names);
}

static char *copy(const char *text) {
  char *out = strdup(text);
  if (out == NULL) abort();
  return out;
}

// ---- What is read while the process is stopped ----

static uint32_t number_of_image(struct cs_outside_names *names, const struct cs_image *image) {
  for (size_t i = 0; i < names->image_count; i++)
    if (names->images[i] == image) return (uint32_t)i;
  CS_APPEND(names->images, names->image_count, names->image_capacity, image);
  return (uint32_t)names->image_count - 1;
}

// The managed Thread has its name in one of its first fields, but no descriptor says in which one.
// A field is taken for it only if it is a string that begins with the kernel's part of the name.
void cs_outside_thread_name(const struct cs_world *world, uint64_t clr_thread, char *name,
                            size_t cap) {
  enum { COMM = 15, FIELDS = 8 };
  const struct cs_layout *l = &world->layout;
  uint64_t handle, object, field;
  uint32_t length;
  if (strlen(name) != COMM || clr_thread == 0 || l->thread.exposed_object == CS_NO_FIELD ||
      l->string.length == CS_NO_FIELD || l->string.first_char == CS_NO_FIELD ||
      !cs_world_read(world, clr_thread + l->thread.exposed_object, &handle, 8) ||
      !cs_world_read(world, handle, &object, 8))
    return;
  for (unsigned i = 1; i <= FIELDS; i++) {
    if (!cs_world_read(world, object + 8u * i, &field, 8) || field % 8 != 0 ||
        !cs_world_read(world, field + l->string.length, &length, 4) || length >= CS_OBJECT_UNITS)
      continue;
    char *text = cs_object_utf16(world, field + l->string.first_char);
    bool fits = text != NULL && strncmp(text, name, COMM) == 0 && strlen(text) < cap;
    if (fits) memcpy(name, text, strlen(text) + 1);
    free(text);
    if (fits) return;
  }
}

static char *dynamic_name(const struct cs_world *world, uint64_t function) {
  const struct cs_layout *l = &world->layout;
  char text[256], name[300];
  uint64_t at;
  size_t len = 0;
  if (l->dynamic_method_desc.name != CS_NO_FIELD &&
      cs_world_read(world, function + l->dynamic_method_desc.name, &at, 8)) {
    while (len < sizeof text - 1 && cs_world_read(world, at + len, &text[len], 1) &&
           text[len] != '\0')
      len++;
  }
  text[len] = '\0';
  if (len == 0) return copy("[dynamic method]");
  bool is_stub = cs_has_prefix(text, "IL_STUB");
  (void)snprintf(name, sizeof name, is_stub ? "[IL stub] %s" : "[dynamic] %s", text);
  return copy(name);
}

// The process may free the method, and with it the map, as soon as it runs again.
static uint32_t il_offset(struct cs_outside_names *names, enum cs_code_kind kind, uint64_t method,
                          uint64_t ip) {
  uint32_t il = CS_IL_NO_MAPPING;
  bool added;
  if (cs_map_get(&names->il, ip, &il)) return il;
  if (!cs_il_find(names->world, kind, method, ip, &il)) il = CS_IL_NO_MAPPING;
  return cs_map_put(&names->il, ip, il, &added);
}

static void identify_managed(struct cs_outside_names *names, const struct cs_frame *frame,
                             struct cs_outside_frame *out) {
  struct cs_method method;
  uint64_t function = frame->code.function_id, start = frame->code.method_start;
  uint64_t ip = frame->regs.r[CS_IP] - (frame->flags & CS_FRAME_EXACT ? 0u : 1u);
  bool known = function != 0 || cs_method_of_r2r(names->world, ip, &function, &start);
  if (!known || !cs_method_read(names->world, function, &method)) {
    out->name = copy("[unknown method]");
  } else if (method.dynamic) {
    out->name = dynamic_name(names->world, function);
  } else {
    out->token = method.token;
    out->number = cs_heap_modules_number(names->modules, method.module);
    out->generics = cs_heap_generics_read(names->generics, function, &method);
    out->il = il_offset(names, frame->code.kind, start, ip);
  }
}

void cs_outside_identify(struct cs_outside_names *names, const struct cs_frame *frame,
                         struct cs_outside_frame *out) {
  const struct cs_image *image = frame->code.image;
  if (cs_code_is_managed(&frame->code)) {
    identify_managed(names, frame, out);
  } else if (frame->code.kind == CS_CODE_NATIVE && image != NULL) {
    out->module = copy(image->path);
    out->number = number_of_image(names, image);
    out->runtime = cs_image_is_runtime(names->world, image);
    out->offset = frame->regs.r[CS_IP] - image->bias;
  } else {
    out->name = copy(frame->code.kind == CS_CODE_STUB ? "[stub]" : "[unknown code]");
  }
}

// ---- While it runs again ----

static void add_program(const struct cs_world *world, struct cs_lines *lines) {
  for (uint32_t i = 0; i < world->images->count; i++)
    if (cs_image_is_runtime(world, &world->images->image[i]))
      cs_lines_set_program(lines, world->images->image[i].path);
}

void cs_outside_add_modules(struct cs_outside_names *names, struct cs_lines *lines) {
  add_program(names->world, lines);
  for (uint32_t i = 0; i < cs_heap_modules_count(names->modules); i++)
    cs_heap_modules_add_lines(names->modules, i, lines);
}

static void name_method(struct cs_outside_names *names, struct cs_outside_frame *frame) {
  char text[MAX_NAME];
  struct cs_method_text raw;
  if (!cs_heap_generics_method(names->generics, frame->number, frame->token, frame->generics, &raw))
    (void)snprintf(text, sizeof text, "[method 0x%08x]", frame->token);
  else if (names->raw)
    (void)snprintf(text, sizeof text, "%s%s%s.%s", raw.space, raw.space[0] != '\0' ? "." : "",
                   raw.type, raw.method);
  else
    (void)cs_demangle(&(struct cs_mangled){.space = raw.space,
                                           .type = raw.type,
                                           .method = raw.method,
                                           .parameters = raw.parameters},
                      text, sizeof text);
  frame->name = copy(text);
}

// A look-up reads a whole symbol table, and the outer frames of all threads are the same few.
static const char *native_name(struct cs_outside_names *names,
                               const struct cs_outside_frame *frame) {
  uint64_t back = frame->flags & CS_FRAME_EXACT ? 0 : 1;
  bool added;
  uint32_t i = cs_map_put(&names->native, frame->ip - back, (uint32_t)names->native_count, &added);
  if (!added) return names->native_names[i];
  const struct cs_image *image = names->images[frame->number];
  struct cs_elf_image of = {
      {image->begin, image->inode, image->device, image->path}, image->id_size, image->id};
  cs_elfsyms_add(names->syms, frame->number, &of);
  const char *found = cs_elfsyms_find(names->syms, frame->number, frame->offset - back);
  if (found == NULL && frame->runtime && !names->raw)
    found = cs_elfsyms_landmark(names->syms, frame->number, frame->offset - back);
  return CS_APPEND(names->native_names, names->native_count, names->native_capacity,
                   copy(found != NULL ? found : ""));
}

void cs_outside_name(struct cs_outside_names *names, struct cs_outside_frame *frame) {
  if (frame->name != NULL) return;
  if (frame->token != 0) {
    const char *path = cs_heap_modules_path(names->modules, frame->number);
    if (path != NULL) frame->module = copy(path);
    name_method(names, frame);
    return;
  }
  const char *name = native_name(names, frame);
  frame->class = cs_runtime_class_shown(name);
  frame->name = copy(frame->class == CS_RUNTIME_UNKNOWN ? name : "");
}

static enum cs_runtime_class class_of_method(const struct cs_outside_frame *frame) {
  bool corelib = frame->token != 0 && frame->module != NULL &&
                 strcmp(cs_file_of(frame->module), "System.Private.CoreLib.dll") == 0;
  return corelib ? cs_runtime_class_by(CS_SIGN_METHOD, frame->name) : CS_RUNTIME_UNKNOWN;
}

// As in a recording (naming/runtime_part.c): a frame has its own class, or that of its nearest
// caller that has one, up to the next managed method.
void cs_outside_classes(struct cs_outside_thread *thread) {
  enum cs_runtime_class class = cs_runtime_class_by(CS_SIGN_THREAD, thread->name);
  for (uint32_t i = thread->count; i-- > 0;) {
    struct cs_outside_frame *f = &thread->frames[i];
    if (f->kind != CS_CODE_NATIVE || f->module == NULL) {
      class = class_of_method(f);
      continue;
    }
    enum cs_runtime_class own = cs_runtime_class_by(CS_SIGN_LIBRARY, cs_file_of(f->module));
    bool of_runtime = f->runtime || own != CS_RUNTIME_UNKNOWN;
    if (own == CS_RUNTIME_UNKNOWN) own = f->class;
    if (own == CS_RUNTIME_UNKNOWN && f->runtime) own = cs_runtime_class_by(CS_SIGN_SYMBOL, f->name);
    if (own != CS_RUNTIME_UNKNOWN) class = own;
    f->class = of_runtime && f->name[0] == '\0' ? class : CS_RUNTIME_UNKNOWN;
  }
}

void cs_outside_line(struct cs_lines *lines, struct cs_outside_frame *frame) {
  struct cs_line line;
  if (frame->token == 0 || frame->module == NULL || frame->il == CS_IL_NO_MAPPING ||
      !cs_lines_find(lines, frame->module, frame->token, cs_place_il(frame->il), &line))
    return;
  frame->source = line.file;
  frame->line = line.line;
}

void cs_outside_refused(const struct cs_outside_names *names, char *text, size_t cap) {
  text[0] = '\0';
  for (uint32_t i = 0; i < names->image_count; i++) {
    const char *why = cs_elfsyms_refused(names->syms, i);
    size_t used = strlen(text);
    if (why != NULL)
      (void)snprintf(text + used, cap - used, "%s%s (%s)", used > 0 ? ", " : "",
                     cs_file_of(names->images[i]->path), why);
  }
}

// ---- What a thread waits for ----

bool cs_outside_is_named(const struct cs_outside_frame *frame) {
  return (frame->kind == CS_CODE_JIT || frame->kind == CS_CODE_R2R) && frame->name[0] != '[';
}

const char *cs_outside_wait(const struct cs_outside_frame *frames, uint32_t count) {
  struct cs_wait_search search = {0};
  for (uint32_t i = 0; i < count && !search.over; i++) {
    if (!cs_outside_is_named(&frames[i])) continue;
    cs_wait_search_add(&search, frames[i].name, strlen(frames[i].name));
  }
  return search.found != NULL ? search.found->what : NULL;
}
