// SPDX-License-Identifier: MIT
// The parts of Markdown pages. Invariant: a page has at most CS_MARKDOWN_MOST bytes, whatever names
// and modes a recording has. One thread. Signal-safe: no.
#include <stdlib.h>
#include <string.h>

#include "base/print.h"
#include "formats/markdown.h"

static const struct cs_detail details[] = {
    {12, 5, 5, 90, 240, false}, {8, 4, 4, 80, 200, false}, {5, 3, 3, 70, 160, false},
    {4, 2, 2, 60, 120, false},  {3, 1, 1, 50, 100, true},  {2, 1, 1, 40, 80, true},
    {1, 1, 0, 40, 0, true},     {0, 0, 0, 40, 0, true},
};

bool cs_markdown_fit(void (*write)(const void *what, const struct cs_detail *d, FILE *out),
                     const void *what, FILE *out) {
  bool fits = false;
  for (size_t i = 0; i < CS_COUNT(details) && !fits; i++) {
    char *text = NULL;
    size_t len = 0;
    FILE *memory = open_memstream(&text, &len);
    if (memory == NULL) return false;
    write(what, &details[i], memory);
    bool written = fclose(memory) == 0;
    fits = written && len <= CS_MARKDOWN_MOST;
    if (fits) (void)fwrite(text, 1, len, out);
    free(text);
    if (!written) return false;
  }
  return fits && fflush(out) == 0 && !ferror(out);
}

static size_t whole_characters(const char *text, size_t len) {
  while (len > 0 && ((unsigned char)text[len] & 0xC0) == 0x80) len--;
  return len;
}

void cs_markdown_name(FILE *out, const char *name, size_t len, unsigned most) {
  if (len <= most) {
    cs_print(out, "%.*s", (int)len, name);
    return;
  }
  size_t begin = whole_characters(name, most / 3), end = len - (most - most / 3 - 3);
  while (end < len && ((unsigned char)name[end] & 0xC0) == 0x80) end++;
  cs_print(out, "%.*s...%.*s", (int)begin, name, (int)(len - end), name + end);
}

void cs_markdown_code(FILE *out) {
  cs_print(out, "```text\n");
}

void cs_markdown_code_end(FILE *out) {
  cs_print(out, "```\n");
}

const char *cs_markdown_unit(enum cs_unit unit, double most, double *size) {
  static const struct {
    double size;
    const char *name;
  } units[][3] = {
      [CS_UNIT_NS] = {{1e9, "s"}, {1e6, "ms"}, {1e3, "us"}},
      [CS_UNIT_BYTES] = {{1e9, "GB"}, {1e6, "MB"}, {1e3, "kB"}},
      [CS_UNIT_COUNT] = {{1, "events"}, {1, "events"}, {1, "events"}},
  };
  size_t i = 0;
  while (i < 2 && most < units[unit][i].size) i++;
  *size = units[unit][i].size;
  return units[unit][i].name;
}
