// SPDX-License-Identifier: MIT
// Learns from the profiling API what handlers need to find awaiting methods (signal/awaits.h) when
// a sample shows that it is missing: which return addresses are in a box's MoveNext, and to which
// classes its Task's continuation leads. Turns such chains of classes into frames.
//
// Invariants: a class is looked up only if no code has been unloaded since an object of it was
// read, and unloading waits until the look-up ends (cs_unload_begin_naming); when a module has been
// unloaded, everything is learnt again. A chain is believed only if its first box belongs to the
// method whose frame is above the box's frame. Threads: the agent's; cs_awaits_suspended and
// _resuming, the one that has stopped the runtime; cs_awaits_forget, one that unloads. Signal-safe:
// no.
#include "reporting/awaits.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/prefix.h"
#include "codemap/method.h"
#include "life/library.h"
#include "reporting/await_source.h"
#include "reporting/functions.h"
#include "reporting/unload.h"
#include "state/state.h"

enum {
  MOST_OFFSET = 0xFFF,
  BASES = 8,
};

// A method on the wire, by its id.
struct method {
  uint64_t identity;   // of the method in the source, whatever its instantiation; 0: not known
  uint64_t box_class;  // of a box's MoveNext: struct cs_await_site.class; else 0
  bool between;        // may be between a box's MoveNext and its state machine's
  bool runs_context;   // is ExecutionContext.Run...
  bool moves_next;     // may be a state machine's MoveNext
  bool of_delegate;    // called by code that runs a Task, it leads to the delegate, or is that
};
static struct method *methods;
static uint32_t method_capacity;

// A class of boxes, and the method whose boxes they are.
struct box {
  uint64_t class;  // 0: free
  uint64_t identity;
  uint32_t id;
};
enum { BOXES = CS_AWAIT_TYPES };
static struct box *boxes;
static uint32_t type_count, site_count, forgets, learnt_forgets;
enum { STATES = CS_AWAITS_AMBIGUOUS + 1 };
static uint32_t states[STATES];  // samples, by the state of their chains

// ---- A recording's beginning and end, and the runtime's callbacks ----

// Handlers read it, and callbacks may come before and after a recording, so it is static.
static struct cs_awaits table;

bool cs_awaits_start(bool attached, struct cs_error *err) {
  if (!cs_options.async_callers) return true;
  boxes = calloc(BOXES, sizeof *boxes);
  if (boxes == NULL) return cs_error_set(err, "no memory for the classes of asynchronous callers");
  type_count = site_count = 0;
  memset(states, 0, sizeof states);
  memset(&table, 0, sizeof table);  // so a handler takes no page fault either
  // From a program's start, every stop has a callback. At an attach, one may be under way.
  table.stops = attached ? 1 : 0;
  return true;
}

void cs_awaits_publish(void) {
  const struct cs_layout *l = &cs_library.world.layout;
  if (!cs_options.async_callers) return;
  if (l->method_table.canonical == CS_NO_FIELD || l->method_table.parent == CS_NO_FIELD) {
    cs_log("this runtime does not describe base classes: awaiting methods are not looked for");
    return;
  }
  table.canonical = l->method_table.canonical;
  table.parent = l->method_table.parent;
  cs_store_release(&cs_signal.awaits, &table);
}

void cs_awaits_free(void) {
  cs_pages_zero(&table, sizeof table);
  free(boxes);
  free(methods);
  boxes = NULL;
  methods = NULL;
  method_capacity = 0;
}

// Objects move only between RuntimeSuspendFinished and RuntimeResumeStarted, which come on one
// thread at a time, under the runtime's lock of the thread list.
void cs_awaits_suspended(void) {
  __atomic_store_n(&table.stops, (cs_load_acquire(&table.stops) + 1) | 1, __ATOMIC_SEQ_CST);
}

void cs_awaits_resuming(void) {
  __atomic_store_n(&table.stops, (cs_load_acquire(&table.stops) | 1) + 1, __ATOMIC_SEQ_CST);
}

