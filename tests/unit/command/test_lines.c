// SPDX-License-Identifier: MIT
// Portable PDBs and the modules that name them, laid out by hand byte by byte; then cut at every
// length and damaged in every way. These must be refused or give a result, but must never be
// followed out of the file (the build with -fsanitize=address checks that).
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <cmocka.h>

#include "metadata/lines.h"

struct bytes {
  uint8_t at[4096];
  size_t size;
};

static void put(struct bytes *b, const void *data, size_t size) {
  assert_true(b->size + size <= sizeof b->at);
  memcpy(b->at + b->size, data, size);
  b->size += size;
}
static void put_number(struct bytes *b, uint64_t value, size_t size) {
  put(b, &value, size);
}
static void pad_to(struct bytes *b, size_t size) {
  while (b->size < size) put_number(b, 0, 1);
}
#define PUT(b, ...) put(b, (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}))

static const uint8_t the_id[CS_PDB_ID_BYTES] = "0123456789abcdefSTAM";

// Offsets of the blobs below, in the order in which they are put.
struct blobs {
  uint32_t name[2], points[4], awaits;
};

static uint32_t put_blob(struct bytes *heap, const struct bytes *blob) {
  uint32_t at = (uint32_t)heap->size;
  assert_true(blob->size < 0x80);
  put_number(heap, blob->size, 1);
  put(heap, blob->at, blob->size);
  return at;
}

static void make_heap(struct bytes *heap, struct blobs *out) {
  struct bytes src = {"src", 3}, a = {"A.cs", 4}, b = {"B.cs", 4};
  put_number(heap, 0, 1);  // blob 0 is empty
  uint8_t of_src = (uint8_t)put_blob(heap, &src), of_a = (uint8_t)put_blob(heap, &a),
          of_b = (uint8_t)put_blob(heap, &b);
  struct bytes name_a = {{0}, 0}, name_b = {{0}, 0}, one = {{0}, 0}, two = {{0}, 0}, bad = {{0}, 0},
               steps = {{0}, 0}, awaits = {{0}, 0};
  PUT(&name_a, '/', 0, of_src, of_a);  // "/src/A.cs": the first part is empty
  PUT(&name_b, '/', 0, of_src, of_b);
  out->name[0] = put_blob(heap, &name_a);
  out->name[1] = put_blob(heap, &name_b);
  // No local signature. il 0: lines 0, columns 5, line 10, column 1.
  PUT(&one, 0, 0, 0, 5, 10, 1);
  PUT(&one, 4, 0, 0);           // il 4: hidden
  PUT(&one, 5, 1, 2, 0x7B, 2);  // il 9: 1 line, 1 column, 3 lines up, 1 column on
  PUT(&one, 0, 2);              // from here on document 2
  PUT(&one, 0x80, 0xBF, 0, 3, 0x80 | 0x1A, 0x08, 0);  // il 200: line 7 + 3332
  out->points[0] = put_blob(heap, &one);
  // This method's document is given in the blob, which starts with a hidden point.
  PUT(&two, 0, 2, 3, 0, 0);
  PUT(&two, 3, 0, 1, 0xC0, 0x01, 0x00, 0x00, 1);  // il 6: line 65536
  out->points[1] = put_blob(heap, &two);
  PUT(&bad, 0, 0, 0, 5, 10);  // ends before the column
  out->points[2] = put_blob(heap, &bad);
  PUT(&steps, 0, 0, 0, 5, 20, 1);          // il 0: line 20
  PUT(&steps, 4, 0, 0, 4, 0, 0, 4, 0, 0);  // il 4, 8, 12: hidden
  PUT(&steps, 4, 0, 5, 2, 0);              // il 16: line 21
  out->points[3] = put_blob(heap, &steps);
  PUT(&awaits, 0, 0, 0, 0);                 // no handler
  PUT(&awaits, 6, 0, 0, 0, 7, 0, 0, 0, 5);  // the method returns at il 6 and at il 14
  PUT(&awaits, 14, 0, 0, 0, 15, 0, 0, 0, 5);
  out->awaits = put_blob(heap, &awaits);
}

