// SPDX-License-Identifier: MIT
// Native symbols, by elfutils. Invariants: an address has a name only if it is within the symbol's
// size, since the nearest symbol before it would give a stripped libcoreclr wrong names. A file is
// read only if it is the one that was mapped, by its build id or, if it has none, by the kernel
// (process/target.h). libdwfl opens nothing by itself: debug files are opened the same way, and
// must have the file's build id or the checksum of its debug link. libelf maps what it reads, so it
// gets copies, which nobody can truncate. Every file is one module at bias 0 of its own Dwfl, so
// addresses are the file's own. One thread. Signal-safe: no.
#include "metadata/elfsym.h"

#include <dlfcn.h>
#include <elfutils/libdwelf.h>
#include <elfutils/libdwfl.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/path.h"
#include "base/prefix.h"
#include "metadata/landmarks.h"
#include "util/map.h"

enum { MAX_ID = 64, MAX_PATH = 4096, MAX_LINKED = 1 << 30 };

typedef char *demangle_fn(const char *mangled, char *buffer, size_t *len, int *status);

struct table {
  Dwfl *dwfl;           // NULL: there is none, or it cannot be read
  Dwfl_Module *module;  // belongs to dwfl
};

struct file {
  uint32_t number;
  char *path;
  int fd;  // until the file is read; -1: it cannot be opened
  bool asked;
  bool lacks;          // neither the file nor a debug file has a table of all functions
  bool fetched;        // `fetch` has been called for it
  uint8_t id[MAX_ID];  // of the mapping
  size_t id_size;
  struct table own, other;  // of the mapped file and its debug file; of a debug file from elsewhere
  const struct cs_elfsyms *syms;
  struct cs_landmarks *landmarks;  // NULL: not read yet
  struct cs_error why;             // "": names may come from there, or there is no file at all
};

struct cs_elfsyms {
  const struct cs_target *target;
  struct cs_target *machine;  // this one: debug files are known by their ids, wherever they are
  struct cs_elf_places places;
  struct file **files;
  size_t count, capacity, open;
  demangle_fn *demangle;  // NULL: names stay mangled
  char *readable;         // the last demangled name
};

struct cs_elfsyms *cs_elfsyms_new(const struct cs_target *target) {
  struct cs_elfsyms *syms = cs_allocate(sizeof *syms);
  syms->target = target;
  syms->machine = cs_target_of(0);
  (void)elf_version(EV_CURRENT);
  // The C++ runtime library is on every machine with .NET, so it is loaded, not linked.
  void *library = dlopen("libstdc++.so.6", RTLD_NOW | RTLD_LOCAL);
  if (library != NULL) {
    void *symbol = dlsym(library, "__cxa_demangle");
    memcpy(&syms->demangle, &symbol, sizeof symbol);  // ISO C knows no cast for this
  }
  return syms;
}

// ---- Whether it is the file ----

static size_t build_id(int fd, uint8_t id[MAX_ID]) {
  const void *bytes = NULL;
  ssize_t size = 0;
  Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
  if (elf != NULL && elf_kind(elf) == ELF_K_ELF) size = dwelf_elf_gnu_build_id(elf, &bytes);
  if (size < 0 || size > MAX_ID) size = 0;
  if (size > 0) memcpy(id, bytes, (size_t)size);
  if (elf != NULL) (void)elf_end(elf);
  return (size_t)size;
}

static bool has_id(int fd, const uint8_t *id, size_t size) {
  uint8_t found[MAX_ID];
  return build_id(fd, found) >= size && memcmp(found, id, size) == 0;
}

// A file that was cut off has its id, which is at the beginning, but not the symbols at the end.
static bool has_its_sections(Elf *elf, uint64_t size) {
  GElf_Ehdr header;
  GElf_Shdr section;
  size_t count = 0;
  if (elf_kind(elf) != ELF_K_ELF || gelf_getehdr(elf, &header) == NULL || header.e_shentsize == 0 ||
      elf_getshdrnum(elf, &count) != 0 || count == 0 || header.e_shoff > size ||
      count > (size - header.e_shoff) / header.e_shentsize)
    return false;
  for (size_t i = 1; i < count; i++) {
    Elf_Scn *scn = elf_getscn(elf, i);
    if (scn == NULL || gelf_getshdr(scn, &section) == NULL) return false;
    if (section.sh_type == SHT_NOBITS) continue;
    if (section.sh_offset > size || section.sh_size > size - section.sh_offset) return false;
  }
  return true;
}

