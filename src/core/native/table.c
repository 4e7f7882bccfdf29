// SPDX-License-Identifier: MIT
// The table of native images: each mapped image is compiled once, and published in an immutable
// snapshot. Invariant: nothing that a published table points to is changed or freed before
// cs_native_retire, and all of it is in memory that has been touched (MAP_POPULATE), so that a
// handler does not incur a page fault. One thread at a time; readers need no lock. Signal-safe: no.
//
// Measured (Xeon at 2.5 GHz, one core; CLRSNAP_LOG has these numbers for any process):
//   image (.NET 10.0.12, Debian 12)  functions     rows  table bytes  time
//   libcoreclr.so                       16,975  105,931      712,519  7.0 ms
//   libclrjit.so                         3,047   20,714      186,112  1.5 ms
//   libcrypto.so.3                      10,911   86,960      562,569  5.8 ms
//   libc.so.6                            3,713   28,491      192,870  1.7 ms
//   all of a process (22 images)        57,000  409,000    2,800,000   28 ms
// A refresh that finds nothing new takes 0.2 ms.
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/grow.h"
#include "base/log.h"
#include "native/cfi.h"
#include "native/ehreturn.h"
#include "native/elf.h"
#include "native/native.h"
#include "native/quirks.h"
#include "native/startup.h"

enum { PATIENCE = 8 };

// An image that has been compiled; `block` holds its rows and its path.
struct compiled {
  struct compiled *next;
  struct cs_image image;
  uint64_t base, offset, inode, fingerprint;
  uint64_t loaded;  // cs_loader_now when it was compiled
  uint32_t device;
  bool checked;      // it was mapped at a moment when the maps were known to be current
  uint8_t patience;  // if not checked: how many more times it is kept
  void *block;
  size_t block_bytes;
};

struct table {  // a result of cs_native_refresh
  struct table *next;
  size_t bytes;
  struct cs_images images;  // the last member, since it ends with a flexible array
};

struct cs_native {
  struct cs_process_memory process;
  struct cs_maps maps;
  struct cs_loader loader;  // of this process; not set for another one
  bool counted;             // the loader's counters were found
  uint64_t loaded;          // cs_loader_now before the maps were read
  bool left;                // the last refresh has left images
  struct {                  // places in images that stay as long as this process lives
    uint64_t text[3], base[2];
  } stays;
  struct cs_rules rules;
  struct compiled *compiled;
  struct table *tables;  // the newest first
  uint32_t sequence;     // of the newest
  uint32_t keep;         // tables from this number on are not retired
};

static void *populated(size_t bytes) {
  void *memory =
      mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  return memory == MAP_FAILED ? NULL : memory;
}

// The program itself, the dynamic loader, the C library, this library (-z nodelete), the vdso.
static void find_permanent_images(struct cs_native *native) {
  native->stays.text[0] = getauxval(AT_ENTRY);
  native->stays.text[1] = (uint64_t)(uintptr_t)dlsym(RTLD_DEFAULT, "dlopen");
  native->stays.text[2] = (uint64_t)(uintptr_t)&cs_native_new;
  native->stays.base[0] = getauxval(AT_BASE);
  native->stays.base[1] = getauxval(AT_SYSINFO_EHDR);
}

static bool is_permanent(const struct cs_native *native, const struct cs_candidate *candidate) {
  for (unsigned i = 0; i < CS_COUNT(native->stays.text); i++)
    if (native->stays.text[i] >= candidate->begin && native->stays.text[i] < candidate->end)
      return true;
  for (unsigned i = 0; i < CS_COUNT(native->stays.base); i++)
    if (native->stays.base[i] == candidate->base) return true;
  return cs_path_is(candidate->path, "libcoreclr.so");  // the host never unloads it
}

struct cs_native *cs_native_new(int pid) {
  struct cs_native *native = calloc(1, sizeof *native);
  if (native == NULL) return NULL;
  cs_process_memory_init(&native->process, pid);
  native->keep = UINT32_MAX;
  if (pid == 0) {
    native->counted = cs_loader_init(&native->loader);
    find_permanent_images(native);
  }
  if (cs_rules_init(&native->rules)) return native;
  free(native);
  return NULL;
}

