// SPDX-License-Identifier: MIT
// What a runtime without symbols says of its own functions. .eh_frame_hdr has where each begins. A
// function is known by a message of the runtime's log or by an event (metadata/runtime_class.h)
// that its code refers to, or that is referred to by what it calls; and by name, where a table in
// the file pairs the two (those of QCalls, "RuntimeTypeHandle_GetFields"). x86-64 refers to data by
// a displacement from the next instruction, and calls by one, so both are found without
// disassembling: a displacement that leads exactly to a wanted address is taken for one.
// Invariants: everything that is read from the file is checked against the bounds of its section; a
// function that has a name or a class keeps it; a row of the table that leads to more than a few
// functions leads to none. One thread. Signal-safe: no.
#include "metadata/landmarks.h"

#include <gelf.h>
#include <string.h>

#include "base/bytes.h"
#include "metadata/runtime_class.h"
#include "util/map.h"

enum {
  MOST = 8,  // functions of a row: a common function would have many callers
  MOST_TARGETS = 256,
  MOST_CODE = 64 << 20,  // bytes
  TABLE_AT_LEAST = 32,   // names in a table of functions, each with its function
  NAME_AT_LEAST = 4,
  NAME_AT_MOST = 100,
  PROBES = 16,  // offset in an LTTng tracepoint of what only the code that sends it reads
};

struct section {
  uint64_t address, size;
  const uint8_t *data;
};

struct edge {
  uint32_t callee, caller;  // functions
};

struct cs_landmarks {
  uint64_t *start;     // of the functions, sorted
  const char **about;  // of each: its name, its class or NULL
  size_t count;
  struct section text;
  struct edge *edges;  // sorted by callee
  size_t edge_count, edge_capacity;
};

// ---- The file ----

static bool get_section(Elf *elf, const char *name, struct section *out) {
  size_t names;
  if (elf_getshdrstrndx(elf, &names) != 0) return false;
  for (Elf_Scn *scn = elf_nextscn(elf, NULL); scn != NULL; scn = elf_nextscn(elf, scn)) {
    GElf_Shdr header;
    if (gelf_getshdr(scn, &header) == NULL || header.sh_type == SHT_NOBITS) continue;
    const char *its = elf_strptr(elf, names, header.sh_name);
    if (its == NULL || strcmp(its, name) != 0) continue;
    const Elf_Data *data = elf_rawdata(scn, NULL);
    if (data == NULL || data->d_buf == NULL) return false;
    *out = (struct section){header.sh_addr, data->d_size, data->d_buf};
    return true;
  }
  return false;
}

static bool is_inside(const struct section *s, uint64_t address) {
  return address >= s->address && address - s->address < s->size;
}

// .eh_frame_hdr: version 1, encodings, the address of .eh_frame, the number of functions, and for
// each its start and its rules, relative to this section.
static void read_starts(Elf *elf, struct cs_landmarks *m) {
  static const uint8_t head[] = {1, 0x1B, 0x03, 0x3B};
  struct section s;
  if (!get_section(elf, ".eh_frame_hdr", &s) || s.size < 12 || memcmp(s.data, head, 4) != 0) return;
  size_t count = cs_u32_at(s.data + 8);
  if (count > (s.size - 12) / 8) return;
  m->start = cs_allocate((count + 1) * sizeof *m->start);
  m->about = cs_allocate((count + 1) * sizeof *m->about);
  for (size_t i = 0; i < count; i++) {
    m->start[i] = s.address + (uint64_t)(int64_t)(int32_t)cs_u32_at(s.data + 12 + 8 * i);
    if (i > 0 && m->start[i] <= m->start[i - 1]) return;
  }
  m->count = count;
}

// Returns the function that has the address, or m->count if there is none.
static size_t function_at(const struct cs_landmarks *m, uint64_t address) {
  size_t after = CS_FIRST_NOT(i, 0, m->count, m->start[i] <= address);
  return after > 0 ? after - 1 : m->count;
}

static bool is_start(const struct cs_landmarks *m, uint64_t address, size_t *function) {
  *function = function_at(m, address);
  return *function < m->count && m->start[*function] == address;
}

// ---- Calls ----

static int compare_edges(const void *a, const void *b) {
  const struct edge *x = a, *y = b;
  return CS_ORDER(x->callee, y->callee) ?: CS_ORDER(x->caller, y->caller);
}

