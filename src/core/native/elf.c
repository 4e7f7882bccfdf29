// SPDX-License-Identifier: MIT
// Finds .eh_frame, from an ELF header in memory, through the program headers (which are mapped with
// every image) and .eh_frame_hdr, or by a search. Invariant: no value of the image is used as an
// address before it is known to be inside one of the image's own segments, and all reads are
// guarded, since the image may be unloaded meanwhile. One thread at a time. Signal-safe: no.
#include "native/elf.h"

#include <elf.h>

#include "base/grow.h"
#include "base/hash.h"
#include "native/cfi_private.h"
#include "native/dwarf.h"
#include "native/dynamic.h"
#include "native/go.h"
#include "native/notes.h"
#include "native/search.h"

enum { MAX_PROGRAM_HEADERS = 512, HDR_BYTES = 64 };

struct segments {
  struct cs_process_memory *process;
  const struct cs_candidate *candidate;
  struct cs_elf *elf;
  unsigned count;
  uint64_t table;     // address of the program headers
  uint64_t searched;  // bytes of all segments that were searched for .eh_frame
};

static uint64_t hash_page(const uint8_t *page) {
  uint64_t hash = CS_HASH_EMPTY, word;
  for (size_t i = 0; i < CS_ELF_PAGE; i += sizeof word) {
    memcpy(&word, page + i, sizeof word);
    hash = cs_hash_sequence(hash, word);
  }
  return hash;
}

enum cs_elf_result cs_elf_open(struct cs_process_memory *process,
                               const struct cs_candidate *candidate, struct cs_elf *elf) {
  static const uint8_t magic[] = {0x7F, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB};
  memset(elf, 0, sizeof *elf);
  if (!cs_process_memory_read(process, candidate->base, elf->page, sizeof elf->page))
    return CS_ELF_UNREADABLE;
  if (memcmp(elf->page, magic, sizeof magic) != 0) return CS_ELF_NOT;
  elf->fingerprint = hash_page(elf->page);
  return CS_ELF_OK;
}

static bool program_header(const struct segments *s, unsigned i, Elf64_Phdr *ph) {
  uint64_t at = s->table + i * sizeof *ph - s->candidate->base;
  if (at <= CS_ELF_PAGE - sizeof *ph) {
    memcpy(ph, s->elf->page + at, sizeof *ph);
    return true;
  }
  return cs_process_memory_read(s->process, s->candidate->base + at, ph, sizeof *ph);
}

// Searches a segment of notes for the build id.
static void read_notes(const struct segments *s, const Elf64_Phdr *notes) {
  struct cs_notes n;
  struct cs_note note;
  cs_notes_begin(&n, s->process, s->elf->bias, notes);
  while (s->elf->id_size == 0 && cs_notes_next(&n, &note)) {
    if (note.type != NT_GNU_BUILD_ID || !cs_note_is_of(&note, "GNU", sizeof "GNU")) continue;
    s->elf->id_address = note.address;
    s->elf->id_size = note.size;
  }
}

// Finds the functions that run first and last, and whether this is CoreCLR (libcoreclr.so, or a
// single-file program), which exports a symbol for debuggers.
static void read_dynamic(const struct segments *s, const Elf64_Phdr *ph) {
  struct cs_dynamic dynamic;
  if (!cs_dynamic_read(s->process, s->elf->bias, s->elf->bias + ph->p_vaddr, ph->p_filesz,
                       &dynamic))
    return;
  Elf64_Ehdr header;
  memcpy(&header, s->elf->page, sizeof header);
  s->elf->entry = header.e_entry != 0 ? s->elf->bias + header.e_entry : 0;
  s->elf->init = dynamic.init;
  s->elf->fini = dynamic.fini;
  s->elf->is_coreclr = cs_dynamic_find(s->process, &dynamic, CS_CORECLR_SYMBOL) != 0;
}

// Finds what can be found once the bias is known. An image need not have any of it.
static enum cs_elf_result find_notes(struct segments *s) {
  struct cs_go_search go = {s->process, s->elf->bias, 0};
  for (unsigned i = 0; i < s->count; i++) {
    Elf64_Phdr ph;
    if (!program_header(s, i, &ph)) return CS_ELF_UNREADABLE;
    if (ph.p_type == PT_NOTE) read_notes(s, &ph);
    if (!s->elf->small_stacks) s->elf->small_stacks = cs_go_is_in(&go, &ph);
    if (ph.p_type == PT_DYNAMIC) read_dynamic(s, &ph);
  }
  return CS_ELF_OK;
}

