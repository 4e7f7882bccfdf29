// SPDX-License-Identifier: MIT
// The native symbols of a file that is truncated while it is read, and those of debug files in a
// folder.
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <link.h>

#include "metadata/elfsym.h"

__attribute__((noinline, used)) static int first_marker(int x) {
  return x + 1;
}
__attribute__((noinline, used)) static int second_marker(int x) {
  return x + 2;
}

// Each parameter is a pair of the one before, so that the name would be demangled to terabytes.
#define DOUBLING                                                                         \
  "_Z1fSt4pairIiiES_IS0_S0_ES_IS1_S1_ES_IS2_S2_ES_IS3_S3_ES_IS4_S4_ES_IS5_S5_ES_IS6_S6_" \
  "ES_IS7_S7_ES_IS8_S8_ES_IS9_S9_ES_ISA_SA_ES_ISB_SB_ES_ISC_SC_ES_ISD_SD_ES_ISE_SE_ES_I" \
  "SF_SF_ES_ISG_SG_ES_ISH_SH_ES_ISI_SI_ES_ISJ_SJ_ES_ISK_SK_ES_ISL_SL_ES_ISM_SM_ES_ISN_S" \
  "N_ES_ISO_SO_ES_ISP_SP_ES_ISQ_SQ_ES_ISR_SR_ES_ISS_SS_ES_IST_ST_ES_ISU_SU_ES_ISV_SV_ES" \
  "_ISW_SW_ES_ISX_SX_E"
__attribute__((noinline, used)) static int doubling_marker(int x) __asm__(DOUBLING);
static int doubling_marker(int x) {
  return x + 3;
}

struct self {
  uint64_t base;
  const uint8_t *id;
  uint32_t id_size;
};

static int find_self(struct dl_phdr_info *info, size_t size, void *data) {
  struct self *self = data;
  (void)size;
  self->base = info->dlpi_addr;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
    for (uint64_t at = self->base + ph->p_vaddr, to = at + ph->p_memsz;
         ph->p_type == PT_NOTE && at < to;) {
      const ElfW(Nhdr) *note = (const ElfW(Nhdr) *)(uintptr_t)at;
      uint64_t id = at + sizeof *note + ((note->n_namesz + 3u) & ~3u);
      if (note->n_type == NT_GNU_BUILD_ID) {
        self->id = (const uint8_t *)(uintptr_t)id;
        self->id_size = note->n_descsz;
      }
      at = id + ((note->n_descsz + 3u) & ~3u);
    }
  }
  return 1;  // the program comes first
}

// A copy of this program, which has a build id.
static void copy_self(const char *path) {
  char command[256];
  (void)snprintf(command, sizeof command, "cp /proc/%d/exe %s && chmod 600 %s", (int)getpid(), path,
                 path);
  assert_int_equal(system(command), 0);
}

static void a_file_that_is_shortened_keeps_its_names(void **state) {
  (void)state;
  char path[] = "/tmp/test_elfsym.XXXXXX";
  struct self self = {0};
  (void)dl_iterate_phdr(find_self, &self);
  assert_true(self.id_size > 0);
  (void)close(mkstemp(path));
  copy_self(path);
  struct cs_target *target = cs_target_of(0);
  struct cs_elfsyms *syms = cs_elfsyms_new(target);
  struct cs_elf_image image = {{.path = path}, self.id_size, self.id};
  cs_elfsyms_add(syms, 1, &image);
  const char *name = cs_elfsyms_find(syms, 1, (uintptr_t)first_marker - self.base);
  assert_non_null(name);
  assert_string_equal(name, "first_marker");
  assert_int_equal(truncate(path, 0), 0);
  name = cs_elfsyms_find(syms, 1, (uintptr_t)second_marker - self.base);
  assert_non_null(name);
  assert_string_equal(name, "second_marker");
  name = cs_elfsyms_find(syms, 1, (uintptr_t)doubling_marker - self.base);
  assert_non_null(name);
  assert_string_equal(name, DOUBLING);
  cs_elfsyms_free(syms);
  cs_target_free(target);
  (void)unlink(path);
}

