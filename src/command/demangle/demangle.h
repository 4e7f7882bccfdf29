// SPDX-License-Identifier: MIT
// demangle: a method's name as people wrote it, from the one that a compiler made. The command's:
// recordings keep what compilers made. Pure text, any thread. Not for handlers.
//
//   Shop.Cart.<LoadAsync>d__4.MoveNext                   Shop.Cart.LoadAsync
//   Shop.Cart.<>c__DisplayClass11_0.<Lambdas>b__1        Shop.Cart.Lambdas.lambda#1
//   Shop.Cart.<LocalFunctions>g__First|14_0              Shop.Cart.LocalFunctions.First
//   Shop.Cart..ctor, get_Count, op_Addition              new Shop.Cart, Count.get, operator +
//
// What follows no rule that is known stays as it is.
#ifndef CS_DEMANGLE_DEMANGLE_H
#define CS_DEMANGLE_DEMANGLE_H

#include <stdbool.h>
#include <stddef.h>

// As metadata has them, nested types with dots, generic arguments in C#'s manner. NULL or "": none.
struct cs_mangled {
  const char *space, *type, *method;
  const char *signature;  // "(int, string[])"; tells an indexer from a property, shown if wanted
  bool show_signature;
};

enum cs_demangled {
  CS_DEMANGLED_PLAIN,
  // The code of an async method or iterator. The method that people call has the same name: it
  // begins the state machine and is done.
  CS_DEMANGLED_BODY,
  CS_DEMANGLED_ENTRY,  // what the compiler puts before an async Main, under the same name
};

// Writes the name into `out` (cap > 0), terminated; what does not fit is cut.
enum cs_demangled cs_demangle(const struct cs_mangled *name, char *out, size_t cap);

#endif
