// SPDX-License-Identifier: MIT
// Escaped text. Invariant: whatever the arguments are, what is printed for them is valid UTF-8 on
// one line, without a character that a terminal interprets. Any thread. Signal-safe: no.
#include "base/print.h"

#include <errno.h>
#include <string.h>

#define REPLACEMENT 0xFFFDu

size_t cs_utf8_next(const char *data, size_t len, uint32_t *character, bool *valid) {
  static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
  unsigned char first = (unsigned char)data[0];
  size_t bytes = first < 0x80       ? 1
                 : first >> 5 == 6  ? 2
                 : first >> 4 == 14 ? 3
                 : first >> 3 == 30 ? 4
                                    : 0;
  *character = REPLACEMENT;
  if (valid != NULL) *valid = false;
  if (bytes == 0 || bytes > len) return 1;
  uint32_t c = bytes == 1 ? first : first & (0x7Fu >> bytes);
  for (size_t i = 1; i < bytes; i++) {
    if (((unsigned char)data[i] & 0xC0) != 0x80) return 1;
    c = c << 6 | ((unsigned char)data[i] & 0x3F);
  }
  if (c < smallest[bytes] || c > 0x10FFFF || (c >= 0xD800 && c < 0xE000)) return 1;
  *character = c;
  if (valid != NULL) *valid = true;
  return bytes;
}

bool cs_is_unprintable(uint32_t c) {
  static const struct {
    uint32_t first, last;
  } ranges[] = {
      {0x00, 0x1F},     {0x7F, 0x9F},      // C0, DEL, C1
      {0x61C, 0x61C},   {0x200E, 0x200F},  // direction marks
      {0x200B, 0x200B}, {0x2028, 0x202E},  // separators, embeddings and overrides
      {0x2060, 0x206F}, {0xFEFF, 0xFEFF},  // isolates, and invisible characters
      {0xFFF9, 0xFFFB}, {0xE0000, 0xE0FFF},
  };
  for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++)
    if (c >= ranges[i].first && c <= ranges[i].last) return true;
  return false;
}

size_t cs_escape_next(const char *data, size_t len, char shown[CS_ESCAPE_MOST]) {
  uint32_t c;
  bool valid;
  size_t taken = cs_utf8_next(data, len, &c, &valid);
  if (!valid || c < 0x80) {
    unsigned byte = (unsigned char)data[0];
    bool plain = valid && !cs_is_unprintable(c);
    (void)snprintf(shown, CS_ESCAPE_MOST, plain ? "%c" : "\\x%02x", byte);
  } else if (cs_is_unprintable(c)) {
    (void)snprintf(shown, CS_ESCAPE_MOST, c > 0xFFFF ? "\\U%08x" : "\\u%04x", (unsigned)c);
  } else {
    memcpy(shown, data, taken);
    shown[taken] = '\0';
  }
  return taken;
}

// Returns the length of the harmless ASCII at the start, which is most of any text.
static size_t harmless_run(const char *data, size_t len) {
  size_t n = 0;
  while (n < len && data[n] >= ' ' && data[n] < 0x7F) n++;
  return n;
}

void cs_put_plain(FILE *out, const char *data, size_t len) {
  for (size_t i = 0; i < len;) {
    size_t run = harmless_run(data + i, len - i);
    char shown[CS_ESCAPE_MOST];
    if (run > 0) (void)fwrite(data + i, 1, run, out);
    i += run;
    if (i == len) break;
    i += cs_escape_next(data + i, len - i, shown);
    (void)fputs(shown, out);
  }
}

void cs_print_help(FILE *out, const char *help) {
  (void)fputs(help, out);
}

// ---- Format strings ----

struct spec {
  char flags[8];
  int width, precision;  // precision < 0: none
  char length;           // modifier: 0 or one of "Hhlqjzt"; H is hh, q is ll
  char kind;
};

static int number(const char **format, va_list *args) {
  int value = 0;
  if (**format == '*') {
    (*format)++;
    return va_arg(*args, int);
  }
  for (; **format >= '0' && **format <= '9' && value < 100000; (*format)++)
    value = 10 * value + (**format - '0');
  return value;
}

