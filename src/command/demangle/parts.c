// SPDX-License-Identifier: MIT
// The rules by which the compilers of C#, F# and VB make names. Roslyn's are in its
// GeneratedNameKind, F#'s are "name@line". Invariant: a name that fits no rule is from the source.
// Any thread. Signal-safe: yes.
#include "demangle/parts.h"

#include <string.h>

static bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

static size_t digits(struct cs_piece p) {
  size_t i = 0;
  while (i < p.len && is_digit(p.at[i])) i++;
  return i;
}

// "List<T>[]": takes off the generic arguments and what follows them.
static void take_args(struct cs_level *level) {
  size_t made = cs_piece_bracket(level->name);
  size_t begin = made + cs_piece_find(cs_piece_from(level->name, made), '<');
  size_t len = cs_piece_bracket(cs_piece_from(level->name, begin));
  size_t end = len > 0 ? begin + len : made + cs_piece_find(cs_piece_from(level->name, made), '[');
  level->tail = cs_piece_from(level->name, end);
  if (len > 0) level->args = cs_piece_until(cs_piece_from(level->name, begin + 1), len - 2);
  level->name = cs_piece_until(level->name, len > 0 ? begin : end);
}

// "total@12", "total@12-3"
static bool is_function(struct cs_piece name) {
  size_t at = cs_piece_find_last(name, '@');
  struct cs_piece line = cs_piece_from(name, at + 1);
  size_t n = digits(line);
  if (at == 0 || n == 0) return false;
  struct cs_piece more = cs_piece_from(line, n);
  return more.len == 0 ||
         (more.at[0] == '-' && more.len > 1 && digits(cs_piece_from(more, 1)) + 1 == more.len);
}

// VB: "VB$StateMachine_3_LoadAsync"
static bool read_vb_machine(struct cs_level *level) {
  static const char prefix[] = "VB$StateMachine_";
  if (!cs_piece_begins(level->name, prefix)) return false;
  struct cs_piece rest = cs_piece_from(level->name, strlen(prefix));
  size_t n = digits(rest);
  if (n == 0 || n + 1 >= rest.len || rest.at[n] != '_') return false;
  level->kind = CS_LEVEL_MACHINE;
  level->name = cs_piece_from(rest, n + 1);
  level->number = cs_piece_until(rest, n);
  return true;
}

// A type of one source file: "<Program>F" and 64 hexadecimal digits, "__Name".
static bool read_file_local(struct cs_piece rest, struct cs_piece *name) {
  enum { HASH = 64 };
  if (rest.len <= 1 + HASH + 2 || rest.at[0] != 'F' || memcmp(rest.at + 1 + HASH, "__", 2) != 0)
    return false;
  *name = cs_piece_from(rest, 1 + HASH + 2);
  return true;
}

static void read_generated(struct cs_level *level, size_t bracket) {
  struct cs_piece inner = cs_piece_until(cs_piece_from(level->name, 1), bracket - 2);
  struct cs_piece rest = cs_piece_from(level->name, bracket);
  if (inner.len > 0) {
    if (cs_piece_is(rest, "d") || cs_piece_begins(rest, "d__")) {
      level->kind = CS_LEVEL_MACHINE;
      level->name = inner;
      level->number = cs_piece_from(rest, rest.len < 3 ? rest.len : 3);
    } else if (cs_piece_is(rest, "j__TPar")) {  // of an anonymous type: the property's name
      level->name = inner;
    } else {
      (void)read_file_local(rest, &level->name);
    }
  } else if (cs_piece_is(rest, "c") || cs_piece_begins(rest, "c__")) {
    size_t at = rest.len;
    while (at > 0 && (is_digit(rest.at[at - 1]) || rest.at[at - 1] == '_')) at--;
    level->kind = CS_LEVEL_CLOSURE;
    level->number =
        cs_piece_from(rest, at + (cs_piece_begins(cs_piece_from(rest, at), "__") ? 2 : 0));
  } else if (cs_piece_begins(rest, "f__") || cs_piece_begins(rest, "z__") ||
             cs_piece_begins(rest, "y__")) {  // AnonymousType0, ReadOnlyArray, InlineArray3
    level->name = cs_piece_from(rest, 3);
  }
}

