// SPDX-License-Identifier: MIT
// Puts the names of methods together from the parts that parts.c finds. Invariants: recursion is
// bounded by MAX_DEPTH, whatever a file contains; every byte of the output is from the input or a
// table. Any thread. Signal-safe: yes.
#include "demangle/demangle.h"

#include <string.h>

#include "demangle/parts.h"

enum { MAX_DEPTH = 16 };

typedef struct cs_demangle_out out_t;

static void put_type(out_t *out, struct cs_piece text, unsigned depth);
static void put_member(out_t *out, struct cs_piece text, struct cs_piece args, const char *dot,
                       bool indexer, unsigned depth);

static void put_args(out_t *out, struct cs_piece args, unsigned depth) {
  struct cs_piece one;
  const char *open = "<";
  if (args.len == 0) return;
  while (cs_piece_next(&args, ',', &one)) {
    cs_demangle_puts(out, open);
    put_type(out, one, depth);
    open = ",";
  }
  cs_demangle_puts(out, ">");
}

// The compiler's number tells methods apart that have the same name and enclosing method.
static void put_number(out_t *out, struct cs_piece number) {
  if (!out->numbers || number.len == 0) return;
  cs_demangle_puts(out, "#");
  if (out->scope.len > 0 && cs_piece_find(number, '_') == number.len) {
    cs_demangle_put(out, out->scope);
    cs_demangle_puts(out, "_");
  }
  cs_demangle_put(out, number);
}

// The method of a state machine. In an explicit implementation the C# compiler replaces dots by
// '-'. `args`: of the closure that it is in. The machine's own arguments are those of the method,
// or of the local function, in whose name they are last.
static void put_machine(out_t *out, const struct cs_level *level, struct cs_piece args,
                        const char *dot, unsigned depth) {
  char text[1024];
  struct cs_piece name = cs_piece_until(level->name, sizeof text);
  for (size_t i = 0; i < name.len; i++) text[i] = name.at[i] == '-' ? '.' : name.at[i];
  name.at = text;
  bool local = cs_member_read(name).kind == CS_MEMBER_LOCAL;
  if (!local && level->args.len > 0) args = level->args;
  put_member(out, name, args, dot, false, depth);
  put_number(out, level->number);
  if (local) put_args(out, level->args, depth + 1);
}

static void put_level(out_t *out, const struct cs_level *level, const char *dot, unsigned depth) {
  cs_demangle_puts(out, dot);
  if (level->kind == CS_LEVEL_CLOSURE)
    cs_demangle_puts(out, "closure");
  else if (level->kind == CS_LEVEL_MACHINE)
    put_machine(out, level, cs_piece_of(""), "", depth);
  else
    cs_demangle_put(out, level->name);
  if (level->kind == CS_LEVEL_TYPE || level->kind == CS_LEVEL_FUNCTION)
    put_args(out, level->args, depth);
  cs_demangle_put(out, level->tail);
}

// A type that no method follows, such as an argument or a parameter.
static void put_type(out_t *out, struct cs_piece text, unsigned depth) {
  struct cs_piece one;
  const char *dot = "";
  if (depth >= MAX_DEPTH) {
    cs_demangle_put(out, text);
    return;
  }
  while (cs_piece_next(&text, '.', &one)) {
    struct cs_level level = cs_level_read(one);
    put_level(out, &level, dot, depth + 1);
    dot = ".";
  }
}

// ---- Members ----

// "get_Count" is "Count.get". Before a lower-case letter it is a method with such a name.
static bool put_accessor(out_t *out, struct cs_piece name, bool indexer) {
  static const char *const accessors[][2] = {
      {"get_", ".get"}, {"set_", ".set"}, {"add_", ".add"}, {"remove_", ".remove"}};
  for (size_t i = 0; i < sizeof accessors / sizeof accessors[0]; i++) {
    if (!cs_piece_begins(name, accessors[i][0])) continue;
    struct cs_piece rest = cs_piece_from(name, strlen(accessors[i][0]));
    if (rest.len == 0 || (rest.at[0] >= 'a' && rest.at[0] <= 'z')) return false;
    if (indexer && cs_piece_is(rest, "Item"))
      cs_demangle_puts(out, "this[]");
    else
      cs_demangle_put(out, rest);
    cs_demangle_puts(out, accessors[i][1]);
    return true;
  }
  return false;
}

// An explicit implementation's name begins with the interface's, with dots.
static size_t own_name(struct cs_piece text) {
  struct cs_piece rest = text, one = text;
  while (cs_piece_next(&rest, '.', &one)) {
  }
  return (size_t)(one.at - text.at);
}

static bool is_constructor(struct cs_piece name) {
  return cs_piece_is(name, ".ctor") || cs_piece_is(name, ".cctor");
}

// F# splits long methods, "Map$cont@147".
static struct cs_piece without_part(struct cs_piece name) {
  for (size_t i = 1; i < name.len; i++)
    if (cs_piece_begins(cs_piece_from(name, i), "$cont@")) return cs_piece_until(name, i);
  return name;
}