// The load bias follows from the executable segment that the candidate maps. (It does not follow
// from where the file's first byte is mapped: small images map that page twice, for two segments.)
static enum cs_elf_result find_bias(const struct segments *s, bool *has_hdr, Elf64_Phdr *hdr) {
  const struct cs_candidate *candidate = s->candidate;
  bool found = false;
  *has_hdr = false;
  for (unsigned i = 0; i < s->count; i++) {
    Elf64_Phdr ph;
    if (!program_header(s, i, &ph)) return CS_ELF_UNREADABLE;
    uint64_t in_page = ph.p_offset % CS_ELF_PAGE, offset = ph.p_offset - in_page;
    if (ph.p_type == PT_LOAD && (ph.p_flags & PF_X) && candidate->offset >= offset &&
        candidate->offset < ph.p_offset + ph.p_filesz) {
      found = true;
      s->elf->bias = candidate->begin - (candidate->offset - offset) - (ph.p_vaddr - in_page);
    }
    if (ph.p_type == PT_GNU_EH_FRAME) {
      *has_hdr = true;
      *hdr = ph;
    }
  }
  return found ? CS_ELF_OK : CS_ELF_MALFORMED;
}

// Finds the end of the loaded segment that contains the address, without what is not in the file; 0
// if there is no such segment.
static enum cs_elf_result segment_end(const struct segments *s, uint64_t address, uint64_t *end) {
  *end = 0;
  for (unsigned i = 0; i < s->count; i++) {
    Elf64_Phdr ph;
    if (!program_header(s, i, &ph)) return CS_ELF_UNREADABLE;
    if (ph.p_type != PT_LOAD) continue;
    uint64_t begin = s->elf->bias + ph.p_vaddr;
    if (address >= begin && address - begin < ph.p_filesz) *end = begin + ph.p_filesz;
  }
  return CS_ELF_OK;
}

// .eh_frame_hdr has version 1, three encodings, the pointer to .eh_frame, and the number of FDEs if
// there is a search table, which is not used, since all records are read anyway.
static enum cs_elf_result read_hdr(const struct segments *s, uint64_t address,
                                   struct cs_error *err) {
  struct cs_elf *elf = s->elf;
  uint8_t bytes[HDR_BYTES];
  uint64_t end, count;
  if (segment_end(s, address, &end) != CS_ELF_OK) return CS_ELF_UNREADABLE;
  if (end == 0) {
    (void)cs_error_set(err, "its .eh_frame_hdr is in no loaded segment");
    return CS_ELF_MALFORMED;
  }
  size_t len = end - address < sizeof bytes ? (size_t)(end - address) : sizeof bytes;
  if (!cs_process_memory_read(s->process, address, bytes, len)) return CS_ELF_UNREADABLE;
  struct cs_cfi_section section = {.bytes = bytes, .address = address, .data_base = address};
  struct cs_cursor c = cs_cursor(bytes, len);
  uint8_t version = cs_cursor_u8(&c), pointer = cs_cursor_u8(&c), counter = cs_cursor_u8(&c);
  (void)cs_cursor_u8(&c);  // the table's encoding
  if (version != 1 || !cs_pe_read(&section, &c, pointer, &elf->eh_frame)) {
    (void)cs_error_set(err, "its .eh_frame_hdr is malformed");
    return CS_ELF_MALFORMED;
  }
  if (counter != CS_PE_OMIT && cs_pe_read(&section, &c, counter, &count) && count <= UINT32_MAX)
    elf->fde_count = (uint32_t)count;
  elf->hdr = address;
  if (segment_end(s, elf->eh_frame, &elf->eh_frame_end) != CS_ELF_OK) return CS_ELF_UNREADABLE;
  if (elf->eh_frame_end != 0) return CS_ELF_OK;
  (void)cs_error_set(err, "its .eh_frame is in no loaded segment");
  return CS_ELF_MALFORMED;
}

