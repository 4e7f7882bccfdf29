// SPDX-License-Identifier: MIT
// Every row of every function of real libraries, compared with elfutils' reader of .eh_frame: at
// each place where either of the two says that a rule begins or ends, one of our steps with made-up
// registers and a made-up stack must give the same as the oracle's rules, evaluated over the same
// values.
#include <dirent.h>
#include <dlfcn.h>
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <gelf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "images/images.h"
#include "native/native.h"
#include "native/quirks.h"
#include "unwind/sites.h"

static struct cs_native *native;
static const struct cs_images *images;
static struct cs_world world;

// DWARF's numbering, written a second time, independently.
static const uint8_t ours[] = {CS_RAX, CS_RDX, CS_RCX, CS_RBX, CS_RSI, CS_RDI,
                               CS_RBP, CS_RSP, CS_R8,  CS_R9,  CS_R10, CS_R11,
                               CS_R12, CS_R13, CS_R14, CS_R15, CS_RIP};
enum { SP_COLUMN = 7, RA_COLUMN = 16, RA_IS_KEPT = 0 };
static const uint8_t preserved[] = {3, 6, SP_COLUMN, 12, 13, 14, 15, RA_COLUMN};

#include "support/cfi_oracle.h"

struct tally {
  unsigned rows, gaps, compared, bases, signals, refused, distrusted, corrected;
};

// Returns whether the address is in a function with a frame of one word that nothing describes.
static bool is_startup(const struct cs_image *image, uint64_t address) {
  static const uint8_t sub[] = {0x48, 0x83, 0xEC, 0x08};
  for (uint64_t at = address & ~3ull; at >= image->begin && address - at < 32; at -= 4)
    if (memcmp((const void *)(uintptr_t)at, sub, sizeof sub) == 0) return true;
  return false;
}

static void compare_at(const struct cs_image *image, Dwarf_CFI *cfi, uint64_t address,
                       struct tally *tally, uint64_t *end) {
  struct cs_code code = {.kind = CS_CODE_NATIVE, .image = image};
  struct cs_stack stack = {.lo = STACK_LO, .hi = STACK_HI};
  struct cs_regs regs = {.known = CS_REGS_ALL};
  struct oracle o;
  bool signal = false;
  char where[512];
  uint64_t begin;
  for (unsigned i = 0; i < CS_REG_COUNT; i++) regs.r[i] = STACK_SP + (i + 1) * 0x1000000;
  regs.r[CS_RSP] = STACK_SP;
  regs.r[CS_RIP] = address;
  struct cs_regs before = regs;
  (void)snprintf(where, sizeof where, "%s+%#lx", image->path, address - image->bias);
  enum cs_stop stop = cs_unwind_native(&world, &code, &stack, true, &regs, &signal);
  if (!ask(cfi, address - image->bias, &before, &o, &begin, end)) {
    // .init and .fini have rules by their code (native/startup.c; checked by ref.cfi).
    if (stop != CS_STOP_NO_NATIVE_RULE && !is_startup(image, address))
      fail_msg("%s: a rule, where the oracle has none", where);
    tally->gaps++;
    *end = UINT64_MAX;
    return;
  }
  *end += image->bias;
  tally->compared++;
  if (stop == CS_STOP_BASE) {
    if (o.reg[RA_COLUMN].defined) fail_msg("%s: a base, but not for the oracle", where);
    tally->bases++;
  } else if (stop == CS_STOP_NATIVE_RULE) {
    if (o.sp_has_rule || o.odd_cfa)
      tally->refused++;
    else
      tally->distrusted++;
  } else if (stop == CS_STOP_BAD_SP && o.e.cfa <= STACK_SP) {
    tally->refused++;  // vfork and _Unwind_Resume, whose return address is in a register
  } else if (stop != CS_STOP_NONE || (signal != o.signal_frame && !(signal && o.sp_has_rule))) {
    // If rsp has a rule of its own: setcontext continues at exactly that ip.
    fail_msg("%s: stop %s, signal %d, the oracle's %d", where, cs_stop_token(stop), signal,
             o.signal_frame);
  } else {
    compare_registers(&regs, &o, where);
    tally->signals += signal;
  }
}