void cs_awaits_forget(void) {
  for (uint32_t i = 0; i < CS_AWAIT_TYPES; i++) cs_store_release(&table.types[i], 0u);
  for (uint32_t i = 0; i < CS_AWAIT_SITES; i++) cs_store_release(&table.sites[i].ip, 0u);
  cs_add_seq(&forgets, 1);
}

// ---- Methods ----

static uint64_t identity_of(const char *module, uint32_t token) {
  uint64_t hash = cs_hash_bytes(module, strlen(module));
  return token != 0 ? hash << 32 ^ hash ^ token : 0;
}

#define TASK_BOX "System.Runtime.CompilerServices.AsyncTaskMethodBuilder`1+"
static bool is_box_name(const struct cs_class *class) {
  return class->core && strcmp(class->name, TASK_BOX "AsyncStateMachineBox`1") == 0;
}

// Derived from the class above; used while anything listens to the events of tasks.
static bool is_watched_box_name(const struct cs_class *class) {
  return class->core && strcmp(class->name, TASK_BOX "DebugFinalizableAsyncStateMachineBox`1") == 0;
}

// Returns whether the class is that of a Task of methods that the runtime suspends by itself
// (runtime async). These methods are between the Task and its awaiter.
static bool is_of_runtime_async(const struct cs_class *class) {
  static const char helpers[] = "System.Runtime.CompilerServices.AsyncHelpers+";
  return class->core && cs_has_prefix(class->name, helpers);
}

// Returns whether it is a box's method that needs `this` after the state machine's MoveNext has
// returned.
static bool may_run_box(const struct cs_method_name *name) {
  static const char *const in[] = {"MoveNext", "ExecuteFromThreadPool", "ExecuteDirectly"};
  if (strstr(name->type, "AsyncStateMachineBox<") == NULL ||
      strcmp(name->space, "System.Runtime.CompilerServices") != 0)
    return false;
  for (size_t i = 0; i < CS_COUNT(in); i++)
    if (strcmp(name->method, in[i]) == 0) return true;
  return false;
}

// Returns CS_AWAIT_TASK_RUNS for a method whose `this` is a running Task, not a box,
// CS_AWAIT_DISPATCHES for a caller of such a method, and otherwise 0.
static uint64_t runner_of(const struct cs_method_name *name) {
  static const struct {
    const char *space, *type, *method;
    uint64_t class;
  } runners[] = {
      {"System.Threading.Tasks", "Task", "ExecuteWithThreadLocal", CS_AWAIT_TASK_RUNS},
      {"System.Threading", "ThreadPoolWorkQueue", "Dispatch", CS_AWAIT_DISPATCHES},
      {"System.Threading", "Thread", "StartCallback", CS_AWAIT_DISPATCHES},
      {"System.Threading.Tasks", "TaskContinuation", "InlineIfPossibleOrElseQueue",
       CS_AWAIT_DISPATCHES},
  };
  for (size_t i = 0; i < CS_COUNT(runners); i++)
    if (strcmp(name->space, runners[i].space) == 0 && strcmp(name->type, runners[i].type) == 0 &&
        strcmp(name->method, runners[i].method) == 0)
      return runners[i].class;
  return 0;
}

// Returns whether it may be a Task's delegate or lead to it, and is not code of the runtime's own
// that runs after the delegate has returned.
static bool is_of_delegate(const struct cs_method_name *name) {
  if (strstr(name->module, "System.Private.CoreLib") == NULL) return name->module[0] != '\0';
  return strcmp(name->space, "System.Threading.Tasks") == 0 &&
         (strcmp(name->method, "InnerInvoke") == 0 || strcmp(name->type, "Task.<>c") == 0);
}

