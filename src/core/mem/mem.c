// SPDX-License-Identifier: MIT
// mem: guarded reads of this process. Signal-safe: cs_mem_read_guarded. cs_mem_init_self runs at
// start only.
//
// A guarded read asks the kernel to copy (process_vm_readv on this very process), so that it fails
// instead of faulting if the memory has been unmapped. It costs about 0.9 us where a load costs
// nothing, so it is used only for memory that may go away under a walk: that of collectible code
// and dynamic methods.
#include "mem/mem.h"

#include <sys/syscall.h>
#include <sys/uio.h>

CS_ISLAND bool cs_mem_read_guarded(const struct cs_mem *mem, uint64_t addr, void *dst, size_t len) {
  if (mem->read_guarded != NULL) return mem->read_guarded(mem, addr, dst, len);
  if (mem->read != NULL) return mem->read(mem, addr, dst, len);
  if (!mem->guard_works) return false;
  struct iovec local = {.iov_base = dst, .iov_len = len};
  struct iovec remote = {.iov_base = (void *)(uintptr_t)addr, .iov_len = len};
  long got = cs_syscall6(SYS_process_vm_readv, mem->pid, (long)(uintptr_t)&local, 1,
                         (long)(uintptr_t)&remote, 1, 0);
  return got == (long)len;
}

void cs_mem_init_self(struct cs_mem *mem) {
  mem->read = mem->read_guarded = NULL;
  mem->pid = (int)cs_syscall4(SYS_getpid, 0, 0, 0, 0);
  // The seccomp profiles of some containers refuse the call. Collectible code then cannot be
  // walked, and a walk that meets it ends with CS_STOP_NO_GUARD.
  uint64_t probe = 0x5afe, copy = 0;
  mem->guard_works = true;
  mem->guard_works =
      cs_mem_read_guarded(mem, (uint64_t)(uintptr_t)&probe, &copy, sizeof copy) && copy == probe;
}
