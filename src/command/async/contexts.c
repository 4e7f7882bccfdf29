// SPDX-License-Identifier: MIT
// Reads labels and Activities in ExecutionContexts: ExecutionContext.m_localValues is a map of the
// values of AsyncLocals, of which there are forms for no, one to four, up to 16 and more values.
// Invariants: a label or an Activity is known by its class, and classes and members are found by
// their names; a label of another recording is none, and a map of an unknown form is not guessed
// at. One thread. Signal-safe: no.
#include "async/contexts.h"

#include <string.h>

#include "base/path.h"
#include "objects/text.h"

enum { MOST_VALUES = 1 << 12, MOST_BASES = 16, PAIR_BYTES = 16 };

enum role {
  ROLE_NONE,
  ROLE_UNREAD,  // of a known name, but not of the form that is expected
  ROLE_CONTEXT,
  ROLE_EMPTY,
  ROLE_PAIRS,       // the pairs are in the object
  ROLE_PAIR_ARRAY,  // they are in an array
  ROLE_DICTIONARY,
  ROLE_LABEL,
  ROLE_REQUEST,
  ROLE_ACTIVITY,
  ROLE_MIRROR,
  ROLE_AGENT,
  ROLE_ROUTE,
};

enum label_member { TRACE0, TRACE1, SPAN, REQUEST, ROUTE, MIRROR, MOST_MEMBERS };

// What objects of a class are to us, and where their members are.
struct form {
  enum role role;
  uint32_t count;
  uint32_t at[MOST_MEMBERS];
};

struct cs_async_contexts {
  struct cs_remote *remote;
  struct cs_async_classes *classes;
  struct cs_async_labels *labels;
  struct form *forms;
  size_t form_count, form_capacity;
  struct cs_map by_class;  // forms
  struct cs_async_context *found;
  size_t found_count, found_capacity;
  struct cs_map by_address;  // `found`
  struct cs_map by_label;    // labels, by the address of the object
  struct cs_map by_route;    // numbers of routes, by the address of the object
  uint64_t mirror;           // the last one that was asked
  bool is_current;           // it is this recording's
};

static const struct role_of_name {
  const char *module;  // NULL: the core library
  const char *name;
  enum role role;
  const char *members[MOST_MEMBERS];
} roles[] = {
#define MAPS "System.Threading.AsyncLocalValueMap."
#define HOOK "ClrsnapLabels.dll"
    {NULL, "System.Threading.ExecutionContext", ROLE_CONTEXT, {"m_localValues"}},
    {NULL, MAPS "EmptyAsyncLocalValueMap", ROLE_EMPTY, {NULL}},
    {NULL, MAPS "OneElementAsyncLocalValueMap", ROLE_PAIRS, {"_item0"}},
    {NULL, MAPS "TwoElementAsyncLocalValueMap", ROLE_PAIRS, {"_item0", "_item1"}},
    {NULL, MAPS "ThreeElementAsyncLocalValueMap", ROLE_PAIRS, {"_item0", "_item1", "_item2"}},
    {NULL,
     MAPS "FourElementAsyncLocalValueMap",
     ROLE_PAIRS,
     {"_item0", "_item1", "_item2", "_item3"}},
    {NULL, MAPS "MultiElementAsyncLocalValueMap", ROLE_PAIR_ARRAY, {"_keyValues"}},
    {NULL, MAPS "ManyElementAsyncLocalValueMap", ROLE_DICTIONARY, {"_entries", "_count"}},
    {"System.Diagnostics.DiagnosticSource.dll",
     "System.Diagnostics.Activity",
     ROLE_ACTIVITY,
     {"<StartTimeUtc>k__BackingField"}},
    {HOOK,
     "Clrsnap.Label",
     ROLE_LABEL,
     {"Trace0", "Trace1", "Span", "Request", "_route", "_mirror"}},
    {HOOK, "Clrsnap.Request", ROLE_REQUEST, {"Number", "_route"}},
    {HOOK, "Clrsnap.Mirror", ROLE_MIRROR, {"_recording", "_agent"}},
    {HOOK, "Clrsnap.Agent", ROLE_AGENT, {"_wanted"}},
    {HOOK, "Clrsnap.Route", ROLE_ROUTE, {"Number", "Name"}},
};

// ---- Classes ----