static void put_stream(struct bytes *out, uint32_t offset, size_t size, const char *name) {
  put_number(out, offset, 4);
  put_number(out, size, 4);
  put(out, name, strlen(name) + 1);
  while (out->size % 4 != 0) put_number(out, 0, 1);
}

static void make_pdb(struct bytes *out) {
  struct bytes heap = {{0}, 0}, pdb = {{0}, 0}, tables = {{0}, 0};
  struct blobs blobs;
  make_heap(&heap, &blobs);
  put(&pdb, the_id, sizeof the_id);
  pad_to(&pdb, 32);
  put_number(&tables, 0, 4);
  PUT(&tables, 2, 0, 0, 1);
  put_number(&tables, 0x83ull << 0x30, 8);
  put_number(&tables, 0, 8);
  put_number(&tables, 2, 4);  // documents
  put_number(&tables, 5, 4);  // methods
  put_number(&tables, 3, 4);  // what else is known of them
  for (int i = 0; i < 2; i++) {
    put_number(&tables, blobs.name[i], 2);
    put_number(&tables, 0, 6);
  }
  const uint32_t methods[5][2] = {{1, blobs.points[0]},
                                  {0, 0},
                                  {0, blobs.points[1]},
                                  {1, blobs.points[2]},
                                  {1, blobs.points[3]}};
  for (int i = 0; i < 5; i++) {
    put_number(&tables, methods[i][0], 2);
    put_number(&tables, methods[i][1], 2);
  }
  const uint32_t information[3][2] = {{5, 1}, {5, 2}, {6, 2}};  // method, kind
  for (int i = 0; i < 3; i++) {
    put_number(&tables, information[i][0] << 5, 2);
    put_number(&tables, information[i][1], 2);
    put_number(&tables, blobs.awaits, 2);
  }
  memset(out, 0, sizeof *out);
  put(out, "BSJB\1\0\1\0\0\0\0\0\x0C\0\0\0PDB v1.0\0\0\0\0\0\0\4\0", 32);
  put_stream(out, 128, pdb.size, "#Pdb");
  put_stream(out, 256, tables.size, "#~");
  put_stream(out, 448, heap.size, "#Blob");
  put_stream(out, 384, 32, "#GUID");
  pad_to(out, 128);
  put(out, pdb.at, pdb.size);
  pad_to(out, 256);
  put(out, tables.at, tables.size);
  pad_to(out, 384 + 16);  // the first kind is unknown
  PUT(out, 0xC5, 0x2A, 0xFD, 0x54, 0x25, 0xE9, 0x1A, 0x40, 0x9C, 0x2A, 0xF9, 0x4F, 0x17, 0x10, 0x72,
      0xF8);
  pad_to(out, 448);
  put(out, heap.at, heap.size);
}

static uint8_t *copy(const uint8_t *bytes, size_t size) {
  uint8_t *new = malloc(size > 0 ? size : 1);
  assert_non_null(new);
  memcpy(new, bytes, size);
  return new;
}

static void is_line(struct cs_pdb *pdb, uint32_t method, uint32_t il, const char *file,
                    uint32_t line) {
  struct cs_line found = {NULL, 0};
  assert_true(cs_pdb_find(pdb, 0x06000000 | method, il, &found));
  assert_string_equal(found.file, file);
  assert_int_equal(found.line, line);
}

