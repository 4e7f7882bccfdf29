// SPDX-License-Identifier: MIT
// Signature blobs as text. Invariants: `at` never passes `end`; recursion is at most MAX_NESTING
// deep; a failure sets `bad` and ends the reading. Any thread. Signal-safe: no.
#include "clr_names/sig.h"

#include <string.h>

#include "base/keywords.h"

enum {
  MAX_NESTING = 24,  // no hand-written program has deeper types
  MAX_PARAMS = 4096,
};

enum element {
  ELEMENT_PTR = 0x0F,
  ELEMENT_BYREF = 0x10,
  ELEMENT_VALUETYPE = 0x11,
  ELEMENT_CLASS = 0x12,
  ELEMENT_VAR = 0x13,
  ELEMENT_ARRAY = 0x14,
  ELEMENT_GENERICINST = 0x15,
  ELEMENT_FNPTR = 0x1B,
  ELEMENT_SZARRAY = 0x1D,
  ELEMENT_MVAR = 0x1E,
  ELEMENT_CMOD_REQD = 0x1F,
  ELEMENT_CMOD_OPT = 0x20,
  ELEMENT_INTERNAL = 0x21,
  ELEMENT_CMOD_INTERNAL = 0x22,
  ELEMENT_SENTINEL = 0x41,
  ELEMENT_PINNED = 0x45,
};

enum {
  CONVENTION_KIND = 0x0F,
  CONVENTION_FIELD = 6,
  CONVENTION_PROPERTY = 8,
  CONVENTION_GENERIC = 0x10
};

struct reader {
  const uint8_t *at, *end;
  const struct cs_sig_names *names;
  unsigned nesting;
  bool bad;
};

static uint8_t fail(struct reader *r) {
  r->bad = true;
  r->at = r->end;
  return 0;
}

static uint8_t peek(const struct reader *r) {
  return r->at < r->end ? *r->at : 0;
}

static uint8_t next_byte(struct reader *r) {
  return r->at < r->end ? *r->at++ : fail(r);
}

// Reads a compressed unsigned integer: 1, 2 or 4 bytes by its top bits, big-endian.
static uint32_t next_uint(struct reader *r) {
  uint32_t first = next_byte(r);
  if ((first & 0x80) == 0) return first;
  unsigned more = (first & 0x40) == 0 ? 1 : 3;
  if ((first & 0xE0) == 0xE0 || r->end - r->at < (ptrdiff_t)more) return fail(r);
  uint32_t value = first & (more == 1 ? 0x3Fu : 0x1Fu);
  while (more-- > 0) value = value << 8 | *r->at++;
  return value;
}

// Reads a TypeDefOrRefOrSpecEncoded: the table is in the two lowest bits.
static mdToken next_token(struct reader *r) {
  static const mdToken tables[] = {0x02000000u, 0x01000000u, 0x1B000000u};
  uint32_t coded = next_uint(r);
  if ((coded & 3) == 3 || coded >> 2 > 0xFFFFFFu) return fail(r);
  return tables[coded & 3] | coded >> 2;
}

static uint64_t next_pointer(struct reader *r) {
  uint64_t value = 0;
  if (r->end - r->at < 8) return fail(r);
  memcpy(&value, r->at, 8);
  r->at += 8;
  return value;
}

static void type(struct reader *r, struct cs_text_out *out);
static void method(struct reader *r, struct cs_text_out *out);

static void named_type(const struct reader *r, mdToken token, const struct cs_type_args *args,
                       struct cs_text_out *out) {
  if (r->bad) return;
  if (r->names->type != NULL)
    r->names->type(r->names->data, token, args, out);
  else
    cs_text_add_char(out, '?');
}

static void variable(struct reader *r, bool of_method, struct cs_text_out *out) {
  uint32_t index = next_uint(r);
  if (r->bad) return;
  if (r->names->variable != NULL)
    r->names->variable(r->names->data, of_method, index, out);
  else
    cs_text_add_char(out, '?');
}

static void handle(struct reader *r, struct cs_text_out *out) {
  uint64_t value = next_pointer(r);
  if (r->bad) return;
  if (r->names->handle != NULL)
    r->names->handle(r->names->data, value, out);
  else
    cs_text_add_char(out, '?');
}

static void arguments(struct reader *r, struct cs_type_args *args) {
  uint32_t count = next_uint(r);
  if (count == 0 || count > MAX_PARAMS) fail(r);
  for (uint32_t i = 0; i < count && !r->bad; i++) {
    char left_out[8];
    bool shown = i < CS_TYPE_ARGS;
    struct cs_text_out arg = shown ? cs_text_begin(args->text[i], sizeof args->text[i])
                                   : cs_text_begin(left_out, sizeof left_out);
    type(r, &arg);
    if (shown) args->count++;
  }
}

static void generic(struct reader *r, struct cs_text_out *out) {
  struct cs_type_args args = {0};
  uint64_t internal = 0;
  mdToken token = 0;
  uint8_t kind = next_byte(r);
  if (kind == ELEMENT_CLASS || kind == ELEMENT_VALUETYPE)
    token = next_token(r);
  else if (kind == ELEMENT_INTERNAL)
    internal = next_pointer(r);
  else
    fail(r);
  arguments(r, &args);
  if (internal != 0 && !r->bad && r->names->handle != NULL)
    r->names->handle(r->names->data, internal, out);
  else
    named_type(r, token, &args, out);
}

