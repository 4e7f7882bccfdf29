// SPDX-License-Identifier: MIT
// Images in which no program header leads to the unwind data, so it is searched for. The oracle of
// the search is .eh_frame_hdr, in all libraries that have one.
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <cmocka.h>

#include "contract/guarded.h"
#include "images/images.h"
#include "life/images.h"
#include "life/start.h"
#include "native/elf.h"
#include "native/native.h"
#include "native/search.h"
#include "native/startup.h"
#include "signal/handler.h"
#include "signal/signal.h"
#include "signal/ucontext.h"
#include "threads/stackmap.h"
#include "walk/walk.h"

// ---- Against .eh_frame_hdr ----

struct tally {
  unsigned images, same;
};

// Where .eh_frame_hdr says that .eh_frame begins, and how many functions it has: version 1, a
// pointer relative to itself and a number of 32 bits, as all linkers write it.
static bool by_header(const struct dl_phdr_info *info, uint64_t *begin, uint32_t *count) {
  for (unsigned i = 0; i < info->dlpi_phnum; i++) {
    if (info->dlpi_phdr[i].p_type != PT_GNU_EH_FRAME) continue;
    const uint8_t *hdr = (const uint8_t *)(uintptr_t)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
    int32_t offset;
    if (hdr[0] != 1 || hdr[1] != 0x1B || hdr[2] != 0x03) return false;
    memcpy(&offset, hdr + 4, sizeof offset);
    memcpy(count, hdr + 8, sizeof *count);
    *begin = (uint64_t)(uintptr_t)hdr + 4 + (uint64_t)(int64_t)offset;
    return true;
  }
  return false;
}

static int search_image(struct dl_phdr_info *info, size_t size, void *arg) {
  struct tally *tally = arg;
  uint64_t begin;
  uint32_t count;
  (void)size;
  if (!by_header(info, &begin, &count)) return 0;
  tally->images++;
  struct cs_found best = {.fdes = 0}, found;
  uint64_t segment = 0;
  for (unsigned i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
    if (ph->p_type != PT_LOAD) continue;
    // The kernel makes the copy, as it does for the search: in a sanitizer's build, there are bytes
    // between variables that no instruction of the build's own may read.
    uint64_t address = info->dlpi_addr + ph->p_vaddr;
    uint8_t *bytes = malloc(ph->p_filesz + 1);
    assert_non_null(bytes);
    assert_true(cs_guarded_read(address, bytes, ph->p_filesz));
    bool any = cs_eh_frame_search(bytes, ph->p_filesz, &found);
    free(bytes);
    if (!any || found.fdes <= best.fdes) continue;
    best = found;
    segment = address;
  }
  if (segment + best.begin == begin && best.fdes == count)
    tally->same++;
  else
    print_error("%s: found %u records at %#lx, and not %u at %#lx\n", info->dlpi_name, best.fdes,
                segment + best.begin, count, begin);
  return 0;
}

static void finds_what_the_header_says(void **state) {
  (void)state;
  static const char *const others[] = {"libstdc++.so.6", "libm.so.6",        "libcrypto.so.3",
                                       "libssl.so.3",    "libicui18n.so.72", "libz.so.1"};
  struct tally tally = {0};
  for (unsigned i = 0; i < CS_COUNT(others); i++) (void)dlopen(others[i], RTLD_LAZY | RTLD_LOCAL);
  (void)dl_iterate_phdr(search_image, &tally);
  print_message("%u images, %u as their headers say\n", tally.images, tally.same);
  assert_true(tally.images >= 5);  // the program, libc, ld.so, libstdc++, libm
  assert_int_equal(tally.same, tally.images);
}

// ---- What is no .eh_frame ----

enum { CIE = 24, FDE = 20 };
// A CIE with "zR", and an FDE that refers to it.
static const uint8_t records[CIE + FDE + 4] = {
    20, 0, 0,  0, 0, 0, 0,  0, 1, 'z', 'R', 0, 1, 0x78, 0x10, 1, 0x1B, 0x0C, 7, 8, 0x90, 1,
    0,  0, 16, 0, 0, 0, 28, 0, 0, 0,   0,   1, 0, 0,    9,    0, 0,    0,    0, 0, 0,    0};

