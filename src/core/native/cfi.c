// SPDX-License-Identifier: MIT
// The records of .eh_frame: finds all FDEs and their CIEs, and runs their programs in the order of
// the code, so that the rows are sorted. Works on a copy of the section, since the image may be
// unloaded meanwhile. Invariant: every read is bounds-checked, and every record advances by at
// least its length word. One thread at a time. Signal-safe: no.
#include <stdlib.h>

#include "base/grow.h"
#include "native/cfi_private.h"

enum {
  CIE_CACHE = 64,  // by offset; images have 1 to 13 CIEs
  EXTENDED_LENGTH = 0xFFFFFFFF,
  EMPTY = 0xFFFFFFFF,
  FIRST_FDES = 1024,
  FIRST_ROWS = 4096,
};

struct fde {
  uint32_t ip, ip_end;            // relative to the text
  uint32_t cie;                   // offset of its CIE
  uint32_t program, program_end;  // offsets of its instructions
};

struct scan {
  struct cs_cfi_build build;
  uint64_t end;  // of the text
  struct fde *fdes;
  uint32_t count, fdes_read;
  size_t capacity;
  struct cs_cie cies[CIE_CACHE];
  bool sorted, no_memory;
  struct cs_error *err;
};

static uint64_t address_of(const struct cs_cfi_section *section, const struct cs_cursor *c) {
  return section->address + (uint64_t)(c->at - section->bytes);
}

// Reads an encoded value, without adding the address that it is relative to.
static bool read_form(struct cs_cursor *c, uint8_t encoding, uint64_t *value) {
  switch (encoding & 0x0F) {
    case CS_PE_ABSPTR:
    case CS_PE_UDATA8:
    case CS_PE_SDATA8:
      *value = cs_cursor_u64(c);
      break;
    case CS_PE_ULEB128:
      *value = cs_cursor_uleb(c);
      break;
    case CS_PE_SLEB128:
      *value = (uint64_t)cs_cursor_sleb(c);
      break;
    case CS_PE_UDATA2:
      *value = cs_cursor_u16(c);
      break;
    case CS_PE_SDATA2:
      *value = (uint64_t)(int64_t)(int16_t)cs_cursor_u16(c);
      break;
    case CS_PE_UDATA4:
      *value = cs_cursor_u32(c);
      break;
    case CS_PE_SDATA4:
      *value = (uint64_t)(int64_t)(int32_t)cs_cursor_u32(c);
      break;
    default:
      return false;
  }
  return !c->bad;
}

bool cs_pe_read(const struct cs_cfi_section *section, struct cs_cursor *c, uint8_t encoding,
                uint64_t *value) {
  uint64_t at = address_of(section, c);
  if ((encoding & CS_PE_INDIRECT) || !read_form(c, encoding, value)) return false;
  switch (encoding & 0x70) {
    case CS_PE_ABSPTR:
      return true;
    case CS_PE_PCREL:
      *value += at;
      return true;
    case CS_PE_DATAREL:
      *value += section->data_base;
      return true;
    default:  // relative to the start of the text or of the function: not on x86-64
      return false;
  }
}

// Skips the pointer to the personality routine.
static bool skip_pointer(const struct cs_cfi_section *section, struct cs_cursor *c,
                         uint8_t encoding) {
  uint64_t ignored;
  if (encoding == CS_PE_OMIT) return true;
  if (encoding == CS_PE_ALIGNED) {
    cs_cursor_skip(c, (8 - address_of(section, c) % 8) % 8);
    return read_form(c, CS_PE_ABSPTR, &ignored);
  }
  return read_form(c, encoding, &ignored);
}

// Reads the data that the augmentation string announces. Returns false if a letter of it is
// unknown.
static bool read_augmentation(const struct cs_cfi_section *section, struct cs_cie *cie,
                              const char *string, struct cs_cursor *c) {
  if (*string == 'z') {
    cie->has_augmentation_length = true;
    string++;
  }
  for (; *string != '\0'; string++) {
    if (*string == 'R')
      cie->fde_encoding = cs_cursor_u8(c);
    else if (*string == 'L')
      (void)cs_cursor_u8(c);
    else if (*string == 'P' && skip_pointer(section, c, cs_cursor_u8(c)))
      continue;
    else if (*string == 'S')
      cie->signal_frame = true;
    else if (*string != 'B')  // signed return addresses: only on Arm, and harmless
      return false;
  }
  return !c->bad;
}

// Reads a record's length; `body` receives the rest of the record. Returns false if there is no
// further record.
static bool next_record(struct cs_cursor *c, struct cs_cursor *body, bool *malformed) {
  if (cs_cursor_left(c) < 4) return false;
  uint64_t len = cs_cursor_u32(c);
  if (len == EXTENDED_LENGTH) len = cs_cursor_u64(c);
  if (len == 0 && !c->bad) return false;
  *body = *c;
  cs_cursor_skip(c, len);
  *malformed = c->bad || len < 4;
  body->end = c->at;
  return !*malformed;
}