static void array(struct reader *r, struct cs_text_out *out) {
  type(r, out);
  uint32_t rank = next_uint(r);
  if (rank == 0 || rank > 32) fail(r);
  for (int part = 0; part < 2 && !r->bad; part++) {  // sizes, then lower bounds: not shown
    uint32_t count = next_uint(r);
    if (count > rank) fail(r);
    for (uint32_t i = 0; i < count && !r->bad; i++) (void)next_uint(r);
  }
  if (r->bad) return;
  cs_text_add_char(out, '[');
  for (uint32_t i = 1; i < rank; i++) cs_text_add_char(out, ',');
  cs_text_add_char(out, ']');
}

static void skip_modifiers(struct reader *r) {
  for (;;) {
    uint8_t element = peek(r);
    if (element == ELEMENT_CMOD_REQD || element == ELEMENT_CMOD_OPT) {
      r->at++;
      (void)next_token(r);
    } else if (element == ELEMENT_CMOD_INTERNAL) {
      r->at++;
      (void)next_byte(r);
      (void)next_pointer(r);
    } else if (element == ELEMENT_PINNED) {
      r->at++;
    } else {
      return;
    }
  }
}

static void type_with_suffix(struct reader *r, const char *suffix, struct cs_text_out *out) {
  type(r, out);
  cs_text_add(out, suffix);
}

static void type_inside(struct reader *r, struct cs_text_out *out) {
  skip_modifiers(r);
  uint8_t element = next_byte(r);
  const char *keyword = cs_keyword_of_element(element);
  if (r->bad) return;
  if (keyword != NULL) {
    cs_text_add(out, keyword);
    return;
  }
  switch (element) {
    case ELEMENT_PTR:
      type_with_suffix(r, "*", out);
      break;
    case ELEMENT_SZARRAY:
      type_with_suffix(r, "[]", out);
      break;
    case ELEMENT_ARRAY:
      array(r, out);
      break;
    case ELEMENT_VALUETYPE:
    case ELEMENT_CLASS:
      named_type(r, next_token(r), NULL, out);
      break;
    case ELEMENT_VAR:
      variable(r, false, out);
      break;
    case ELEMENT_MVAR:
      variable(r, true, out);
      break;
    case ELEMENT_GENERICINST:
      generic(r, out);
      break;
    case ELEMENT_INTERNAL:
      handle(r, out);
      break;
    case ELEMENT_BYREF:
      cs_text_add(out, "ref ");
      type(r, out);
      break;
    case ELEMENT_FNPTR:
      cs_text_add(out, "delegate*");
      method(r, out);
      break;
    default:
      fail(r);
  }
}

static void type(struct reader *r, struct cs_text_out *out) {
  if (r->nesting == MAX_NESTING) {
    fail(r);
    return;
  }
  r->nesting++;
  type_inside(r, out);
  r->nesting--;
}

// Returns the number of parameters; the result's type follows.
static uint32_t method_head(struct reader *r) {
  uint8_t convention = next_byte(r), kind = convention & CONVENTION_KIND;
  if (kind >= CONVENTION_FIELD && kind <= CONVENTION_PROPERTY) fail(r);
  if ((convention & CONVENTION_GENERIC) != 0) (void)next_uint(r);
  uint32_t count = next_uint(r);
  if (count > MAX_PARAMS) fail(r);
  return count;
}

static void method(struct reader *r, struct cs_text_out *out) {
  uint32_t count = method_head(r);
  char ignored[8];
  struct cs_text_out result = cs_text_begin(ignored, sizeof ignored);
  type(r, &result);
  cs_text_add_char(out, '(');
  for (uint32_t i = 0; i < count && !r->bad; i++) {
    if (i > 0) cs_text_add(out, ", ");
    if (peek(r) == ELEMENT_SENTINEL) {
      r->at++;
      cs_text_add(out, "__arglist, ");
    }
    type(r, out);
  }
  cs_text_add_char(out, ')');
}

static void result(struct reader *r, struct cs_text_out *out) {
  (void)method_head(r);
  type(r, out);
}

static bool decode(const uint8_t *sig, size_t len, const struct cs_sig_names *names,
                   struct cs_text_out *out,
                   void (*part)(struct reader *r, struct cs_text_out *out)) {
  if (sig == NULL) return false;
  struct reader r = {sig, sig + len, names, 0, false};
  part(&r, out);
  return !r.bad;
}

bool cs_sig_method(const uint8_t *sig, size_t len, const struct cs_sig_names *names,
                   struct cs_text_out *out) {
  return decode(sig, len, names, out, method);
}

bool cs_sig_result(const uint8_t *sig, size_t len, const struct cs_sig_names *names,
                   struct cs_text_out *out) {
  return decode(sig, len, names, out, result);
}

bool cs_sig_type(const uint8_t *sig, size_t len, const struct cs_sig_names *names,
                 struct cs_text_out *out) {
  return decode(sig, len, names, out, type);
}