void cs_awaits_note_method(uint32_t id, const struct cs_method_name *name, uint64_t box_class) {
  if (!cs_options.async_callers) return;
  if (id >= method_capacity) {
    uint32_t capacity = method_capacity == 0 ? 1024 : method_capacity;
    while (capacity <= id) capacity *= 2;
    struct method *larger = realloc(methods, capacity * sizeof *methods);
    if (larger == NULL) return;
    memset(larger + method_capacity, 0, (capacity - method_capacity) * sizeof *methods);
    methods = larger;
    method_capacity = capacity;
  }
  bool context = strcmp(name->space, "System.Threading") == 0 &&
                 strcmp(name->type, "ExecutionContext") == 0 && cs_has_prefix(name->method, "Run");
  bool callback = strcmp(name->space, "System.Runtime.CompilerServices") == 0 &&
                  strstr(name->type, "StateMachineBox<") != NULL &&
                  strcmp(name->method, "ExecutionContextCallback") == 0;
  methods[id] = (struct method){.identity = identity_of(name->module, name->token),
                                .box_class = box_class,
                                .between = context || callback,
                                .runs_context = context,
                                .moves_next = strcmp(name->method, "MoveNext") == 0,
                                .of_delegate = context || is_of_delegate(name)};
}

static const struct method *method_of(uint64_t wire_frame) {
  static const struct method none;
  uint32_t id = cs_wire_frame_function(wire_frame);
  bool managed = CS_WIRE_FRAME_KIND(wire_frame) == CS_WIRE_FRAME_MANAGED;
  return managed && id < method_capacity ? &methods[id] : &none;
}

// ---- Sites ----

static void add_site(uint64_t ip, uint64_t class) {
  uint32_t at = cs_await_slot(ip, CS_AWAIT_SITES);
  if (site_count >= CS_AWAIT_SITES / 2) return;
  for (; table.sites[at].ip != 0; at = (at + 1) & (CS_AWAIT_SITES - 1))
    if (table.sites[at].ip == ip) return;
  cs_store_release(&table.sites[at].class, class);
  cs_store_release(&table.sites[at].last_class, 0u);
  cs_store_release(&table.sites[at].places,
                   CS_AWAIT_PLACES | (uint64_t)learnt_forgets << CS_AWAIT_LIFE_AT);
  cs_store_release(&table.sites[at].ip, ip);
  site_count++;
}

// Returns whether frame `i` has called ExecutionContext.Run to run a state machine. Only a box's
// MoveNext does that, so if the method is another one, a MoveNext has been inlined into it.
static bool has_box_inlined(const uint64_t *wire, uint32_t i) {
  const struct method *own = method_of(wire[i]), *run = method_of(wire[i - 1]);
  if (i < 2 || own->identity == 0 || own->between || !run->runs_context) return false;
  while (--i > 0 && method_of(wire[i])->between) continue;
  return method_of(wire[i])->moves_next;
}

static void learn_sites(const struct cs_sample *s, const uint64_t *wire, uint32_t count) {
  for (uint32_t i = 1; i < count; i++) {
    uint64_t class = method_of(wire[i])->box_class;
    if (class == 0 && has_box_inlined(wire, i)) class = CS_AWAIT_ANY_BOX;
    // `this` is live until the Task has finished, and so while the Task runs its delegate.
    if (class == CS_AWAIT_TASK_RUNS && !method_of(wire[i - 1])->of_delegate) continue;
    if (class != 0 && (s->frames[i] & CS_FRAME_WORD_EXACT) == 0)
      add_site(CS_FRAME_WORD_IP(s->frames[i]), class);
  }
}

// ---- Classes ----

static struct box *box_slot(uint64_t class) {
  struct box *b = &boxes[cs_await_slot(class, BOXES)];
  while (b->class != 0 && b->class != class)
    if (++b == boxes + BOXES) b = boxes;
  return b;
}

// Members that lead on along a chain, of a class or of one of its bases.
static const struct member {
  const char *class;
  const WCHAR *field;
} members[] = {
#define TASK 0
    {"System.Threading.Tasks.Task", u"m_continuationObject"},
    {"System.Delegate", u"_target"},
    {"System.Threading.Tasks.AwaitTaskContinuation", u"m_action"},
    {"System.Threading.Tasks.ContinueWithTaskContinuation", u"m_task"},
    // While anything listens to the events of tasks.
    {"System.Runtime.CompilerServices.AsyncMethodBuilderCore+ContinuationWrapper",
     u"_continuation"},
};

