// SPDX-License-Identifier: MIT
// The flame graph page: flame.html with its style, scripts and data in place of its markers. The
// files are part of the binary (.incbin), so no other file has to be installed. Invariant: the
// recording reaches the page only compressed and in base64. One thread. Signal-safe: no.
#include <string.h>

#include "formats/writers.h"
#include "page/pack.h"
#include "page/page_data.h"

// Hidden, so that no address comes from the GOT: for that, an assembler for arm64 replaces a local
// symbol by the beginning of its section.
#define EMBEDDED extern __attribute__((visibility("hidden"))) const char
#define FILE_BYTES(file) ".incbin \"" CS_PAGE_DIR "/" file "\"\n"
#define EMBED(symbol, bytes)                                                                       \
  __asm__(".pushsection .rodata\n" #symbol "_begin: " bytes #symbol "_end: .byte 0\n.popsection"); \
  EMBEDDED symbol##_begin[] __asm__(#symbol "_begin");                                             \
  EMBEDDED symbol##_end[] __asm__(#symbol "_end")

EMBED(page_html, FILE_BYTES("flame.html"));
EMBED(page_css, FILE_BYTES("flame.css"));
// In order of their dependencies.
EMBED(page_js,
      FILE_BYTES("flame-words.js") FILE_BYTES("flame-names.js") FILE_BYTES("flame-inlined.js")
          FILE_BYTES("flame-unpack.js") FILE_BYTES("flame-data.js") FILE_BYTES("flame-folds.js")
              FILE_BYTES("flame-tree.js") FILE_BYTES("flame-routes.js") FILE_BYTES("flame-look.js")
                  FILE_BYTES("flame-chart.js") FILE_BYTES("flame-heat.js")
                      FILE_BYTES("flame-table.js") FILE_BYTES("flame-about.js")
                          FILE_BYTES("flame-glance.js") FILE_BYTES("flame-link.js")
                              FILE_BYTES("flame-input.js") FILE_BYTES("flame.js"));

static bool put(FILE *out, const char *begin, const char *end) {
  size_t len = (size_t)(end - begin);
  return fwrite(begin, 1, len, out) == len;
}

static bool put_data(const struct cs_profile_set *set, FILE *out) {
  FILE *packed = cs_pack_open(out);
  if (packed == NULL) return false;
  bool written = cs_write_page_data(set, packed);
  return fclose(packed) == 0 && written;
}

enum part { STYLE, SCRIPT, DATA, PARTS };

static bool put_part(const struct cs_profile_set *set, enum part part, FILE *out) {
  switch (part) {
    case STYLE:
      return put(out, page_css_begin, page_css_end);
    case SCRIPT:
      return put(out, page_js_begin, page_js_end);
    default:
      return put_data(set, out);
  }
}

// Returns the first marker at or after `at`, or NULL if none is left.
static const char *next_marker(const char *at, enum part *part, size_t *len) {
  static const char *const markers[PARTS] = {"@STYLE@", "@SCRIPT@", "@DATA@"};
  const char *first = NULL;
  for (int i = 0; i < PARTS; i++) {
    const char *found = strstr(at, markers[i]);
    if (found == NULL || (first != NULL && found > first)) continue;
    first = found;
    *part = (enum part)i;
    *len = strlen(markers[i]);
  }
  return first;
}

bool cs_write_html(const struct cs_profile_set *set, FILE *out) {
  const char *at = page_html_begin;
  const char *marker;
  enum part part;
  size_t len;
  while ((marker = next_marker(at, &part, &len)) != NULL) {
    if (!put(out, at, marker) || !put_part(set, part, out)) return false;
    at = marker + len;
  }
  return put(out, at, page_html_end) && fflush(out) == 0;
}
