// SPDX-License-Identifier: MIT
// Guarded reads: the kernel copies, and returns EFAULT where a load would fault. If a sandbox
// refuses process_vm_readv, /proc/self/mem is read instead. Invariant: returns true only if all
// bytes were read. Any thread. Signal-safe: no (the latter opens a file).
#include "contract/guarded.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

static bool read_proc_mem(uint64_t addr, void *dst, size_t len) {
  int fd = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  ssize_t n = pread(fd, dst, len, (off_t)addr);
  (void)close(fd);
  return n == (ssize_t)len;
}

bool cs_guarded_read(uint64_t addr, void *dst, size_t len) {
  if (addr == 0 || addr >> CS_ADDRESS_BITS != 0 || len > (UINT64_C(1) << CS_ADDRESS_BITS) - addr)
    return false;
  struct iovec local = {dst, len};
  struct iovec remote = {(void *)(uintptr_t)addr, len};
  ssize_t n = process_vm_readv(getpid(), &local, 1, &remote, 1, 0);
  if (n < 0 && errno != EFAULT) return read_proc_mem(addr, dst, len);
  return n == (ssize_t)len;
}

static bool read_self(const struct cs_mem *mem, uint64_t addr, void *dst, size_t len) {
  (void)mem;
  return cs_guarded_read(addr, dst, len);
}

const struct cs_mem cs_guarded_self = {.read = read_self};
