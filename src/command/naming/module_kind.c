// SPDX-License-Identifier: MIT
// Modules are classified by the beginnings of their names. One thread. Signal-safe: no.
#include "naming/module_kind.h"

#include <stddef.h>

#include "base/prefix.h"

static bool any_prefix(const char *name, const char *const *prefixes) {
  for (; *prefixes != NULL; prefixes++) {
    if (cs_has_prefix(name, *prefixes)) return true;
  }
  return false;
}

// The hook of --labels is nobody's own code. Microsoft.CodeAnalysis is left out on purpose: in a
// recording of the compiler it is the program.
bool cs_module_is_framework(const char *module) {
  static const char *const prefixes[] = {"System.",
                                         "mscorlib",
                                         "netstandard",
                                         "Microsoft.Extensions.",
                                         "Microsoft.AspNet",
                                         "Microsoft.Win32.",
                                         "Microsoft.CSharp.",
                                         "Microsoft.VisualBasic.",
                                         "FSharp.Core.",
                                         "ClrsnapLabels",
                                         NULL};
  return any_prefix(module, prefixes);
}

bool cs_module_is_runtime(const char *name) {
  static const char *const prefixes[] = {"libcoreclr",    "libclr",         "libhostfxr",
                                         "libhostpolicy", "libSystem.",     "libmscordac",
                                         "dotnet",        "singlefilehost", NULL};
  return any_prefix(name, prefixes);
}