static bool parse_cie(struct scan *s, struct cs_cie *cie, struct cs_cursor c) {
  char string[16];
  unsigned len = 0;
  uint8_t version = cs_cursor_u8(&c);
  do {
    string[len] = (char)cs_cursor_u8(&c);
  } while (string[len] != '\0' && ++len < sizeof string);
  cie->usable = len < sizeof string && (version == 1 || version == 3 || version == 4);
  if (!cie->usable) return !c.bad;
  if (version == 4) cs_cursor_skip(&c, 2);  // the sizes of an address (8) and of a segment selector
  cie->code_align = cs_cursor_uleb(&c);
  cie->data_align = cs_cursor_sleb(&c);
  cie->return_register = version == 1 ? cs_cursor_u8(&c) : cs_cursor_uleb(&c);
  struct cs_cursor program = c;
  if (string[0] == 'z') {
    uint64_t skip = cs_cursor_uleb(&c);
    program = c;
    cs_cursor_skip(&program, skip);
    c.end = program.at;
  }
  cie->usable = read_augmentation(s->build.section, cie, string, &c);
  if (string[0] != 'z') program.at = c.at;
  if (program.bad) return false;
  return !cie->usable || cs_cfi_run_cie(&s->build, cie, program);
}

// Returns the CIE at an offset, from the cache if possible; NULL if it is malformed.
static const struct cs_cie *find_cie(struct scan *s, uint32_t offset) {
  const struct cs_cfi_section *section = s->build.section;
  struct cs_cie *cie = &s->cies[(offset >> 2) % CIE_CACHE];
  if (cie->offset == offset) return cie;
  struct cs_cursor c = cs_cursor(section->bytes + offset, section->size - offset), body;
  bool malformed = false;
  *cie = (struct cs_cie){.offset = EMPTY};
  if (!next_record(&c, &body, &malformed) || cs_cursor_u32(&body) != 0) return NULL;
  if (!parse_cie(s, cie, body)) return NULL;
  cie->offset = offset;
  return cie;
}

static bool add_fde(struct scan *s, const struct fde *fde) {
  if (s->count == s->capacity) {
    size_t capacity = s->capacity != 0 ? s->capacity * 2 : FIRST_FDES;
    struct fde *fdes = cs_pages_grow(s->fdes, s->capacity * sizeof *fdes, capacity * sizeof *fdes);
    s->no_memory |= fdes == NULL;
    if (fdes == NULL) return false;
    s->fdes = fdes;
    s->capacity = capacity;
  }
  if (s->count != 0 && s->fdes[s->count - 1].ip > fde->ip) s->sorted = false;
  s->fdes[s->count++] = *fde;
  return true;
}

// Reads an FDE whose id word, at offset `id_at`, has been read already.
static bool scan_fde(struct scan *s, struct cs_cursor c, uint32_t id, uint32_t id_at) {
  const struct cs_cfi_section *section = s->build.section;
  if (id > id_at) return false;
  const struct cs_cie *cie = find_cie(s, id_at - id);
  if (cie == NULL) return false;
  s->fdes_read++;
  if (!cie->usable) {
    s->build.stats->skipped++;
    return true;
  }
  uint64_t begin, length;
  if (!cs_pe_read(section, &c, cie->fde_encoding, &begin) ||
      !read_form(&c, cie->fde_encoding, &length))
    return false;
  if (cie->has_augmentation_length) cs_cursor_skip(&c, cs_cursor_uleb(&c));
  if (c.bad) return false;
  // Functions that the linker dropped have an empty range, or one at 0; other functions may be in
  // another text.
  if (length == 0 || begin < s->build.text || begin >= s->end) return true;
  if (length > s->end - begin) length = s->end - begin;
  struct fde fde = {
      .ip = (uint32_t)(begin - s->build.text),
      .ip_end = (uint32_t)(begin + length - s->build.text),
      .cie = id_at - id,
      .program = (uint32_t)(c.at - section->bytes),
      .program_end = (uint32_t)(c.end - section->bytes),
  };
  return add_fde(s, &fde);
}

static enum cs_cfi_result scan_section(struct scan *s) {
  const struct cs_cfi_section *section = s->build.section;
  struct cs_cursor c = cs_cursor(section->bytes, section->size), body;
  bool malformed = false;
  for (;;) {
    uint32_t at = (uint32_t)(c.at - section->bytes);
    if (next_record(&c, &body, &malformed)) {
      uint32_t id_at = (uint32_t)(body.at - section->bytes), id = cs_cursor_u32(&body);
      if (id == 0 || scan_fde(s, body, id, id_at)) continue;  // 0: a CIE, read when needed
      if (s->no_memory) return CS_CFI_NO_MEMORY;
    } else if (!malformed) {
      return CS_CFI_OK;
    }
    // A section that does not end with a zero length is followed by something else.
    if (section->fde_count != 0 && s->fdes_read >= section->fde_count) return CS_CFI_OK;
    (void)cs_error_set(s->err, "the record at offset %u of its .eh_frame is malformed", at);
    return CS_CFI_MALFORMED;
  }
}

