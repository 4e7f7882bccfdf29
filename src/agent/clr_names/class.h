// SPDX-License-Identifier: MIT
// class: what a ClassID is: its name as the metadata has it, its generic arguments, its base class,
// where its fields are, which methods it has. For who looks at objects. Any thread that may call
// the CLR, while the class is known to be alive. Not for handlers.
#ifndef CS_CLR_NAMES_CLASS_H
#define CS_CLR_NAMES_CLASS_H

#include <stdbool.h>

#include "clrsnap/corprof.h"

enum { CS_CLASS_ARGS = 8 };

struct cs_class {
  ClassID id, parent;  // parent 0: none
  ModuleID module;
  mdTypeDef token;
  unsigned arg_count;
  ClassID args[CS_CLASS_ARGS];
  bool core;       // in System.Private.CoreLib
  char name[512];  // "System.Threading.Tasks.Task`1", "Outer`1+Inner"
};

// False: it has no metadata (an array, for example), or the CLR does not tell.
bool cs_class_read(ICorProfilerInfo15 *info, ClassID id, struct cs_class *out);
// Where a reference field that the class itself declares is, from an object's beginning. False:
// there is none of that name.
bool cs_class_field(ICorProfilerInfo15 *info, const struct cs_class *class, const WCHAR *name,
                    uint32_t *offset);
// Where the first of its own fields is: what the CLR counts the fields of a value type from.
bool cs_class_origin(ICorProfilerInfo15 *info, const struct cs_class *class, uint32_t *offset);
// The class of that name in a module ("Outer`1"; none that is nested), with these arguments. It is
// loaded if it was not.
bool cs_class_named(ICorProfilerInfo15 *info, ModuleID module, const WCHAR *name, ClassID args[],
                    unsigned arg_count, struct cs_class *out);
// A method that the class itself declares, and its function for exactly this class.
bool cs_class_method(ICorProfilerInfo15 *info, const struct cs_class *class, const WCHAR *name,
                     mdMethodDef *token, FunctionID *function);

#endif