static void only_whole_records_are_believed(void **state) {
  (void)state;
  uint8_t bytes[8 + sizeof records];
  struct cs_found found;
  memset(bytes, 0x5A, sizeof bytes);
  memcpy(bytes + 8, records, sizeof records);
  assert_true(cs_eh_frame_search(bytes, sizeof bytes, &found));
  assert_int_equal(found.begin, 8);
  assert_int_equal(found.end, 8 + CIE + FDE);
  assert_int_equal(found.fdes, 1);
  // The section is also found without its end, but not without a whole FDE or without a CIE.
  assert_true(cs_eh_frame_search(bytes, sizeof bytes - 4, &found));
  for (size_t size = 0; size < 8 + CIE + FDE; size++)
    assert_false(cs_eh_frame_search(bytes, size, &found));
  static const uint8_t needed[] = {4, 8, 13, 14, 28};  // id, version, alignments, the FDE's CIE
  for (unsigned i = 0; i < CS_COUNT(needed); i++) {
    bytes[8 + needed[i]] ^= 0x40;
    assert_false(cs_eh_frame_search(bytes, sizeof bytes, &found));
    bytes[8 + needed[i]] ^= 0x40;
  }
  // Bytes that only look like a beginning do not hide the true one.
  uint8_t twice[CIE + sizeof records + 8] = {0};
  memcpy(twice, records, CIE);
  memset(twice + CIE, 0xFF, 8);
  memcpy(twice + CIE + 8, records, sizeof records);
  assert_true(cs_eh_frame_search(twice, sizeof twice, &found));
  assert_int_equal(found.begin, CIE + 8);
}

// Returns the CPU time of a search in this many records, each of which is a beginning that leads
// nowhere; the best of several tries.
static uint64_t search_beginnings(uint32_t count) {
  uint8_t *bytes = malloc(count * (size_t)CIE);
  uint64_t best = UINT64_MAX;
  assert_non_null(bytes);
  for (uint32_t i = 0; i < count; i++) memcpy(bytes + i * (size_t)CIE, records, CIE);
  for (int i = 0; i < 5; i++) {
    struct cs_found found;
    uint64_t before = cs_thread_cpu_ns();
    assert_false(cs_eh_frame_search(bytes, count * (size_t)CIE, &found));
    uint64_t spent = cs_thread_cpu_ns() - before;
    if (spent < best) best = spent;
  }
  free(bytes);
  return best;
}

// Eight times as many records take eight times as long, not sixty-four times.
static void the_search_takes_time_by_what_is_there(void **state) {
  (void)state;
  uint64_t some = search_beginnings(4000), more = search_beginnings(32000);
  print_message("%llu us, %llu us\n", (unsigned long long)some / 1000,
                (unsigned long long)more / 1000);
  assert_true(more < some * 25);
}