static const struct role_of_name *role_of(struct cs_async_contexts *c, uint32_t class) {
  char name[4096];
  const struct cs_async_class *found = cs_async_class_at(c->classes, class);
  if (found->core_name != NULL) {
    for (size_t i = 0; i < CS_COUNT(roles); i++)
      if (roles[i].module == NULL && strcmp(roles[i].name, found->core_name) == 0) return &roles[i];
    return NULL;
  }
  const char *path = found->type.row != 0
                         ? cs_heap_modules_path(cs_async_modules_of(c->classes), found->module)
                         : NULL;
  for (size_t i = 0; i < CS_COUNT(roles) && path != NULL; i++)
    if (roles[i].module != NULL && strcmp(roles[i].module, cs_file_of(path)) == 0 &&
        cs_async_class_name(c->classes, class, name, sizeof name) &&
        strcmp(roles[i].name, name) == 0)
      return &roles[i];
  return NULL;
}

static struct form make_form(struct cs_async_contexts *c, uint32_t class) {
  const struct role_of_name *found = NULL;
  // A class that is derived from Activity is one, too.
  for (uint32_t i = 0, at = class; at != CS_ASYNC_NO_CLASS && i < MOST_BASES && found == NULL;
       i++) {
    found = role_of(c, at);
    at = cs_async_class_at(c->classes, at)->parent;
  }
  struct form form = {.role = found != NULL ? found->role : ROLE_NONE};
  uint32_t end = cs_async_class_at(c->classes, class)->type.base_bytes - CS_HEAP_HEADER;
  uint32_t bytes = form.role == ROLE_PAIRS ? PAIR_BYTES : 4;
  for (size_t i = 0; found != NULL && i < MOST_MEMBERS && found->members[i] != NULL; i++) {
    if (!cs_async_class_member(c->classes, class, found->members[i], &form.at[i]) ||
        form.at[i] + bytes > end)  // an Activity is one, whenever it began
      return (struct form){.role = form.role == ROLE_ACTIVITY ? ROLE_ACTIVITY : ROLE_UNREAD};
    form.count++;
  }
  return form;
}

static bool read(struct cs_async_contexts *c, uint64_t at, void *out, size_t size) {
  return at != 0 && cs_remote_read(c->remote, at, out, size);
}

static uint32_t class_of(struct cs_async_contexts *c, uint64_t object) {
  uint64_t id;
  return object % 8 == 0 && read(c, object, &id, sizeof id) ? cs_async_class_find(c->classes, id)
                                                            : CS_ASYNC_NO_CLASS;
}

static struct form form_of(struct cs_async_contexts *c, uint64_t object) {
  uint32_t class = class_of(c, object);
  bool added;
  if (class == CS_ASYNC_NO_CLASS) return (struct form){.role = ROLE_UNREAD};
  uint32_t number = cs_map_put(&c->by_class, class, (uint32_t)c->form_count, &added);
  if (!added) return c->forms[number];
  struct form form = make_form(c, class);
  return CS_APPEND(c->forms, c->form_count, c->form_capacity, form);
}

// ---- Labels ----

// Returns whether that is the hook's part in the recording that is in progress.
static bool is_current(struct cs_async_contexts *c, uint64_t mirror) {
  uint64_t agent, wanted;
  uint32_t recording, current;
  if (mirror == c->mirror) return c->is_current;
  c->mirror = mirror;
  c->is_current = false;
  struct form form = form_of(c, mirror);
  if (form.role != ROLE_MIRROR || !read(c, mirror + form.at[0], &recording, sizeof recording) ||
      !read(c, mirror + form.at[1], &agent, sizeof agent))
    return false;
  form = form_of(c, agent);
  if (form.role != ROLE_AGENT || !read(c, agent + form.at[0], &wanted, sizeof wanted) ||
      !read(c, wanted, &current, sizeof current))
    return false;
  return c->is_current = recording == current && current != 0;
}

// Returns the number of a route, which is given its name, or 0 if that is unknown.
static uint32_t route_of(struct cs_async_contexts *c, uint64_t route) {
  const struct cs_world *world = cs_remote_world(c->remote);
  struct cs_async_labels *labels = c->labels;
  uint32_t number = 0;
  uint64_t name;
  bool added;
  if (route == 0 || cs_map_get(&c->by_route, route, &number)) return number;
  struct form form = form_of(c, route);
  char *text = form.role == ROLE_ROUTE && world->layout.string.first_char != CS_NO_FIELD &&
                       read(c, route + form.at[0], &number, sizeof number) && number != 0 &&
                       read(c, route + form.at[1], &name, sizeof name) && name != 0
                   ? cs_object_utf16(world, name + world->layout.string.first_char)
                   : NULL;
  if (text == NULL) number = 0;
  (void)cs_map_put(&c->by_route, route, number, &added);
  if (text == NULL) return 0;
  CS_APPEND(labels->routes, labels->route_count, labels->route_capacity,
            (struct cs_async_route){number, text});
  return number;
}

