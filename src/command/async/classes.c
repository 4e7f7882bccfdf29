// SPDX-License-Identifier: MIT
// What the classes of objects are to chains of awaits. Invariants: an address counts as a class only
// if its canonical class names itself, as the runtime's own check of a MethodTable does; every
// member is found by its name, and by the runtime's own offset of that member; the form of these
// offsets, which no descriptor has, is checked with a member that the descriptor names. One thread.
// Signal-safe: no.
#include "async/classes.h"

#include <stdio.h>
#include <string.h>

enum {
  // MethodTable.MTFlags.
  HAS_ELEMENTS = 0x80000000,
  HAS_REFERENCES = 0x01000000,
  CATEGORY = 0x000C0000,
  VALUE_TYPE = 0x00040000,
  ELEMENT_BYTES = 0xFFFF,
  ELSEWHERE = 1,  // lowest bit of EEClassOrCanonMT: it is the canonical MethodTable's address
  HEADER = 8,     // an object's first word, and the word before it
  // A field: the class, then bits.
  FIELD_BYTES = 16,
  ROW = 0xFFFFFF,
  STATIC = 1 << 24,
  OFFSET = 0x7FFFFFF,
  TYPE_AT = 27,
  TYPE_CLASS = 0x12,
  MOST_FIELDS = 4096,
  MOST_SERIES = 4096,
  MOST_BASES = 64,
  MOST_ARGUMENTS = 64,
  MOST_CLASSES = 1 << 20,
};

struct cs_async_classes {
  struct cs_remote *remote;
  struct cs_async_class *items;
  size_t count, capacity;
  struct cs_map by_id;
  struct cs_async_modules modules;
  uint32_t core;        // the module of System.Object
  uint64_t free_space;  // the class of what is between objects; it has no description
  struct cs_async_task_members task;
};

struct cs_async_modules *cs_async_modules_of(struct cs_async_classes *classes) {
  return &classes->modules;
}
const struct cs_async_class *cs_async_class_at(const struct cs_async_classes *classes,
                                               uint32_t index) {
  return &classes->items[index];
}
const struct cs_async_task_members *cs_async_task(const struct cs_async_classes *classes) {
  return &classes->task;
}

static bool read(const struct cs_async_classes *classes, uint64_t at, void *out, size_t size) {
  return at != 0 && cs_remote_read(classes->remote, at, out, size);
}
static const struct cs_layout *layout_of(const struct cs_async_classes *classes) {
  return &cs_remote_world(classes->remote)->layout;
}

// ---- Fields ----

struct field {
  uint32_t row, offset;  // from the first field's place
  bool is_static, is_reference;
};
struct fields {
  uint32_t count;
  struct field item[MOST_FIELDS];
};

// The runtime's description that a class shares with its instantiations; 0: it is no class.
static uint64_t description_of(const struct cs_async_classes *classes, uint64_t id) {
  const struct cs_layout *l = layout_of(classes);
  uint64_t canonical = id, at, back;
  if (!read(classes, id + l->method_table.canonical, &at, 8)) return 0;
  if ((at & ELSEWHERE) != 0) {
    canonical = at - ELSEWHERE;
    if (!read(classes, canonical + l->method_table.canonical, &at, 8)) return 0;
  }
  if (!read(classes, at + l->ee_class.method_table, &back, 8) || back != canonical) return 0;
  return at;
}

static bool count_fields(const struct cs_async_classes *classes, uint64_t id, uint16_t *instance,
                         uint16_t *of_class) {
  const struct cs_layout *l = layout_of(classes);
  uint64_t at = description_of(classes, id);
  return at != 0 && read(classes, at + l->ee_class.field_count, instance, 2) &&
         read(classes, at + l->ee_class.static_count, of_class, 2);
}