static void points(void **state) {
  (void)state;
  struct bytes file;
  struct cs_line line;
  make_pdb(&file);
  struct cs_pdb *pdb = cs_pdb_open(copy(file.at, file.size), file.size);
  assert_non_null(pdb);
  assert_memory_equal(cs_pdb_id(pdb), the_id, sizeof the_id);
  for (uint32_t il = 0; il < 9; il++) {
    if (il < 4)
      is_line(pdb, 1, il, "/src/A.cs", 10);
    else
      assert_false(cs_pdb_find(pdb, 0x06000001, il, &line));  // hidden
  }
  is_line(pdb, 1, 9, "/src/A.cs", 7);
  is_line(pdb, 1, 199, "/src/A.cs", 7);
  is_line(pdb, 1, 200, "/src/B.cs", 7 + 3332);
  is_line(pdb, 1, CS_LINES_FIRST, "/src/A.cs", 10);
  is_line(pdb, 1, CS_LINES_LAST, "/src/B.cs", 7 + 3332);
  is_line(pdb, 3, 0, "/src/B.cs", 65536);  // no point is before it
  assert_false(cs_pdb_find(pdb, 0x06000003, 3, &line));
  is_line(pdb, 3, CS_LINES_FIRST, "/src/B.cs", 65536);
  is_line(pdb, 3, 6, "/src/B.cs", 65536);
  // What is hidden within an await is of the same statement; an await may be hidden itself.
  for (uint32_t il = 0; il < 8; il++) is_line(pdb, 5, il, "/src/A.cs", 20);
  for (uint32_t il = 8; il < 16; il++) assert_false(cs_pdb_find(pdb, 0x06000005, il, &line));
  is_line(pdb, 5, 16, "/src/A.cs", 21);
  assert_false(cs_pdb_find(pdb, 0x06000002, 0, &line));  // no points
  assert_false(cs_pdb_find(pdb, 0x06000004, 0, &line));  // cut
  assert_false(cs_pdb_find(pdb, 0x06000006, 0, &line));  // no such row
  assert_false(cs_pdb_find(pdb, 0x06000000, 0, &line));
  assert_false(cs_pdb_find(pdb, 0x02000001, 0, &line));  // no method
  cs_pdb_free(pdb);
}

// The results may be anything, but nothing outside the file is read, which ASan checks.
static void ask_everything(const uint8_t *bytes, size_t size) {
  struct cs_pdb *pdb = cs_pdb_open(copy(bytes, size), size);
  struct cs_line line;
  if (pdb == NULL) return;
  for (uint32_t method = 0; method < 7; method++) {
    for (uint32_t il = 0; il < 300; il += 7) {
      if (cs_pdb_find(pdb, 0x06000000 | method, il, &line)) assert_true(strlen(line.file) < 4096);
    }
  }
  cs_pdb_free(pdb);
}

static void damaged_pdbs(void **state) {
  (void)state;
  struct bytes file;
  uint32_t random = 1;
  make_pdb(&file);
  for (size_t size = 0; size < file.size; size++) ask_everything(file.at, size);
  for (size_t at = 0; at < file.size; at++) {
    for (int bit = 0; bit < 8; bit++) {
      file.at[at] ^= (uint8_t)(1 << bit);
      ask_everything(file.at, file.size);
      file.at[at] ^= (uint8_t)(1 << bit);
    }
  }
  for (int round = 0; round < 20000; round++) {
    struct bytes damaged = file;
    for (int i = 0; i < 6; i++) {
      random = random * 1664525u + 1013904223u;
      damaged.at[(random >> 16) % file.size] = (uint8_t)(random >> 8);
    }
    ask_everything(damaged.at, damaged.size);
  }
}

// Makes a PE32+ file with one section, a CodeView entry and, if `pdb` is given, the embedded PDB.
static void make_pe(struct bytes *out, const char *pdb_path, const struct bytes *pdb) {
  uint8_t packed[4096];
  z_stream z = {0};
  memset(out, 0, sizeof *out);
  put(out, "MZ", 2);
  pad_to(out, 60);
  put_number(out, 64, 4);
  put(out, "PE\0\0", 4);
  PUT(out, 0x64, 0x86, 1, 0);
  pad_to(out, 64 + 4 + 16);
  PUT(out, 240, 0, 0, 0);
  size_t optional = out->size;
  PUT(out, 0x0B, 0x02);
  pad_to(out, optional + 108);
  put_number(out, 16, 4);
  pad_to(out, optional + 112 + 6 * 8);
  put_number(out, 0x2000, 4);  // the debug directory's RVA
  put_number(out, pdb != NULL ? 56 : 28, 4);
  pad_to(out, optional + 240);
  put(out, ".text\0\0\0", 8);
  put_number(out, 4096, 4);
  put_number(out, 0x2000, 4);
  put_number(out, 3072, 4);
  put_number(out, 512, 4);
  pad_to(out, 512);
  size_t path_size = strlen(pdb_path) + 1, data = 512 + 56;
  put_number(out, 0, 4);
  put(out, "STAM\0\1\x4D\x50", 8);
  put_number(out, 2, 4);
  put_number(out, 24 + path_size, 4);
  put_number(out, 0, 4);
  put_number(out, data, 4);
  if (pdb != NULL) {
    assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, -MAX_WBITS, 9, Z_DEFAULT_STRATEGY), Z_OK);
    z.next_in = (Bytef *)(uintptr_t)pdb->at;
    z.avail_in = (uInt)pdb->size;
    z.next_out = packed;
    z.avail_out = sizeof packed;
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    (void)deflateEnd(&z);
    pad_to(out, out->size + 12);
    put_number(out, 17, 4);
    put_number(out, 8 + z.total_out, 4);
    put_number(out, 0, 4);
    put_number(out, data + 24 + path_size, 4);
  }
  pad_to(out, data);
  put(out, "RSDS0123456789abcdef\1\0\0\0", 24);
  put(out, pdb_path, path_size);
  if (pdb == NULL) return;
  put(out, "MPDB", 4);
  put_number(out, pdb->size, 4);
  put(out, packed, z.total_out);
}

