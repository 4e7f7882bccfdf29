// SPDX-License-Identifier: MIT
// What an installed runtime without symbols says of its own functions, and what garbled copies of
// it say.
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include <gelf.h>
#include <glob.h>

#include "metadata/landmarks.h"
#include "metadata/runtime_class.h"
#include "util/map.h"

static char *bytes;
static size_t size;

static void read_runtime(void) {
  glob_t found;
  const char *root = getenv("DOTNET_ROOT");
  char pattern[512];
  (void)snprintf(pattern, sizeof pattern, "%s/shared/Microsoft.NETCore.App/10.*/libcoreclr.so",
                 root != NULL ? root : "/usr/*/dotnet");
  if (glob(pattern, 0, NULL, &found) != 0) skip();
  FILE *file = fopen(found.gl_pathv[0], "rb");
  struct stat st;
  globfree(&found);
  assert_non_null(file);
  assert_int_equal(fstat(fileno(file), &st), 0);
  size = (size_t)st.st_size;
  bytes = cs_allocate(size);
  assert_int_equal(fread(bytes, 1, size, file), size);
  (void)fclose(file);
}

// sh_size 0: there is none.
static GElf_Shdr section(Elf *elf, const char *name) {
  size_t names;
  GElf_Shdr header = {0};
  assert_int_equal(elf_getshdrstrndx(elf, &names), 0);
  for (Elf_Scn *scn = elf_nextscn(elf, NULL); scn != NULL; scn = elf_nextscn(elf, scn))
    if (gelf_getshdr(scn, &header) != NULL &&
        strcmp(elf_strptr(elf, names, header.sh_name), name) == 0)
      return header;
  return (GElf_Shdr){0};
}

// Functions are aligned to 16 bytes. Returns how many of them are `what`.
static size_t functions(const struct cs_landmarks *marks, GElf_Shdr text, const char *what) {
  size_t count = 0;
  for (uint64_t at = text.sh_addr; at < text.sh_addr + text.sh_size; at += 16) {
    const char *found = cs_landmarks_find(marks, at);
    const char *before = cs_landmarks_find(marks, at - 16);
    count += found != NULL && found != before && strcmp(found, what) == 0;
  }
  return count;
}

static void the_installed_runtime_has_every_landmark(void **state) {
  (void)state;
  read_runtime();
  Elf *elf = elf_memory(bytes, size);
  assert_non_null(elf);
  GElf_Shdr text = section(elf, ".text");
  // Some distributions build it without LTTng.
  bool events = section(elf, "__tracepoints").sh_size > 0;
  struct cs_landmarks *marks = cs_landmarks_read(elf);
  for (size_t i = 0; i < cs_runtime_row_count; i++) {
    const struct cs_runtime_row *row = &cs_runtime_rows[i];
    if (row->sign != CS_SIGN_MESSAGE && (row->sign != CS_SIGN_EVENT || !events)) continue;
    if (functions(marks, text, cs_runtime_class_text(row->class)) == 0)
      fail_msg("no function is %s", cs_runtime_class_text(row->class));
  }
  assert_int_equal(functions(marks, text, "SfiNext"), 1);
  assert_int_equal(functions(marks, text, "RuntimeTypeHandle_Instantiate"), 1);
  assert_null(cs_landmarks_find(marks, 0));
  assert_null(cs_landmarks_find(marks, text.sh_addr + text.sh_size));
  assert_null(cs_landmarks_find(marks, UINT64_MAX));
  cs_landmarks_free(marks);
  (void)elf_end(elf);
  free(bytes);
}

// Copies of it, of which headers or tables are overwritten, or the end is missing.
static void garbled_runtimes_are_read_within_their_bounds(void **state) {
  static const char *const tables[] = {".rela.dyn", ".eh_frame_hdr", "__tracepoints_strings",
                                       ".rodata"};
  (void)state;
  read_runtime();
  for (unsigned round = 0; round < 12; round++) {
    char *copy = cs_allocate(size);
    memcpy(copy, bytes, size);
    Elf *whole = elf_memory(copy, size);
    GElf_Ehdr header;
    GElf_Shdr table = section(whole, tables[round % CS_COUNT(tables)]);
    assert_non_null(gelf_getehdr(whole, &header));
    (void)elf_end(whole);
    size_t from = round < 6 ? table.sh_offset : header.e_shoff;
    size_t len = round < 6 ? table.sh_size : (size_t)header.e_shnum * header.e_shentsize;
    if (len == 0) len = 64;  // of the file's own header
    srand(round);
    for (int i = 0; i < (round < 6 ? 5000 : 40); i++)
      copy[from + (size_t)rand() % len] = (char)rand();
    Elf *elf = elf_memory(copy, round % 2 == 0 ? size : size - (size_t)rand() % (size / 2));
    struct cs_landmarks *marks = cs_landmarks_read(elf);
    for (uint64_t at = 0; at < size; at += 4096) (void)cs_landmarks_find(marks, at);
    cs_landmarks_free(marks);
    if (elf != NULL) (void)elf_end(elf);
    free(copy);
  }
  free(bytes);
}

static void texts_are_classes_and_back(void **state) {
  (void)state;
  assert_int_equal(cs_runtime_class_shown("[GC]"), CS_RUNTIME_GC);
  assert_int_equal(cs_runtime_class_shown("[GC"), CS_RUNTIME_UNKNOWN);
  assert_int_equal(cs_runtime_class_shown("GC"), CS_RUNTIME_UNKNOWN);
  assert_int_equal(cs_runtime_class_by(CS_SIGN_THREAD, ".NET Server GC"), CS_RUNTIME_GC);
  assert_int_equal(cs_runtime_class_by(CS_SIGN_THREAD, ".NET TP Worker"), CS_RUNTIME_UNKNOWN);
  assert_int_equal(cs_runtime_class_by(CS_SIGN_LIBRARY, "libclrjit.so"), CS_RUNTIME_JIT);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_installed_runtime_has_every_landmark),
      cmocka_unit_test(garbled_runtimes_are_read_within_their_bounds),
      cmocka_unit_test(texts_are_classes_and_back),
  };
  (void)elf_version(EV_CURRENT);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