// ---- Debug files in a folder that the caller names ----

__attribute__((format(printf, 1, 2))) static void run(const char *format, ...) {
  char command[1200];
  va_list args;
  va_start(args, format);
  (void)vsnprintf(command, sizeof command, format, args);
  va_end(args);
  assert_int_equal(system(command), 0);
}

// The name of first_marker, by the mapped file `path` and that folder; "": none.
static const char *name_from(const struct self *self, const char *folder, const char *path) {
  static char found[64];
  struct cs_target *target = cs_target_of(0);
  struct cs_elfsyms *syms = cs_elfsyms_new(target);
  struct cs_elf_image image = {{.path = path}, self->id_size, self->id};
  struct cs_elf_places places = {.folders = &folder, .folder_count = folder != NULL};
  cs_elfsyms_set_places(syms, &places);
  cs_elfsyms_add(syms, 1, &image);
  const char *name = cs_elfsyms_find(syms, 1, (uintptr_t)first_marker - self->base);
  (void)snprintf(found, sizeof found, "%s", name != NULL ? name : "");
  cs_elfsyms_free(syms);
  cs_target_free(target);
  return found;
}

// `path`: of the debug file, which belongs to `folder`/at/app.
static void check_place(const struct self *self, const char *folder, const char *path) {
  static const char *const others[] = {"cp /bin/true %s", "head -c 3000 %s.whole > %s", "mkfifo %s",
                                       "ln -s /dev/zero %s"};
  char app[64];
  (void)snprintf(app, sizeof app, "%s/at/app", folder);
  run("mkdir -p $(dirname %s) && cp %s/kept %s", path, folder, path);
  assert_string_equal(name_from(self, folder, app), "first_marker");
  assert_string_equal(name_from(self, folder, "/no/such/app"), "first_marker");
  assert_string_equal(name_from(self, NULL, "/no/such/app"), "");
  run("mv %s %s.whole", path, path);
  for (size_t i = 0; i < CS_COUNT(others); i++) {
    char command[1200];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
#pragma GCC diagnostic ignored "-Wformat-extra-args"
    (void)snprintf(command, sizeof command, others[i], path, path);
#pragma GCC diagnostic pop
    run("%s", command);
    assert_string_equal(name_from(self, folder, app), "");
    assert_int_equal(unlink(path), 0);
  }
}

static void names_come_from_a_folder_of_debug_files(void **state) {
  (void)state;
  char folder[] = "/tmp/test_elfsym.XXXXXX", path[512], app[64], id[129];
  struct self self = {0};
  (void)dl_iterate_phdr(find_self, &self);
  for (uint32_t i = 0; i < self.id_size; i++) (void)snprintf(id + 2 * i, 3, "%02x", self.id[i]);
  assert_non_null(mkdtemp(folder));
  (void)snprintf(app, sizeof app, "%s/at/app", folder);
  run("mkdir %s/at", folder);
  copy_self(app);
  run("cd %s && objcopy --only-keep-debug at/app kept && strip -s at/app", folder);
  assert_string_equal(name_from(&self, folder, app), "");
  (void)snprintf(path, sizeof path, "%s/.build-id/%.2s/%s.debug", folder, id, id + 2);
  check_place(&self, folder, path);
  (void)snprintf(path, sizeof path, "%s/%s/debuginfo", folder, id);
  check_place(&self, folder, path);
  (void)snprintf(path, sizeof path, "%s/_.debug/elf-buildid-sym-%s/_.debug", folder, id);
  check_place(&self, folder, path);
  (void)snprintf(path, sizeof path, "%s/app.dbg", folder);
  check_place(&self, folder, path);
  (void)snprintf(path, sizeof path, "%s/app.debug", folder);
  check_place(&self, folder, path);
  run("rm -r %s", folder);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_file_that_is_shortened_keeps_its_names),
      cmocka_unit_test(names_come_from_a_folder_of_debug_files),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
