// SPDX-License-Identifier: MIT
// Where signal handlers return to: the kernel's trampoline in the vDSO, unless the code that
// installed the handler brought its own (SA_RESTORER), which no C library does on this
// architecture. It has no exported address, so it is found by its instructions. Async-signal-safe.
#include <elf.h>
#include <string.h>
#include <sys/auxv.h>

#include "snapshot/self.h"

uint64_t cs_handler_return(int signo) {
  static const uint32_t trampoline[] = {0xD2801168, 0xD4000001};  // mov x8, 139; svc 0
  uint64_t at = getauxval(AT_SYSINFO_EHDR);
  (void)signo;
  if (at == 0) return 0;
  const Elf64_Ehdr *header = (const void *)(uintptr_t)at;
  const Elf64_Phdr *segment = (const void *)(uintptr_t)(at + header->e_phoff);
  for (unsigned i = 0; i < header->e_phnum; i++) {
    if (segment[i].p_type != PT_LOAD || (segment[i].p_flags & PF_X) == 0) continue;
    uint64_t begin = at + segment[i].p_offset, end = begin + segment[i].p_filesz;
    for (uint64_t ip = begin; ip + sizeof trampoline <= end; ip += sizeof *trampoline)
      if (memcmp((const void *)(uintptr_t)ip, trampoline, sizeof trampoline) == 0) return ip;
  }
  return 0;
}
