// SPDX-License-Identifier: MIT
// The parts of Markdown pages. Invariant: a page has at most CS_MARKDOWN_MOST bytes, whatever names
// and modes a recording has. One thread. Signal-safe: no.
#include <stdlib.h>
#include <string.h>

#include "base/print.h"
#include "formats/markdown.h"

static const struct cs_detail levels[] = {
    {12, 5, 5, 90, 240, false}, {8, 4, 4, 80, 200, false}, {5, 3, 3, 70, 160, false},
    {4, 2, 2, 60, 120, false},  {3, 1, 0, 60, 100, true},  {3, 0, 0, 50, 80, true},
    {2, 0, 0, 40, 0, true},     {1, 0, 0, 40, 0, true},    {0, 0, 0, 40, 0, true},
};

struct text {
  char *text;
  size_t len;
};

typedef void writer(const void *what, const struct cs_details *d, FILE *out);

// If the page *fits, it becomes the best one. Returns false if there is no memory.
static bool attempt(writer *write, const void *what, const struct cs_details *d, struct text *best,
                    bool *fits) {
  struct text t = {NULL, 0};
  FILE *memory = open_memstream(&t.text, &t.len);
  *fits = false;
  if (memory == NULL) return false;
  write(what, d, memory);
  bool written = fclose(memory) == 0;
  *fits = written && t.len <= CS_MARKDOWN_MOST;
  free(*fits ? best->text : t.text);
  if (*fits) *best = t;
  return written;
}

bool cs_markdown_fit(writer *write, const void *what, size_t modes, FILE *out) {
  struct cs_details d = {NULL, {NULL}};
  struct text best = {NULL, 0};
  bool fits = false;
  for (size_t i = 0; i < CS_COUNT(levels) && !fits; i++) {
    d.page = &levels[i];
    for (size_t m = 0; m < modes; m++) d.mode[m] = &levels[i];
    if (!attempt(write, what, &d, &best, &fits)) return false;
  }
  for (bool more = best.text != NULL; more;) {
    more = false;
    for (size_t m = 0; m < modes; m++) {
      if (d.mode[m] == levels) continue;
      d.mode[m]--;
      if (!attempt(write, what, &d, &best, &fits)) fits = false;
      if (!fits) d.mode[m]++;
      more |= fits;
    }
  }
  if (best.text == NULL) return false;
  (void)fwrite(best.text, 1, best.len, out);
  free(best.text);
  return fflush(out) == 0 && !ferror(out);
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