// Fills in block_row: for each block of text, the last row at or before its start. Row 0 is at 0.
static void index_blocks(struct cs_image *image, uint32_t *block_row) {
  uint32_t row = 0;
  for (uint32_t block = 0; block < image->block_count; block++) {
    while (row + 1 < image->row_count && image->row_ip[row + 1] <= block << image->block_bits)
      row++;
    block_row[block] = row;
  }
}

// Chooses the size of blocks, by the number of rows and not by the width of the mapping.
static size_t size_index(struct cs_image *image, const struct cs_rows *rows) {
  uint64_t max_blocks = rows->count * 4ull + 256;
  uint64_t last = rows->count != 0 ? rows->ip[rows->count - 1] : 0;
  image->block_bits = CS_BLOCK_BITS;
  while (last >> image->block_bits >= max_blocks) image->block_bits++;
  return rows->count != 0 ? (size_t)(last >> image->block_bits) + 1 : 0;
}

// Packs rows, index and path into one block of memory.
static bool pack(struct compiled *c, const struct cs_rows *rows, const char *path) {
  struct cs_image *image = &c->image;
  size_t n = rows->count, path_bytes = strlen(path) + 1;
  size_t blocks = size_index(image, rows);
  c->block_bytes =
      n * sizeof(uint32_t) + blocks * sizeof(uint32_t) + n * sizeof(uint16_t) + path_bytes;
  c->block = populated(c->block_bytes);
  if (c->block == NULL) return false;
  uint32_t *row_ip = c->block, *block_row = row_ip + n;
  uint16_t *row_rule = (uint16_t *)(block_row + blocks);
  char *name = (char *)(row_rule + n);
  if (n != 0) {
    memcpy(row_ip, rows->ip, n * sizeof *row_ip);
    memcpy(row_rule, rows->rule, n * sizeof *row_rule);
  }
  memcpy(name, path, path_bytes);
  image->row_ip = row_ip;
  image->row_rule = row_rule;
  image->row_count = (uint32_t)n;
  image->block_count = (uint32_t)blocks;
  image->block_row = block_row;
  image->path = name;
  if (n != 0) index_blocks(image, block_row);
  return true;
}

// Compiles a copy of .eh_frame into rows. An image without usable unwind data has no rows: a walk
// then knows which image it is in, and stops there with a reason.
static enum cs_elf_result compile_rows(struct cs_native *native,
                                       const struct cs_candidate *candidate,
                                       const struct cs_elf *elf, struct cs_rows *rows,
                                       struct cs_cfi_stats *stats, struct cs_error *err) {
  if (elf->eh_frame_end == 0) {
    if (strcmp(candidate->path, "[vdso]") == 0 &&
        cs_startup_apply_vdso(&native->process, candidate, &native->rules, rows)) {
      err->text[0] = '\0';
      return CS_ELF_OK;
    }
    if (err->text[0] == '\0') (void)cs_error_set(err, "it has no .eh_frame");
    return CS_ELF_MALFORMED;
  }
  size_t size = (size_t)(elf->eh_frame_end - elf->eh_frame);
  uint8_t *bytes = size < UINT32_MAX ? cs_pages_grow(NULL, 0, size) : NULL;
  if (bytes == NULL || !cs_process_memory_read(&native->process, elf->eh_frame, bytes, size)) {
    cs_pages_free(bytes, size);
    return CS_ELF_UNREADABLE;
  }
  struct cs_cfi_section section = {bytes,    size,           elf->eh_frame,
                                   elf->hdr, elf->fde_count, &native->process};
  enum cs_cfi_result result =
      cs_cfi_compile(&section, candidate->begin, candidate->end, &native->rules, rows, stats, err);
  cs_pages_free(bytes, size);
  struct cs_process_memory *process = &native->process;
  if (result == CS_CFI_OK)
    return cs_ehreturn_apply(process, candidate->begin, stats, &native->rules, rows) &&
                   cs_startup_apply(process, candidate, elf->init, &native->rules, rows) &&
                   cs_startup_apply(process, candidate, elf->fini, &native->rules, rows) &&
                   cs_startup_apply_entry(process, candidate, elf->entry, &native->rules, rows)
               ? CS_ELF_OK
               : CS_ELF_UNREADABLE;
  rows->count = 0;
  return result == CS_CFI_MALFORMED ? CS_ELF_MALFORMED : CS_ELF_UNREADABLE;
}