static void note_task(ClassID class, uint32_t offset) {
  table.continuation = offset;
  cs_store_release(&table.task, (uint64_t) class);
}

// Returns CS_AWAIT_END if the class has no such member.
static enum cs_await_kind find_member(const struct cs_class *class, uint32_t *offset) {
  ICorProfilerInfo15 *info = cs_agent.info;
  struct cs_class base = *class;
  for (int i = 0; i < BASES; i++) {
    for (size_t m = 0; base.core && m < CS_COUNT(members); m++) {
      if (strcmp(base.name, members[m].class) != 0) continue;
      if (!cs_class_field(info, &base, members[m].field, offset) || *offset > MOST_OFFSET)
        return CS_AWAIT_END;
      if (m == TASK) note_task(base.id, *offset);
      return m == TASK ? CS_AWAIT_PROMISE : CS_AWAIT_LINK;
    }
    if (base.parent == 0 || !cs_class_read(info, base.parent, &base)) return CS_AWAIT_END;
  }
  return CS_AWAIT_END;
}

// A Task is recognised by the class that declares the method that runs it.
static bool is_runner(const struct cs_class *class, uint64_t runner) {
  uint32_t offset;
  return class->core &&
         (runner != CS_AWAIT_TASK_RUNS || find_member(class, &offset) == CS_AWAIT_PROMISE);
}

uint64_t cs_awaits_box_class(FunctionID function, const struct cs_method_name *name) {
  ICorProfilerInfo15 *info = cs_agent.info;
  struct cs_class class;
  struct cs_method method;
  ClassID class_id = 0;
  uint64_t runner = runner_of(name);
  if (!cs_options.async_callers || (runner == 0 && !may_run_box(name)) ||
      !cs_method_read(&cs_library.world, function, &method) || method.dynamic)
    return 0;
  if (runner != 0)
    return cs_class_read(info, (ClassID)method.class, &class) && is_runner(&class, runner) ? runner
                                                                                           : 0;
  // For shared code, this may return no class.
  if (FAILED(info->lpVtbl->GetFunctionInfo2(info, function, 0, &class_id, NULL, NULL, 0, NULL,
                                            NULL)) ||
      (class_id != 0 && class_id != method.class))
    return 0;
  return cs_class_read(info, (ClassID)method.class, &class) && is_box_name(&class) ? method.class
                                                                                   : 0;
}

// Names the method of a box's state machine. Returns false if there was no room for its record.
static bool name_box(const struct cs_class *class, enum cs_await_kind *kind) {
  static struct cs_method_name name;
  ICorProfilerInfo15 *info = cs_agent.info;
  struct cs_class machine;
  mdMethodDef token;
  FunctionID function;
  *kind = CS_AWAIT_PROMISE;
  if (class->arg_count == 0 || !cs_class_read(info, class->args[class->arg_count - 1], &machine) ||
      !cs_class_method(info, &machine, u"MoveNext", &token, &function) ||
      !cs_function_name(function, &name) || name.kind != CS_NAME_METHOD)
    return true;
  uint32_t id;
  if (!cs_method_to_wire(&name, &id)) return false;
  *box_slot(class->id) = (struct box){class->id, identity_of(name.module, name.token), id};
  *kind = CS_AWAIT_BOX;
  return true;
}

// Returns the slot of a class in the handlers' table, which holds 0 if the class is not in the
// table yet.
static uint64_t *type_slot(uint64_t class) {
  uint32_t at = cs_await_slot(class, CS_AWAIT_TYPES);
  while (table.types[at] != 0 && CS_AWAIT_TYPE_CLASS(table.types[at]) != class)
    at = (at + 1) & (CS_AWAIT_TYPES - 1);
  return &table.types[at];
}