static void read_calls(struct cs_landmarks *m) {
  const struct section *t = &m->text;
  for (uint64_t at = 0; at + 5 <= t->size; at++) {
    size_t callee;
    if (t->data[at] != 0xE8 && t->data[at] != 0xE9) continue;
    uint64_t next = t->address + at + 5;
    uint64_t to = next + (uint64_t)(int64_t)(int32_t)cs_u32_at(t->data + at + 1);
    if (!is_inside(t, to) || !is_start(m, to, &callee)) continue;
    size_t caller = function_at(m, t->address + at);
    if (caller == m->count || caller == callee) continue;
    CS_APPEND(m->edges, m->edge_count, m->edge_capacity,
              (struct edge){(uint32_t)callee, (uint32_t)caller});
  }
  cs_sort(m->edges, m->edge_count, sizeof *m->edges, compare_edges);
}

// A set of functions that may have too many.
struct few {
  uint32_t functions[MOST];
  size_t count;
  bool too_many;
};

static void put(struct few *few, uint32_t function) {
  for (size_t i = 0; i < few->count; i++)
    if (few->functions[i] == function) return;
  if (few->count < MOST)
    few->functions[few->count++] = function;
  else
    few->too_many = true;
}

static struct few callers_of(const struct cs_landmarks *m, const struct few *callees) {
  struct few callers = {.too_many = callees->too_many};
  for (size_t i = 0; i < callees->count; i++) {
    uint32_t callee = callees->functions[i];
    size_t e = CS_FIRST_NOT(k, 0, m->edge_count, m->edges[k].callee < callee);
    for (; e < m->edge_count && m->edges[e].callee == callee; e++)
      // What is known to be something else is not climbed to.
      if (m->about[m->edges[e].caller] == NULL) put(&callers, m->edges[e].caller);
  }
  return callers;
}

// ---- What code refers to ----

// The data by which rows of the table are known.
struct wanted {
  struct target {
    uint64_t address;
    size_t row;
  } targets[MOST_TARGETS];
  size_t count;
};

static void want(struct wanted *wanted, uint64_t address, size_t row) {
  if (wanted->count < MOST_TARGETS)
    wanted->targets[wanted->count++] = (struct target){address, row};
}

// Finds the functions that refer to each target: few[row]. mod 0, rm 5: the operand is at a
// displacement from the next instruction.
static void read_references(const struct cs_landmarks *m, const struct wanted *wanted,
                            struct few *few) {
  const struct section *t = &m->text;
  for (uint64_t at = 0; at + 5 <= t->size; at++) {
    if ((t->data[at] & 0xC7) != 0x05) continue;
    uint64_t to = t->address + at + 5 + (uint64_t)(int64_t)(int32_t)cs_u32_at(t->data + at + 1);
    for (size_t i = 0; i < wanted->count; i++) {
      if (wanted->targets[i].address != to) continue;
      size_t function = function_at(m, t->address + at);
      if (function < m->count) put(&few[wanted->targets[i].row], (uint32_t)function);
    }
  }
}

static void want_message(const struct section *s, size_t row, struct wanted *wanted) {
  const char *text = cs_runtime_rows[row].text;
  for (const uint8_t *at = s->data, *to = s->data + s->size;
       (at = memmem(at, (size_t)(to - at), text, strlen(text))) != NULL; at++)
    if (at == s->data || at[-1] == '\0') want(wanted, s->address + (uint64_t)(at - s->data), row);
}

// ---- Pointers: those that the loader relocates ----

struct pointers {
  const Elf64_Rela *items;
  size_t count;
};

static bool get_pointers(Elf *elf, struct pointers *out) {
  struct section s;
  if (!get_section(elf, ".rela.dyn", &s) || (uintptr_t)s.data % _Alignof(Elf64_Rela) != 0)
    return false;
  *out = (struct pointers){(const Elf64_Rela *)(const void *)s.data, s.size / sizeof(Elf64_Rela)};
  return true;
}

static bool is_pointer(const struct pointers *p, size_t i, const struct section *in,
                       const struct section *to) {
  const Elf64_Rela *r = &p->items[i];
  return i < p->count && ELF64_R_TYPE(r->r_info) == R_X86_64_RELATIVE &&
         is_inside(in, r->r_offset) && is_inside(to, (uint64_t)r->r_addend);
}

// An event is a structure that begins with a pointer to its name.
static void want_events(Elf *elf, const struct pointers *p, struct wanted *wanted) {
  struct section events, names;
  if (!get_section(elf, "__tracepoints", &events) ||
      !get_section(elf, "__tracepoints_strings", &names))
    return;
  for (size_t i = 0; i < p->count; i++) {
    if (!is_pointer(p, i, &events, &names)) continue;
    uint64_t at = (uint64_t)p->items[i].r_addend - names.address;
    for (size_t row = 0; row < cs_runtime_row_count; row++) {
      size_t size = strlen(cs_runtime_rows[row].text) + 1;
      if (cs_runtime_rows[row].sign == CS_SIGN_EVENT && names.size - at >= size &&
          memcmp(names.data + at, cs_runtime_rows[row].text, size) == 0)
        want(wanted, p->items[i].r_offset + PROBES, row);
    }
  }
}

