// SPDX-License-Identifier: MIT
// Which methods are the runtime's own exception dispatch. Since .NET 9 it is managed code of
// CoreLib, which CoreCLR's own walk leaves out. Not for handlers.
//
// Invariant: filled once, before anything is walked, and read-only afterwards. A runtime without
// these classes has no such methods, and nothing is left out.
#include "life/eh.h"

#include "base/log.h"
#include "clrsnap/cormeta.h"
#include "life/library.h"

enum { MAX_CLASSES = 3 };

// Methods of a class have consecutive tokens.
struct token_range {
  mdMethodDef first, last;
};
static struct {
  ModuleID module;  // 0: not known
  struct token_range classes[MAX_CLASSES];
  mdMethodDef filter_caller;  // the method that calls filters
} dispatch;

static const WCHAR eh_class[] = u"System.Runtime.EH";
static const WCHAR iterator_class[] = u"System.Runtime.StackFrameIterator";
// Its methods are inlined, except under a profiler's enter and leave hooks.
static const WCHAR calls_class[] = u"System.Runtime.ExceptionServices.InternalCalls";
static const WCHAR filter_caller[] = u"FindFirstPassHandler";

static bool find_class(IMetaDataImport2 *import, const WCHAR *name, struct token_range *range,
                       mdTypeDef *type) {
  HCORENUM all = NULL;
  mdMethodDef token;
  ULONG got = 0;
  const IMetaDataImport2Vtbl *m = import->lpVtbl;
  *range = (struct token_range){0};
  if (m->FindTypeDefByName(import, name, 0, type) != S_OK) return false;
  while (m->EnumMethods(import, &all, *type, &token, 1, &got) == S_OK && got == 1) {
    if (range->first == 0 || token < range->first) range->first = token;
    if (token > range->last) range->last = token;
  }
  m->CloseEnum(import, all);
  return range->first != 0;
}

static bool look_in(IMetaDataImport2 *import) {
  mdTypeDef type, other;
  HCORENUM all = NULL;
  ULONG got = 0;
  const IMetaDataImport2Vtbl *m = import->lpVtbl;
  if (!find_class(import, eh_class, &dispatch.classes[0], &type)) return false;
  (void)find_class(import, iterator_class, &dispatch.classes[1], &other);
  (void)find_class(import, calls_class, &dispatch.classes[2], &other);
  if (m->EnumMethodsWithName(import, &all, type, filter_caller, &dispatch.filter_caller, 1, &got) !=
      S_OK)
    dispatch.filter_caller = 0;
  m->CloseEnum(import, all);
  return true;
}

void cs_eh_init(void) {
  ICorProfilerInfo15 *info = cs_library.info;
  ICorProfilerModuleEnum *modules = NULL;
  ModuleID id;
  ULONG got = 0;
  if (info == NULL || info->lpVtbl->EnumModules(info, &modules) != S_OK) return;
  while (dispatch.module == 0 && modules->lpVtbl->Next(modules, 1, &id, &got) == S_OK && got == 1) {
    IMetaDataImport2 *import = NULL;
    if (info->lpVtbl->GetModuleMetaData(info, id, ofRead, &IID_IMetaDataImport2, (void *)&import) !=
            S_OK ||
        import == NULL)
      continue;
    if (look_in(import)) dispatch.module = id;
    import->lpVtbl->Release(import);
  }
  modules->lpVtbl->Release(modules);
  if (dispatch.module == 0)
    cs_log("no managed exception dispatch was found: its frames, if any, are reported");
}

enum cs_eh_role cs_eh_role_of(uint64_t module, uint32_t token) {
  if (dispatch.module == 0 || module != dispatch.module) return CS_EH_NONE;
  for (int i = 0; i < MAX_CLASSES; i++) {
    const struct token_range *range = &dispatch.classes[i];
    if (token >= range->first && token <= range->last && range->first != 0)
      return token == dispatch.filter_caller ? CS_EH_FILTER_CALLER : CS_EH_DISPATCH;
  }
  return CS_EH_NONE;
}