// The fields that the class itself adds. Those of objects come first.
static bool read_fields(const struct cs_async_classes *classes, uint64_t id, uint64_t parent,
                        struct fields *out) {
  const struct cs_layout *l = layout_of(classes);
  static uint8_t bytes[MOST_FIELDS * FIELD_BYTES];
  uint16_t instance, of_class, inherited = 0, ignored;
  uint64_t list;
  out->count = 0;
  if (!count_fields(classes, id, &instance, &of_class) ||
      (parent != 0 && !count_fields(classes, parent, &inherited, &ignored)) ||
      inherited > instance ||
      !read(classes, description_of(classes, id) + l->ee_class.fields, &list, 8))
    return false;
  uint32_t count = (uint32_t)(instance - inherited) + of_class;
  if (count > MOST_FIELDS || (count > 0 && !read(classes, list, bytes, count * FIELD_BYTES)))
    return false;
  for (uint32_t i = 0; i < count; i++) {
    uint32_t bits[2];
    memcpy(bits, bytes + i * FIELD_BYTES + 8, sizeof bits);
    out->item[i] = (struct field){bits[0] & ROW, bits[1] & OFFSET, (bits[0] & STATIC) != 0,
                                  bits[1] >> TYPE_AT == TYPE_CLASS};
  }
  out->count = count;
  return true;
}

static const char *field_name(struct cs_async_classes *classes, const struct cs_async_class *class,
                              const struct field *field) {
  const struct cs_metadata *m = cs_async_module_at(&classes->modules, class->module)->metadata;
  uint32_t first, end;
  if (m == NULL || !cs_metadata_fields_of(m, class->row, &first, &end) || field->row < first ||
      field->row >= end)
    return NULL;
  return cs_metadata_field(m, field->row);
}

static uint64_t parent_id(const struct cs_async_classes *classes,
                          const struct cs_async_class *class) {
  return class->parent != CS_ASYNC_NO_CLASS ? classes->items[class->parent].id : 0;
}

// Where an object has a member of this class or of a base.
static bool find_member(struct cs_async_classes *classes, uint32_t index, const char *name,
                        uint32_t *offset) {
  static struct fields fields;
  for (; index != CS_ASYNC_NO_CLASS; index = classes->items[index].parent) {
    const struct cs_async_class *class = &classes->items[index];
    if (!read_fields(classes, class->id, parent_id(classes, class), &fields)) return false;
    for (uint32_t i = 0; i < fields.count; i++) {
      const char *found = field_name(classes, class, &fields.item[i]);
      if (fields.item[i].is_static || found == NULL || strcmp(found, name) != 0) continue;
      *offset = fields.item[i].offset + HEADER;
      return true;
    }
  }
  return false;
}

// ---- State machines ----

// The runtime's list of the places of references in an object, which stands before its class.
struct series {
  uint32_t count;
  struct {
    uint64_t size, begin;
  } item[MOST_SERIES];
};

static void read_series(const struct cs_async_classes *classes, const struct cs_async_class *class,
                        struct series *out) {
  enum { WORDS = 2 };
  int64_t count;
  out->count = 0;
  if (!class->has_references || !read(classes, class->id - 8, &count, 8) || count <= 0 ||
      count > MOST_SERIES)
    return;
  for (int64_t i = 0; i < count; i++) {
    uint64_t words[WORDS];
    if (!read(classes, class->id - 8 - (uint64_t)(i + 1) * sizeof words, words, sizeof words))
      return;
    out->item[out->count].size = words[0] + class->base_bytes;
    out->item[out->count++].begin = words[1];
  }
}

static void add_awaiters(struct cs_async_class *holder, const struct series *series, uint64_t begin,
                         uint64_t end) {
  for (uint64_t at = begin; at + 8 <= end; at += 8)
    for (uint32_t i = 0; i < series->count; i++) {
      if (at < series->item[i].begin || at - series->item[i].begin >= series->item[i].size)
        continue;
      uint32_t *more =
          realloc(holder->awaiters, (holder->awaiter_count + 1) * sizeof *holder->awaiters);
      if (more == NULL) abort();
      holder->awaiters = more;
      holder->awaiters[holder->awaiter_count++] = (uint32_t)at;
      break;
    }
}

// C#'s names and Visual Basic's.
static bool is_state(const char *name) {
  return strcmp(name, "<>1__state") == 0 || strcmp(name, "$State") == 0;
}
static bool is_awaiter(const char *name) {
  return strncmp(name, "<>u__", 5) == 0 || strncmp(name, "$A", 2) == 0;
}

