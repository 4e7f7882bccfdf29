// SPDX-License-Identifier: MIT
// Types as C#-like text, from metadata and from ClassIDs. Private to the component. Not for
// handlers; calls the metadata reader and, for ClassIDs, the CLR.
#pragma once

#include "clr_names/sig.h"
#include "clrsnap/cormeta.h"
#include "clrsnap/corprof.h"

enum { CS_TYPE_LEVELS = 8 };  // Outer.Middle.Inner; deeper types lose their outermost names

// A type's name in the metadata, outermost type first, without suffixes like `2.
struct cs_type_name {
  char space[256];  // of the outermost type
  unsigned levels;
  struct {
    char name[256];
    unsigned arity;  // generic parameters that this level adds
  } level[CS_TYPE_LEVELS];
};

// Reads the name of a TypeDef or TypeRef. Returns false if it cannot be read.
bool cs_type_read(IMetaDataImport2 *import, mdToken token, struct cs_type_name *out);
// Adds "Dictionary<TKey,TValue>.Enumerator", without the namespace. `args` NULL: without brackets.
void cs_type_write(const struct cs_type_name *name, const struct cs_type_args *args,
                   struct cs_text_out *out);
// The same, but "int" for System.Int32: for arguments and parameters.
void cs_type_write_short(const struct cs_type_name *name, const struct cs_type_args *args,
                         struct cs_text_out *out);
// Adds an array's brackets: "[]", "[,]".
void cs_type_write_ranks(ULONG rank, struct cs_text_out *out);
// Reads the names of the generic parameters of a TypeDef or MethodDef: "TKey", "TValue".
void cs_type_params(IMetaDataImport2 *import, mdToken owner, struct cs_type_args *out);

// Adds the name of a ClassID: "int", "List<string>[]". `nesting`: levels left before "...".
void cs_class_write(ICorProfilerInfo15 *info, ClassID class_id, unsigned nesting,
                    struct cs_text_out *out);
// Adds the name as `clrsnap stack` shows it: with the namespace, without keywords, and with the
// names of its type parameters. Returns false if the class has no metadata.
bool cs_class_write_whole(ICorProfilerInfo15 *info, ClassID class_id, struct cs_text_out *out);
// Replaces each parameter's name by that of its type argument in `ids`. An argument that stands for
// all reference types (System.__Canon), or is not known (0), leaves the parameter's name.
void cs_type_instantiate(ICorProfilerInfo15 *info, const ClassID ids[], unsigned count,
                         unsigned nesting, struct cs_type_args *args);
