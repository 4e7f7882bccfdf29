// SPDX-License-Identifier: MIT
// What is known of a ClassID: its name as the metadata has it, its generic arguments, its base
// class, the offsets of its fields, its methods. Any thread that may call the CLR, while the class
// is known to be alive. Not for handlers.
#pragma once

#include <stdbool.h>

#include "clr_names/text.h"
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

// Reads a class. Returns false if it has no metadata (an array, for example), or the CLR returns
// none.
bool cs_class_read(ICorProfilerInfo15 *info, ClassID id, struct cs_class *out);
// Adds the name that the runtime's events use: "System.Byte[]",
// "Entry`1[Shop.Cart+Item,System.Int32][]". A type that is nested in others lacks these, but its
// type arguments do not.
void cs_class_write_as_event(ICorProfilerInfo15 *info, ClassID id, struct cs_text_out *out);
// The same with the types that it is nested in, each with its own type arguments:
// "Shop.Table`1[Shop.Cart.Item].Entry`1[System.Int32][]".
void cs_class_write_nested(ICorProfilerInfo15 *info, ClassID id, struct cs_text_out *out);
// Returns whether the class is never unloaded: neither its own module can be nor one of its type
// arguments'. False if that is not known.
bool cs_class_is_permanent(ICorProfilerInfo15 *info, ClassID id);
// Finds the offset in an object of a field that the class itself declares. Returns false if it
// declares no field of that name.
bool cs_class_field(ICorProfilerInfo15 *info, const struct cs_class *class, const WCHAR *name,
                    uint32_t *offset);
// Finds the offset of its first field, from which the CLR counts the fields of a value type.
bool cs_class_origin(ICorProfilerInfo15 *info, const struct cs_class *class, uint32_t *offset);
// Finds the class of that name in a module ("Outer`1", not nested), with these type arguments, and
// loads it if it is not loaded.
bool cs_class_named(ICorProfilerInfo15 *info, ModuleID module, const WCHAR *name, ClassID args[],
                    unsigned arg_count, struct cs_class *out);
// The same for a class without type arguments in System.Private.CoreLib, while no module is
// unloaded.
bool cs_class_of_core(ICorProfilerInfo15 *info, const WCHAR *name, struct cs_class *out);
// Finds a method that the class itself declares, and its function for exactly this class.
bool cs_class_method(ICorProfilerInfo15 *info, const struct cs_class *class, const WCHAR *name,
                     mdMethodDef *token, FunctionID *function);
