// SPDX-License-Identifier: MIT
// What a compiler's name says: types level by level, members. Private to the room.
#ifndef CS_DEMANGLE_PARTS_H
#define CS_DEMANGLE_PARTS_H

#include "demangle/text.h"

enum cs_level_kind {
  CS_LEVEL_TYPE,     // somebody wrote it: `name`
  CS_LEVEL_CLOSURE,  // holds what lambdas have captured; nobody's name
  CS_LEVEL_MACHINE,  // an async method's or iterator's state; `name` is the method
  CS_LEVEL_FUNCTION  // F#: a function as an object; `name` has the line, "total@12"
};

// One of the types in "Outer<T>.Inner".
struct cs_level {
  enum cs_level_kind kind;
  struct cs_piece name;  // may be a name that a compiler made itself
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
  struct cs_piece outer;  // the method that it is in, which may be a made one itself
  struct cs_piece name, args;
};
struct cs_member cs_member_read(struct cs_piece text);

// C#'s or F#'s spelling, "operator +"; false: it is no operator's name.
bool cs_operator_put(struct cs_demangle_out *out, struct cs_piece name);

#endif
