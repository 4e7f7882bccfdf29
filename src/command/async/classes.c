// SPDX-License-Identifier: MIT
// What the classes of objects are to chains of awaits. Invariant: every member is found by its
// name, at the runtime's own offset of that member; the form of these offsets, which no descriptor
// has, is checked with a member that the descriptor names. One thread. Signal-safe: no.
#include "async/classes.h"

#include <string.h>

#include "base/cpu.h"
#include "base/prefix.h"
#include "objects/objects.h"
#include "util/map.h"

enum {
  // MethodTable.MTFlags.
  HAS_ELEMENTS = 0x80000000,
  HAS_REFERENCES = 0x01000000,
  CATEGORY = 0x000C0000,
  VALUE_TYPE = 0x00040000,
  ELEMENT_BYTES = 0xFFFF,
  MOST_SERIES = 4096,
  MOST_BASES = 64,
  MOST_CLASSES = 1 << 20,
};

struct cs_async_classes {
  struct cs_remote *remote;
  struct cs_async_class *items;
  size_t count, capacity;
  struct cs_map by_id;
  struct cs_heap_modules *modules;
  uint32_t core;  // the module of System.Object
  struct cs_async_task_members task;
};

struct cs_heap_modules *cs_async_modules_of(struct cs_async_classes *classes) {
  return classes->modules;
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
static const struct cs_world *world_of(const struct cs_async_classes *classes) {
  return cs_remote_world(classes->remote);
}
static const struct cs_layout *layout_of(const struct cs_async_classes *classes) {
  return &world_of(classes)->layout;
}

bool cs_async_class_member(struct cs_async_classes *classes, uint32_t index, const char *name,
                           uint32_t *offset) {
  return cs_heap_class_member(classes->modules, &classes->items[index].type, name, offset);
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
  if (!class->has_references || !read(classes, class->type.id - 8, &count, 8) || count <= 0 ||
      count > MOST_SERIES)
    return;
  for (int64_t i = 0; i < count; i++) {
    uint64_t words[WORDS];
    if (!read(classes, class->type.id - 8 - (uint64_t)(i + 1) * sizeof words, words, sizeof words))
      return;
    out->item[out->count].size = words[0] + class->type.base_bytes;
    out->item[out->count++].begin = words[1];
  }
}

// Returns the first reference from `begin` to `end`, or 0 if there is none.
static uint32_t first_reference(const struct series *series, uint32_t begin, uint32_t end) {
  for (uint32_t at = begin; at + 8 <= end; at += 8)
    for (uint32_t i = 0; i < series->count; i++)
      if (at >= series->item[i].begin && at - series->item[i].begin < series->item[i].size)
        return at;
  return 0;
}

// "Task<T>.Awaiter" becomes "Task.Awaiter".
static void drop_parameters(char *type) {
  char *to = type;
  int depth = 0;
  for (; *type != '\0'; type++) {
    if (*type == '<') depth++;
    if (depth == 0) *to++ = *type;
    if (*type == '>') depth--;
  }
  *to = '\0';
}

// Awaiters whose first reference, if there is one, is to what they await.
static bool is_known_awaiter(const struct cs_metadata *m, uint32_t field) {
  static const char *const known[] = {
      "TaskAwaiter", "ConfiguredTaskAwaitable.ConfiguredTaskAwaiter", "ValueTaskAwaiter",
      "ConfiguredValueTaskAwaitable.ConfiguredValueTaskAwaiter", "YieldAwaitable.YieldAwaiter"};
  static struct cs_method_text type;
  if (!cs_metadata_field_type(m, field, &type) ||
      strcmp(type.space, "System.Runtime.CompilerServices") != 0)
    return false;
  drop_parameters(type.type);
  for (size_t i = 0; i < CS_COUNT(known); i++)
    if (strcmp(type.type, known[i]) == 0) return true;
  return false;
}

static void add_awaiter(struct cs_async_class *holder, const struct cs_async_awaiter *awaiter) {
  struct cs_async_awaiter *more =
      realloc(holder->awaiters, (holder->awaiter_count + 1) * sizeof *more);
  if (more == NULL) abort();
  holder->awaiters = more;
  holder->awaiters[holder->awaiter_count++] = *awaiter;
}

// C#'s names and Visual Basic's.
static bool is_state(const char *name) {
  return strcmp(name, "<>1__state") == 0 || strcmp(name, "$State") == 0;
}
static bool is_awaiter(const char *name) {
  return cs_has_prefix(name, "<>u__") || cs_has_prefix(name, "$A");
}

static uint64_t end_of_field(const struct cs_heap_class_fields *fields, uint32_t index,
                             uint64_t size) {
  uint64_t begin = fields->item[index].offset, end = size;
  if (fields->item[index].kind == CS_HEAP_OBJECT) return begin + 8;
  for (uint32_t i = 0; i < fields->count; i++)
    if (fields->item[i].place == CS_HEAP_IN_OBJECT && fields->item[i].offset > begin &&
        fields->item[i].offset < end)
      end = fields->item[i].offset;
  return end;
}

// `holder`: the class of the objects that contain the machine's fields, from `origin` on.
static void lay_out(struct cs_async_classes *classes, struct cs_async_class *holder,
                    const struct cs_async_class *machine, uint32_t origin) {
  static struct cs_heap_class_fields fields;
  static struct series series;
  const struct cs_metadata *metadata = cs_heap_modules_metadata(classes->modules, machine->module);
  holder->laid_out = true;
  if (metadata == NULL || !cs_heap_class_fields(world_of(classes), &machine->type, &fields)) return;
  read_series(classes, holder, &series);
  for (uint32_t i = 0; i < fields.count; i++) {
    const char *name = cs_metadata_field(metadata, fields.item[i].row);
    if (fields.item[i].place != CS_HEAP_IN_OBJECT || name == NULL) continue;
    if (is_state(name)) {
      holder->has_state = true;
      holder->state_at = origin + fields.item[i].offset;
    }
    if (!is_awaiter(name)) continue;
    uint64_t end = end_of_field(&fields, i, machine->type.base_bytes - 2ull * CS_HEAP_HEADER);
    struct cs_async_awaiter awaiter = {.begin = origin + fields.item[i].offset,
                                       .end = origin + (uint32_t)end,
                                       .field = fields.item[i].row,
                                       .is_known = fields.item[i].kind == CS_HEAP_OBJECT};
    awaiter.reference = first_reference(&series, awaiter.begin, awaiter.end);
    if (!awaiter.is_known) awaiter.is_known = is_known_awaiter(metadata, awaiter.field);
    add_awaiter(holder, &awaiter);
  }
}

void cs_async_lay_out(struct cs_async_classes *classes, uint32_t index) {
  struct cs_async_class *class = &classes->items[index];
  if (!class->laid_out) lay_out(classes, class, class, CS_HEAP_HEADER);
}

// Returns the last of the class's generic arguments, or 0 if it has none, or it is not a class.
static uint64_t last_argument(const struct cs_async_classes *classes, uint64_t id) {
  uint64_t arguments[CS_HEAP_MOST_ARGUMENTS];
  uint32_t count = cs_heap_class_arguments(world_of(classes), id, arguments);
  return count > 0 && arguments[count - 1] % 8 == 0 ? arguments[count - 1] : 0;
}

static void learn_box(struct cs_async_classes *classes, uint32_t index) {
  uint64_t argument = last_argument(classes, classes->items[index].type.id);
  uint32_t machine = argument != 0 ? cs_async_class_find(classes, argument) : CS_ASYNC_NO_CLASS;
  struct cs_async_class *class = &classes->items[index];
  class->machine = machine;
  if (machine == CS_ASYNC_NO_CLASS ||
      !cs_async_class_member(classes, index, "StateMachine", &class->machine_at)) {
    class->kind = class->kind == CS_ASYNC_BOX ? CS_ASYNC_TASK : CS_ASYNC_NOTHING;
    return;
  }
  class->by_reference = !classes->items[machine].is_value;
  const char *context = class->kind == CS_ASYNC_BOX ? "m_stateObject" : "Context";
  if (!cs_async_class_member(classes, index, context, &class->context_at)) class->context_at = 0;
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
  return cs_async_class_member(classes, index, "m_stateFlags", &task->flags) &&
         cs_async_class_member(classes, index, "m_action", &task->action) &&
         cs_async_class_member(classes, index, "m_continuationObject", &task->continuation);
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
      (found->link != NULL &&
       !cs_async_class_member(classes, index, found->link, &class->link_at)) ||
      (found->size != NULL && !cs_async_class_member(classes, index, found->size, &class->size_at)))
    class->kind = CS_ASYNC_NOTHING;
  if (found->kind == CS_ASYNC_BOX || found->kind == CS_ASYNC_POOLED) learn_box(classes, index);
}

