// SPDX-License-Identifier: MIT
// The parts of a compiler's name: types, level by level, and members. Private to the component.
#pragma once

#include "demangle/text.h"

enum cs_level_kind {
  CS_LEVEL_TYPE,     // from the source: `name`
  CS_LEVEL_CLOSURE,  // the variables that lambdas capture; has no name in the source
  CS_LEVEL_MACHINE,  // the state machine of an async method or iterator; `name` is the method
  CS_LEVEL_FUNCTION  // F#: a function as an object; `name` has the line, "total@12"
};

// One of the types in "Outer<T>.Inner".
struct cs_level {
  enum cs_level_kind kind;
  struct cs_piece name;  // may be a compiler's name itself
  struct cs_piece
      number;  // the compiler's, of a state machine, "4", or closure, "11_0"; may be empty
  struct cs_piece args;  // "T,int"
  struct cs_piece tail;  // "[]"
};
struct cs_level cs_level_read(struct cs_piece text);

// "<Lambdas>b__1", "get_Count", "op_Addition", "System.IDisposable.Dispose".
enum cs_member_kind {
  CS_MEMBER_PLAIN,
  CS_MEMBER_LAMBDA,    // in `outer`; `name` is its number
  CS_MEMBER_LOCAL,     // `name` in `outer`
  CS_MEMBER_WRAPPED,   // `outer` alone: "<Main>$"
  CS_MEMBER_ENTRY,     // "<Main>"
  CS_MEMBER_FINALLY,   // of an iterator
  CS_MEMBER_BASE_CALL  // "<>n__0"
};
struct cs_member {
  enum cs_member_kind kind;
  struct cs_piece outer;  // the enclosing method, which may be a compiler's itself
  struct cs_piece name, args;
  struct cs_piece number;  // the compiler's, of a lambda or local function: in the type, "14_0", or
                           // in a closure, "0"
};
struct cs_member cs_member_read(struct cs_piece text);

// The operator's spelling in C# or F#, "operator +". Returns false if it is not an operator.
bool cs_operator_put(struct cs_demangle_out *out, struct cs_piece name);