// A constructor has "new" before its type.
static void put_plain(out_t *out, struct cs_piece name, const char *dot, bool indexer) {
  name = without_part(name);
  if (is_constructor(name)) return;
  size_t own = own_name(name);
  struct cs_piece last = cs_piece_from(name, own);
  cs_demangle_puts(out, dot);
  cs_demangle_put(out, cs_piece_until(name, own));
  if (!cs_operator_put(out, last) && !put_accessor(out, last, indexer)) cs_demangle_put(out, last);
}

// What follows the name of the enclosing method.
static bool put_inner(out_t *out, const struct cs_member *m, const char *dot) {
  static const char *const words[] = {
      [CS_MEMBER_LAMBDA] = "lambda",   [CS_MEMBER_LOCAL] = "",          [CS_MEMBER_PLAIN] = NULL,
      [CS_MEMBER_FINALLY] = "finally", [CS_MEMBER_BASE_CALL] = "base#", [CS_MEMBER_WRAPPED] = NULL,
      [CS_MEMBER_ENTRY] = NULL};
  if (words[m->kind] == NULL) return false;
  cs_demangle_puts(out, dot);
  cs_demangle_puts(out, words[m->kind]);
  if (m->kind == CS_MEMBER_LAMBDA && !out->numbers) cs_demangle_puts(out, "#");
  if (m->kind != CS_MEMBER_LAMBDA || !out->numbers) cs_demangle_put(out, m->name);
  put_number(out, m->number);
  return true;
}

// `args`: the generic arguments of a closure, or of a method's state machine, are the method's.
static void put_member(out_t *out, struct cs_piece text, struct cs_piece args, const char *dot,
                       bool indexer, unsigned depth) {
  struct cs_member m = cs_member_read(text);
  if (depth >= MAX_DEPTH || m.kind == CS_MEMBER_PLAIN) {
    put_plain(out, m.name, dot, indexer);
    put_args(out, args, depth + 1);
  } else {
    if (m.outer.len > 0) put_member(out, m.outer, args, dot, false, depth + 1);
    (void)put_inner(out, &m, m.outer.len > 0 ? "." : dot);
  }
  put_args(out, m.args, depth + 1);
}

// ---- Signatures ----

// The text before the next ", " outside of brackets.
static bool next_parameter(struct cs_piece *list, struct cs_piece *out) {
  size_t depth = 0, i = 0;
  if (list->len == 0) return false;
  for (; i < list->len; i++) {
    char c = list->at[i];
    if (c == '(' || c == '<') depth++;
    if ((c == ')' || c == '>') && depth > 0) depth--;
    if (depth == 0 && c == ',' && i + 1 < list->len && list->at[i + 1] == ' ') break;
  }
  *out = cs_piece_until(*list, i);
  *list = cs_piece_from(*list, i + 2);
  return true;
}

// Returns the type of a conversion's result, or an empty piece.
static struct cs_piece result_of(const char *signature) {
  const char *at = signature != NULL ? strstr(signature, "):") : NULL;
  return cs_piece_of(at != NULL ? at + 2 : "");
}

static struct cs_piece parameters(const char *signature) {
  struct cs_piece all = cs_piece_of(signature), result = result_of(signature);
  if (result.len > 0) all.len -= result.len + 1;
  if (all.len < 2 || all.at[0] != '(' || all.at[all.len - 1] != ')') return cs_piece_of("");
  return cs_piece_until(cs_piece_from(all, 1), all.len - 2);
}

// A local function has its captured variables as additional parameters.
static bool is_closure(struct cs_piece parameter) {
  struct cs_piece level = cs_piece_from(parameter, cs_piece_begins(parameter, "ref ") ? 4 : 0);
  level = cs_piece_from(level, own_name(level));
  return cs_level_read(level).kind == CS_LEVEL_CLOSURE;
}

static void put_signature(out_t *out, const char *signature) {
  struct cs_piece list = parameters(signature), one;
  struct cs_piece result = result_of(signature);
  const char *comma = "";
  cs_demangle_puts(out, result.len > 0 ? " " : "");
  put_type(out, result, 0);
  cs_demangle_puts(out, "(");
  while (next_parameter(&list, &one)) {
    if (is_closure(one)) continue;
    bool by_ref = cs_piece_begins(one, "ref ");
    cs_demangle_puts(out, comma);
    cs_demangle_puts(out, by_ref ? "ref " : "");
    put_type(out, cs_piece_from(one, by_ref ? 4 : 0), 0);
    comma = ", ";
  }
  cs_demangle_puts(out, ")");
}

// A property has no parameter, or the value that is set.
static bool is_indexer(const struct cs_mangled *name) {
  struct cs_piece list = parameters(name->signature), one;
  size_t count = name->parameters;
  while (next_parameter(&list, &one)) count++;
  struct cs_piece method = cs_piece_of(name->method);
  return count >= (cs_piece_begins(cs_piece_from(method, own_name(method)), "set_") ? 2 : 1);
}

