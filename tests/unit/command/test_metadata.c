// SPDX-License-Identifier: MIT
// Metadata of real modules, in which every method of the framework has a name, and of damaged ones:
// whatever is wrong with a file, reading it comes to an end.
#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/random.h"
#include "metadata/metadata.h"

enum { DAMAGED = 3000 };

static char framework[4096];  // the folder of the newest Microsoft.NETCore.App; "": there is none

static int find_framework(void **state) {
  (void)state;
  FILE *list = popen(
      "dotnet --list-runtimes 2>/dev/null | sed -n "
      "'s/^Microsoft.NETCore.App \\([^ ]*\\) \\[\\(.*\\)\\]/\\2\\/\\1/p' | tail -1",
      "r");
  if (list == NULL) return 0;
  if (fgets(framework, sizeof framework, list) == NULL) framework[0] = '\0';
  framework[strcspn(framework, "\n")] = '\0';
  (void)pclose(list);
  return 0;
}

static char *path_of(const char *name) {
  static char path[8192];
  (void)snprintf(path, sizeof path, "%s/%s", framework, name);
  return path;
}

static bool read_fd(void *from, uint64_t offset, void *out, size_t size) {
  return pread(*(const int *)from, out, size, (off_t)offset) == (ssize_t)size;
}

// A file is laid out here as the runtime maps it: the first page is the file's, and so is the rest
// of every page that holds a section. What lies between is not mapped.
enum { PAGE = 4096, MAX_SECTIONS = 16 };
struct mapped {
  int fd;
  unsigned count;
  struct {
    uint32_t size, rva, raw_size, raw;
  } section[MAX_SECTIONS];
};

static bool read_mapped(void *from, uint64_t offset, void *out, size_t size) {
  const struct mapped *m = from;
  if (offset + size <= PAGE) return pread(m->fd, out, size, (off_t)offset) == (ssize_t)size;
  for (unsigned i = 0; i < m->count; i++) {
    uint64_t rva = m->section[i].rva;
    if (offset >= rva && offset - rva + size <= m->section[i].raw_size)
      return pread(m->fd, out, size, (off_t)(m->section[i].raw + offset - rva)) == (ssize_t)size;
  }
  return false;
}

static void map_file(struct mapped *m, int fd) {
  struct cs_pe pe;
  m->fd = fd;
  assert_true(cs_pe_open(&pe, read_fd, &fd, CS_PE_FLAT));
  assert_in_range(pe.section_count, 1, MAX_SECTIONS);
  m->count = pe.section_count;
  for (unsigned i = 0; i < m->count; i++)
    assert_true(
        cs_pe_bytes(&pe, pe.sections + 40ull * i + 8, &m->section[i], sizeof m->section[i]));
}

static struct cs_metadata *open_loaded(cs_pe_read_fn *read, void *from, enum cs_pe_layout layout) {
  struct cs_pe pe;
  assert_true(cs_pe_open_loaded(&pe, read, from));
  assert_int_equal(pe.layout, layout);
  return cs_metadata_read(&pe);
}

static struct cs_metadata *open_module(const char *path) {
  struct cs_pe pe;
  struct cs_metadata *m = NULL;
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return NULL;
  if (cs_pe_open(&pe, read_fd, &fd, CS_PE_FLAT)) m = cs_metadata_read(&pe);
  (void)close(fd);
  return m;
}

static unsigned name_all(const struct cs_metadata *m) {
  struct cs_method_text text;
  unsigned named = 0;
  for (uint32_t row = 1; row <= m->rows[CS_TABLE_METHOD_DEF]; row++)
    named += cs_metadata_method(m, 0x06000000 | row, NULL, &text) && text.type[0] != '\0' &&
             text.method[0] != '\0';
  return named;
}

static void every_method_of_the_framework(void **state) {
  (void)state;
  struct dirent *entry;
  DIR *dir = framework[0] != '\0' ? opendir(framework) : NULL;
  unsigned modules = 0, methods = 0;
  if (dir == NULL) skip();
  while ((entry = readdir(dir)) != NULL) {
    size_t len = strlen(entry->d_name);
    if (len < 4 || strcmp(entry->d_name + len - 4, ".dll") != 0) continue;
    struct cs_metadata *m = open_module(path_of(entry->d_name));
    assert_non_null(m);
    assert_non_null(cs_metadata_module_name(m));
    assert_string_equal(cs_metadata_module_name(m), entry->d_name);
    unsigned named = name_all(m);
    assert_int_equal(named, m->rows[CS_TABLE_METHOD_DEF]);
    modules++;
    methods += named;
    cs_metadata_free(m);
  }
  (void)closedir(dir);
  print_message("%u modules, %u methods\n", modules, methods);
  assert_true(modules > 100 && methods > 50000);
}

