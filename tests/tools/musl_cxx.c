// SPDX-License-Identifier: MIT
// What a libstdc++ and a libgcc_s that were built for glibc need beyond musl, so that a .NET
// runtime for musl runs with this machine's: its own musl is real, only these two are not Alpine's.
#include <dlfcn.h>
#include <link.h>
#include <stdint.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

char __libc_single_threaded;  // never: no lock is left out
int __cpu_indicator_init(void);
struct {
  unsigned vendor, type, subtype, features[1];
} __cpu_model;
int __cpu_indicator_init(void) {
  return 0;
}

unsigned arc4random(void);
unsigned arc4random(void) {
  unsigned value = 0;
  (void)!getrandom(&value, sizeof value, 0);
  return value;
}

size_t __strftime_l(char *text, size_t size, const char *format, const struct tm *time,
                    void *locale);
size_t __strftime_l(char *text, size_t size, const char *format, const struct tm *time,
                    void *locale) {
  (void)locale;
  return strftime(text, size, format, time);
}

// Destructors of thread-local objects are left out: the tests' programs do not rely on any.
int __cxa_thread_atexit_impl(void (*end)(void *), void *object, void *library);
int __cxa_thread_atexit_impl(void (*end)(void *), void *object, void *library) {
  (void)end, (void)object, (void)library;
  return 0;
}

// As glibc 2.35 and later: what libgcc_s asks for each frame of an exception.
struct found {
  unsigned long long flags;
  void *begin, *end;
  void *map, *eh_frame;
};
struct search {
  uintptr_t address;
  struct found *found;
};

static int look(struct dl_phdr_info *info, size_t size, void *data) {
  struct search *search = data;
  struct found found = {.begin = (void *)UINTPTR_MAX};
  int inside = 0;
  (void)size;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) *part = &info->dlpi_phdr[i];
    uintptr_t begin = info->dlpi_addr + part->p_vaddr, end = begin + part->p_memsz;
    if (part->p_type == PT_GNU_EH_FRAME) found.eh_frame = (void *)begin;
    if (part->p_type != PT_LOAD) continue;
    if (begin < (uintptr_t)found.begin) found.begin = (void *)begin;
    if (end > (uintptr_t)found.end) found.end = (void *)end;
    if (search->address >= begin && search->address < end) inside = 1;
  }
  if (!inside || found.eh_frame == NULL) return 0;
  *search->found = found;
  return 1;
}

int _dl_find_object(void *address, struct found *found);
int _dl_find_object(void *address, struct found *found) {
  struct search search = {(uintptr_t)address, found};
  return dl_iterate_phdr(look, &search) != 0 ? 0 : -1;
}
