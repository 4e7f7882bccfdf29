// SPDX-License-Identifier: MIT
// Which file a module's path means: the one that the process has loaded, or one that is not
// believed.
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli/loaded.h"

#define SECOND 1000000000ull

static char path[] = "/tmp/clrsnap-loaded-XXXXXX";

static uint64_t now_ns(void) {
  struct timespec now;
  (void)clock_gettime(CLOCK_REALTIME, &now);
  return (uint64_t)now.tv_sec * SECOND + (uint64_t)now.tv_nsec;
}

// Is the file believed, if this process has loaded nothing before then?
static bool is_believed(uint64_t since_ns) {
  struct cs_recording rec;
  cs_recording_init(&rec);
  bool added;
  rec.functions = cs_grow(NULL, 0, &rec.function_capacity, sizeof *rec.functions);
  rec.functions[rec.function_count++].text[CS_FN_MODULE] = cs_recording_text(&rec, path);
  (void)cs_map_put(&rec.function_ids, 7, 0, &added);
  cs_loaded_note(&rec, 7, getpid(), since_ns);
  assert_int_equal(rec.file_count, 1);
  bool believed = rec.files[0].size != CS_REC_NO_FILE;
  if (believed) assert_int_equal(rec.files[0].size, 4096);
  cs_recording_free(&rec);
  return believed;
}

static int set_up(void **state) {
  (void)state;
  strcpy(path + strlen(path) - 6, "XXXXXX");
  int fd = mkstemp(path);
  if (fd < 0 || ftruncate(fd, 4096) != 0) return -1;
  return close(fd);
}

static int tear_down(void **state) {
  (void)state;
  return unlink(path);
}

static void time_tells(void **state) {
  (void)state;
  assert_true(is_believed(now_ns() + SECOND));
  assert_false(is_believed(now_ns() - 3600 * SECOND));
  assert_false(is_believed(0));
}

// Some layered file systems show a mapping under the number of a file below.
static bool maps_show(int fd) {
  struct stat st;
  char line[512];
  unsigned long inode = 0;
  FILE *maps = fopen("/proc/self/maps", "re");
  assert_int_equal(fstat(fd, &st), 0);
  while (maps != NULL && fgets(line, sizeof line, maps) != NULL)
    if (strstr(line, path) != NULL) (void)sscanf(line, "%*s %*s %*s %*s %lu", &inode);
  if (maps != NULL) (void)fclose(maps);
  return inode == st.st_ino;
}

// Its contents are old, but its name is new: another file may have been here.
static void a_mapping_tells(void **state) {
  (void)state;
  uint64_t since = now_ns() - 3600 * SECOND;
  const struct timespec old[2] = {{1000000, 0}, {1000000, 0}};
  assert_int_equal(utimensat(AT_FDCWD, path, old, 0), 0);
  assert_false(is_believed(since));
  int fd = open(path, O_RDWR);
  void *at = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
  assert_true(at != MAP_FAILED);
  if (!maps_show(fd)) skip();
  assert_true(is_believed(since));
  // It was written over in its place.
  assert_int_equal(pwrite(fd, "new", 3, 0), 3);
  assert_false(is_believed(since));
  assert_int_equal(munmap(at, 4096), 0);
  assert_int_equal(close(fd), 0);
}

static void a_process_has_a_start(void **state) {
  (void)state;
  uint64_t now = now_ns(), since = cs_loaded_since(getpid(), true, 0);
  // The tick that it was started in may not be over.
  assert_true(since <= now + SECOND / 50 && now < since + 600 * SECOND);
  // Without our agent in it, it may be anybody.
  assert_int_equal(cs_loaded_since(getpid(), false, 5), 5);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(time_tells, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_mapping_tells, set_up, tear_down),
      cmocka_unit_test(a_process_has_a_start),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