bool cs_elf_is(int fd, const uint8_t *id, size_t id_size) {
  struct stat is;
  if (fstat(fd, &is) != 0 || !has_id(fd, id, id_size)) return false;
  Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
  bool whole = elf != NULL && has_its_sections(elf, (uint64_t)is.st_size);
  if (elf != NULL) (void)elf_end(elf);
  return whole;
}

// Files stay open until they are read, but not so many that nothing else can be opened.
static bool has_room(const struct cs_elfsyms *syms) {
  struct rlimit limit;
  return getrlimit(RLIMIT_NOFILE, &limit) != 0 || syms->open < limit.rlim_cur / 2;
}

static int open_image(const struct cs_elfsyms *syms, const struct cs_elf_image *image,
                      struct cs_error *why) {
  bool exact = false;
  why->text[0] = '\0';
  if (image->mapping.path[0] != '/') return -1;
  if (!has_room(syms)) {
    (void)cs_error_set(why, "too many files are open: raise ulimit -n");
    return -1;
  }
  int fd = cs_target_open_mapped(syms->target, &image->mapping, &exact, why);
  if (fd < 0) return -1;
  if (image->id_size > 0 ? has_id(fd, image->id, image->id_size) : exact) return fd;
  (void)close(fd);
  (void)cs_error_set(why, image->id_size > 0 ? "not the file that was mapped"
                                             : "without a build id it is not certain to be the "
                                               "file that was mapped");
  return -1;
}

void cs_elfsyms_set_places(struct cs_elfsyms *syms, const struct cs_elf_places *places) {
  syms->places = *places;
}

static struct file *find_file(const struct cs_elfsyms *syms, uint32_t number) {
  for (size_t i = syms->count; i-- > 0;)
    if (syms->files[i]->number == number) return syms->files[i];
  return NULL;
}

void cs_elfsyms_add(struct cs_elfsyms *syms, uint32_t number, const struct cs_elf_image *image) {
  if (find_file(syms, number) != NULL) return;
  struct file *file =
      CS_APPEND(syms->files, syms->count, syms->capacity, cs_allocate(sizeof *file));
  size_t size = strlen(image->mapping.path) + 1;
  *file = (struct file){.number = number, .path = cs_allocate(size), .syms = syms};
  memcpy(file->path, image->mapping.path, size);
  file->id_size = image->id_size <= MAX_ID ? image->id_size : 0;
  if (file->id_size > 0) memcpy(file->id, image->id, file->id_size);
  file->fd = open_image(syms, image, &file->why);
  if (file->fd >= 0) syms->open++;
}

// ---- Debug files ----

static bool has_sum(int fd, uint32_t sum) {
  static uint8_t chunk[65536];
  uLong found = crc32(0, NULL, 0);
  off_t at = 0;
  for (ssize_t got; at <= MAX_LINKED && (got = pread(fd, chunk, sizeof chunk, at)) > 0; at += got)
    found = crc32(found, chunk, (uInt)got);
  return at <= MAX_LINKED && found == sum;
}

struct wanted {
  const uint8_t *id;  // of the file that the debug file belongs to
  size_t id_size;     // 0: it has none, and the sum must do
  uint32_t sum;
};

// Returns a copy of the file, if it is the one that is wanted.
static int try_in(const struct cs_target *place, const struct wanted *wanted, const char *path) {
  struct cs_error err;
  int fd = cs_target_open(place, path, &err);
  if (fd < 0) return -1;
  if (wanted->id_size > 0 ? cs_elf_is(fd, wanted->id, wanted->id_size) : has_sum(fd, wanted->sum))
    return cs_target_own_copy(fd, &err);
  (void)close(fd);
  return -1;
}

static int try_debug_file(const struct cs_elfsyms *syms, const struct wanted *wanted,
                          const char *path) {
  int fd = try_in(syms->target, wanted, path);
  return fd >= 0 ? fd : try_in(syms->machine, wanted, path);
}

static void write_id(const struct wanted *wanted, char text[2 * MAX_ID + 1]) {
  for (size_t i = 0; i < wanted->id_size; i++)
    (void)snprintf(text + 2 * i, 3, "%02x", wanted->id[i]);
}

static int by_id(const struct cs_elfsyms *syms, const struct wanted *wanted) {
  char id[2 * MAX_ID + 1], path[sizeof id + 64];
  write_id(wanted, id);
  (void)snprintf(path, sizeof path, "/usr/lib/debug/.build-id/%.2s/%s.debug", id, id + 2);
  return try_debug_file(syms, wanted, path);
}

