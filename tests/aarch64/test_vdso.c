// SPDX-License-Identifier: MIT
// A vDSO, laid out by hand: headers, a note with random bytes, functions, the signal trampoline.
#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "native/cfi_private.h"
#include "native/dwarf.h"
#include "native/startup.h"

enum { WORDS = 256, NOTE = 64, TEXT = 72, TRAMPOLINE = 84, NOP = 0xD503201F, RET = 0xD65F03C0 };
enum { BL = 0x978D9756, SIGRETURN = 0xD2801168, SYSCALL = 0xD4000001 };

static union {
  Elf64_Ehdr head;
  uint32_t word[WORDS];
} image;

static void lay_out(void) {
  Elf64_Phdr note = {.p_type = PT_NOTE, .p_offset = NOTE * 4, .p_filesz = (TEXT - NOTE) * 4};
  memset(&image, 0, sizeof image);
  image.head.e_phoff = sizeof image.head;
  image.head.e_phnum = 1;
  memcpy((uint8_t *)&image + sizeof image.head, &note, sizeof note);
  for (unsigned i = TEXT; i < TRAMPOLINE; i++) image.word[i] = i % 4 == 3 ? RET : NOP;
  image.word[TRAMPOLINE] = SIGRETURN;
  image.word[TRAMPOLINE + 1] = SYSCALL;
}

// Returns whether the code is described, and checks how far.
static bool is_described(void) {
  uint64_t begin = (uintptr_t)&image;
  struct cs_candidate vdso = {.begin = begin, .end = begin + sizeof image, .path = "[vdso]"};
  struct cs_process_memory self;
  struct cs_rules rules = {0};
  struct cs_rows rows = {0};
  cs_process_memory_init(&self, 0);
  assert_true(cs_rules_init(&rules));
  bool described = cs_startup_apply_vdso(&self, &vdso, &rules, &rows);
  assert_int_equal(rows.count, described ? 2 : 0);
  if (described) assert_int_equal(rows.ip[1], (TRAMPOLINE - 1) * 4);
  cs_rows_free(&rows);
  cs_rules_free(&rules);
  cs_process_memory_close(&self);
  return described;
}

static void a_build_id_is_no_code(void **state) {
  (void)state;
  lay_out();
  assert_true(is_described());
  image.word[NOTE + 6] = BL;
  assert_true(is_described());
  image.word[TEXT + 1] = BL;
  assert_false(is_described());
}

static void headers_that_lie_describe_nothing(void **state) {
  (void)state;
  lay_out();
  image.head.e_phoff = UINT64_MAX - 8;
  assert_false(is_described());
  lay_out();
  image.head.e_phnum = 1000;
  assert_false(is_described());
  lay_out();
  ((Elf64_Phdr *)(void *)((uint8_t *)&image + sizeof image.head))->p_filesz = UINT64_MAX;
  assert_false(is_described());
  lay_out();
  ((Elf64_Phdr *)(void *)((uint8_t *)&image + sizeof image.head))->p_filesz = sizeof image;
  assert_false(is_described());
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(a_build_id_is_no_code),
                                     cmocka_unit_test(headers_that_lie_describe_nothing)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