static char folder[] = "/tmp/test_lines.XXXXXX";
static char module_path[64], pdb_path[64];

static void write_file(const char *path, const uint8_t *bytes, size_t size) {
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(bytes, 1, size, file), size);
  assert_int_equal(fclose(file), 0);
}

static int make_folder(void **state) {
  (void)state;
  if (mkdtemp(folder) == NULL) return -1;
  (void)snprintf(module_path, sizeof module_path, "%s/m.dll", folder);
  (void)snprintf(pdb_path, sizeof pdb_path, "%s/m.pdb", folder);
  return 0;
}
static int remove_folder(void **state) {
  (void)state;
  (void)unlink(module_path);
  (void)unlink(pdb_path);
  return rmdir(folder);
}

static enum cs_symbols ask_module(bool want_line) {
  struct cs_target *here = cs_target_of(0);
  struct cs_lines *lines = cs_lines_new(here);
  struct cs_line line;
  cs_lines_add_file(lines, module_path);
  enum cs_symbols symbols = cs_lines_of_module(lines, module_path);
  assert_int_equal(cs_lines_find(lines, module_path, 0x06000001, 9, &line),
                   symbols == CS_SYMBOLS_FOUND && want_line);
  if (symbols == CS_SYMBOLS_FOUND && want_line) {
    assert_string_equal(line.file, "/src/A.cs");
    assert_int_equal(line.line, 7);
  }
  cs_lines_free(lines);
  cs_target_free(here);
  return symbols;
}

static void modules_and_their_symbols(void **state) {
  (void)state;
  struct bytes pe, pdb;
  make_pdb(&pdb);
  assert_int_equal(ask_module(true), CS_SYMBOLS_NO_MODULE);
  make_pe(&pe, "C:\\build\\m.pdb", NULL);
  write_file(module_path, pe.at, pe.size);
  assert_int_equal(ask_module(true), CS_SYMBOLS_NONE);
  write_file(pdb_path, pdb.at, pdb.size);
  assert_int_equal(ask_module(true), CS_SYMBOLS_FOUND);
  pdb.at[128] ^= 1;  // its id
  write_file(pdb_path, pdb.at, pdb.size);
  assert_int_equal(ask_module(true), CS_SYMBOLS_OTHER);
  write_file(pdb_path, pdb.at, 100);
  assert_int_equal(ask_module(true), CS_SYMBOLS_BROKEN);
  assert_int_equal(unlink(pdb_path), 0);
  pdb.at[128] ^= 1;
  make_pe(&pe, "/nowhere/m.pdb", &pdb);
  write_file(module_path, pe.at, pe.size);
  assert_int_equal(ask_module(true), CS_SYMBOLS_FOUND);
  // The PDB is where the compiler put it.
  make_pe(&pe, pdb_path, NULL);
  write_file(pdb_path, pdb.at, pdb.size);
  (void)snprintf(module_path, sizeof module_path, "%s/../m.dll", folder);
  write_file(module_path, pe.at, pe.size);
  assert_int_equal(ask_module(true), CS_SYMBOLS_FOUND);
  (void)unlink(module_path);
  (void)snprintf(module_path, sizeof module_path, "%s/m.dll", folder);
}

