// SPDX-License-Identifier: MIT
// The one table of what the runtime's native code is known by. Microsoft ships it without symbols,
// but it names itself: by the messages of its log (STRESS_LOG), by the names of its events
// (LTTng), by its tables of functions that managed code calls, and by its threads. A frame has the
// class of the nearest caller that is in this table (naming/runtime_part.h). Invariant: a row
// names something that has no other purpose. One thread. Signal-safe: no.
#include "metadata/runtime_class.h"

#include <string.h>

#include "base/prefix.h"

// The first row that claims a function has it, so messages, which are in the function itself, come
// before events, which are sent by functions that it calls.
const struct cs_runtime_row cs_runtime_rows[] = {
    {CS_RUNTIME_GC, CS_SIGN_MESSAGE, "{ =========== BEGINGC %d", 1},
    {CS_RUNTIME_GC, CS_SIGN_MESSAGE, "========== ENDGC %d", 1},
    {CS_RUNTIME_SUSPENSION, CS_SIGN_MESSAGE, "RareDisablePreemptiveGC: leaving", 0},
    {CS_RUNTIME_PREPARATION, CS_SIGN_MESSAGE, "DoPrestub: method %p", 0},
    {CS_RUNTIME_PREPARATION, CS_SIGN_MESSAGE, "Unknown ReadyToRunFixupKind %d", 0},
    {CS_RUNTIME_TYPES, CS_SIGN_MESSAGE, "DoRunClassInit: Request to init %pT", 0},
    {CS_RUNTIME_EXCEPTIONS, CS_SIGN_MESSAGE, "******* MANAGED EXCEPTION THROWN", 0},
    {CS_RUNTIME_TIERING, CS_SIGN_MESSAGE, "TieredCompilationManager::DoBackgroundWork: Exception",
     0},
    {CS_RUNTIME_DIAGNOSTICS, CS_SIGN_MESSAGE,
     "ds_ipc_stream_factory_get_next_available_stream - Poll", 0},
    {CS_RUNTIME_STARTUP, CS_SIGN_MESSAGE, "EEShutDown entered", 0},

    {CS_RUNTIME_ALLOCATION, CS_SIGN_EVENT, "DotNETRuntime:GCSampledObjectAllocationHigh", 3},
    {CS_RUNTIME_EXCEPTIONS, CS_SIGN_EVENT, "DotNETRuntime:ExceptionThrown_V1", 3},
    {CS_RUNTIME_SUSPENSION, CS_SIGN_EVENT, "DotNETRuntime:GCSuspendEEBegin_V1", 1},
    {CS_RUNTIME_SUSPENSION, CS_SIGN_EVENT, "DotNETRuntime:GCRestartEEEnd_V1", 1},
    {CS_RUNTIME_TYPES, CS_SIGN_EVENT, "DotNETRuntime:TypeLoadStart", 2},
    {CS_RUNTIME_PREPARATION, CS_SIGN_EVENT, "DotNETRuntime:R2RGetEntryPointStart", 2},
    {CS_RUNTIME_JIT, CS_SIGN_EVENT, "DotNETRuntime:MethodJittingStarted_V1", 3},
    {CS_RUNTIME_ASSEMBLIES, CS_SIGN_EVENT, "DotNETRuntime:AssemblyLoadStart", 2},
    {CS_RUNTIME_INTEROP, CS_SIGN_EVENT, "DotNETRuntime:ILStubGenerated", 2},
    {CS_RUNTIME_LOCKS, CS_SIGN_EVENT, "DotNETRuntime:ContentionStart_V2", 1},
    {CS_RUNTIME_WAITS, CS_SIGN_EVENT, "DotNETRuntime:WaitHandleWaitStart", 1},

    {CS_RUNTIME_STARTUP, CS_SIGN_SYMBOL, "coreclr_", 0},
    {CS_RUNTIME_ASSEMBLIES, CS_SIGN_SYMBOL, "AssemblyNative_", 0},
    {CS_RUNTIME_EXCEPTIONS, CS_SIGN_SYMBOL, "ExceptionNative_", 0},
    {CS_RUNTIME_INTEROP, CS_SIGN_SYMBOL, "MarshalNative_", 0},
    {CS_RUNTIME_INTEROP, CS_SIGN_SYMBOL, "NativeLibrary_", 0},
    {CS_RUNTIME_INTEROP, CS_SIGN_SYMBOL, "StubHelpers_", 0},
    {CS_RUNTIME_REFLECTION, CS_SIGN_SYMBOL, "CustomAttribute_", 0},
    {CS_RUNTIME_REFLECTION, CS_SIGN_SYMBOL, "MetadataImport_", 0},
    {CS_RUNTIME_REFLECTION, CS_SIGN_SYMBOL, "ModuleBuilder_", 0},
    {CS_RUNTIME_REFLECTION, CS_SIGN_SYMBOL, "ReflectionInvocation_", 0},
    {CS_RUNTIME_REFLECTION, CS_SIGN_SYMBOL, "RuntimeMethodHandle_", 0},
    {CS_RUNTIME_REFLECTION, CS_SIGN_SYMBOL, "RuntimeFieldHandle_", 0},
    {CS_RUNTIME_REFLECTION, CS_SIGN_SYMBOL, "RuntimeTypeHandle_", 0},
    {CS_RUNTIME_REFLECTION, CS_SIGN_SYMBOL, "Signature_", 0},
    {CS_RUNTIME_REFLECTION, CS_SIGN_SYMBOL, "TypeBuilder_", 0},
    {CS_RUNTIME_DIAGNOSTICS, CS_SIGN_SYMBOL, "EventPipeInternal_", 0},
    {CS_RUNTIME_DIAGNOSTICS, CS_SIGN_SYMBOL, "NativeRuntimeEventSource_", 0},

    {CS_RUNTIME_JIT, CS_SIGN_LIBRARY, "libclrjit.so", 0},
    {CS_RUNTIME_GC, CS_SIGN_LIBRARY, "libclrgc.so", 0},
    {CS_RUNTIME_GC, CS_SIGN_LIBRARY, "libclrgcexp.so", 0},

    {CS_RUNTIME_GC, CS_SIGN_THREAD, ".NET Server GC", 0},
    {CS_RUNTIME_GC, CS_SIGN_THREAD, ".NET BGC", 0},
    {CS_RUNTIME_TIERING, CS_SIGN_THREAD, ".NET Tiered Com", 0},
    {CS_RUNTIME_DIAGNOSTICS, CS_SIGN_THREAD, ".NET EventPipe", 0},

    {CS_RUNTIME_EXCEPTIONS, CS_SIGN_METHOD, "System.Runtime.EH", 0},
    {CS_RUNTIME_EXCEPTIONS, CS_SIGN_METHOD, "System.Runtime.StackFrameIterator", 0},
};
const size_t cs_runtime_row_count = sizeof cs_runtime_rows / sizeof cs_runtime_rows[0];

static const char *const texts[] = {NULL,
#define CS_RUNTIME_TEXT(name, text) text,
                                    CS_RUNTIME_CLASSES(CS_RUNTIME_TEXT)
#undef CS_RUNTIME_TEXT
};

enum cs_runtime_class cs_runtime_class_by(enum cs_runtime_sign sign, const char *text) {
  for (size_t i = 0; i < cs_runtime_row_count; i++) {
    const struct cs_runtime_row *row = &cs_runtime_rows[i];
    if (row->sign == sign && cs_has_prefix(text, row->text)) return row->class;
  }
  return CS_RUNTIME_UNKNOWN;
}

const char *cs_runtime_class_text(enum cs_runtime_class class) {
  return texts[class];
}

enum cs_runtime_class cs_runtime_class_shown(const char *text) {
  if (text[0] != '[') return CS_RUNTIME_UNKNOWN;
  for (int i = 1; i < CS_RUNTIME_CLASS_COUNT; i++)
    if (strcmp(text, texts[i]) == 0) return (enum cs_runtime_class)i;
  return CS_RUNTIME_UNKNOWN;
}