// Parses a conversion specification after its '%'.
static struct spec read_spec(const char **format, va_list *args) {
  struct spec s = {.precision = -1};
  size_t flags = strspn(*format, "-+ #0");
  memcpy(s.flags, *format, flags < sizeof s.flags ? flags : sizeof s.flags - 1);
  *format += flags;
  s.width = number(format, args);
  if (**format == '.') {
    (*format)++;
    s.precision = number(format, args);
  }
  while (**format != '\0' && strchr("hlqjzt", **format) != NULL) {
    char next = *(*format)++;
    s.length = s.length != next ? next : next == 'h' ? 'H' : 'q';
  }
  s.kind = **format;
  if (s.kind != '\0') (*format)++;
  return s;
}

static intmax_t signed_argument(char length, va_list *args) {
  switch (length) {
    case 'H':
      return (signed char)va_arg(*args, int);
    case 'h':
      return (short)va_arg(*args, int);
    case 0:
      return va_arg(*args, int);
    default:  // all others have 64 bits
      return va_arg(*args, long);
  }
}

static uintmax_t unsigned_argument(char length, va_list *args) {
  uintmax_t value =
      length == 'l' || length == 'q' || length == 'j' || length == 'z' || length == 't'
          ? va_arg(*args, unsigned long)
          : va_arg(*args, unsigned);
  return length == 'H' ? (unsigned char)value : length == 'h' ? (unsigned short)value : value;
}

static void put_spaces(FILE *out, long count) {
  for (; count > 0; count--) (void)putc(' ', out);
}

static void put_text(FILE *out, const struct spec *s, const char *text) {
  if (text == NULL) text = "(null)";
  size_t len = s->precision >= 0 ? strnlen(text, (size_t)s->precision) : strlen(text);
  size_t shown = len < CS_PRINT_MOST ? len : CS_PRINT_MOST;
  // A character must not be cut in half.
  while (shown < len && shown > 0 && ((unsigned char)text[shown] & 0xC0) == 0x80) shown--;
  long columns = shown < len ? 3 : 0;
  for (size_t i = 0; i < shown;) {
    char one[CS_ESCAPE_MOST];
    i += cs_escape_next(text + i, shown - i, one);
    columns += (long)strlen(one);
  }
  bool left = s->width < 0 || strchr(s->flags, '-') != NULL;
  long fill = (s->width < 0 ? -(long)s->width : s->width) - columns;
  if (!left) put_spaces(out, fill);
  cs_put_plain(out, text, shown);
  if (shown < len) (void)fputs("...", out);
  if (left) put_spaces(out, fill);
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
static void put_number(FILE *out, const struct spec *s, va_list *args) {
  char form[24];
  bool real = strchr("fFeEgG", s->kind) != NULL;
  (void)snprintf(form, sizeof form, "%%%s*.*%s%c", s->flags, real ? "" : "j", s->kind);
  if (real)
    (void)fprintf(out, form, s->width, s->precision, va_arg(*args, double));
  else if (s->kind == 'd' || s->kind == 'i')
    (void)fprintf(out, form, s->width, s->precision, signed_argument(s->length, args));
  else
    (void)fprintf(out, form, s->width, s->precision, unsigned_argument(s->length, args));
}
#pragma GCC diagnostic pop

static void put_argument(FILE *out, const struct spec *s, int error, va_list *args) {
  char one[2] = "";
  switch (s->kind) {
    case '%':
      (void)putc('%', out);
      return;
    case 's':
      put_text(out, s, va_arg(*args, const char *));
      return;
    case 'm':
      put_text(out, s, strerror(error));
      return;
    case 'c':
      one[0] = (char)va_arg(*args, int);
      put_text(out, s, one);
      return;
    case 'p':
      (void)fprintf(out, "%p", va_arg(*args, void *));
      return;
    default:
      put_number(out, s, args);
  }
}

void cs_vprint(FILE *out, const char *format, va_list args) {
  int error = errno;
  va_list copy;
  va_copy(copy, args);
  while (*format != '\0') {
    size_t text = strcspn(format, "%");
    (void)fwrite(format, 1, text, out);
    format += text;
    if (*format == '\0') break;
    format++;
    struct spec s = read_spec(&format, &copy);
    if (s.kind == '\0') break;
    put_argument(out, &s, error, &copy);
  }
  va_end(copy);
}

void cs_print(FILE *out, const char *format, ...) {
  va_list args;
  va_start(args, format);
  cs_vprint(out, format, args);
  va_end(args);
}
