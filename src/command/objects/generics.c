// SPDX-License-Identifier: MIT
// Generic arguments. Those of a method are a list of arguments, each of which may have arguments
// itself; all lists are in one table. Invariants: lists are bounded in length and depth, and so is
// what is read of one process; what is not a class, or cannot be read, has the parameter's name.
// One thread. Signal-safe: no.
#include "objects/generics.h"

#include <string.h>

#include "base/keywords.h"
#include "objects/classes.h"
#include "objects/objects.h"
#include "util/map.h"

enum { NESTING = 6, NAME_BYTES = 256, MOST_ARGUMENTS = 1 << 16 };

struct list {
  uint32_t first, count;
};
struct argument {
  uint32_t module, row;  // of TypeDef; 0: it has the parameter's name
  unsigned rank;         // of an array, whose only argument is the element type; 0: it is none
  struct list arguments;
};
struct instantiation {
  struct list type, method;
};

struct cs_heap_generics {
  struct cs_heap_modules *modules;
  const struct cs_world *world;
  struct argument *arguments;
  size_t argument_count, argument_capacity;
  size_t arguments_read;  // counted before those below them, which bounds how long reading takes
  struct instantiation *items;
  size_t count, capacity;
};

struct cs_heap_generics *cs_heap_generics_new(struct cs_heap_modules *modules) {
  struct cs_heap_generics *generics = cs_allocate(sizeof *generics);
  generics->modules = modules;
  generics->world = cs_heap_modules_world(modules);
  return generics;
}

void cs_heap_generics_free(struct cs_heap_generics *generics) {
  if (generics == NULL) return;
  free(generics->arguments);
  free(generics->items);
  free(generics);
}

// ---- Reading ----

static struct list read_list(struct cs_heap_generics *generics, const uint64_t *handles,
                             uint32_t count, unsigned nesting);

// An array's class has the element type where others have their arguments.
static void read_array(struct cs_heap_generics *generics, const struct cs_heap_class *class,
                       unsigned nesting, struct argument *out) {
  enum { VECTOR = 0x00020000, VECTOR_BYTES = 24 };
  const struct cs_mem *mem = &generics->world->mem;
  uint64_t element;
  if (!cs_mem_read_guarded(mem, class->id + generics->world->layout.objects.element, &element,
                           sizeof element) ||
      class->base_bytes < VECTOR_BYTES)
    return;
  out->rank = (class->flags & VECTOR) != 0 ? 1 : (class->base_bytes - VECTOR_BYTES) / 8;
  out->arguments = read_list(generics, &element, 1, nesting);
}

static struct argument read_argument(struct cs_heap_generics *generics, uint64_t handle,
                                     unsigned nesting) {
  enum { CATEGORY = 0x000C0000, ARRAY = 0x00080000 };
  struct argument out = {.row = 0};
  struct cs_heap_class class;
  uint64_t handles[CS_HEAP_MOST_ARGUMENTS];
  generics->arguments_read++;
  if (handle % 8 != 0 || !cs_heap_class_read(generics->world, handle, &class)) return out;
  if ((class.flags & CATEGORY) == ARRAY) {
    read_array(generics, &class, nesting, &out);
    return out;
  }
  out.module = cs_heap_modules_number(generics->modules, class.module);
  out.row = class.row;
  uint32_t count = cs_heap_class_is_generic(&class)
                       ? cs_heap_class_arguments(generics->world, handle, handles)
                       : 0;
  out.arguments = read_list(generics, handles, count, nesting);
  return out;
}

static struct list read_list(struct cs_heap_generics *generics, const uint64_t *handles,
                             uint32_t count, unsigned nesting) {
  struct argument read[CS_GENERIC_ARGUMENTS];
  if (nesting == 0 || generics->arguments_read >= MOST_ARGUMENTS) return (struct list){0, 0};
  if (count > CS_GENERIC_ARGUMENTS) count = CS_GENERIC_ARGUMENTS;
  for (uint32_t i = 0; i < count; i++) read[i] = read_argument(generics, handles[i], nesting - 1);
  struct list list = {(uint32_t)generics->argument_count, count};
  for (uint32_t i = 0; i < count; i++)
    CS_APPEND(generics->arguments, generics->argument_count, generics->argument_capacity, read[i]);
  return list;
}