struct cs_level cs_level_read(struct cs_piece text) {
  struct cs_level level = {.kind = CS_LEVEL_TYPE, .name = text};
  take_args(&level);
  size_t bracket = cs_piece_bracket(level.name);
  if (bracket > 0)
    read_generated(&level, bracket);
  else if (cs_piece_begins(level.name, "_Closure$__"))
    level.kind = CS_LEVEL_CLOSURE;
  else if (!read_vb_machine(&level) && is_function(level.name))
    level.kind = CS_LEVEL_FUNCTION;
  return level;
}

static void read_generated_member(struct cs_member *m, struct cs_piece text, size_t bracket) {
  struct cs_piece rest = cs_piece_from(text, bracket);
  m->outer = cs_piece_until(cs_piece_from(text, 1), bracket - 2);
  if (m->outer.len == 0) {
    if (cs_piece_begins(rest, "m__Finally"))
      m->kind = CS_MEMBER_FINALLY;  // by its number where there are several
    else if (cs_piece_begins(rest, "n__"))
      m->kind = CS_MEMBER_BASE_CALL;
    m->name = cs_piece_from(rest, m->kind == CS_MEMBER_BASE_CALL ? 3 : rest.len);
  } else if (cs_piece_begins(rest, "b__")) {  // b__0, or b__3_0: of the type's fourth method
    size_t last = cs_piece_find_last(rest, '_');
    m->kind = CS_MEMBER_LAMBDA;
    m->name = cs_piece_from(rest, last + 1);
    m->number = cs_piece_from(rest, 3);
  } else if (cs_piece_begins(rest, "g__") && cs_piece_find(rest, '|') < rest.len) {
    size_t bar = cs_piece_find_last(rest, '|');
    m->kind = CS_MEMBER_LOCAL;
    m->name = cs_piece_from(cs_piece_until(rest, bar), 3);
    m->number = cs_piece_from(rest, bar + 1);
  } else if (cs_piece_is(rest, "$")) {
    m->kind = CS_MEMBER_WRAPPED;
  } else if (rest.len == 0) {
    m->kind = CS_MEMBER_ENTRY;
  }
}

// The generic arguments at the end of "IBox<int>.Put<T>".
static void take_member_args(struct cs_member *m) {
  size_t at = cs_piece_bracket(m->name);
  for (;;) {
    at += cs_piece_find(cs_piece_from(m->name, at), '<');
    size_t len = cs_piece_bracket(cs_piece_from(m->name, at));
    if (len == 0) return;
    if (at + len == m->name.len && at > 0) {
      m->args = cs_piece_until(cs_piece_from(m->name, at + 1), len - 2);
      m->name = cs_piece_until(m->name, at);
      return;
    }
    at += len;
  }
}

struct cs_member cs_member_read(struct cs_piece text) {
  static const char vb_lambda[] = "_Lambda$__";
  struct cs_member m = {.kind = CS_MEMBER_PLAIN, .name = text};
  take_member_args(&m);
  size_t bracket = cs_piece_bracket(m.name);
  if (bracket > 0) read_generated_member(&m, m.name, bracket);
  if (cs_piece_begins(m.name, vb_lambda)) {
    m.kind = CS_MEMBER_LAMBDA;
    m.number = m.name = cs_piece_from(m.name, strlen(vb_lambda));
  }
  return m;
}

