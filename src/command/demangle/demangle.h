// SPDX-License-Identifier: MIT
// A method's name as in its source, from the name that a compiler made. Recordings keep the
// compiler's names. Pure text; any thread.
//
//   Shop.Cart.<LoadAsync>d__4.MoveNext                   Shop.Cart.LoadAsync
//   Shop.Cart.<>c__DisplayClass11_0.<Lambdas>b__1        Shop.Cart.Lambdas.lambda#1
//   Shop.Cart.<LocalFunctions>g__First|14_0              Shop.Cart.LocalFunctions.First
//   Shop.Cart..ctor, get_Count, op_Addition              new Shop.Cart, Count.get, operator +
//
// A name that follows no known rule stays as it is.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// As in metadata, nested types with dots, generic arguments as in C#. NULL or "": none.
struct cs_mangled {
  const char *space, *type, *method;
  const char *signature;  // "(int, string[])": distinguishes an indexer from a property;
                          // "(Cart):int" of a conversion
  bool show_signature;
  uint32_t parameters;  // how many, if `signature` is NULL
};

enum cs_demangled {
  CS_DEMANGLED_PLAIN,
  // The body of an async method or iterator: its state machine. The method that is called has the
  // same name, and only starts the state machine.
  CS_DEMANGLED_BODY,
  CS_DEMANGLED_ENTRY,  // the compiler's entry point before an async Main, of the same name
};

// Writes the name into `out` (cap > 0), NUL-terminated and truncated if need be.
enum cs_demangled cs_demangle(const struct cs_mangled *name, char *out, size_t cap);