static uint64_t end_of_field(const struct fields *fields, uint32_t index, uint64_t size) {
  uint64_t begin = fields->item[index].offset, end = size;
  if (fields->item[index].is_reference) return begin + 8;
  for (uint32_t i = 0; i < fields->count; i++)
    if (!fields->item[i].is_static && fields->item[i].offset > begin &&
        fields->item[i].offset < end)
      end = fields->item[i].offset;
  return end;
}

// `holder`: the class of the objects that contain the machine's fields, from `origin` on.
static void lay_out(struct cs_async_classes *classes, struct cs_async_class *holder,
                    const struct cs_async_class *machine, uint32_t origin) {
  static struct fields fields;
  static struct series series;
  holder->laid_out = true;
  if (!read_fields(classes, machine->id, parent_id(classes, machine), &fields)) return;
  read_series(classes, holder, &series);
  for (uint32_t i = 0; i < fields.count; i++) {
    const char *name = field_name(classes, machine, &fields.item[i]);
    if (fields.item[i].is_static || name == NULL) continue;
    if (is_state(name)) {
      holder->has_state = true;
      holder->state_at = origin + fields.item[i].offset;
    }
    if (is_awaiter(name))
      add_awaiters(holder, &series, origin + fields.item[i].offset,
                   origin + end_of_field(&fields, i, machine->base_bytes - 2ull * HEADER));
  }
}

void cs_async_lay_out(struct cs_async_classes *classes, uint32_t index) {
  struct cs_async_class *class = &classes->items[index];
  if (!class->laid_out) lay_out(classes, class, class, HEADER);
}

// The last of the class's generic arguments; 0: it has none, or it is no class.
static uint64_t last_argument(const struct cs_async_classes *classes, uint64_t id) {
  const struct cs_layout *l = layout_of(classes);
  uint64_t instance, dictionary, argument;
  uint16_t dictionaries, arguments;
  if (!read(classes, id + l->objects.element, &instance, 8) || instance == 0 ||
      !read(classes, instance - 8 + l->generics.dictionaries, &dictionaries, 2) ||
      !read(classes, instance - 8 + l->generics.arguments, &arguments, 2) || dictionaries == 0 ||
      arguments == 0 || arguments > MOST_ARGUMENTS ||
      !read(classes, instance + 8ull * (dictionaries - 1u), &dictionary, 8) ||
      !read(classes, dictionary + 8ull * (arguments - 1u), &argument, 8) || argument % 8 != 0)
    return 0;
  return argument;
}

static void learn_box(struct cs_async_classes *classes, uint32_t index) {
  uint64_t argument = last_argument(classes, classes->items[index].id);
  uint32_t machine = argument != 0 ? cs_async_class_find(classes, argument) : CS_ASYNC_NO_CLASS;
  struct cs_async_class *class = &classes->items[index];
  class->machine = machine;
  if (machine == CS_ASYNC_NO_CLASS ||
      !find_member(classes, index, "StateMachine", &class->machine_at)) {
    class->kind = class->kind == CS_ASYNC_BOX ? CS_ASYNC_TASK : CS_ASYNC_NOTHING;
    return;
  }
  class->by_reference = !classes->items[machine].is_value;
  if (!class->by_reference) lay_out(classes, class, &classes->items[machine], class->machine_at);
}

// ---- Kinds ----