// ---- The whole ----

// Returns the source method of what is nested in it.
static struct cs_piece root_of(struct cs_piece text) {
  struct cs_member m = cs_member_read(text);
  for (unsigned i = 0; i < MAX_DEPTH && m.outer.len > 0; i++) m = cs_member_read(m.outer);
  return without_part(m.name);
}

static const char *word_before(struct cs_piece method) {
  struct cs_piece root = root_of(method);
  return cs_piece_is(root, ".ctor") ? "new " : cs_piece_is(root, ".cctor") ? "static " : "";
}

struct owner {
  struct cs_piece types;  // those that somebody wrote
  struct cs_level last;   // the innermost level
  struct cs_piece args;   // of closures: they are the method's
  struct cs_piece scope;  // the number of the innermost closure
};

static struct owner read_owner(struct cs_piece type) {
  struct owner o = {.types = cs_piece_until(type, 0)};
  struct cs_piece rest = type, one;
  while (cs_piece_next(&rest, '.', &one)) {
    o.last = cs_level_read(one);
    if (o.last.kind == CS_LEVEL_CLOSURE && o.last.args.len > 0) o.args = o.last.args;
    if (o.last.kind == CS_LEVEL_CLOSURE) o.scope = o.last.number;
    if (o.last.kind == CS_LEVEL_TYPE)
      o.types = cs_piece_until(type, (size_t)(one.at + one.len - type.at));
  }
  return o;
}

// All other methods of such a type implement interfaces of the compiler's.
static void put_own(out_t *out, struct cs_piece method) {
  put_member(out, cs_piece_from(method, own_name(method)), cs_piece_of(""), ".", false, 0);
}

static enum cs_demangled put_function(out_t *out, const struct cs_level *level, const char *dot,
                                      struct cs_piece method) {
  bool body = cs_piece_is(method, "MoveNext") || cs_piece_is(method, "GenerateNext");
  struct cs_piece name = level->name;
  if (body) name = cs_piece_until(name, cs_piece_find_last(name, '@'));
  cs_demangle_puts(out, dot);
  cs_demangle_put(out, name);
  put_args(out, level->args, 0);
  if (!body && !cs_piece_is(method, "Invoke")) put_own(out, method);
  return body ? CS_DEMANGLED_BODY : CS_DEMANGLED_PLAIN;
}

static enum cs_demangled put_method(out_t *out, const struct cs_mangled *name,
                                    const struct owner *owner, const char *dot) {
  struct cs_piece method = cs_piece_of(name->method);
  if (owner->last.kind == CS_LEVEL_FUNCTION) return put_function(out, &owner->last, dot, method);
  if (owner->last.kind == CS_LEVEL_MACHINE) {
    put_machine(out, &owner->last, owner->args, dot, 0);
    if (cs_piece_is(method, "MoveNext")) return CS_DEMANGLED_BODY;
    put_own(out, method);
    return CS_DEMANGLED_PLAIN;
  }
  put_member(out, method, owner->args, dot, is_indexer(name), 0);
  if (owner->last.kind == CS_LEVEL_CLOSURE && is_constructor(method))
    put_level(out, &owner->last, dot, 0);
  return cs_member_read(method).kind == CS_MEMBER_ENTRY ? CS_DEMANGLED_ENTRY : CS_DEMANGLED_PLAIN;
}

enum cs_demangled cs_demangle(const struct cs_mangled *name, char *text, size_t cap) {
  struct cs_piece space = cs_piece_of(name->space), type = cs_piece_of(name->type);
  // F#: closures of a file's values, "<StartupCode$App>.$Program.total@12".
  if (cs_piece_begins(space, "<StartupCode$") && cs_piece_begins(type, "$")) {
    space.len = 0;
    type = cs_piece_from(type, 1);
  }
  struct owner owner = read_owner(type);
  bool machine = owner.last.kind == CS_LEVEL_MACHINE, object = owner.last.kind == CS_LEVEL_FUNCTION;
  out_t out = {.at = text, .cap = cap, .numbers = name->show_signature, .scope = owner.scope};
  text[0] = '\0';
  if (!object)
    cs_demangle_puts(&out, word_before(machine ? owner.last.name : cs_piece_of(name->method)));
  cs_demangle_put(&out, space);
  if (space.len > 0 && owner.types.len > 0) cs_demangle_puts(&out, ".");
  put_type(&out, owner.types, 0);
  const char *dot = space.len + owner.types.len > 0 ? "." : "";
  enum cs_demangled kind = put_method(&out, name, &owner, dot);
  // The parameters of a state machine's method are in the metadata of another one.
  if (name->show_signature && !machine && kind != CS_DEMANGLED_BODY && name->signature != NULL &&
      name->signature[0] != '\0')
    put_signature(&out, name->signature);
  return kind;
}