// ---- Functions that the file names ----

// Functions of equal code may be one, which then has several names.
static const char ambiguous[] = "";

static const char *name_at(const struct section *strings, uint64_t address) {
  const char *text = (const char *)strings->data + (address - strings->address);
  uint64_t room = strings->size - (address - strings->address);
  size_t len = strnlen(text, room < NAME_AT_MOST ? room : NAME_AT_MOST);
  static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
  if (len < NAME_AT_LEAST || len == room || len == NAME_AT_MOST) return NULL;
  return strspn(text, letters) == len ? text : NULL;
}

// Returns whether the pointers i and i + 1 are neighbours in the file, to a name and to a function.
static bool is_named(const struct cs_landmarks *m, const struct pointers *p, size_t i,
                     const struct section *in, const struct section *strings, size_t *function) {
  return is_pointer(p, i, in, strings) && is_pointer(p, i + 1, in, &m->text) &&
         p->items[i + 1].r_offset == p->items[i].r_offset + 8 &&
         is_start(m, (uint64_t)p->items[i + 1].r_addend, function) &&
         name_at(strings, (uint64_t)p->items[i].r_addend) != NULL;
}

static void read_names(struct cs_landmarks *m, Elf *elf, const struct pointers *p,
                       const struct section *strings) {
  struct section in;
  size_t function;
  if (!get_section(elf, ".data.rel.ro", &in)) return;
  for (size_t i = 0, to; i<p->count; i = to> i ? to : i + 1) {
    for (to = i; is_named(m, p, to, &in, strings, &function) &&
                 p->items[to].r_offset == p->items[i].r_offset + 8 * (to - i);)
      to += 2;
    if (to - i < 2 * TABLE_AT_LEAST) continue;
    for (size_t at = i; at < to; at += 2)
      if (is_named(m, p, at, &in, strings, &function))
        m->about[function] = m->about[function] != NULL
                                 ? ambiguous
                                 : name_at(strings, (uint64_t)p->items[at].r_addend);
  }
}

static void read_rows(struct cs_landmarks *m, Elf *elf, const struct pointers *p,
                      const struct section *strings) {
  struct wanted wanted = {.count = 0};
  struct few *few = cs_allocate(cs_runtime_row_count * sizeof *few);
  for (size_t row = 0; row < cs_runtime_row_count; row++)
    if (cs_runtime_rows[row].sign == CS_SIGN_MESSAGE) want_message(strings, row, &wanted);
  want_events(elf, p, &wanted);
  read_references(m, &wanted, few);
  for (size_t row = 0; row < cs_runtime_row_count; row++) {
    struct few its = few[row];
    for (unsigned i = 0; i < cs_runtime_rows[row].up; i++) its = callers_of(m, &its);
    for (size_t i = 0; i < its.count && !its.too_many; i++)
      if (m->about[its.functions[i]] == NULL)
        m->about[its.functions[i]] = cs_runtime_class_text(cs_runtime_rows[row].class);
  }
  free(few);
}

struct cs_landmarks *cs_landmarks_read(Elf *elf) {
  struct cs_landmarks *m = cs_allocate(sizeof *m);
  struct section strings;
  struct pointers pointers;
  GElf_Ehdr header;
  if (elf == NULL || gelf_getehdr(elf, &header) == NULL || header.e_machine != EM_X86_64 ||
      gelf_getclass(elf) != ELFCLASS64 || !get_section(elf, ".text", &m->text) ||
      !get_section(elf, ".rodata", &strings) || !get_pointers(elf, &pointers) ||
      m->text.size > MOST_CODE)
    return m;
  read_starts(elf, m);
  read_calls(m);
  read_names(m, elf, &pointers, &strings);
  read_rows(m, elf, &pointers, &strings);
  return m;
}

const char *cs_landmarks_find(const struct cs_landmarks *m, uint64_t vaddr) {
  size_t function = is_inside(&m->text, vaddr) ? function_at(m, vaddr) : m->count;
  return function < m->count && m->about[function] != ambiguous ? m->about[function] : NULL;
}

void cs_landmarks_free(struct cs_landmarks *m) {
  if (m == NULL) return;
  free(m->start);
  free(m->about);
  free(m->edges);
  free(m);
}