// The modules of a single-file program have no folder, but the program has one.
static void part_of_a_program(void **state) {
  (void)state;
  struct bytes pdb;
  struct cs_target *here = cs_target_of(0);
  struct cs_lines_module is = {
      .path = "m.dll", .pdb = "/nowhere/m.pdb", .known = true, .has_id = true};
  char program[sizeof folder + 8];
  make_pdb(&pdb);
  write_file(pdb_path, pdb.at, pdb.size);
  memcpy(is.id, pdb.at + 128, sizeof is.id);
  (void)snprintf(program, sizeof program, "%s/program", folder);
  for (int known = 0; known < 2; known++) {
    struct cs_lines *lines = cs_lines_new(here);
    if (known) cs_lines_set_program(lines, program);
    cs_lines_add(lines, &is);
    assert_int_equal(cs_lines_of_module(lines, "m.dll"),
                     known ? CS_SYMBOLS_FOUND : CS_SYMBOLS_NONE);
    cs_lines_free(lines);
  }
  cs_target_free(here);
}

static void damaged_modules(void **state) {
  (void)state;
  struct bytes pe, pdb;
  make_pdb(&pdb);
  make_pe(&pe, "/nowhere/m.pdb", &pdb);
  (void)unlink(pdb_path);
  for (size_t size = 0; size < pe.size; size += size < 520 ? 40 : 3) {
    write_file(module_path, pe.at, size);
    assert_int_not_equal(ask_module(false), CS_SYMBOLS_FOUND);
  }
  for (size_t at = 0; at < pe.size; at++) {
    if (at >= 130 && at < 220) continue;  // these bytes are not read
    pe.at[at] ^= 0xFF;
    write_file(module_path, pe.at, pe.size);
    struct cs_target *here = cs_target_of(0);
    struct cs_lines *lines = cs_lines_new(here);
    cs_lines_add_file(lines, module_path);
    (void)cs_lines_of_module(lines, module_path);
    cs_lines_free(lines);
    cs_target_free(here);
    pe.at[at] ^= 0xFF;
  }
}

// What counts is what the module contained when it was loaded, not what its file contains now.
static void the_loaded_module_decides(void **state) {
  (void)state;
  struct bytes pe, pdb;
  struct cs_line line;
  struct cs_target *here = cs_target_of(0);
  struct cs_lines *lines = cs_lines_new(here);
  struct cs_lines_module is = {
      .path = module_path, .pdb = "m.pdb", .known = true, .has_id = true, .embedded = true};
  make_pdb(&pdb);
  make_pe(&pe, "m.pdb", &pdb);
  write_file(module_path, pe.at, pe.size);
  write_file(pdb_path, pdb.at, pdb.size);
  memset(is.id, 7, sizeof is.id);
  cs_lines_add(lines, &is);
  assert_int_equal(cs_lines_of_module(lines, module_path), CS_SYMBOLS_OTHER);
  assert_false(cs_lines_find(lines, module_path, 0x06000001, 9, &line));
  // Two builds of it exist there, so neither is used.
  memcpy(is.id, the_id, sizeof is.id);
  cs_lines_add(lines, &is);
  assert_int_equal(cs_lines_of_module(lines, module_path), CS_SYMBOLS_AMBIGUOUS);
  cs_lines_free(lines);
  // The module's file is gone.
  assert_int_equal(unlink(module_path), 0);
  lines = cs_lines_new(here);
  cs_lines_add(lines, &is);
  assert_true(cs_lines_find(lines, module_path, 0x06000001, 9, &line));
  cs_lines_free(lines);
  // A FIFO that nothing writes to, and a device.
  assert_int_equal(unlink(pdb_path), 0);
  assert_int_equal(mkfifo(pdb_path, 0600), 0);
  lines = cs_lines_new(here);
  cs_lines_add(lines, &is);
  assert_int_equal(cs_lines_of_module(lines, module_path), CS_SYMBOLS_EMBEDDED);
  cs_lines_free(lines);
  cs_target_free(here);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(points),
      cmocka_unit_test(damaged_pdbs),
      cmocka_unit_test(modules_and_their_symbols),
      cmocka_unit_test(part_of_a_program),
      cmocka_unit_test(damaged_modules),
      cmocka_unit_test(the_loaded_module_decides),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
