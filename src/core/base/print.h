// SPDX-License-Identifier: MIT
// Text for people. Nothing reaches a terminal or a text file in any other way. Names of threads,
// methods and the like, and a server's error messages, are not trusted: whatever a terminal would
// interpret, and whatever changes how the rest of a line is read, is printed as an escape. Any
// thread. Not for handlers.
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

// The maximum number of bytes that one %s of cs_print prints; longer text is truncated, and ends in
// "...".
#define CS_PRINT_MOST 4096

// Decodes one character of `data`. A byte that does not start a valid sequence yields U+FFFD, and
// sets *valid (which may be NULL) to false. Returns the number of bytes decoded, at least 1 if len
// > 0.
size_t cs_utf8_next(const char *data, size_t len, uint32_t *character, bool *valid);

// Returns whether a character is a control character (C0, DEL, C1), a line or paragraph separator,
// changes the direction of text, or is invisible.
bool cs_is_unprintable(uint32_t character);

enum { CS_ESCAPE_MOST = 12 };  // the longest escape in bytes, with the NUL
// Writes the printable form of the next character to `shown`: itself, \x1b for a byte, \u202e for a
// character. Returns the number of bytes of `data` that it stands for.
size_t cs_escape_next(const char *data, size_t len, char shown[CS_ESCAPE_MOST]);

// Prints all of `data` in that form.
void cs_put_plain(FILE *out, const char *data, size_t len);

// printf, except that what %s and %c print is escaped as above. The format itself is printed as it
// is, so it must be a literal. Conversions: d i u x X o c s f e g p m, with flags, width (in
// printed bytes), precision, and the lengths hh h l ll j z t.
__attribute__((format(printf, 2, 3))) void cs_print(FILE *out, const char *format, ...);
void cs_vprint(FILE *out, const char *format, va_list args);
// Prints a verb's help, a constant text of several lines that may contain percent signs.
void cs_print_help(FILE *out, const char *help);