static struct list read_of_method(struct cs_heap_generics *generics, uint64_t function) {
  const struct cs_layout *l = &generics->world->layout;
  const struct cs_mem *mem = &generics->world->mem;
  uint64_t handles[CS_GENERIC_ARGUMENTS], dictionary;
  uint16_t count;
  if (l->generics.method_dictionary == CS_NO_FIELD || l->generics.method_arguments == CS_NO_FIELD ||
      !cs_mem_read_guarded(mem, function + l->generics.method_arguments, &count, sizeof count) ||
      count > CS_GENERIC_ARGUMENTS ||
      !cs_mem_read_guarded(mem, function + l->generics.method_dictionary, &dictionary,
                           sizeof dictionary) ||
      dictionary == 0 || !cs_mem_read_guarded(mem, dictionary, handles, 8ull * count))
    return (struct list){0, 0};
  return read_list(generics, handles, count, NESTING);
}

uint32_t cs_heap_generics_read(struct cs_heap_generics *generics, uint64_t function,
                               const struct cs_method *method) {
  uint64_t handles[CS_HEAP_MOST_ARGUMENTS];
  struct cs_heap_class class;
  struct instantiation found = {{0, 0}, {0, 0}};
  if (!cs_objects_known(generics->world)) return 0;
  if (cs_heap_class_read(generics->world, method->class, &class) &&
      cs_heap_class_is_generic(&class)) {
    uint32_t count = cs_heap_class_arguments(generics->world, class.id, handles);
    found.type = read_list(generics, handles, count, NESTING);
  }
  if (method->generic) found.method = read_of_method(generics, function);
  if (found.type.count == 0 && found.method.count == 0) return 0;
  CS_APPEND(generics->items, generics->count, generics->capacity, found);
  return (uint32_t)generics->count;
}

// ---- Names ----

struct texts {
  struct cs_generic_text pointers;
  char type[CS_GENERIC_ARGUMENTS][NAME_BYTES], method[CS_GENERIC_ARGUMENTS][NAME_BYTES];
};

static bool write_argument(struct cs_heap_generics *generics, const struct argument *argument,
                           char text[NAME_BYTES]);

static uint32_t write_list(struct cs_heap_generics *generics, struct list list,
                           char texts[][NAME_BYTES], const char *pointers[]) {
  for (uint32_t i = 0; i < list.count; i++)
    pointers[i] =
        write_argument(generics, &generics->arguments[list.first + i], texts[i]) ? texts[i] : NULL;
  return list.count;
}

static bool write_array(struct cs_heap_generics *generics, const struct argument *array,
                        char text[NAME_BYTES]) {
  if (array->arguments.count != 1 ||
      !write_argument(generics, &generics->arguments[array->arguments.first], text))
    return false;
  size_t used = strlen(text);
  if (used + array->rank + 2 > NAME_BYTES) return false;
  text[used++] = '[';
  for (unsigned i = 1; i < array->rank; i++) text[used++] = ',';
  memcpy(text + used, "]", 2);
  return true;
}

// As in a recording: without its namespace, with C#'s keywords. Returns false if it has the
// parameter's name, as where its own does not fit.
static bool write_argument(struct cs_heap_generics *generics, const struct argument *argument,
                           char text[NAME_BYTES]) {
  if (argument->rank > 0) return write_array(generics, argument, text);
  const struct cs_metadata *metadata =
      argument->row != 0 ? cs_heap_modules_metadata(generics->modules, argument->module) : NULL;
  struct cs_method_text *type = cs_allocate(sizeof *type);
  struct texts *texts = cs_allocate(sizeof *texts);
  texts->pointers.type_count =
      write_list(generics, argument->arguments, texts->type, texts->pointers.type);
  bool named = metadata != NULL &&
               cs_metadata_type(metadata, argument->row, &texts->pointers, type) &&
               strcmp(type->type, "__Canon") != 0;
  if (named) {
    const char *keyword = strcmp(type->space, "System") == 0
                              ? cs_keyword_of_type(type->type, strlen(type->type))
                              : NULL;
    const char *name = keyword != NULL ? keyword : type->type;
    size_t length = strlen(name);
    named = length < NAME_BYTES;
    if (named) memcpy(text, name, length + 1);
  }
  free(texts);
  free(type);
  return named;
}

bool cs_heap_generics_method(struct cs_heap_generics *generics, uint32_t module, uint32_t token,
                             uint32_t read, struct cs_method_text *out) {
  const struct cs_metadata *metadata = cs_heap_modules_metadata(generics->modules, module);
  if (metadata == NULL) return false;
  if (read == 0) return cs_metadata_method(metadata, token, NULL, out);
  struct texts *texts = cs_allocate(sizeof *texts);
  const struct instantiation *of = &generics->items[read - 1];
  texts->pointers.type_count = write_list(generics, of->type, texts->type, texts->pointers.type);
  texts->pointers.method_count =
      write_list(generics, of->method, texts->method, texts->pointers.method);
  bool named = cs_metadata_method(metadata, token, &texts->pointers, out);
  free(texts);
  return named;
}