static uint64_t bytes_of_code(const struct segments *s) {
  uint64_t bytes = 0;
  Elf64_Phdr ph;
  for (unsigned i = 0; i < s->count && program_header(s, i, &ph); i++)
    if (ph.p_type == PT_LOAD && (ph.p_flags & PF_X) && ph.p_filesz < UINT32_MAX)
      bytes += ph.p_filesz;
  return bytes;
}

// Nothing points to .eh_frame, so every loaded segment is searched for it. The limits are for data
// with a little code, such as ICU's, 31 MiB with 261 bytes, of which a search would make every page
// resident.
static enum cs_elf_result search(struct segments *s, struct cs_error *err) {
  enum { MAX_BYTES = 64 << 20, MAX_TOTAL = 128 << 20, MIN_BYTES = 64 << 10, MAX_PER_CODE = 256 };
  const uint64_t by_code = MIN_BYTES + MAX_PER_CODE * bytes_of_code(s);
  for (unsigned i = 0; i < s->count; i++) {
    Elf64_Phdr ph;
    struct cs_found found;
    if (!program_header(s, i, &ph)) return CS_ELF_UNREADABLE;
    if (ph.p_type != PT_LOAD || ph.p_filesz == 0) continue;
    if (ph.p_filesz > MAX_BYTES || ph.p_filesz > MAX_TOTAL - s->searched || ph.p_filesz > by_code) {
      (void)cs_error_set(err,
                         "nothing points to its .eh_frame, and a segment of %llu KiB is too "
                         "large to look for it: link it with --eh-frame-hdr",
                         (unsigned long long)(ph.p_filesz >> 10));
      continue;
    }
    s->searched += ph.p_filesz;
    uint64_t address = s->elf->bias + ph.p_vaddr;
    size_t before = (4 - address % 4) % 4;
    uint8_t *bytes = cs_pages_grow(NULL, 0, (size_t)ph.p_filesz);
    if (bytes == NULL) return CS_ELF_UNREADABLE;
    bool is_found = cs_process_memory_read(s->process, address, bytes, (size_t)ph.p_filesz) &&
                    before < ph.p_filesz &&
                    cs_eh_frame_search(bytes + before, (size_t)ph.p_filesz - before, &found);
    cs_pages_free(bytes, (size_t)ph.p_filesz);
    if (!is_found || found.fdes <= s->elf->fde_count) continue;
    s->elf->eh_frame = address + before + found.begin;
    s->elf->eh_frame_end = address + before + found.end;
    s->elf->fde_count = found.fdes;
  }
  if (s->elf->fde_count != 0) *err = (struct cs_error){.text = ""};
  return CS_ELF_OK;
}

enum cs_elf_result cs_elf_read(struct cs_process_memory *process,
                               const struct cs_candidate *candidate, struct cs_elf *elf,
                               struct cs_error *err) {
  Elf64_Ehdr eh;
  memcpy(&eh, elf->page, sizeof eh);
  struct segments s = {process, candidate, elf, eh.e_phnum, candidate->base + eh.e_phoff, 0};
  if (eh.e_machine != CS_ARCH_ELF || eh.e_phentsize != sizeof(Elf64_Phdr) || eh.e_phnum == 0 ||
      eh.e_phnum > MAX_PROGRAM_HEADERS || eh.e_phoff > (1u << 30)) {
    (void)cs_error_set(err, "its ELF header is malformed");
    return CS_ELF_MALFORMED;
  }
  bool has_hdr;
  Elf64_Phdr hdr;
  enum cs_elf_result result = find_bias(&s, &has_hdr, &hdr);
  if (result == CS_ELF_MALFORMED)
    (void)cs_error_set(err, "none of its executable segments matches the mapping");
  if (result == CS_ELF_OK) result = find_notes(&s);
  if (result != CS_ELF_OK) return result;
  if (has_hdr) result = read_hdr(&s, elf->bias + hdr.p_vaddr, err);
  if (has_hdr && result != CS_ELF_MALFORMED) return result;
  elf->hdr = elf->eh_frame = elf->eh_frame_end = elf->fde_count = 0;
  *err = (struct cs_error){.text = ""};
  return search(&s, err);
}