// Returns the `i`th path of a debug file below a directory: as debuggers, debuginfod's cache,
// symbol servers and dotnet-symbol name it. Symbol servers fill ids with zeros.
enum { FORMS = 5 };
static int put_form(char *out, size_t room, size_t i, const char *name, const char *id) {
  static const char zeros[] = "0000000000000000000000000000000000000000";
  size_t len = strlen(id), fill = len < sizeof zeros - 1 ? sizeof zeros - 1 - len : 0;
  switch (i) {
    case 0:
      return snprintf(out, room, ".build-id/%.2s/%s.debug", id, id + 2);
    case 1:
      return snprintf(out, room, "%s/debuginfo", id);
    case 2:
      return snprintf(out, room, "_.debug/elf-buildid-sym-%s%.*s/_.debug", id, (int)fill, zeros);
    default:
      return snprintf(out, room, "%s%s", name, i == 3 ? ".dbg" : ".debug");
  }
}

static int by_folder(const struct file *file, const struct wanted *wanted) {
  const struct cs_elf_places *places = &file->syms->places;
  char id[2 * MAX_ID + 1], path[MAX_PATH];
  int fd = -1;
  if (wanted->id_size == 0) return -1;
  write_id(wanted, id);
  for (size_t i = 0; i < places->folder_count * FORMS && fd < 0; i++) {
    int len = snprintf(path, sizeof path, "%s/", places->folders[i / FORMS]);
    if (len < 0 || (size_t)len >= sizeof path) continue;
    size_t room = sizeof path - (size_t)len;
    int more = put_form(path + len, room, i % FORMS, cs_file_of(file->path), id);
    if (more > 0 && (size_t)more < room) fd = try_in(file->syms->machine, wanted, path);
  }
  return fd;
}

static int by_link(const struct file *file, const struct wanted *wanted, const char *link) {
  static const char *const forms[] = {"%.*s%s", "%.*s.debug/%s", "/usr/lib/debug%.*s%s"};
  char path[MAX_PATH];
  int fd = -1, folder = (int)(cs_file_of(file->path) - file->path);
  const char *name = cs_file_of(link);
  for (size_t i = 0; i < CS_COUNT(forms) && fd < 0; i++) {
    // A file is not its own debug file.
    if (i == 0 && strcmp(name, cs_file_of(file->path)) == 0) continue;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    int len = snprintf(path, sizeof path, forms[i], folder, file->path, name);
#pragma GCC diagnostic pop
    if (len > 0 && (size_t)len < sizeof path) fd = try_debug_file(file->syms, wanted, path);
  }
  return fd;
}

// libdwfl asks for the debug file of a module that has no symbol table of its own.
static int find_debug_file(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base,
                           const char *path, const char *link, GElf_Word sum, char **found) {
  struct file *file = *data;
  const unsigned char *id = NULL;
  GElf_Addr address;
  (void)name, (void)base, (void)path;
  int size = dwfl_module_build_id(module, &id, &address);
  struct wanted wanted = {id, size > 0 && size <= MAX_ID ? (size_t)size : 0, sum};
  int fd = by_folder(file, &wanted);
  if (fd < 0 && wanted.id_size > 0) fd = by_id(file->syms, &wanted);
  if (fd < 0 && link != NULL) fd = by_link(file, &wanted, link);
  if (fd >= 0) *found = NULL;
  file->lacks = fd < 0;
  return fd;
}

// ---- Symbols ----

static int find_no_elf(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base,
                       char **path, Elf **elf) {
  (void)module, (void)data, (void)name, (void)base, (void)path, (void)elf;
  return -1;
}

// Returns the mapped file, or its debug file, which has the same symbols, if that cannot be had.
static int open_copy(struct cs_elfsyms *syms, struct file *file) {
  struct wanted wanted = {.id = file->id, .id_size = file->id_size};
  if (file->fd < 0) {
    int fd = by_folder(file, &wanted);
    if (fd >= 0) file->why.text[0] = '\0';
    return fd;
  }
  int fd = cs_target_own_copy(file->fd, &file->why);
  file->fd = -1;
  syms->open--;
  return fd;
}

// Takes ownership of `fd`. Returns false if it cannot be read.
static bool read_table(struct file *file, int fd, struct table *table) {
  static const Dwfl_Callbacks callbacks = {
      .find_elf = find_no_elf,
      .find_debuginfo = find_debug_file,
      .section_address = dwfl_offline_section_address,
  };
  void **data;
  Dwfl *dwfl = dwfl_begin(&callbacks);
  if (dwfl != NULL) dwfl_report_begin(dwfl);
  Dwfl_Module *module =
      dwfl != NULL ? dwfl_report_elf(dwfl, file->path, file->path, fd, 0, false) : NULL;
  if (module == NULL) (void)close(fd);
  if (module != NULL && dwfl_report_end(dwfl, NULL, NULL) == 0 &&
      dwfl_module_info(module, &data, NULL, NULL, NULL, NULL, NULL, NULL) != NULL) {
    *data = file;
    *table = (struct table){dwfl, module};
    return true;
  }
  if (dwfl != NULL) dwfl_end(dwfl);
  return false;
}