// Returns whether the place is in a function whose .eh_frame is known to be wrong, and the oracle
// with it.
static bool is_corrected(const struct cs_image *image, uint64_t address) {
  enum { ALL = CS_QUIRKS + 5 + 3 + 2 };  // transition blocks, delay-load helpers, fault wrappers
  static struct cs_quirk_range quirks[CS_QUIRK_MAX];
  static unsigned count;
  static const struct cs_image *of;
  if (!image->is_coreclr) return false;
  if (of != image) {
    count =
        cs_quirks_find((const uint8_t *)(uintptr_t)image->begin, image->end - image->begin, quirks);
    assert_int_equal(count, ALL);
    of = image;
  }
  for (unsigned i = 0; i < count; i++)
    if (address - image->begin >= quirks[i].begin && address - image->begin < quirks[i].end)
      return true;
  return false;
}

// Returns whether the row is at the end of a function that leaves by __builtin_eh_return. There,
// .eh_frame gives the places of saved registers that already hold another frame's values
// (native/ehreturn.c).
static bool is_eh_return(const struct cs_image *image, uint32_t row) {
  for (unsigned back = 0; back <= row && back < 4; back++) {
    uint16_t id = image->row_rule[row - back];
    if (id == CS_NO_RULE) return false;
    const struct cs_cfi_rule *rule = &images->rules[id];
    if (rule->cfa_how == CS_CFA_EH_RETURN) return true;
    if (rule->cfa_reg == CS_RBP || (image->begin + image->row_ip[row - back]) % 16 == 0)
      return false;
  }
  return false;
}

// Walks over the image by the oracle's rows and ours at once: a stretch ends where a row of either
// ends.
static void compare_image(const struct cs_image *image, Dwarf_CFI *cfi, struct tally *tally) {
  uint64_t next;
  tally->rows = image->row_count;
  for (uint32_t row = 0; row < image->row_count; row++) {
    uint64_t at = image->begin + image->row_ip[row];
    uint64_t row_end =
        row + 1 < image->row_count ? image->begin + image->row_ip[row + 1] : image->end;
    if (is_corrected(image, at) || is_eh_return(image, row)) {
      tally->corrected++;
      continue;
    }
    while (at < row_end) {
      uint64_t oracle_end, ignored;
      compare_at(image, cfi, at, tally, &oracle_end);
      next = oracle_end < row_end ? oracle_end : row_end;
      if (next - 1 > at) compare_at(image, cfi, next - 1, tally, &ignored);
      assert_true(next > at);
      at = next;
    }
  }
}

static void compare_path(const char *path) {
  struct tally tally = {0};
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  assert_true(fd >= 0);
  assert_int_not_equal(elf_version(EV_CURRENT), EV_NONE);
  Elf *elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
  assert_non_null(elf);
  Dwarf_CFI *cfi = dwarf_getcfi_elf(elf);
  assert_non_null(cfi);
  for (uint32_t i = 0; i < images->count; i++)
    if (strcmp(images->image[i].path, path) == 0) compare_image(&images->image[i], cfi, &tally);
  print_message(
      "%s: %u rows, compared at %u places: %u bases, %u signal frames, %u refused, "
      "%u distrusted, %u corrected, %u ends of gaps\n",
      path, tally.rows, tally.compared, tally.bases, tally.signals, tally.refused, tally.distrusted,
      tally.corrected, tally.gaps);
  assert_true(tally.compared > tally.rows / 2);
  // What is refused or distrusted is listed in cfi_run.c: a dozen functions. In a function that is
  // distrusted because it describes itself wrongly, the oracle would be wrong.
  assert_true(tally.refused <= 12);
  assert_true(tally.distrusted * 200 <= tally.compared);
  if (strstr(path, "libcoreclr") == NULL && strstr(path, "libcrypto") == NULL)
    assert_int_equal(tally.distrusted, 0);
  dwarf_cfi_end(cfi);
  (void)elf_end(elf);
  (void)close(fd);
}

static const char *find_path(const char *name) {
  for (uint32_t i = 0; i < images->count; i++) {
    const char *slash = strrchr(images->image[i].path, '/');
    if (slash != NULL && strncmp(slash + 1, name, strlen(name)) == 0) return images->image[i].path;
  }
  return NULL;
}

static void libraries_of_the_system(void **state) {
  (void)state;
  static const char *const names[] = {"libc.so", "ld-linux", "libstdc++", "libgcc_s", "libm.so"};
  for (unsigned i = 0; i < CS_COUNT(names); i++) {
    const char *path = find_path(names[i]);
    assert_non_null(path);
    compare_path(path);
  }
}