static uint32_t read_label(struct cs_async_contexts *c, uint64_t object, const struct form *form) {
  struct cs_async_labels *labels = c->labels;
  uint64_t words[MOST_MEMBERS], of_request;
  uint32_t number;
  struct cs_label label;
  for (int i = 0; i < MOST_MEMBERS; i++)
    if (!read(c, object + form->at[i], &words[i], sizeof words[i])) return CS_ASYNC_CONTEXT_UNREAD;
  struct form request = form_of(c, words[REQUEST]);
  if (request.role != ROLE_REQUEST ||
      !read(c, words[REQUEST] + request.at[0], &number, sizeof number) ||
      !read(c, words[REQUEST] + request.at[1], &of_request, sizeof of_request))
    return CS_ASYNC_CONTEXT_UNREAD;
  if (!is_current(c, words[MIRROR]) || (words[TRACE0] | words[TRACE1] | words[SPAN]) == 0)
    return CS_ASYNC_NO_LABEL;
  uint64_t route = words[ROUTE] != 0 ? words[ROUTE] : of_request;
  memcpy(label.trace, &words[TRACE0], sizeof label.trace);
  memcpy(label.span, &words[SPAN], sizeof label.span);
  label.endpoint = (uint64_t)number << 32 | route_of(c, route);
  CS_APPEND(labels->items, labels->count, labels->capacity, label);
  return (uint32_t)labels->count - 1;
}

static uint32_t label_of(struct cs_async_contexts *c, uint64_t object, const struct form *form) {
  uint32_t label;
  bool added;
  if (cs_map_get(&c->by_label, object, &label)) return label;
  label = read_label(c, object, form);
  (void)cs_map_put(&c->by_label, object, label, &added);
  return label;
}

// ---- Maps ----

// Returns when the Activity began, by its DateTime: 100 ns since the year 1, and the kind in two
// bits.
static uint64_t beginning_of(struct cs_async_contexts *c, uint64_t activity,
                             const struct form *form) {
  const uint64_t kind = 3ull << 62, year_1970 = 621355968000000000;
  uint64_t date;
  if (form->count == 0 || !read(c, activity + form->at[0], &date, sizeof date)) return 0;
  date &= ~kind;
  return date > year_1970 && date < 2 * year_1970 ? (date - year_1970) * 100 : 0;
}

// Adds what a key or a value is to what the map has been found to have: a label of this recording
// counts for more than something that cannot be read, and that for more than an Activity. Of
// several Activities the last one counts.
static void add(struct cs_async_contexts *c, uint64_t object, struct cs_async_context *found) {
  if (object == 0) return;
  struct form form = form_of(c, object);
  uint64_t began_ns = form.role == ROLE_ACTIVITY ? beginning_of(c, object, &form) : 0;
  uint32_t own = form.role == ROLE_LABEL      ? label_of(c, object, &form)
                 : form.role == ROLE_ACTIVITY ? CS_ASYNC_NO_LABEL
                 : form.role == ROLE_UNREAD   ? CS_ASYNC_CONTEXT_UNREAD
                                              : CS_ASYNC_NO_ACTIVITY;
  if (own > found->label) found->label = own;
  if (began_ns > found->began_ns) found->began_ns = began_ns;
}

static void add_unread(struct cs_async_context *found) {
  if (found->label < CS_ASYNC_CONTEXT_UNREAD) found->label = CS_ASYNC_CONTEXT_UNREAD;
}

// The first `words` words of `count` items, which are references; `bytes` from one item to the
// next.
static void add_words(struct cs_async_contexts *c, uint64_t at, uint32_t count, uint32_t bytes,
                      uint32_t words, struct cs_async_context *found) {
  uint64_t word;
  for (uint32_t i = 0; i < count; i++)
    for (uint32_t k = 0; k < words; k++) {
      if (read(c, at + (uint64_t)i * bytes + 8ull * k, &word, sizeof word))
        add(c, word, found);
      else
        add_unread(found);
    }
}

// The array at the address `at`. *first: of its items.
static bool open_array(struct cs_async_contexts *c, uint64_t at, uint64_t *array, uint32_t *count,
                       struct cs_async_class *class) {
  const struct cs_layout *l = &cs_remote_world(c->remote)->layout;
  uint32_t index = read(c, at, array, sizeof *array) ? class_of(c, *array) : CS_ASYNC_NO_CLASS;
  if (index == CS_ASYNC_NO_CLASS) return false;
  *class = *cs_async_class_at(c->classes, index);
  return class->element_bytes != 0 && read(c, *array + l->array.count, count, sizeof *count) &&
         *count <= MOST_VALUES;
}

