// SPDX-License-Identifier: MIT
// Signature blobs (ECMA-335, II.23.2) as C#-like text. The bytes need not be valid: nothing beyond
// `len` is read, and nesting is bounded. Not for handlers.
#pragma once

#include "clr_names/text.h"

enum { CS_TYPE_ARGS = 16 };  // generic arguments of one type that are shown; more are left out
struct cs_type_args {
  unsigned count;
  char text[CS_TYPE_ARGS][160];
};

// Callbacks for the names of tokens, variables and handles. Each may be NULL, for "?".
struct cs_sig_names {
  void *data;
  // A TypeDef, TypeRef or TypeSpec token. `args` NULL: it is not instantiated here.
  void (*type)(void *data, mdToken token, const struct cs_type_args *args, struct cs_text_out *out);
  // A generic parameter, of the method or of its type.
  void (*variable)(void *data, bool of_method, uint32_t index, struct cs_text_out *out);
  // ELEMENT_TYPE_INTERNAL: the runtime's own pointer to a type (signatures of dynamic methods).
  void (*handle)(void *data, uint64_t handle, struct cs_text_out *out);
};

// Adds a method's parameters: "(int, string[], ref List<T>)". Returns false if the blob is
// malformed; then only the part before the fault has been added.
bool cs_sig_method(const uint8_t *sig, size_t len, const struct cs_sig_names *names,
                   struct cs_text_out *out);
// Adds the type of a method's result.
bool cs_sig_result(const uint8_t *sig, size_t len, const struct cs_sig_names *names,
                   struct cs_text_out *out);
// Adds one type, as in a TypeSpec: "Dictionary<string,int>".
bool cs_sig_type(const uint8_t *sig, size_t len, const struct cs_sig_names *names,
                 struct cs_text_out *out);
