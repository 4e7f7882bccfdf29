// SPDX-License-Identifier: MIT
// See elf_file.h. Invariant: every offset and size in the file is checked against the file's size
// before it is used. Segments are mapped readable or executable, never writable, because nothing
// here runs them.
#include "ref/elf_file.h"

#include <elf.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PAGE = 4096 };

static const void *within(const struct elf_file *file, uint64_t offset, uint64_t size) {
  return offset <= file->size && size <= file->size - offset ? file->bytes + offset : NULL;
}

static const Elf64_Ehdr *header(const struct elf_file *file) {
  const Elf64_Ehdr *eh = within(file, 0, sizeof *eh);
  if (eh == NULL || memcmp(eh->e_ident, ELFMAG, SELFMAG) != 0 ||
      eh->e_ident[EI_CLASS] != ELFCLASS64 || eh->e_machine != EM_X86_64 ||
      (eh->e_type != ET_DYN && eh->e_type != ET_EXEC))
    return NULL;
  return eh;
}

static bool find_sections(struct elf_file *file) {
  static const char *const wanted[] = {".init", ".fini", ".eh_frame"};
  const Elf64_Ehdr *eh = header(file);
  if (eh == NULL || eh->e_shstrndx >= eh->e_shnum) return false;
  const Elf64_Shdr *sections = within(file, eh->e_shoff, eh->e_shnum * sizeof *sections);
  if (sections == NULL) return false;
  const Elf64_Shdr *names = &sections[eh->e_shstrndx];
  for (unsigned i = 0; i < eh->e_shnum; i++) {
    const Elf64_Shdr *s = &sections[i];
    unsigned which = 0;
    for (; which < 3; which++) {
      size_t length = strlen(wanted[which]) + 1;
      const char *name = within(file, names->sh_offset + s->sh_name, length);
      if (name != NULL && memcmp(name, wanted[which], length) == 0) break;
    }
    if (which < 2) {
      file->startup[which].begin = s->sh_addr;
      file->startup[which].end = s->sh_addr + s->sh_size;
    } else if (which == 2 && s->sh_type != SHT_NOBITS) {
      file->eh_frame = within(file, s->sh_offset, s->sh_size);
      file->eh_frame_size = s->sh_size;
      file->eh_frame_address = s->sh_addr;
    }
  }
  return file->eh_frame != NULL;
}

// Where it is in the process is known.
static void relocate(struct elf_file *file, uint64_t bias) {
  file->bias = bias;
  file->eh_frame_address += bias;
  for (unsigned i = 0; i < 2; i++) {
    if (file->startup[i].end == 0) continue;
    file->startup[i].begin += bias;
    file->startup[i].end += bias;
  }
}

static bool map_segments(int fd, struct elf_file *file) {
  const Elf64_Ehdr *eh = header(file);
  const Elf64_Phdr *ph = within(file, eh->e_phoff, eh->e_phnum * sizeof *ph);
  uint64_t lo = UINT64_MAX, hi = 0;
  if (ph == NULL) return false;
  for (unsigned i = 0; i < eh->e_phnum; i++) {
    if (ph[i].p_type != PT_LOAD) continue;
    if (ph[i].p_vaddr < lo) lo = ph[i].p_vaddr & ~(uint64_t)(PAGE - 1);
    if (ph[i].p_vaddr + ph[i].p_memsz > hi) hi = ph[i].p_vaddr + ph[i].p_memsz;
  }
  if (hi <= lo) return false;
  uint8_t *at = mmap(NULL, hi - lo, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) return false;
  for (unsigned i = 0; i < eh->e_phnum; i++) {
    uint64_t in_page = ph[i].p_vaddr % PAGE;
    if (ph[i].p_type != PT_LOAD || ph[i].p_filesz == 0) continue;
    int protection = PROT_READ | (ph[i].p_flags & PF_X ? PROT_EXEC : 0);
    if (mmap(at + (ph[i].p_vaddr - in_page - lo), ph[i].p_filesz + in_page, protection,
             MAP_PRIVATE | MAP_FIXED, fd, (off_t)(ph[i].p_offset - in_page)) == MAP_FAILED)
      return false;
  }
  relocate(file, (uint64_t)(uintptr_t)at - lo);
  return true;
}

bool elf_file_map(const char *path, struct elf_file *file) {
  struct stat info;
  memset(file, 0, sizeof *file);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  bool ok = fstat(fd, &info) == 0 && info.st_size > 0;
  void *bytes = MAP_FAILED;
  if (ok) bytes = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
  ok = bytes != MAP_FAILED;
  if (ok) {
    file->bytes = bytes;
    file->size = (size_t)info.st_size;
    ok = find_sections(file) && map_segments(fd, file);
  }
  (void)close(fd);
  if (!ok) elf_file_close(file);
  return ok;
}

bool elf_file_in_memory(const void *image, size_t size, struct elf_file *file) {
  memset(file, 0, sizeof *file);
  file->bytes = image;
  file->size = size;
  if (!find_sections(file)) return false;
  relocate(file, (uint64_t)(uintptr_t)image);  // the vdso is linked at 0
  return true;
}

void elf_file_close(struct elf_file *file) {
  if (file->bytes != NULL) (void)munmap((void *)(uintptr_t)file->bytes, file->size);
  file->bytes = NULL;
}