// Returns false if name_box does.
static bool learn_box(const struct cs_class *class, const uint64_t *slot,
                      enum cs_await_kind *kind) {
  union {
    struct cs_await_source source;
    uint64_t word;
  } at = {.word = 0};
  struct cs_class box = *class;
  uint32_t target;
  if (!name_box(class, kind)) return false;
  if (is_watched_box_name(class) && !cs_class_read(cs_agent.info, class->parent, &box)) return true;
  // A box that is not a Task leads on through its source, or not at all.
  if (cs_await_is_pooled_box(class) && *kind != CS_AWAIT_BOX) *kind = CS_AWAIT_END;
  if (*kind != CS_AWAIT_BOX) return true;
  if (!cs_await_find_source(&box, &at.source, &target)) {
    if (cs_await_is_pooled_box(class)) *kind = CS_AWAIT_END;
    return true;
  }
  table.target = target;
  cs_store_release(&table.sources[slot - table.types], at.word);
  *kind = CS_AWAIT_SOURCE;
  return true;
}

static void learn_list(const struct cs_class *class, const uint64_t *slot) {
  union {
    struct cs_await_source list;
    uint64_t word;
  } at = {.word = 0};
  uint32_t items, size, elements = cs_library.world.layout.array.size;
  if (elements != CS_NO_FIELD && cs_class_field(cs_agent.info, class, u"_items", &items) &&
      cs_class_field(cs_agent.info, class, u"_size", &size) && items <= MOST_OFFSET &&
      items % 8 == 0 && size <= MOST_OFFSET && size % 4 == 0)
    at.list = (struct cs_await_source){.holder = (uint16_t)items, .state = (uint16_t)size};
  table.elements = elements;
  cs_store_release(&table.sources[slot - table.types], at.word);
}

// Learns what an object of the class means to a chain. A class without metadata (an array) ends the
// chain.
static void learn_class(uint64_t id) {
  struct cs_class class;
  enum cs_await_kind kind = CS_AWAIT_END;
  uint32_t offset = 0;
  // Several samples in a row may have reported the class.
  if (type_count >= CS_AWAIT_TYPES / 2 || *type_slot(id) != 0) return;
  if (cs_class_read(cs_agent.info, (ClassID)id, &class)) {
    kind = find_member(&class, &offset);
    bool is_box = is_box_name(&class) || is_watched_box_name(&class);
    if ((kind == CS_AWAIT_PROMISE && is_box) || cs_await_is_pooled_box(&class))
      if (!learn_box(&class, type_slot(id), &kind)) return;
    if (cs_await_is_resumer(&class)) kind = CS_AWAIT_RESUMER;
    if (is_of_runtime_async(&class)) kind = CS_AWAIT_END;
    if (class.core && strcmp(class.name, "System.Collections.Generic.List`1") == 0) {
      kind = CS_AWAIT_LIST;
      learn_list(&class, type_slot(id));
    }
  }
  cs_log("class 0x%lx, %s: kind %d at %u", (unsigned long)id, class.name, (int)kind, offset);
  cs_store_release(type_slot(id), CS_AWAIT_TYPE(id, offset, kind));
  type_count++;
}

// ---- From a sample to frames ----

// Learns what is new in the chain; the handler already knew what a Task is.
static void learn_classes(const struct cs_sample *s) {
  for (uint32_t i = 0; i < s->await_count; i++) {
    uint64_t word = s->frames[s->frame_count + i];
    bool unknown = s->await_state == CS_AWAITS_UNKNOWN && i + 1u == s->await_count;
    if (unknown || (word & CS_AWAIT_WORD_NEW) != 0) learn_class(CS_AWAIT_WORD_CLASS(word));
  }
}

// Returns the number of boxes; the last word may be a class that is not a box's.
static uint32_t chain_length(const struct cs_sample *s) {
  uint32_t count = s->await_count;
  if (s->await_state == CS_AWAITS_UNKNOWN && count > 0) count--;
  return s->await_at < s->frame_count ? count : 0;
}