static void report(const struct compiled *c, const struct cs_cfi_stats *stats, uint64_t ns,
                   const struct cs_error *err) {
  if (err->text[0] != '\0')
    cs_log("native code of %s cannot be unwound: %s", c->image.path, err->text);
  else
    cs_log(
        "%s: %u functions, %u rows, %zu bytes, %llu us (without a supported rule: %u places, "
        "%u registers; functions skipped: %u, in part: %u)",
        c->image.path, stats->fdes, c->image.row_count, c->block_bytes,
        (unsigned long long)(ns / 1000), stats->unsupported_cfa, stats->unsupported_register,
        stats->skipped, stats->distrusted);
}

// Corrects the rows of the runtime's functions with wrong unwind data. It reads all of the
// runtime's text, 5 MB of libcoreclr, which takes 5 ms once.
static void correct_rows(struct cs_native *native, const struct cs_candidate *candidate,
                         struct cs_rows *rows) {
  enum { MAX_TEXT = 64 << 20 };  // a single-file program has 8 MB
  size_t size = (size_t)(candidate->end - candidate->begin);
  uint8_t *bytes = size <= MAX_TEXT ? cs_pages_grow(NULL, 0, size) : NULL;
  unsigned found = 0;
  if (bytes != NULL && cs_process_memory_read(&native->process, candidate->begin, bytes, size))
    (void)cs_quirks_apply(bytes, size, &native->rules, rows, &found);
  cs_pages_free(bytes, size);
  if ((int)found < CS_QUIRKS)
    cs_log(
        "%s: %u of %u functions with wrong unwind data were found; walks that meet the others "
        "end there with a reason, or show one wrong native frame",
        candidate->path, found, (unsigned)CS_QUIRKS);
}

// Returns true if no image has been loaded or unloaded since `then`, and also if that is not known:
// for another process, or if the loader's counters were not found.
static bool is_unchanged_since(const struct cs_native *native, uint64_t then) {
  if (native->process.pid != 0 || !native->counted) return true;
  return then != CS_LOADER_UNSETTLED && cs_loader_now(&native->loader) == then;
}

// An image that is being loaded or unloaded is skipped this time, and may be included the next
// time.
static bool check(const struct cs_native *native, struct compiled *c) {
  if (!c->checked) c->checked = c->image.stays || is_unchanged_since(native, native->loaded);
  return c->checked;
}