// F#'s own operators: "op_GreaterGreaterEquals", one word for each character.
static bool read_characters(struct cs_piece rest, char *text, size_t size) {
  static const struct {
    const char *word;
    char character[2];
  } words[] = {{"Greater", ">"},  {"Less", "<"},   {"Plus", "+"},    {"Minus", "-"},
               {"Multiply", "*"}, {"Equals", "="}, {"Twiddle", "~"}, {"Percent", "%"},
               {"Dot", "."},      {"Amp", "&"},    {"Bar", "|"},     {"At", "@"},
               {"Hash", "#"},     {"Hat", "^"},    {"Bang", "!"},    {"Qmark", "?"},
               {"Divide", "/"},   {"Dollar", "$"}};
  size_t n = 0;
  while (rest.len > 0 && n < size - 1) {
    size_t i = 0;
    while (i < sizeof words / sizeof words[0] && !cs_piece_begins(rest, words[i].word)) i++;
    if (i == sizeof words / sizeof words[0]) return false;
    text[n++] = words[i].character[0];
    rest = cs_piece_from(rest, strlen(words[i].word));
  }
  text[n] = '\0';
  return n > 0 && rest.len == 0;
}

static const char *const operators[][2] = {{"Addition", "+"},
                                           {"Subtraction", "-"},
                                           {"Division", "/"},
                                           {"Modulus", "%"},
                                           {"ExclusiveOr", "^"},
                                           {"BitwiseAnd", "&"},
                                           {"BitwiseOr", "|"},
                                           {"LogicalAnd", "&&"},
                                           {"LogicalOr", "||"},
                                           {"LeftShift", "<<"},
                                           {"RightShift", ">>"},
                                           {"UnsignedRightShift", ">>>"},
                                           {"Equality", "=="},
                                           {"Inequality", "!="},
                                           {"LessThan", "<"},
                                           {"GreaterThan", ">"},
                                           {"LessThanOrEqual", "<="},
                                           {"GreaterThanOrEqual", ">="},
                                           {"Decrement", "--"},
                                           {"Increment", "++"},
                                           {"UnaryNegation", "-"},
                                           {"UnaryPlus", "+"},
                                           {"LogicalNot", "!"},
                                           {"OnesComplement", "~"},
                                           {"True", "true"},
                                           {"False", "false"},
                                           {"PipeRight", "|>"},
                                           {"PipeLeft", "<|"},
                                           {"ComposeRight", ">>"},
                                           {"ComposeLeft", "<<"},
                                           {"AdditionAssignment", "+="},
                                           {"SubtractionAssignment", "-="},
                                           {"MultiplicationAssignment", "*="},
                                           {"DivisionAssignment", "/="},
                                           {"ModulusAssignment", "%="},
                                           {"BitwiseAndAssignment", "&="},
                                           {"BitwiseOrAssignment", "|="},
                                           {"ExclusiveOrAssignment", "^="},
                                           {"LeftShiftAssignment", "<<="},
                                           {"RightShiftAssignment", ">>="},
                                           {"UnsignedRightShiftAssignment", ">>>="},
                                           {"IncrementAssignment", "++"},
                                           {"DecrementAssignment", "--"}};

bool cs_operator_put(struct cs_demangle_out *out, struct cs_piece name) {
  if (!cs_piece_begins(name, "op_")) return false;
  struct cs_piece rest = cs_piece_from(name, 3);
  if (cs_piece_is(rest, "Implicit") || cs_piece_is(rest, "Explicit")) {
    cs_demangle_puts(out, rest.at[0] == 'I' ? "implicit operator" : "explicit operator");
    return true;
  }
  bool checked = cs_piece_begins(rest, "Checked");
  if (checked) rest = cs_piece_from(rest, 7);
  char own[32];
  const char *sign = NULL;
  for (size_t i = 0; sign == NULL && i < sizeof operators / sizeof operators[0]; i++)
    if (cs_piece_is(rest, operators[i][0])) sign = operators[i][1];
  if (sign == NULL && !checked && read_characters(rest, own, sizeof own)) sign = own;
  if (sign == NULL) return false;
  cs_demangle_puts(out, checked ? "operator checked " : "operator ");
  cs_demangle_puts(out, sign);
  return true;
}