static int by_ip(const void *a, const void *b) {
  const struct fde *x = a, *y = b;
  if (x->ip != y->ip) return x->ip < y->ip ? -1 : 1;
  return x->ip_end < y->ip_end ? -1 : x->ip_end > y->ip_end;
}

// Runs all programs. If two functions overlap, the one that begins later gets the overlap, as with
// the search tables of the C++ runtime's unwinder.
static enum cs_cfi_result run_all(struct scan *s) {
  const struct cs_cfi_section *section = s->build.section;
  if (!s->sorted) qsort(s->fdes, s->count, sizeof *s->fdes, by_ip);
  if (!cs_rows_add(s->build.rows, 0, CS_NO_RULE)) return CS_CFI_NO_MEMORY;
  for (uint32_t i = 0; i < s->count; i++) {
    const struct fde *fde = &s->fdes[i];
    uint32_t end = fde->ip_end;
    if (i + 1 < s->count && s->fdes[i + 1].ip < end) end = s->fdes[i + 1].ip;
    if (end == fde->ip) continue;
    const struct cs_cie *cie = find_cie(s, fde->cie);
    if (cie == NULL) return CS_CFI_MALFORMED;
    struct cs_cursor program =
        cs_cursor(section->bytes + fde->program, fde->program_end - fde->program);
    enum cs_cfi_result result = cs_cfi_run_fde(&s->build, cie, fde->ip, end, program);
    if (result == CS_CFI_MALFORMED)
      (void)cs_error_set(s->err, "the program at offset %u of its .eh_frame is malformed",
                         fde->program);
    if (result != CS_CFI_OK) return result;
    s->build.stats->fdes++;
    if (!cs_rows_add(s->build.rows, end, CS_NO_RULE)) return CS_CFI_NO_MEMORY;
  }
  return CS_CFI_OK;
}

enum cs_cfi_result cs_cfi_compile(const struct cs_cfi_section *section, uint64_t begin,
                                  uint64_t end, struct cs_rules *rules, struct cs_rows *rows,
                                  struct cs_cfi_stats *stats, struct cs_error *err) {
  if (section->size >= UINT32_MAX || end < begin || end - begin >= UINT32_MAX) {
    (void)cs_error_set(err, "its text or its .eh_frame is larger than 4 GiB");
    return CS_CFI_MALFORMED;
  }
  struct scan *s = calloc(1, sizeof *s);
  if (s == NULL) return CS_CFI_NO_MEMORY;
  s->build = (struct cs_cfi_build){section, rules, rows, stats, begin};
  s->end = end;
  s->sorted = true;
  s->err = err;
  for (unsigned i = 0; i < CIE_CACHE; i++) s->cies[i].offset = EMPTY;
  enum cs_cfi_result result = scan_section(s);
  if (result == CS_CFI_OK) result = run_all(s);
  cs_pages_free(s->fdes, s->capacity * sizeof *s->fdes);
  free(s);
  return result;
}

// One block: the ips, and after them the rules.
bool cs_rows_reserve(struct cs_rows *rows, uint32_t capacity) {
  enum { EACH = sizeof *rows->ip + sizeof *rows->rule };
  uint32_t old = rows->capacity;
  if (capacity <= old) return true;
  uint32_t *ips = cs_pages_grow(rows->ip, (size_t)old * EACH, (size_t)capacity * EACH);
  if (ips == NULL) return false;
  rows->ip = ips;
  rows->rule = (uint16_t *)(ips + capacity);
  memmove(rows->rule, ips + old, rows->count * sizeof *rows->rule);
  rows->capacity = capacity;
  return true;
}

bool cs_rows_add(struct cs_rows *rows, uint32_t ip, uint16_t rule) {
  if (rows->count != 0) {
    uint32_t last = rows->count - 1;
    if (rows->ip[last] == ip) {  // of two rows at the same ip, the later one counts
      rows->rule[last] = rule;
      if (last != 0 && rows->rule[last - 1] == rule) rows->count--;
      return true;
    }
    if (rows->rule[last] == rule) return true;
  }
  if (rows->count == rows->capacity &&
      !cs_rows_reserve(rows, rows->capacity != 0 ? rows->capacity * 2 : FIRST_ROWS))
    return false;
  rows->ip[rows->count] = ip;
  rows->rule[rows->count++] = rule;
  return true;
}

void cs_rows_free(struct cs_rows *rows) {
  cs_pages_free(rows->ip, (size_t)rows->capacity * (sizeof *rows->ip + sizeof *rows->rule));
  *rows = (struct cs_rows){0};
}
