// SPDX-License-Identifier: MIT
// From the process to a layout: find the runtime, decide by its version whether it can be served,
// copy its descriptor, parse it. Invariant: `out` is only filled as a whole. The descriptor's
// memory is read guarded: what a wrong pointer costs is a refusal. Threads: any, at start.
// Signal-safe: no.
#include "contract/contract.h"

#include <stdlib.h>
#include <string.h>

#include "contract/descriptor.h"
#include "contract/guarded.h"
#include "contract/runtime.h"

#define KNOWN_MAJOR 10

bool cs_runtime_version_get(IUnknown *unknown, struct cs_runtime_version *out) {
  ICorProfilerInfo3 *info = NULL;
  memset(out, 0, sizeof *out);
  if (FAILED(unknown->lpVtbl->QueryInterface(unknown, &IID_ICorProfilerInfo3, (void **)&info))) {
    return false;
  }
  USHORT instance, qfe;
  COR_PRF_RUNTIME_TYPE type;
  HRESULT hr = info->lpVtbl->GetRuntimeInformation(info, &instance, &type, &out->major, &out->minor,
                                                   &out->build, &qfe, 0, NULL, NULL);
  (void)info->lpVtbl->Release(info);
  return SUCCEEDED(hr) && out->major != 0;
}

// .NET 8 has no descriptor and 9 one without the code manager, so both need another way to the code
// map, which this version does not have.
static bool check_version(const struct cs_runtime_version *v, bool has_descriptor,
                          struct cs_error *err) {
  if (v->major != 0 && v->major < KNOWN_MAJOR) {
    return cs_error_set(
        err,
        "this program runs on .NET %u.%u.%u, which is not supported yet (.NET %d is); "
        "it runs on without being profiled",
        v->major, v->minor, v->build, KNOWN_MAJOR);
  }
  if (v->major > KNOWN_MAJOR) {
    return cs_error_set(
        err,
        "this program runs on .NET %u.%u.%u, which this version of clrsnap does not "
        "know (.NET %d it does); it runs on without being profiled",
        v->major, v->minor, v->build, KNOWN_MAJOR);
  }
  if (!has_descriptor) {
    return cs_error_set(err,
                        "the runtime has no data contract descriptor, so this is not .NET %d; "
                        "the program runs on without being profiled",
                        KNOWN_MAJOR);
  }
  return true;
}

static bool parse(const struct cs_descriptor_head *head, struct cs_layout *out,
                  struct cs_error *err) {
  uint64_t *pointers = calloc(head->pointer_count + 1, sizeof *pointers);
  char *json = malloc(head->json_bytes);
  bool ok = false;
  if (pointers == NULL || json == NULL) {
    (void)cs_error_set(err, "out of memory for the runtime's data contract descriptor");
  } else if (!cs_guarded_read(head->json, json, head->json_bytes) ||
             !cs_guarded_read(head->pointers, pointers, head->pointer_count * sizeof *pointers)) {
    (void)cs_error_set(err, "the runtime's data contract descriptor cannot be read");
  } else {
    ok = cs_descriptor_parse(json, head->json_bytes, pointers, head->pointer_count, out, err);
  }
  free(json);
  free(pointers);
  return ok;
}

bool cs_contract_read(struct cs_layout *out, const struct cs_runtime_version *version,
                      struct cs_error *err) {
  static struct cs_runtime runtime;  // not on the stack of whoever loads us
  struct cs_runtime_version v = {0, 0, 0};
  struct cs_layout layout;
  struct cs_descriptor_head head;
  memset(&layout, 0, sizeof layout);
  if (!cs_runtime_find(&runtime)) {
    return cs_error_set(err,
                        "no CoreCLR was found in this process: neither libcoreclr.so nor a "
                        "single-file host");
  }
  uint16_t parts[3];
  if (version != NULL && version->major != 0) {
    v = *version;
  } else if (cs_runtime_path_version(runtime.path, parts)) {
    v = (struct cs_runtime_version){parts[0], parts[1], parts[2]};
  }
  uint64_t at = cs_runtime_descriptor(&runtime);
  if (!check_version(&v, at != 0, err)) return false;
  if (!cs_guarded_read(at, &head, sizeof head)) {
    return cs_error_set(err, "the runtime's data contract descriptor cannot be read");
  }
  if (!cs_descriptor_check_head(&head, err) || !parse(&head, &layout, err)) return false;
  layout.coreclr_begin = runtime.begin;
  layout.coreclr_end = runtime.end;
  layout.runtime_major = v.major;
  layout.runtime_minor = v.minor;
  layout.runtime_build = v.build;
  *out = layout;
  return true;
}