static const char *core_name(struct cs_async_classes *classes, const struct cs_async_class *class) {
  char name[4096];
  return cs_heap_modules_type_name(classes->modules, class->module, class->type.row, name,
                                   sizeof name)
             ? strdup(name)
             : NULL;
}

static uint32_t find(struct cs_async_classes *classes, uint64_t id, unsigned depth);

static uint32_t add_class(struct cs_async_classes *classes, const struct cs_async_class *class) {
  CS_APPEND(classes->items, classes->count, classes->capacity, *class);
  return (uint32_t)classes->count - 1;
}

static uint32_t read_class(struct cs_async_classes *classes, uint64_t id, unsigned depth) {
  struct cs_async_class class = {.parent = CS_ASYNC_NO_CLASS, .machine = CS_ASYNC_NO_CLASS};
  if (depth == MOST_BASES || !cs_heap_class_read(world_of(classes), id, &class.type))
    return CS_ASYNC_NO_CLASS;
  class.element_bytes =
      (class.type.flags & HAS_ELEMENTS) != 0 ? class.type.flags & ELEMENT_BYTES : 0;
  class.has_references = (class.type.flags & HAS_REFERENCES) != 0;
  class.is_value = (class.type.flags & CATEGORY) == VALUE_TYPE;
  if (class.type.description == 0) return add_class(classes, &class);
  if (class.type.parent != 0) {
    class.parent = find(classes, class.type.parent, depth + 1);
    if (class.parent == CS_ASYNC_NO_CLASS) return CS_ASYNC_NO_CLASS;
  }
  class.module = cs_heap_modules_number(classes->modules, class.type.module);
  if (class.module == classes->core) class.core_name = core_name(classes, &class);
  return add_class(classes, &class);
}