// OpenSSL's hand-written functions have the CFA in memory. The library is there whenever .NET's is.
static void openssl(void **state) {
  (void)state;
  const char *path = find_path("libcrypto");
  if (path == NULL) skip();
  compare_path(path);
}

static char runtime_folder[512];

// Everything that .NET ships: the folder of the newest runtime, which `dotnet --list-runtimes`
// lists last.
static void libraries_of_the_runtime(void **state) {
  (void)state;
  unsigned compared = 0;
  if (runtime_folder[0] == '\0') {
    print_message("no .NET runtime found (dotnet --list-runtimes): skipped\n");
    skip();
  }
  for (uint32_t i = 0; i < images->count; i++) {
    const char *path = images->image[i].path;
    bool first = i == 0 || strcmp(images->image[i - 1].path, path) != 0;
    if (!first || strncmp(path, runtime_folder, strlen(runtime_folder)) != 0) continue;
    compare_path(path);
    compared++;
  }
  assert_non_null(find_path("libcoreclr.so"));
  assert_non_null(find_path("libclrjit.so"));
  assert_true(compared >= 8);
}

// While the hijack's trip wire calls the runtime, the word where its return address belongs may not
// have been filled in yet. A kept rule must not step over that call, as it does over other calls.
static void the_trip_wire_is_no_call_site(void **state) {
  (void)state;
  enum { CALL_END = 0x26 };  // quirks.c has the function's code
  static struct cs_sites sites;
  static struct cs_quirk_range quirks[CS_QUIRK_MAX];
  unsigned tried = 0;
  if (find_path("libcoreclr.so") == NULL) skip();
  world.sites = &sites;
  for (uint32_t i = 0; i < images->count; i++) {
    const struct cs_image *image = &images->image[i];
    if (!image->is_coreclr) continue;
    const uint8_t *text = (const uint8_t *)(uintptr_t)image->begin;
    unsigned count = cs_quirks_find(text, image->end - image->begin, quirks);
    struct cs_code code = {.kind = CS_CODE_NATIVE, .image = image};
    for (unsigned q = 0; q < count; q++) {
      if (strcmp(quirks[q].name, "OnHijackTripThread") != 0) continue;
      assert_int_equal(text[quirks[q].begin + CALL_END - 5], 0xE8);
      assert_int_equal(
          cs_sites_learn(&world, image->begin + quirks[q].begin + CALL_END, &code, NULL), 0);
      tried++;
    }
  }
  world.sites = NULL;
  assert_int_equal(tried, 1);
}

static void load_all(const char *folder) {
  DIR *entries = opendir(folder);
  if (entries == NULL) return;
  for (struct dirent *entry; (entry = readdir(entries)) != NULL;) {
    char path[1024];
    size_t length = strlen(entry->d_name);
    if (length < 3 || strcmp(entry->d_name + length - 3, ".so") != 0) continue;
    (void)snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
    if (dlopen(path, RTLD_LAZY | RTLD_LOCAL) == NULL) print_message("%s\n", dlerror());
  }
  (void)closedir(entries);
}

static void load_runtime(void) {
  FILE *list = popen("dotnet --list-runtimes 2>/dev/null", "re");
  char line[512], version[128], folder[256];
  while (list != NULL && fgets(line, sizeof line, list) != NULL)
    if (sscanf(line, "Microsoft.NETCore.App %127s [%255[^]]]", version, folder) == 2)
      (void)snprintf(runtime_folder, sizeof runtime_folder, "%s/%s/", folder, version);
  if (list != NULL) (void)pclose(list);
  if (runtime_folder[0] != '\0') load_all(runtime_folder);
}

static int setup(void **state) {
  (void)state;
  static const char *const others[] = {"libstdc++.so.6", "libm.so.6", "libcrypto.so.3"};
  for (unsigned i = 0; i < CS_COUNT(others); i++) (void)dlopen(others[i], RTLD_LAZY | RTLD_LOCAL);
  load_runtime();
  native = cs_native_new(0);
  images = native != NULL ? cs_native_refresh(native) : NULL;
  world.mem.read = made_up;
  world.images = images;
  return images != NULL ? 0 : -1;
}
static int teardown(void **state) {
  (void)state;
  cs_native_free(native);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(libraries_of_the_system),
      cmocka_unit_test(openssl),
      cmocka_unit_test(libraries_of_the_runtime),
      cmocka_unit_test(the_trip_wire_is_no_call_site),
  };
  return cmocka_run_group_tests(tests, setup, teardown);
}
