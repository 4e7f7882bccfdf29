// SPDX-License-Identifier: MIT
// Checks a profiler's library and class. Invariant: no code of the library is run, so it is read as
// a file, not loaded. One thread. Signal-safe: no.
#include "guest/file.h"

#include <ctype.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arch.h"
#include "process/launch.h"

// ---- The library ----

enum exported { EXPORTED_UNKNOWN, EXPORTED_NO, EXPORTED_YES };

// A file without section headers shows nothing; the loader does not need them.
static enum exported exports(Elf *elf, const char *name) {
  Elf_Scn *section = NULL;
  GElf_Shdr header;
  GElf_Sym symbol;
  while ((section = elf_nextscn(elf, section)) != NULL) {
    if (gelf_getshdr(section, &header) == NULL || header.sh_type != SHT_DYNSYM) continue;
    Elf_Data *data = elf_getdata(section, NULL);
    if (data == NULL) return EXPORTED_UNKNOWN;
    for (int i = 0; gelf_getsym(data, i, &symbol) != NULL; i++) {
      const char *text = elf_strptr(elf, header.sh_link, symbol.st_name);
      if (symbol.st_shndx != SHN_UNDEF && text != NULL && strcmp(text, name) == 0)
        return EXPORTED_YES;
    }
    return EXPORTED_NO;
  }
  return EXPORTED_UNKNOWN;
}

static bool check_elf(const char *path, Elf *elf, struct cs_error *err) {
  GElf_Ehdr header;
  if (elf_kind(elf) != ELF_K_ELF || gelf_getehdr(elf, &header) == NULL || header.e_type != ET_DYN)
    return cs_error_set(err, "%s is not a shared library (ELF): a profiler on Linux is a .so",
                        path);
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != CS_ARCH_ELF)
    return cs_error_set(err, "%s is not for " CS_ARCH_NAME ", and this clrsnap is", path);
  if (exports(elf, "clrsnap_version") == EXPORTED_YES)
    return cs_error_set(err,
                        "%s is clrsnap itself: --profiler takes the profiler that is to run "
                        "through it",
                        path);
  return exports(elf, "DllGetClassObject") != EXPORTED_NO ||
         cs_error_set(err, "%s is not a CLR profiler: it does not export DllGetClassObject", path);
}

static bool check_file(const char *path, struct cs_error *err) {
  struct stat st;
  // Opened only if it is a regular file: opening a FIFO would block.
  if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
    return cs_error_set(err, "%s is not a file: --profiler takes the profiler's library", path);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return cs_error_set(err, "cannot read the profiler %s: %m", path);
  (void)elf_version(EV_CURRENT);
  Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
  bool good = elf != NULL
                  ? check_elf(path, elf, err)
                  : cs_error_set(err, "cannot read the profiler %s: %s", path, elf_errmsg(-1));
  (void)elf_end(elf);
  (void)close(fd);
  return good;
}

char *cs_profiler_file(const char *path, struct cs_error *err) {
  char *absolute = realpath(path, NULL);
  if (absolute == NULL) {
    (void)cs_error_set(err, "cannot find the profiler %s: %m", path);
  } else if (!check_file(absolute, err)) {
    free(absolute);
    absolute = NULL;
  }
  return absolute;
}

// ---- The class ----

// sscanf alone would accept shorter numbers, blanks and signs.
static bool has_form(const char *text) {
  static const char form[] = "{xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx}";
  for (size_t i = 0; i < sizeof form; i++) {
    bool good = form[i] == 'x' ? isxdigit((unsigned char)text[i]) != 0 : text[i] == form[i];
    if (!good) return false;
  }
  return true;
}

bool cs_clsid_parse(const char *from, CLSID *clsid, char text[CS_CLSID_TEXT],
                    struct cs_error *err) {
  unsigned short d2, d3;
  unsigned char d4[8];
  int length = snprintf(text, CS_CLSID_TEXT, from[0] == '{' ? "%s" : "{%s}", from);
  if (length != CS_CLSID_TEXT - 1 || !has_form(text) ||
      sscanf(text, "{%8x-%4hx-%4hx-%2hhx%2hhx-%2hhx%2hhx%2hhx%2hhx%2hhx%2hhx}", &clsid->Data1, &d2,
             &d3, &d4[0], &d4[1], &d4[2], &d4[3], &d4[4], &d4[5], &d4[6], &d4[7]) != 11) {
    return cs_error_set(err,
                        "--clsid takes a class ID such as "
                        "{12345678-9ABC-DEF0-1234-56789ABCDEF0}, not '%s'",
                        from);
  }
  clsid->Data2 = d2;
  clsid->Data3 = d3;
  memcpy(clsid->Data4, d4, sizeof d4);
  return strcasecmp(text, CS_AGENT_CLSID) != 0 ||
         cs_error_set(err, "--clsid names clrsnap's own agent; it is run by 'clrsnap record'");
}