static uint64_t resident_bytes(void) {
  unsigned long long all = 0, resident = 0;
  FILE *file = fopen("/proc/self/statm", "r");
  assert_non_null(file);
  assert_int_equal(fscanf(file, "%llu %llu", &all, &resident), 2);
  (void)fclose(file);
  return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

// An image that is mapped over far more memory than it has contents.
static void a_wide_image_takes_memory_by_what_is_there(void **state) {
  (void)state;
  const uint64_t wide = 64ull << 30;
  Elf64_Ehdr eh = {.e_ident = {0x7F, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT}};
  eh.e_type = ET_DYN;
  eh.e_machine = EM_X86_64;
  eh.e_version = EV_CURRENT;
  eh.e_phoff = sizeof eh;
  eh.e_phentsize = sizeof(Elf64_Phdr);
  eh.e_phnum = 1;
  Elf64_Phdr ph = {.p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_filesz = wide, .p_memsz = wide};
  char path[] = "/tmp/clrsnap-wide-XXXXXX";
  int fd = mkstemp(path);
  assert_true(fd >= 0 && ftruncate(fd, (off_t)wide) == 0);
  (void)unlink(path);
  assert_int_equal(pwrite(fd, &eh, sizeof eh, 0), sizeof eh);
  assert_int_equal(pwrite(fd, &ph, sizeof ph, sizeof eh), sizeof ph);
  void *at = mmap(NULL, wide, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_NORESERVE, fd, 0);
  assert_true(at != MAP_FAILED);
  struct cs_native *native = cs_native_new(0);
  assert_non_null(native);
  uint64_t before = resident_bytes();
  const struct cs_images *images = cs_native_refresh(native);
  uint64_t after = resident_bytes();
  const struct cs_image *image = cs_images_find(images, (uint64_t)(uintptr_t)at + (wide >> 1));
  assert_non_null(image);
  assert_int_equal(image->row_count, 0);
  assert_true(after < before + (128u << 20));
  cs_native_free(native);
  (void)munmap(at, wide);
  (void)close(fd);
}

enum { IMAGE_SIZE = 16 << 20 };

static uint8_t *map_image(void) {
  uint8_t *image =
      mmap(NULL, IMAGE_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  assert_true(image != MAP_FAILED);
  return image;
}

// Gives the image these program headers, and returns the CPU time that it takes to read it.
static uint64_t read_image(uint8_t *image, const Elf64_Phdr *headers, unsigned count) {
  static struct cs_elf elf;
  Elf64_Ehdr eh = {.e_ident = {0x7F, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT}};
  eh.e_machine = EM_X86_64;
  eh.e_phoff = sizeof eh;
  eh.e_phentsize = sizeof(Elf64_Phdr);
  eh.e_phnum = (Elf64_Half)count;
  memcpy(image, &eh, sizeof eh);
  memcpy(image + sizeof eh, headers, count * sizeof *headers);
  struct cs_candidate candidate = {.begin = (uint64_t)(uintptr_t)image, .path = "/image"};
  candidate.base = candidate.begin;
  candidate.end = candidate.begin + IMAGE_SIZE;
  struct cs_process_memory process;
  struct cs_error err = {.text = ""};
  cs_process_memory_init(&process, 0);
  uint64_t before = cs_thread_cpu_ns();
  assert_int_equal(cs_elf_open(&process, &candidate, &elf), CS_ELF_OK);
  assert_int_equal(cs_elf_read(&process, &candidate, &elf, &err), CS_ELF_OK);
  uint64_t spent = cs_thread_cpu_ns() - before;
  cs_process_memory_close(&process);
  return spent;
}

// As read_image, of an image whose program headers name the same 16 MiB this many times.
static uint64_t read_segments(unsigned count) {
  static Elf64_Phdr headers[512];
  uint8_t *image = map_image();
  memset(image, 0x11, IMAGE_SIZE);
  for (unsigned i = 0; i < count; i++)
    headers[i] =
        (Elf64_Phdr){.p_type = PT_LOAD, .p_flags = PF_R | PF_W | PF_X, .p_filesz = IMAGE_SIZE};
  uint64_t spent = read_image(image, headers, count);
  (void)munmap(image, IMAGE_SIZE);
  return spent;
}

static void segments_over_the_same_bytes_take_time_once(void **state) {
  (void)state;
  uint64_t some = read_segments(8), more = read_segments(512);
  print_message("%llu us, %llu us\n", (unsigned long long)some / 1000,
                (unsigned long long)more / 1000);
  assert_true(more < some * 16);
}

// As ICU's: 15 MiB of data to a page of code. They are not made resident to search them.
static void data_with_a_little_code_is_not_searched(void **state) {
  (void)state;
  enum { PAGE = 4096 };
  const Elf64_Phdr headers[] = {
      {.p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_filesz = PAGE},
      {.p_type = PT_LOAD, .p_flags = PF_R, .p_vaddr = PAGE, .p_filesz = IMAGE_SIZE - PAGE}};
  uint8_t *image = map_image();
  uint64_t before = resident_bytes();
  (void)read_image(image, headers, 2);
  assert_true(resident_bytes() < before + IMAGE_SIZE / 4);
  (void)munmap(image, IMAGE_SIZE);
}

// ---- .init and .fini ----

static struct cs_rules rules;
static struct cs_rows rows;

static uint16_t rule_at(uint32_t ip) {
  uint16_t id = CS_NO_RULE;
  for (uint32_t i = 0; i < rows.count && rows.ip[i] <= ip; i++) id = rows.rule[i];
  return id;
}

// Describes rows of [0, 16), a gap, and rows of [64, 80); the code is at 32.
static void describe(const uint8_t *code, uint32_t at) {
  struct cs_process_memory self;
  uint64_t text = (uint64_t)(uintptr_t)code;
  const struct cs_candidate candidate = {.begin = text, .end = text + 128};
  cs_process_memory_init(&self, 0);
  cs_rows_free(&rows);
  static const uint32_t ips[] = {0, 16, 64, 80};
  assert_true(cs_rows_reserve(&rows, 4));
  rows.count = 4;
  memcpy(rows.ip, ips, sizeof ips);
  rows.rule[0] = rows.rule[2] = 0;
  rows.rule[1] = rows.rule[3] = CS_NO_RULE;
  assert_true(cs_startup_apply(&self, &candidate, text + at, &rules, &rows));
}

static void startup_functions_are_known_by_their_code(void **state) {
  (void)state;
  uint8_t text[128];
  assert_true(cs_rules_init(&rules));
  memset(text, 0xCC, sizeof text);
  memcpy(text + 32, "\x48\x83\xEC\x08\x90\x90\x48\x83\xC4\x08\xC3", 11);
  describe(text, 32);
  static const int32_t cfa[] = {8, 8, 8, 8, 16, 16, 16, 16, 16, 16, 8};
  for (uint32_t i = 0; i < CS_COUNT(cfa); i++)
    assert_int_equal(rules.rule[rule_at(32 + i)].cfa_off, cfa[i]);
  assert_int_equal(rule_at(31), CS_NO_RULE);
  assert_int_equal(rule_at(43), CS_NO_RULE);
  assert_int_equal(rule_at(64), 0);
  assert_int_equal(rule_at(80), CS_NO_RULE);
  describe(text, 0);  // has rows
  assert_int_equal(rows.count, 4);
  memcpy(text + 32, "\xF3\x0F\x1E\xFA\x48\x83\xEC\x08\x48\x83\xC4\x08\xC3", 13);
  describe(text, 32);
  assert_int_equal(rules.rule[rule_at(39)].cfa_off, 8);
  assert_int_equal(rules.rule[rule_at(40)].cfa_off, 16);
  assert_int_equal(rules.rule[rule_at(44)].cfa_off, 8);
  text[35] ^= 0x10;  // another kind of code gets none, either
  text[39] = 0x10;
  describe(text, 32);
  assert_int_equal(rows.count, 4);
  // Nor does code that does not end before something else begins.
  memset(text, 0xCC, sizeof text);
  memcpy(text + 56, "\x48\x83\xEC\x08\x90\x90\x48\x83\xC4\x08\xC3", 11);
  describe(text, 56);
  assert_int_equal(rows.count, 4);
  cs_rows_free(&rows);
  cs_rules_free(&rules);
}

// ---- A library without the header ----

static enum cs_stop stop;
static unsigned in_library, frames;

static void walk_here(void *arg) {
  const struct cs_image *image = arg;
  ucontext_t context;
  struct cs_regs regs;
  struct cs_stack stack;
  struct cs_walk walk;
  struct cs_frame frame;
  in_library = frames = 0;
  if (!cs_stack_of_self(&stack)) return;
  (void)getcontext(&context);
  cs_regs_from_ucontext(&regs, &context);
  cs_walk_begin(&walk, &cs_library.world, &regs, &stack, 0, 0);
  for (; cs_walk_next(&walk, &frame); frames++)
    in_library += frame.regs.r[CS_RIP] >= image->begin && frame.regs.r[CS_RIP] < image->end;
  stop = walk.stop;
}

static int count_headers(struct dl_phdr_info *info, size_t size, void *arg) {
  unsigned *count = arg;
  (void)size;
  if (strcmp(info->dlpi_name, HEADERLESS) != 0) return 0;
  for (unsigned i = 0; i < info->dlpi_phnum; i++)
    *count += info->dlpi_phdr[i].p_type == PT_GNU_EH_FRAME;
  *count += 1000;
  return 1;
}

static void a_library_without_the_header(void **state) {
  (void)state;
  struct cs_error err = {0};
  unsigned headers = 0;
  void (*plug)(void (*function)(void *), void *arg);
  assert_int_equal(cs_library_start_native(NULL, &err), S_OK);
  void *library = dlopen(HEADERLESS, RTLD_NOW | RTLD_LOCAL);
  assert_non_null(library);
  const void *entry = dlsym(library, "plug_entry");
  assert_non_null(entry);
  memcpy(&plug, entry, sizeof plug);
  (void)dl_iterate_phdr(count_headers, &headers);
  assert_int_equal(headers, 1000);  // the library is there, and has no header
  (void)cs_library_refresh_images();
  const struct cs_image *image = cs_images_find(cs_library.world.images, (uint64_t)(uintptr_t)plug);
  assert_non_null(image);
  assert_true(image->row_count > 4);
  plug(walk_here, (void *)(uintptr_t)image);
  assert_int_equal(in_library, 2);
  assert_int_equal(stop, CS_STOP_BASE);
  assert_int_equal(dlclose(library), 0);
  clrsnap_stop();
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(finds_what_the_header_says),
      cmocka_unit_test(only_whole_records_are_believed),
      cmocka_unit_test(the_search_takes_time_by_what_is_there),
      cmocka_unit_test(a_wide_image_takes_memory_by_what_is_there),
      cmocka_unit_test(segments_over_the_same_bytes_take_time_once),
      cmocka_unit_test(data_with_a_little_code_is_not_searched),
      cmocka_unit_test(startup_functions_are_known_by_their_code),
      cmocka_unit_test(a_library_without_the_header),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
