// SPDX-License-Identifier: MIT
// Every row of every function of Debian's arm64 libc, ld.so, libm, libstdc++ and libgcc_s, compared
// with elfutils' reader of .eh_frame: at each place where either of the two says that a rule begins
// or ends, one of our steps with made-up registers and a made-up stack must give the same as the
// oracle's rules, evaluated over the same values.
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
#include "unwind/unwind.h"

static struct cs_native *native;
static const struct cs_images *images;
static struct cs_world world;

// DWARF's numbering, written a second time, independently.
static const uint8_t ours[] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,
                               16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31};
enum { RA_COLUMN = 30, SP_COLUMN = 31, RA_IS_KEPT = 1 };
static const uint8_t preserved[] = {19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, SP_COLUMN};

#include "support/cfi_oracle.h"

struct tally {
  unsigned rows, gaps, compared, bases, refused, dropped;
};

static bool is_dropped(const struct cs_image *image, uint64_t address) {
  uint32_t offset = (uint32_t)(address - image->begin), row = 0;
  while (row + 1 < image->row_count && image->row_ip[row + 1] <= offset) row++;
  return image->row_rule[row] == 0;  // CS_RULE_NONE
}

// Returns whether the address is in a function that begins with a frame of two words (stp fp, lr,
// [sp, -16]!), which nothing describes.
static bool is_startup(const struct cs_image *image, uint64_t address) {
  for (uint64_t at = address - 44; at <= address + 4; at += 4)
    if (at >= image->begin && *(const uint32_t *)(uintptr_t)at == 0xA9BF7BFD) return true;
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
  regs.r[CS_SP] = STACK_SP;
  regs.r[CS_IP] = address;
  struct cs_regs before = regs;
  (void)snprintf(where, sizeof where, "%s+%#lx", image->path, address - image->bias);
  enum cs_stop stop = cs_unwind_native(&world, &code, &stack, true, &regs, &signal);
  if (!ask(cfi, address - image->bias, &before, &o, &begin, end)) {
    // .init and .fini have rules by their code (native/startup.c).
    if (stop != CS_STOP_NO_NATIVE_RULE && !is_startup(image, address))
      fail_msg("%s: a rule, where the oracle has none", where);
    tally->gaps++;
    *end = UINT64_MAX;
    return;
  }
  *end += image->bias;
  tally->compared++;
  if (stop == CS_STOP_BASE) {
    // The oracle does not tell an undefined return address from one in lr.
    if (o.reg[RA_COLUMN].v != before.r[CS_LR])
      fail_msg("%s: a base, but not for the oracle", where);
    tally->bases++;
  } else if (stop == CS_STOP_NATIVE_RULE && is_dropped(image, address)) {
    tally->dropped++;
  } else if (stop == CS_STOP_NATIVE_RULE) {
    tally->refused++;
  } else if (stop != CS_STOP_NONE || signal != o.signal_frame) {
    fail_msg("%s: stop %s, signal %d, the oracle's %d", where, cs_stop_token(stop), signal,
             o.signal_frame);
  } else {
    compare_registers(&regs, &o, where);
    if (regs.r[CS_IP] != o.reg[RA_COLUMN].v)
      fail_msg("%s: the return address is %#lx, the oracle says %#lx", where, regs.r[CS_IP],
               o.reg[RA_COLUMN].v);
  }
}

// Walks over the image by the oracle's rows and ours at once: a stretch ends where a row of either
// ends.
static void compare_image(const struct cs_image *image, Dwarf_CFI *cfi, struct tally *tally) {
  tally->rows = image->row_count;
  for (uint32_t row = 0; row < image->row_count; row++) {
    uint64_t at = image->begin + image->row_ip[row];
    uint64_t row_end =
        row + 1 < image->row_count ? image->begin + image->row_ip[row + 1] : image->end;
    while (at < row_end) {
      uint64_t oracle_end, ignored;
      compare_at(image, cfi, at, tally, &oracle_end);
      uint64_t next = oracle_end < row_end ? oracle_end : row_end;
      if (next - 4 > at) compare_at(image, cfi, next - 4, tally, &ignored);
      assert_true(next > at);
      at = next;
    }
  }
}

static void compare_library(const char *name) {
  struct tally tally = {0};
  const char *path = NULL;
  for (uint32_t i = 0; i < images->count; i++) {
    const char *slash = strrchr(images->image[i].path, '/');
    if (slash != NULL && strncmp(slash + 1, name, strlen(name)) == 0) path = images->image[i].path;
  }
  assert_non_null(path);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  assert_true(fd >= 0);
  assert_int_not_equal(elf_version(EV_CURRENT), EV_NONE);
  Elf *elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
  assert_non_null(elf);
  Dwarf_CFI *cfi = dwarf_getcfi_elf(elf);
  assert_non_null(cfi);
  for (uint32_t i = 0; i < images->count; i++)
    if (strcmp(images->image[i].path, path) == 0) compare_image(&images->image[i], cfi, &tally);
  print_message("%s: %u rows, compared at %u places: %u bases, %u refused, %u dropped, %u gaps\n",
                path, tally.rows, tally.compared, tally.bases, tally.refused, tally.dropped,
                tally.gaps);
  assert_true(tally.compared > tally.rows / 2);
  assert_true(tally.bases <= 8);
  assert_true(tally.refused <= 12);
  // longjmp and setcontext, which describe where they go, and what _dl_runtime_resolve says of the
  // call of a PLT; in libgcc_s, functions that end by __builtin_eh_return.
  assert_true(tally.dropped <= (strncmp(name, "libgcc_s", 8) == 0 ? 80 : 32));
  dwarf_cfi_end(cfi);
  (void)elf_end(elf);
  (void)close(fd);
}

static void libraries_of_the_system(void **state) {
  (void)state;
  static const char *const names[] = {"libc.so", "ld-linux", "libstdc++", "libgcc_s", "libm.so"};
  for (unsigned i = 0; i < CS_COUNT(names); i++) compare_library(names[i]);
}

static int setup(void **state) {
  (void)state;
  static const char *const others[] = {"libstdc++.so.6", "libm.so.6", "libgcc_s.so.1"};
  for (unsigned i = 0; i < CS_COUNT(others); i++)
    if (dlopen(others[i], RTLD_LAZY | RTLD_LOCAL) == NULL) print_message("%s\n", dlerror());
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
  const struct CMUnitTest tests[] = {cmocka_unit_test(libraries_of_the_system)};
  return cmocka_run_group_tests(tests, setup, teardown);
}