static bool add_pairs(struct cs_async_contexts *c, uint64_t map, const struct form *form,
                      struct cs_async_context *found) {
  const struct cs_layout *l = &cs_remote_world(c->remote)->layout;
  struct cs_async_class class;
  uint64_t array;
  uint32_t count;
  if (!open_array(c, map + form->at[0], &array, &count, &class) ||
      class.element_bytes != PAIR_BYTES)
    return false;
  add_words(c, array + l->array.size, count, PAIR_BYTES, PAIR_BYTES / 8, found);
  return true;
}

// Its entries have a hash as well, and where their values are, the entry's class says.
static bool add_entries(struct cs_async_contexts *c, uint64_t map, const struct form *form,
                        struct cs_async_context *found) {
  const struct cs_layout *l = &cs_remote_world(c->remote)->layout;
  struct cs_async_class class;
  uint64_t array, entry;
  uint32_t used, count, value_at;
  if (!open_array(c, map + form->at[0], &array, &count, &class) ||
      !read(c, map + form->at[1], &used, sizeof used) || used > count ||
      !read(c, class.type.id + l->objects.element, &entry, sizeof entry))
    return false;
  uint32_t index = cs_async_class_find(c->classes, entry);
  if (index == CS_ASYNC_NO_CLASS || !cs_async_class_member(c->classes, index, "value", &value_at) ||
      value_at - CS_HEAP_HEADER + 8 > class.element_bytes)
    return false;
  add_words(c, array + l->array.size + value_at - CS_HEAP_HEADER, used, class.element_bytes, 1,
            found);
  return true;
}

// Returns false if its form is not known.
static bool add_map(struct cs_async_contexts *c, uint64_t map, struct cs_async_context *found) {
  struct form form = form_of(c, map);
  if (form.role == ROLE_PAIR_ARRAY) return add_pairs(c, map, &form, found);
  if (form.role == ROLE_DICTIONARY) return add_entries(c, map, &form, found);
  for (uint32_t i = 0; i < form.count && form.role == ROLE_PAIRS; i++)
    add_words(c, map + form.at[i], 1, PAIR_BYTES, PAIR_BYTES / 8, found);
  return form.role == ROLE_PAIRS || form.role == ROLE_EMPTY;
}

static struct cs_async_context read_context(struct cs_async_contexts *c, uint64_t address) {
  struct cs_async_context found = {CS_ASYNC_NO_ACTIVITY, 0};
  struct form form = form_of(c, address);
  uint64_t map = 0;
  if (form.role != ROLE_CONTEXT || !read(c, address + form.at[0], &map, sizeof map) ||
      (map != 0 && !add_map(c, map, &found)))
    add_unread(&found);
  return found;
}

struct cs_async_context cs_async_context_read(struct cs_async_contexts *c, uint64_t address) {
  bool added;
  if (address == 0) return (struct cs_async_context){CS_ASYNC_NO_ACTIVITY, 0};
  uint32_t number = cs_map_put(&c->by_address, address, (uint32_t)c->found_count, &added);
  if (!added) return c->found[number];
  struct cs_async_context found = read_context(c, address);
  return CS_APPEND(c->found, c->found_count, c->found_capacity, found);
}

// ---- Beginning and end ----

struct cs_async_contexts *cs_async_contexts_new(struct cs_remote *remote,
                                                struct cs_async_classes *classes,
                                                struct cs_async_labels *labels) {
  struct cs_async_contexts *c = cs_allocate(sizeof *c);
  c->remote = remote;
  c->classes = classes;
  c->labels = labels;
  static const struct cs_label none;
  while (labels->count < CS_ASYNC_LABELS)
    CS_APPEND(labels->items, labels->count, labels->capacity, none);
  return c;
}

void cs_async_contexts_free(struct cs_async_contexts *c) {
  if (c == NULL) return;
  free(c->forms);
  cs_map_free(&c->by_class);
  cs_map_free(&c->by_address);
  free(c->found);
  cs_map_free(&c->by_label);
  cs_map_free(&c->by_route);
  free(c);
}

void cs_async_labels_free(struct cs_async_labels *labels) {
  for (size_t i = 0; i < labels->route_count; i++) free(labels->routes[i].name);
  free(labels->routes);
  free(labels->items);
  *labels = (struct cs_async_labels){.items = NULL};
}