// Returns whether the box's frame runs this method, whose frame is then directly above.
static bool is_run_by(const struct cs_sample *s, const uint64_t *wire, uint64_t identity) {
  uint32_t i = s->await_at;
  while (i-- > 0 && method_of(wire[i])->between) continue;
  return i != UINT32_MAX && method_of(wire[i])->identity == identity;
}

// Returns NULL if the class is not named. The entry of a Task that is not a box is empty: it is
// passed over.
static const struct box *box_of(uint64_t word) {
  static const struct box no_method;
  uint64_t class = CS_AWAIT_WORD_CLASS(word);
  const struct box *box = box_slot(class);
  if (box->class != 0) return box;
  uint64_t type = *type_slot(class);
  return type != 0 && CS_AWAIT_TYPE_KIND(type) == CS_AWAIT_PROMISE ? &no_method : NULL;
}

// Returns whether the chain's first box is run by the frame that it was found in.
static bool is_first(const struct cs_sample *s, const uint64_t *wire, uint64_t word) {
  if ((word & CS_AWAIT_WORD_RUNS) != 0)
    return method_of(wire[s->await_at])->box_class == CS_AWAIT_TASK_RUNS;
  const struct box *first = box_of(word);
  return first != NULL && first->identity != 0 && is_run_by(s, wire, first->identity);
}

// Notes the box's class, so that handlers need not verify the next box of this class at this return
// address.
static void note_class(const struct cs_sample *s, const uint64_t *wire) {
  const uint64_t *words = &s->frames[s->frame_count];
  if (chain_length(s) == 0 || !is_first(s, wire, words[0])) return;
  uint64_t ip = CS_FRAME_WORD_IP(s->frames[s->await_at]);
  uint32_t at = cs_await_slot(ip, CS_AWAIT_SITES);
  while (table.sites[at].ip != 0 && table.sites[at].ip != ip) at = (at + 1) & (CS_AWAIT_SITES - 1);
  if (table.sites[at].ip == ip)
    cs_store_release(&table.sites[at].last_class, CS_AWAIT_WORD_CLASS(words[0]));
}

static void learn(const struct cs_sample *s, const uint64_t *wire) {
  uint32_t now = cs_load_acquire(&forgets);
  if (now != learnt_forgets) {
    memset(boxes, 0, BOXES * sizeof *boxes);
    type_count = site_count = 0;
    learnt_forgets = now;
  }
  if (!cs_unload_begin_naming(s->code_generation)) return;
  learn_sites(s, wire, s->frame_count);
  learn_classes(s);
  note_class(s, wire);
  cs_unload_end_naming();
}

uint32_t cs_awaits_to_wire(const struct cs_sample *s, const uint64_t *wire, uint64_t *out) {
  uint32_t count = chain_length(s), n = 0;
  if (!cs_options.async_callers) return 0;
  learn(s, wire);
  states[s->await_state < STATES ? s->await_state : 0]++;
  if (count == 0) return 0;
  const uint64_t *words = &s->frames[s->frame_count];
  if (!is_first(s, wire, words[0])) return 0;
  for (uint32_t i = 1; i < count; i++) {
    const struct box *box = box_of(words[i]);
    if (box == NULL) break;
    if (box->class != 0) out[n++] = cs_wire_awaiting_frame(box->id);
  }
  return n;
}

void cs_awaits_log(void) {
  if (!cs_options.async_callers) return;
  cs_log(
      "chains of awaiters: %u complete, %u several, %u cut, %u of new classes, %u while the "
      "runtime was suspended, %u without a box; %u classes, %u return addresses",
      states[CS_AWAITS_COMPLETE], states[CS_AWAITS_SEVERAL], states[CS_AWAITS_CUT],
      states[CS_AWAITS_UNKNOWN], states[CS_AWAITS_STOPPED], states[CS_AWAITS_AMBIGUOUS], type_count,
      site_count);
}