#define SERVICES "System.Runtime.CompilerServices."
#define TASKS "System.Threading.Tasks."
static const struct known {
  const char *name;
  enum cs_async_kind kind;
  const char *link, *size;
} known[] = {
    {TASKS "Task", CS_ASYNC_TASK, NULL, NULL},
    {TASKS "ValueTask.ValueTaskSourceAsTask", CS_ASYNC_TASK, "_source", NULL},
    {TASKS "ValueTask<TResult>.ValueTaskSourceAsTask", CS_ASYNC_TASK, "_source", NULL},
    {SERVICES "AsyncTaskMethodBuilder<TResult>.AsyncStateMachineBox<TStateMachine>", CS_ASYNC_BOX,
     NULL, NULL},
    {SERVICES "PoolingAsyncValueTaskMethodBuilder<TResult>.StateMachineBox<TStateMachine>",
     CS_ASYNC_POOLED, NULL, NULL},
    {"System.Delegate", CS_ASYNC_DELEGATE, "_target", NULL},
    {TASKS "AwaitTaskContinuation", CS_ASYNC_LINK, "m_action", NULL},
    {TASKS "ContinueWithTaskContinuation", CS_ASYNC_LINK, "m_task", NULL},
    {SERVICES "AsyncMethodBuilderCore.ContinuationWrapper", CS_ASYNC_LINK, "_continuation", NULL},
    {"System.Collections.Generic.List<T>", CS_ASYNC_LIST, "_items", "_size"},
    {TASKS "Task.SetOnInvokeMres", CS_ASYNC_WAIT, NULL, NULL},
};

// Its own members are those of all tasks.
static bool learn_task(struct cs_async_classes *classes, uint32_t index) {
  struct cs_async_task_members *task = &classes->task;
  return find_member(classes, index, "m_stateFlags", &task->flags) &&
         find_member(classes, index, "m_action", &task->action) &&
         find_member(classes, index, "m_continuationObject", &task->continuation);
}

static void classify(struct cs_async_classes *classes, uint32_t index) {
  struct cs_async_class *class = &classes->items[index];
  const struct known *found = NULL;
  for (size_t i = 0; i < CS_COUNT(known) && class->core_name != NULL; i++)
    if (strcmp(class->core_name, known[i].name) == 0) found = &known[i];
  if (found == NULL && class->parent != CS_ASYNC_NO_CLASS) {
    // A derived class is what its base is; a box's class is derived only to be finalized.
    const struct cs_async_class *base = &classes->items[class->parent];
    class->kind = base->kind;
    class->link_at = base->link_at;
    class->size_at = base->size_at;
    if (base->kind == CS_ASYNC_BOX || base->kind == CS_ASYNC_POOLED) learn_box(classes, index);
    return;
  }
  if (found == NULL) return;
  bool is_task = found == &known[0];
  class->kind = found->kind;
  if ((is_task && !learn_task(classes, index)) ||
      (found->link != NULL && !find_member(classes, index, found->link, &class->link_at)) ||
      (found->size != NULL && !find_member(classes, index, found->size, &class->size_at)))
    class->kind = CS_ASYNC_NOTHING;
  if (found->kind == CS_ASYNC_BOX || found->kind == CS_ASYNC_POOLED) learn_box(classes, index);
}

static const char *core_name(struct cs_async_classes *classes, const struct cs_async_class *class) {
  static struct cs_method_text text;
  char name[sizeof text.space + sizeof text.type + 2];
  const struct cs_metadata *m = cs_async_module_at(&classes->modules, class->module)->metadata;
  if (m == NULL || !cs_metadata_type(m, class->row, &text)) return NULL;
  (void)snprintf(name, sizeof name, "%s%s%s", text.space, text.space[0] != '\0' ? "." : "",
                 text.type);
  return strdup(name);
}

static uint32_t find(struct cs_async_classes *classes, uint64_t id, unsigned depth);

static uint32_t add_class(struct cs_async_classes *classes, const struct cs_async_class *class) {
  classes->items =
      cs_grow(classes->items, classes->count, &classes->capacity, sizeof *classes->items);
  classes->items[classes->count] = *class;
  return (uint32_t)classes->count++;
}

