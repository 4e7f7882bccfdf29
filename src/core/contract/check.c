// SPDX-License-Identifier: MIT
// The self-check: compares the layout with what the profiling API says about the same things.
// Invariant: everything is read guarded, so that a wrong layout is detected instead of causing a
// fault. Nothing is trusted because of its version number. Threads: one of the library's native
// threads, or a callback. Signal-safe: no.
#include <sys/syscall.h>
#include <unistd.h>

#include "contract/contract.h"
#include "contract/guarded.h"

#define MAX_UNWIND_INFOS 4096u  // main body and funclets; the largest method seen had a few hundred
#define MAX_CODE_BYTES (64u << 20)
#define HIJACK_SCAN_BYTES 512u
#define NEVER_HIJACKED 0xCCCCCCCCCCCCCCCCull  // Thread's constructor sets both fields to this
#define FRAME_TOP UINT64_MAX                  // an empty chain of explicit frames

// ---- one method ----
static bool check_unwind(const struct cs_layout *l, uint64_t header, uint64_t code_start,
                         uint32_t infos, struct cs_error *err) {
  if (infos == 0 || infos > MAX_UNWIND_INFOS) {
    return cs_error_set(err, "self-check failed: a method has %u unwind entries", infos);
  }
  uint64_t base = 0;
  uint32_t last_end = 0;
  for (uint32_t i = 0; i < infos; i++) {
    uint64_t entry = header + l->code_header.unwind_infos + (uint64_t)i * l->runtime_function.size;
    uint32_t raw[CS_RUNTIME_FUNCTION_BYTES / 4], first = 0;
    if (!cs_guarded_read(entry, raw, sizeof raw))
      return cs_error_set(err, "self-check failed: a method's unwind entries cannot be read");
    uint32_t begin = raw[l->runtime_function.begin / 4],
             data = raw[l->runtime_function.unwind_data / 4];
    if (i == 0) base = code_start - begin;
    if (!cs_guarded_u32(base + data, &first) || !cs_unwind_data_is_known(data, first))
      return cs_error_set(err, "self-check failed: a method's unwind data is not of version 1");
    uint32_t end = cs_function_end(&l->runtime_function, raw, first);
    if (begin >= end || end - begin > MAX_CODE_BYTES || begin < last_end) {
      return cs_error_set(err, "self-check failed: a method's unwind entry %u covers 0x%x to 0x%x",
                          i, begin, end);
    }
    last_end = end;
  }
  return true;
}

// Returns whether a code header that names this method stands before `code_start`.
static bool has_header(const struct cs_layout *l, FunctionID function, UINT_PTR code_start,
                       uint64_t *header) {
  uint64_t method;
  return cs_guarded_u64(code_start - 8, header) && *header > l->stub_code_block_last &&
         cs_guarded_u64(*header + l->code_header.method_desc, &method) && method == function;
}

static bool check_header(const struct cs_layout *l, uint64_t header, uint64_t code_start,
                         struct cs_error *err) {
  uint32_t infos;
  if (!cs_guarded_u32(header + l->code_header.num_unwind_infos, &infos)) {
    return cs_error_set(err, "self-check failed: a method's code header cannot be read");
  }
  return check_unwind(l, header, code_start, infos, err);
}

bool cs_contract_check_method(const struct cs_layout *l, FunctionID function, UINT_PTR code_start,
                              struct cs_error *err) {
  uint64_t header;
  if (!has_header(l, function, code_start, &header)) {
    return cs_error_set(err,
                        "self-check failed: the code header before a jitted method at 0x%llx "
                        "does not name that method",
                        (unsigned long long)code_start);
  }
  return check_header(l, header, code_start, err);
}

// ---- all methods ---- The code at `start` is never freed, and neither is its method, so it is
// safe to ask the CLR about both.
static bool check_function(const struct cs_layout *l, ICorProfilerInfo15 *info, uint64_t start,
                           struct cs_code_check *report, struct cs_error *err) {
  FunctionID function = 0;
  uint64_t header;
  // This fails for a method without metadata, and for one whose compilation was abandoned
  // meanwhile.
  if (info->lpVtbl->GetFunctionFromIP(info, (LPCBYTE)(uintptr_t)start, &function) != S_OK)
    return true;
  if (!has_header(l, function, start, &header)) {
    report->unmatched++;
    return true;
  }
  report->methods++;
  return check_header(l, header, start, err);
}

static enum cs_check check_functions(const struct cs_layout *l, ICorProfilerInfo15 *info,
                                     const struct cs_permanent *code, struct cs_code_check *report,
                                     struct cs_error *err) {
  for (uint32_t i = 0; i < code->starts; i++)
    if (!check_function(l, info, code->start[i], report, err)) return CS_CHECK_FAILED;
  if (report->methods > 0) return CS_CHECK_PASSED;
  // Ten mismatches are conclusive.
  if (report->unmatched < 10) return CS_CHECK_NOT_YET;
  (void)cs_error_set(err,
                     "self-check failed: of %u jitted methods none has a code header where the "
                     "runtime's data contract says",
                     report->unmatched);
  return CS_CHECK_FAILED;
}