static uint32_t find(struct cs_async_classes *classes, uint64_t id, unsigned depth) {
  uint32_t index;
  bool added;
  if (cs_map_get(&classes->by_id, id, &index)) return index;
  if (id == 0 || id % 8 != 0 || id >> CS_ADDRESS_BITS != 0 || classes->count == MOST_CLASSES)
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

// Finds the core library, and checks the form of fields with a member that the runtime describes.
static bool begin(struct cs_async_classes *classes) {
  const struct cs_layout *l = layout_of(classes);
  uint64_t core, exception;
  uint32_t message;
  if (!cs_objects_known(world_of(classes)) || l->generics.dictionaries == CS_NO_FIELD ||
      l->generics.arguments == CS_NO_FIELD || l->exception.message == CS_NO_FIELD ||
      l->exception_class == 0 || (core = cs_heap_class_core_module(world_of(classes))) == 0 ||
      !read(classes, l->exception_class, &exception, sizeof exception))
    return false;
  classes->core = cs_heap_modules_number(classes->modules, core);
  uint32_t index = cs_async_class_find(classes, exception);
  return index != CS_ASYNC_NO_CLASS &&
         cs_async_class_member(classes, index, "_message", &message) &&
         message == l->exception.message;
}

struct cs_async_classes *cs_async_classes_new(struct cs_remote *remote, struct cs_error *err) {
  struct cs_async_classes *classes = cs_allocate(sizeof *classes);
  classes->remote = remote;
  classes->modules = cs_heap_modules_new(remote);
  if (begin(classes)) return classes;
  (void)cs_error_set(err,
                     "the classes of process %d are not described as those of .NET 9 and 10 are",
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
  cs_heap_modules_free(classes->modules);
  free(classes);
}