// Also where the metadata begins in the first page, which a mapped image has in common with the
// file.
static void a_module_in_memory(void **state) {
  (void)state;
  struct dirent *entry;
  DIR *dir = framework[0] != '\0' ? opendir(framework) : NULL;
  unsigned modules = 0;
  if (dir == NULL) skip();
  while ((entry = readdir(dir)) != NULL) {
    size_t len = strlen(entry->d_name);
    if (len < 4 || strcmp(entry->d_name + len - 4, ".dll") != 0) continue;
    int fd = open(path_of(entry->d_name), O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    struct mapped image;
    map_file(&image, fd);
    struct cs_metadata *flat = open_loaded(read_fd, &fd, CS_PE_FLAT);
    struct cs_metadata *mapped = open_loaded(read_mapped, &image, CS_PE_MAPPED);
    assert_non_null(flat);
    assert_non_null(mapped);
    assert_string_equal(cs_metadata_module_name(mapped), entry->d_name);
    assert_int_equal(name_all(mapped), name_all(flat));
    cs_metadata_free(flat);
    cs_metadata_free(mapped);
    (void)close(fd);
    modules++;
  }
  (void)closedir(dir);
  assert_true(modules > 100);
}

// Here the method's row is found by its name, not by its number.
static void names_as_people_write_them(void **state) {
  (void)state;
  static const struct {
    const char *space, *type, *method;
    uint32_t parameters;
  } wanted[] = {{"System.Collections.Generic", "Dictionary<TKey,TValue>.Enumerator", "MoveNext", 0},
                {"System.Collections.Generic", "Dictionary<TKey,TValue>", "set_Item", 2},
                {"System", "Array", "Sort<TKey,TValue>", 4},
                {"System", "String", ".ctor", 1},
                {"System.Threading", "Thread", "Sleep", 1}};
  struct cs_metadata *m =
      framework[0] != '\0' ? open_module(path_of("System.Private.CoreLib.dll")) : NULL;
  struct cs_method_text text;
  if (m == NULL) skip();
  for (size_t i = 0; i < CS_COUNT(wanted); i++) {
    bool found = false;
    for (uint32_t row = 1; row <= m->rows[CS_TABLE_METHOD_DEF] && !found; row++)
      found = cs_metadata_method(m, 0x06000000 | row, NULL, &text) &&
              strcmp(text.space, wanted[i].space) == 0 && strcmp(text.type, wanted[i].type) == 0 &&
              strcmp(text.method, wanted[i].method) == 0 && text.parameters == wanted[i].parameters;
    if (!found)
      fail_msg("no method with %u parameters is called %s.%s", wanted[i].parameters, wanted[i].type,
               wanted[i].method);
  }
  assert_false(cs_metadata_method(m, 0x06000000, NULL, &text));
  assert_false(cs_metadata_method(m, 0x06FFFFFF, NULL, &text));
  assert_false(cs_metadata_method(m, 0x02000001, NULL, &text));
  cs_metadata_free(m);
}

// Each name leads to its own row, of which it is the name again.
static void rows_by_name(void **state) {
  (void)state;
  static const char *const fields[][3] = {
      {"System.Threading", "ThreadPool", "s_workQueue"},
      {"System.Threading", "ThreadPoolWorkQueue+WorkStealingQueue", "m_headIndex"},
      {"System.Collections.Concurrent", "ConcurrentQueueSegment`1+Slot", "Item"}};
  enum { NAME = 1 };
  struct cs_metadata *m =
      framework[0] != '\0' ? open_module(path_of("System.Private.CoreLib.dll")) : NULL;
  uint32_t offset;
  if (m == NULL) skip();
  for (size_t i = 0; i < CS_COUNT(fields); i++) {
    uint32_t type = cs_metadata_find_type(m, fields[i][0], fields[i][1]);
    uint32_t field = cs_metadata_find_field(m, type, fields[i][2]);
    assert_true(type != 0 && field != 0);
    assert_true(cs_metadata_cell(m, CS_TABLE_FIELD, field, NAME, &offset));
    assert_string_equal(cs_metadata_string(m, offset), fields[i][2]);
    assert_int_equal(cs_metadata_find_field(m, type + 1, fields[i][2]), 0);
  }
  assert_int_equal(cs_metadata_find_type(m, "System.Threading", "WorkStealingQueue"), 0);
  assert_int_equal(cs_metadata_find_type(m, "", "ThreadPool"), 0);
  assert_int_equal(cs_metadata_find_type(m, "System.Threading", "ThreadPool+None"), 0);
  assert_int_equal(cs_metadata_find_field(m, 0, "s_workQueue"), 0);
  cs_metadata_free(m);
}

static void names_of_types(void **state) {
  (void)state;
  struct cs_metadata *m =
      framework[0] != '\0' ? open_module(path_of("System.Private.CoreLib.dll")) : NULL;
  struct cs_method_text text;
  if (m == NULL) skip();
  assert_true(cs_metadata_type(
      m, cs_metadata_find_type(m, "System.Collections.Generic", "Dictionary`2+Enumerator"), NULL,
      &text));
  assert_string_equal(text.space, "System.Collections.Generic");
  assert_string_equal(text.type, "Dictionary<TKey,TValue>.Enumerator");
  struct cs_generic_text int_key = {.type_count = 2, .type = {"int", NULL}};
  assert_true(cs_metadata_type(
      m, cs_metadata_find_type(m, "System.Collections.Generic", "Dictionary`2+Enumerator"),
      &int_key, &text));
  assert_string_equal(text.type, "Dictionary<int,TValue>.Enumerator");
  assert_false(cs_metadata_type(m, 0, NULL, &text));
  assert_false(cs_metadata_type(m, m->rows[CS_TABLE_TYPE_DEF] + 1, NULL, &text));
  cs_metadata_free(m);
}

static uint64_t random_state = 88172645463325252u;
static uint64_t next_random(void) {
  return cs_random_next(&random_state);
}

static void write_file(const char *path, const uint8_t *bytes, size_t size) {
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  assert_true(fwrite(bytes, 1, size, file) == size);
  assert_int_equal(fclose(file), 0);
}

// Files that are cut short, or have changed bytes, most of them in the headers and the tables'
// head.
static void damaged_files(void **state) {
  (void)state;
  static uint8_t bytes[1 << 20], damaged[sizeof bytes];
  char path[] = "/tmp/metadata-XXXXXX";
  FILE *file = framework[0] != '\0' ? fopen(path_of("System.Threading.dll"), "rb") : NULL;
  if (file == NULL) skip();
  size_t size = fread(bytes, 1, sizeof bytes, file);
  (void)fclose(file);
  int fd = mkstemp(path);
  assert_true(fd >= 0);
  (void)close(fd);
  unsigned readable = 0;
  for (int i = 0; i < DAMAGED; i++) {
    size_t left = i % 3 == 0 ? next_random() % size : size;
    memcpy(damaged, bytes, size);
    for (uint64_t n = next_random() % 8; n > 0 && left > 0; n--) {
      size_t range = next_random() % 2 == 0 && left > 1024 ? 1024 : left;
      damaged[next_random() % range] = (uint8_t)next_random();
    }
    write_file(path, damaged, left);
    struct cs_metadata *m = open_module(path);
    if (m == NULL) continue;
    readable++;
    (void)name_all(m);
    cs_metadata_free(m);
  }
  (void)unlink(path);
  print_message("%u of %d damaged files can be read\n", readable, DAMAGED);
  assert_true(readable > 0 && readable < DAMAGED);
}

static void no_module(void **state) {
  (void)state;
  assert_null(open_module("/no/such/file.dll"));
  assert_null(open_module("/"));
  assert_null(open_module("/bin/true"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_method_of_the_framework),
      cmocka_unit_test(a_module_in_memory),
      cmocka_unit_test(names_as_people_write_them),
      cmocka_unit_test(rows_by_name),
      cmocka_unit_test(names_of_types),
      cmocka_unit_test(damaged_files),
      cmocka_unit_test(no_module),
  };
  return cmocka_run_group_tests(tests, find_framework, NULL);
}
