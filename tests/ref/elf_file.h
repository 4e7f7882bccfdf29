// SPDX-License-Identifier: MIT
// ELF files, mapped into this process as the dynamic loader would map them but without running any
// of their code; and their .eh_frame, found by the section headers. One thread; not for handlers.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct elf_file {
  const uint8_t *bytes;  // the file
  size_t size;
  uint64_t bias;  // address = bias + the file's virtual address
  const uint8_t *eh_frame;
  uint64_t eh_frame_size, eh_frame_address;  // the address that it has in the process
  struct {
    uint64_t begin, end;
  } startup[2];  // .init and .fini in the process; 0 and 0: none
};

// Maps the file's segments. Returns false unless it is an ELF image of this machine with an
// .eh_frame.
bool elf_file_map(const char *path, struct elf_file *file);
// The same for an image that is already in memory as a whole and stays there: the vdso.
bool elf_file_in_memory(const void *image, size_t size, struct elf_file *file);
void elf_file_close(struct elf_file *file);  // its segments stay
