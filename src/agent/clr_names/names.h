// SPDX-License-Identifier: MIT
// The name of a FunctionID as it is written in C#. Any thread that may call the CLR (a native one,
// or inside a callback), while the method is known to be alive. Takes no lock of ours. Not for
// handlers.
#pragma once

#include "clr_names/text.h"

#include "clrsnap/corprof.h"

enum cs_name_kind {
  CS_NAME_METHOD,   // has metadata
  CS_NAME_DYNAMIC,  // a dynamic method (System.Reflection.Emit.DynamicMethod, compiled expressions)
  CS_NAME_STUB,     // an IL stub of the runtime: P/Invoke marshalling, delegates
  CS_NAME_UNKNOWN,  // could not be named
};

struct cs_method_name {
  enum cs_name_kind kind;
  uint32_t token;        // CS_NAME_METHOD: the mdMethodDef in its module; else 0
  uint64_t base;         // CS_NAME_METHOD: where its module's image is in memory; 0: not known
  char module[512];      // the file's path, or the name of a module without one
  char space[256];       // "System.Collections.Generic"
  char type[768];        // "Dictionary<TKey,TValue>.Enumerator"
  char method[512];      // "MoveNext", "Select<TSource,int>"
  char signature[1024];  // "(int, string[])"; "" if it could not be read
};

// Fills all of `out`. Returns false, with kind CS_NAME_UNKNOWN and empty texts, if there is no
// name. Generic arguments that are value types are exact; for code that is shared between reference
// types, the name has the parameter's own name ("TValue"). `of`: the class that the method's
// MethodDesc belongs to, for shared code, whose class .NET 9 does not return; 0: not known.
bool cs_method_name_get(ICorProfilerInfo15 *info, FunctionID function, ClassID of,
                        struct cs_method_name *out);
