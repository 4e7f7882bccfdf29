// SPDX-License-Identifier: MIT
// What the runtime's own native code was doing, as far as that is known without symbols: a class
// instead of a function's name. The table in runtime_class.c has all there is to know it by.
#pragma once

#include <stdbool.h>
#include <stddef.h>

// X(NAME, as it is shown in the place of a function's name)
#define CS_RUNTIME_CLASSES(X)            \
  X(GC, "[GC]")                          \
  X(ALLOCATION, "[allocation]")          \
  X(JIT, "[JIT]")                        \
  X(TIERING, "[tiered compilation]")     \
  X(PREPARATION, "[method preparation]") \
  X(TYPES, "[type loading]")             \
  X(ASSEMBLIES, "[assembly loading]")    \
  X(EXCEPTIONS, "[exception handling]")  \
  X(SUSPENSION, "[suspension]")          \
  X(LOCKS, "[lock]")                     \
  X(WAITS, "[wait]")                     \
  X(INTEROP, "[interop]")                \
  X(REFLECTION, "[reflection]")          \
  X(DIAGNOSTICS, "[diagnostics]")        \
  X(STARTUP, "[runtime startup, shutdown]")

enum cs_runtime_class {
  CS_RUNTIME_UNKNOWN,
#define CS_RUNTIME_ENUM(name, text) CS_RUNTIME_##name,
  CS_RUNTIME_CLASSES(CS_RUNTIME_ENUM)
#undef CS_RUNTIME_ENUM
      CS_RUNTIME_CLASS_COUNT
};

// By what a class is known.
enum cs_runtime_sign {
  CS_SIGN_MESSAGE,  // the function that has this text, which begins so, for the runtime's log
  CS_SIGN_EVENT,    // the function that sends this event
  CS_SIGN_SYMBOL,   // the function of this name, which begins so
  CS_SIGN_LIBRARY,  // a function of this library
  CS_SIGN_THREAD,   // a thread of this name, which begins so
  CS_SIGN_METHOD,   // called by a method of this type of System.Private.CoreLib, which begins so
};

struct cs_runtime_row {
  enum cs_runtime_class class;
  enum cs_runtime_sign sign;
  const char *text;
  unsigned up;  // MESSAGE, EVENT: not that function itself, but its callers at this distance
};
extern const struct cs_runtime_row cs_runtime_rows[];
extern const size_t cs_runtime_row_count;

// Returns the class of the first row of that sign with which `text` begins.
enum cs_runtime_class cs_runtime_class_by(enum cs_runtime_sign sign, const char *text);
const char *cs_runtime_class_text(enum cs_runtime_class class);
// Returns the class that is shown so, or CS_RUNTIME_UNKNOWN if there is none.
enum cs_runtime_class cs_runtime_class_shown(const char *text);