// ---- ReadyToRun images ----
// The module's base must be what the profiling API says, and the table of runtime functions must
// lie in the image and be sorted. A component of a composite image has its table elsewhere, and is
// not checked.
static bool check_module(const struct cs_layout *l, ICorProfilerInfo15 *info, ModuleID module,
                         struct cs_code_check *report, struct cs_error *err) {
  LPCBYTE api_base = NULL;
  DWORD flags = 0;
  if (FAILED(info->lpVtbl->GetModuleInfo2(info, module, &api_base, 0, NULL, NULL, NULL, &flags)) ||
      (flags & COR_PRF_MODULE_NGEN) == 0) {
    return true;
  }
  uint64_t base, r2r, composite, table;
  uint32_t count, begins[2];
  if (!cs_guarded_u64(module + l->module.base, &base) ||
      !cs_guarded_u64(module + l->module.ready_to_run_info, &r2r)) {
    return cs_error_set(err, "self-check failed: a module's fields cannot be read");
  }
  if (base != (uint64_t)(uintptr_t)api_base) {
    return cs_error_set(err, "self-check failed: a module's base is 0x%llx instead of %p",
                        (unsigned long long)base, (const void *)api_base);
  }
  if (r2r == 0) return true;  // its ReadyToRun code was rejected
  if (!cs_guarded_u64(r2r + l->r2r_info.composite_info, &composite) || composite != r2r ||
      !cs_guarded_u64(r2r + l->r2r_info.runtime_functions, &table) ||
      !cs_guarded_u32(r2r + l->r2r_info.num_runtime_functions, &count) || count < 2) {
    return true;
  }
  if (!cs_guarded_u32(table + l->runtime_function.begin, &begins[0]) ||
      !cs_guarded_u32(table + l->runtime_function.size + l->runtime_function.begin, &begins[1]) ||
      table < base || table - base > UINT32_MAX || begins[0] >= begins[1]) {
    return cs_error_set(err,
                        "self-check failed: a ReadyToRun image's function table is not where "
                        "the runtime's data contract says");
  }
  report->images++;
  return true;
}

static bool is_permanent(const struct cs_permanent *code, ModuleID module) {
  for (uint32_t i = 0; i < code->modules; i++)
    if (code->module[i] == module) return true;
  return false;
}

// Only what both the CLR and the code map list is certain to be a module that is never unloaded.
static bool check_modules(const struct cs_layout *l, ICorProfilerInfo15 *info,
                          const struct cs_permanent *code, struct cs_code_check *report,
                          struct cs_error *err) {
  ICorProfilerModuleEnum *all = NULL;
  if (FAILED(info->lpVtbl->EnumModules(info, &all)) || all == NULL) return true;
  ModuleID one;
  ULONG got = 0;
  bool ok = true;
  while (ok && all->lpVtbl->Next(all, 1, &one, &got) == S_OK && got == 1) {
    if (is_permanent(code, one)) ok = check_module(l, info, one, report, err);
  }
  (void)all->lpVtbl->Release(all);
  return ok;
}

enum cs_check cs_contract_check_code(const struct cs_layout *layout, ICorProfilerInfo15 *info,
                                     const struct cs_permanent *code, struct cs_code_check *report,
                                     struct cs_error *err) {
  *report = (struct cs_code_check){0};
  enum cs_check methods = check_functions(layout, info, code, report, err);
  if (methods == CS_CHECK_FAILED) return CS_CHECK_FAILED;
  return check_modules(layout, info, code, report, err) ? methods : CS_CHECK_FAILED;
}

// ---- threads ----
// The fields are the only pair of neighbouring words with the constructor's value.
void cs_contract_find_hijack(struct cs_layout *layout, const struct cs_mem *mem, uint64_t thread) {
  uint64_t words[HIJACK_SCAN_BYTES / 8];
  if (!cs_mem_read(mem, thread, words, sizeof words)) return;
  uint32_t found = 0, at = 0;
  for (uint32_t i = 0; i + 1 < CS_COUNT(words); i++) {
    if (words[i] != NEVER_HIJACKED || words[i + 1] != NEVER_HIJACKED) continue;
    found++;
    at = i * 8;
  }
  if (found != 1) return;
  cs_store_release(&layout->hijack.hijack_return_address, at);
  cs_store_release(&layout->hijack.hijack_slot, at + 8);
}

static bool is_our_thread(DWORD os_tid) {
  return syscall(SYS_tgkill, getpid(), (pid_t)os_tid, 0) == 0;
}

enum cs_check cs_contract_check_thread(struct cs_layout *layout, ThreadID thread, DWORD os_tid,
                                       struct cs_error *err) {
  uint32_t os_id;
  uint64_t frame;
  if (!cs_guarded_u32(thread + layout->thread.os_id, &os_id) ||
      !cs_guarded_u64(thread + layout->thread.frame, &frame)) {
    return CS_CHECK_NOT_YET;  // the thread has ended
  }
  // If the thread has ended, the id is 0, or the memory is another thread's by now.
  if (os_id == 0 || (os_id != os_tid && !is_our_thread(os_tid))) return CS_CHECK_NOT_YET;
  if (os_id != os_tid) {
    (void)cs_error_set(err,
                       "self-check failed: a thread's OS id is %u where the runtime's data "
                       "contract says, and %u by the profiling API",
                       os_id, os_tid);
    return CS_CHECK_FAILED;
  }
  if (frame != FRAME_TOP && (frame == 0 || frame % 8 != 0 || frame >> CS_ADDRESS_BITS != 0)) {
    (void)cs_error_set(err, "self-check failed: a thread's chain of frames starts at 0x%llx",
                       (unsigned long long)frame);
    return CS_CHECK_FAILED;
  }
  if (cs_load_acquire(&layout->hijack.hijack_slot) == 0)
    cs_contract_find_hijack(layout, &cs_guarded_self, thread);
  return CS_CHECK_PASSED;
}