static uint32_t read_class(struct cs_async_classes *classes, uint64_t id, unsigned depth) {
  enum { ROW_AT = 8 };
  const struct cs_layout *l = layout_of(classes);
  struct cs_async_class class = {
      .id = id, .parent = CS_ASYNC_NO_CLASS, .machine = CS_ASYNC_NO_CLASS};
  uint32_t flags, flags2;
  uint64_t parent, module;
  if (depth == MOST_BASES || (id != classes->free_space && description_of(classes, id) == 0) ||
      !read(classes, id + l->objects.flags, &flags, 4) ||
      !read(classes, id + l->objects.base_size, &class.base_bytes, 4) ||
      !read(classes, id + l->method_table.flags2, &flags2, 4) ||
      !read(classes, id + l->method_table.parent, &parent, 8) ||
      !read(classes, id + l->method_table.module, &module, 8))
    return CS_ASYNC_NO_CLASS;
  class.element_bytes = (flags & HAS_ELEMENTS) != 0 ? flags & ELEMENT_BYTES : 0;
  class.has_references = (flags & HAS_REFERENCES) != 0;
  class.is_value = (flags & CATEGORY) == VALUE_TYPE;
  class.row = flags2 >> ROW_AT;
  if (id == classes->free_space) return add_class(classes, &class);
  if (parent != 0) {
    class.parent = find(classes, parent, depth + 1);
    if (class.parent == CS_ASYNC_NO_CLASS) return CS_ASYNC_NO_CLASS;
  }
  class.module = cs_async_module_find(&classes->modules, module);
  if (class.module == classes->core) class.core_name = core_name(classes, &class);
  return add_class(classes, &class);
}

static uint32_t find(struct cs_async_classes *classes, uint64_t id, unsigned depth) {
  uint32_t index;
  bool added;
  if (cs_map_get(&classes->by_id, id, &index)) return index;
  if (id == 0 || id % 8 != 0 || id >> 47 != 0 || classes->count == MOST_CLASSES)
    return CS_ASYNC_NO_CLASS;
  index = read_class(classes, id, depth);
  (void)cs_map_put(&classes->by_id, id, index, &added);
  // After it is in the map: its members may be of the same class.
  if (index != CS_ASYNC_NO_CLASS) classify(classes, index);
  return index;
}

uint32_t cs_async_class_find(struct cs_async_classes *classes, uint64_t id) {
  return find(classes, id, 0);
}

// ---- Beginning and end ----

static bool has_fields(const struct cs_layout *l) {
  const uint32_t needed[] = {
      l->method_table.canonical, l->method_table.parent,   l->objects.flags,
      l->objects.base_size,      l->method_table.flags2,   l->objects.element,
      l->ee_class.method_table,  l->ee_class.fields,       l->ee_class.field_count,
      l->ee_class.static_count,  l->generics.dictionaries, l->generics.arguments,
      l->exception.message,
  };
  for (size_t i = 0; i < CS_COUNT(needed); i++)
    if (needed[i] == CS_NO_FIELD) return false;
  return l->exception_class != 0 && l->free_object_class != 0 && l->landmarks.object_class != 0;
}

// Finds the core library, and the classes that everything is derived from.
static bool begin(struct cs_async_classes *classes) {
  const struct cs_layout *l = layout_of(classes);
  uint64_t object, exception, module;
  uint32_t message;
  classes->core = UINT32_MAX;
  if (!has_fields(l) || !read(classes, l->landmarks.object_class, &object, 8) ||
      !read(classes, l->exception_class, &exception, 8) ||
      !read(classes, l->free_object_class, &classes->free_space, 8) ||
      !read(classes, object + l->method_table.module, &module, 8))
    return false;
  classes->core = cs_async_module_find(&classes->modules, module);
  uint32_t index = cs_async_class_find(classes, exception);
  return index != CS_ASYNC_NO_CLASS && find_member(classes, index, "_message", &message) &&
         message == l->exception.message;
}

struct cs_async_classes *cs_async_classes_new(struct cs_remote *remote, struct cs_error *err) {
  struct cs_async_classes *classes = cs_allocate(sizeof *classes);
  classes->remote = remote;
  classes->modules.remote = remote;
  if (begin(classes)) return classes;
  (void)cs_error_set(err, "the classes of process %d are not described as those of .NET 10.0 are",
                     cs_remote_world(remote)->mem.pid);
  cs_async_classes_free(classes);
  return NULL;
}

void cs_async_classes_free(struct cs_async_classes *classes) {
  if (classes == NULL) return;
  for (size_t i = 0; i < classes->count; i++) {
    free((char *)(uintptr_t)classes->items[i].core_name);
    free(classes->items[i].awaiters);
  }
  free(classes->items);
  cs_map_free(&classes->by_id);
  cs_async_modules_free(&classes->modules);
  free(classes);
}