static struct compiled *compile(struct cs_native *native, const struct cs_candidate *candidate,
                                struct cs_elf *elf) {
  struct cs_error err = {.text = ""};
  struct cs_rows rows = {0};
  struct cs_cfi_stats stats = {0};
  uint64_t start = cs_clock_now_ns(), fingerprint = elf->fingerprint;
  uint64_t loaded = cs_loader_now(&native->loader);
  enum cs_elf_result result = cs_elf_read(&native->process, candidate, elf, &err);
  uint64_t bias = elf->bias;
  if (result == CS_ELF_OK) result = compile_rows(native, candidate, elf, &rows, &stats, &err);
  bool is_coreclr = elf->is_coreclr;
  if (result == CS_ELF_OK && is_coreclr) correct_rows(native, candidate, &rows);
  uint64_t id_address = elf->id_address;
  uint32_t id_size = elf->id_size < CS_BUILD_ID_MAX ? elf->id_size : CS_BUILD_ID_MAX;
  bool small_stacks = elf->small_stacks;
  // Another image may have taken its place meanwhile; then it is skipped this time.
  struct compiled *c = NULL;
  if (result == CS_ELF_UNREADABLE || cs_elf_open(&native->process, candidate, elf) != CS_ELF_OK ||
      elf->fingerprint != fingerprint)
    goto out;
  c = calloc(1, sizeof *c);
  if (c == NULL) goto out;
  c->image.begin = candidate->begin;
  c->image.end = candidate->end;
  c->image.bias = bias;
  c->image.is_coreclr = is_coreclr;
  c->image.small_stacks = small_stacks;
  c->image.stays = is_permanent(native, candidate);
  c->image.inode = candidate->inode;
  c->image.device = candidate->device;
  c->image.id_address = id_address;
  c->image.id_size = (uint8_t)id_size;
  if (!cs_process_memory_read(&native->process, id_address, c->image.id, id_size))
    c->image.id_size = 0;
  c->loaded = loaded;
  c->patience = PATIENCE;
  // It may have been unloaded and loaded again between those reads.
  if (!c->image.stays && !is_unchanged_since(native, loaded)) {
    free(c);
    c = NULL;
    goto out;
  }
  c->base = candidate->base;
  c->offset = candidate->offset;
  c->inode = candidate->inode;
  c->device = candidate->device;
  c->fingerprint = fingerprint;
  if (pack(c, &rows, candidate->path)) {
    report(c, &stats, cs_clock_now_ns() - start, &err);
    c->next = native->compiled;
    native->compiled = c;
  } else {
    free(c);
    c = NULL;
  }
out:
  cs_rows_free(&rows);
  return c;
}

// Without a build id, another image may look the same.
static bool is_still_the_same(const struct cs_native *native, const struct compiled *c) {
  return c->image.stays || c->image.id_size != 0 || is_unchanged_since(native, c->loaded);
}

static struct compiled *find_compiled(const struct cs_native *native,
                                      const struct cs_candidate *candidate, uint64_t fingerprint) {
  for (struct compiled *c = native->compiled; c != NULL; c = c->next) {
    if (is_still_the_same(native, c) && c->image.begin == candidate->begin &&
        c->image.end == candidate->end && c->base == candidate->base &&
        c->offset == candidate->offset && c->inode == candidate->inode &&
        c->device == candidate->device && c->fingerprint == fingerprint &&
        strcmp(c->image.path, candidate->path) == 0)
      return c;
  }
  return NULL;
}

static bool same_image(const struct cs_image *a, const struct cs_image *b) {
  return a->begin == b->begin && a->end == b->end && a->path == b->path;
}

static bool same_as_newest(const struct cs_native *native, const struct table *table) {
  const struct table *newest = native->tables;
  if (newest == NULL || newest->images.count != table->images.count) return false;
  for (uint32_t i = 0; i < table->images.count; i++)
    if (!same_image(&newest->images.image[i], &table->images.image[i])) return false;
  return true;
}

static size_t table_bytes(uint32_t count) {
  return sizeof(struct table) + count * sizeof(struct cs_image);
}

// Adds the images of the maps to the table. One that cannot be compiled does not keep the others
// from it.
static void fill(struct cs_native *native, struct table *table, struct cs_elf *elf,
                 uint64_t until_ns) {
  bool any = false;
  for (uint32_t i = 0; i < native->maps.count; i++) {
    const struct cs_candidate *candidate = &native->maps.candidate[i];
    if (cs_elf_open(&native->process, candidate, elf) != CS_ELF_OK) continue;
    struct compiled *c = find_compiled(native, candidate, elf->fingerprint);
    if (c == NULL && any && cs_clock_now_ns() >= until_ns) {
      native->left = true;
      continue;
    }
    if (c == NULL) {
      c = compile(native, candidate, elf);
      any |= c != NULL;
    }
    if (c != NULL && check(native, c)) table->images.image[table->images.count++] = c->image;
  }
  bool settled = native->counted && !native->left && is_unchanged_since(native, native->loaded);
  table->images.loaded = settled ? native->loaded : CS_LOADER_UNSETTLED;
}

const struct cs_images *cs_native_refresh(struct cs_native *native) {
  return cs_native_refresh_in(native, CS_NATIVE_NO_LIMIT);
}

bool cs_native_has_left(const struct cs_native *native) {
  return native->left;
}