static void read_file(struct cs_elfsyms *syms, struct file *file) {
  int fd = open_copy(syms, file);
  file->asked = true;
  file->lacks = fd < 0;
  if (fd >= 0 && !read_table(file, fd, &file->own))
    (void)cs_error_set(&file->why, "not an ELF file that can be read");
}

static bool fetch(const struct cs_elfsyms *syms, struct file *file) {
  const struct cs_elf_places *places = &syms->places;
  if (!file->lacks || file->fetched || places->fetch == NULL || file->id_size == 0) return false;
  file->fetched = true;
  int fd = places->fetch(places->context, file->id, file->id_size, file->path);
  if (fd < 0 || !read_table(file, fd, &file->other)) return false;
  file->why.text[0] = '\0';
  return true;
}

// A mangled name refers back to its own parts ("S1_", "T_"). A part may double with each reference,
// so that a name of a few hundred bytes would be demangled to terabytes.
static bool is_harmless(const char *name) {
  enum { MOST_BYTES = 1000, MOST_REFERENCES = 24 };
  unsigned references = 0;
  for (const char *at = name; (at = strpbrk(at, "ST")) != NULL;) {
    at += 1 + strspn(at + 1, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ");
    if (*at == '_') references++;
  }
  return references <= MOST_REFERENCES && strnlen(name, MOST_BYTES) < MOST_BYTES;
}

// "__libc_start_main@@GLIBC_2.34", "_ZN3fooEv": in readable form.
static const char *readable(struct cs_elfsyms *syms, const char *name) {
  const char *version = strchr(name, '@');
  free(syms->readable);
  syms->readable = version != NULL ? strndup(name, (size_t)(version - name)) : strdup(name);
  if (syms->readable == NULL) return name;
  if (syms->demangle == NULL || !cs_has_prefix(name, "_Z") || !is_harmless(syms->readable))
    return syms->readable;
  int status = -1;
  char *demangled = syms->demangle(syms->readable, NULL, NULL, &status);
  if (status != 0 || demangled == NULL) return syms->readable;
  free(syms->readable);
  return syms->readable = demangled;
}

static const char *look_up(const struct table *table, uint64_t vaddr) {
  GElf_Sym symbol;
  GElf_Off offset;
  if (table->dwfl == NULL) return NULL;
  const char *name = dwfl_module_addrinfo(table->module, vaddr, &offset, &symbol, NULL, NULL, NULL);
  return name == NULL || name[0] == '\0' || offset >= symbol.st_size ? NULL : name;
}

const char *cs_elfsyms_find(struct cs_elfsyms *syms, uint32_t number, uint64_t vaddr) {
  struct file *file = find_file(syms, number);
  if (file == NULL) return NULL;
  if (!file->asked) read_file(syms, file);
  const char *name = look_up(&file->own, vaddr);
  if (name == NULL && (file->other.dwfl != NULL || fetch(syms, file)))
    name = look_up(&file->other, vaddr);
  return name != NULL ? readable(syms, name) : NULL;
}

const char *cs_elfsyms_landmark(struct cs_elfsyms *syms, uint32_t number, uint64_t vaddr) {
  struct file *file = find_file(syms, number);
  GElf_Addr bias;
  if (file == NULL || file->own.dwfl == NULL) return NULL;
  if (file->landmarks == NULL)
    file->landmarks = cs_landmarks_read(dwfl_module_getelf(file->own.module, &bias));
  return cs_landmarks_find(file->landmarks, vaddr);
}

const char *cs_elfsyms_refused(const struct cs_elfsyms *syms, uint32_t number) {
  const struct file *file = find_file(syms, number);
  return file != NULL && file->why.text[0] != '\0' ? file->why.text : NULL;
}

void cs_elfsyms_free(struct cs_elfsyms *syms) {
  for (size_t i = 0; i < syms->count; i++) {
    struct file *file = syms->files[i];
    cs_landmarks_free(file->landmarks);
    if (file->own.dwfl != NULL) dwfl_end(file->own.dwfl);
    if (file->other.dwfl != NULL) dwfl_end(file->other.dwfl);
    if (file->fd >= 0) (void)close(file->fd);
    free(file->path);
    free(file);
  }
  cs_target_free(syms->machine);
  free(syms->files);
  free(syms->readable);
  free(syms);
}