const struct cs_images *cs_native_refresh_in(struct cs_native *native, uint64_t limit_ns) {
  const struct cs_images *before = native->tables != NULL ? &native->tables->images : NULL;
  struct cs_error err;
  uint64_t until_ns = cs_clock_now_ns() + limit_ns;
  native->left = false;
  native->loaded = cs_loader_now(&native->loader);
  if (!cs_maps_read(&native->maps, native->process.pid, &err)) {
    cs_log("the list of native images is not updated: %s", err.text);
    return before;
  }
  size_t bytes = table_bytes(native->maps.count);
  struct cs_elf *elf = malloc(sizeof *elf);
  struct table *table = populated(bytes);
  if (elf != NULL && table != NULL) {
    table->bytes = bytes;
    table->images.rules = native->rules.rule;
    fill(native, table, elf, until_ns);
    if (same_as_newest(native, table)) {
      cs_store_release(&native->tables->images.loaded, table->images.loaded);
    } else {
      table->images.sequence = ++native->sequence;
      table->next = native->tables;
      native->tables = table;
      table = NULL;
    }
  }
  free(elf);
  if (table != NULL) (void)munmap(table, bytes);
  return native->tables != NULL ? &native->tables->images : NULL;
}

const struct cs_loader *cs_native_loader(const struct cs_native *native) {
  return native->process.pid == 0 ? &native->loader : NULL;
}

bool cs_images_all_stay(const struct cs_images *before, const struct cs_images *now) {
  for (uint32_t i = 0; before != NULL && i < before->count; i++) {
    const struct cs_image *there = cs_images_find(now, before->image[i].begin);
    if (there == NULL || !same_image(there, &before->image[i])) return false;
  }
  return true;
}

static bool is_in_a_table(const struct cs_native *native, const struct compiled *c) {
  for (const struct table *t = native->tables; t != NULL; t = t->next)
    for (uint32_t i = 0; i < t->images.count; i++)
      if (same_image(&t->images.image[i], &c->image)) return true;
  return false;
}

// Frees images that are in no table any more, with their rows.
static void free_compiled(struct cs_native *native, bool all) {
  for (struct compiled **at = &native->compiled; *at != NULL;) {
    struct compiled *c = *at;
    if (!all && (is_in_a_table(native, c) || (!c->checked && c->patience-- > 0))) {
      at = &c->next;
      continue;
    }
    *at = c->next;
    (void)munmap(c->block, c->block_bytes);
    free(c);
  }
}

void cs_native_retire(struct cs_native *native, const struct cs_images *still_used) {
  if (native->tables == NULL) return;
  for (struct table **at = &native->tables->next; *at != NULL;) {
    struct table *t = *at;
    if (&t->images == still_used || t->images.sequence >= native->keep) {
      at = &t->next;
      continue;
    }
    *at = t->next;
    (void)munmap(t, t->bytes);
  }
  free_compiled(native, false);
}

bool cs_native_has_older(const struct cs_native *native) {
  return native->tables != NULL && native->tables->next != NULL;
}

void cs_native_keep(struct cs_native *native, uint32_t sequence) {
  native->keep = sequence;
}

const struct cs_images *cs_native_table(const struct cs_native *native, uint64_t loaded,
                                        uint32_t sequence, bool *exact) {
  const struct cs_images *by_number = NULL;
  for (const struct table *t = native->tables; t != NULL; t = t->next) {
    *exact = loaded != CS_LOADER_UNSETTLED && t->images.loaded == loaded;
    if (*exact) return &t->images;
    if (t->images.sequence == sequence) by_number = &t->images;
  }
  return by_number;
}

void cs_native_free(struct cs_native *native) {
  if (native == NULL) return;
  native->keep = UINT32_MAX;
  cs_native_retire(native, NULL);
  if (native->tables != NULL) (void)munmap(native->tables, native->tables->bytes);
  native->tables = NULL;
  free_compiled(native, true);
  cs_process_memory_close(&native->process);
  cs_rules_free(&native->rules);
  cs_maps_free(&native->maps);
  free(native);
}
