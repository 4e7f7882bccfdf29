// SPDX-License-Identifier: MIT
// Text for people: the one way in which anything reaches a terminal or a text file. What a program
// calls its threads, a server its errors or a file its methods is not trusted: whatever a terminal
// would obey, and whatever changes how the rest of a line is read, is shown as an escape. Any
// thread. Not for handlers.
#ifndef CS_BASE_PRINT_H
#define CS_BASE_PRINT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

// The longest text that stands for one %s of cs_print, in bytes; of a longer one the rest is "...".
#define CS_PRINT_MOST 4096

// Decodes one character of `data`; U+FFFD for a byte that starts no valid UTF-8. Returns the bytes
// taken, at least 1 when len > 0. *valid (may be NULL): it was no such byte.
size_t cs_utf8_next(const char *data, size_t len, uint32_t *character, bool *valid);

// A control character (C0, DEL, C1), a line or paragraph separator, one that turns the direction of
// text, or one that is never seen.
bool cs_is_harmful(uint32_t character);

enum { CS_ESCAPE_MOST = 12 };  // bytes that stand for one character, the NUL included
// The next character as it is shown: itself, \x1b for a byte, \u202e for a character. Returns the
// bytes taken from `data`.
size_t cs_escape_next(const char *data, size_t len, char shown[CS_ESCAPE_MOST]);

// All of it, however long.
void cs_put_plain(FILE *out, const char *data, size_t len);

// printf, but that what stands for %s is shown as above. The format's own text is printed as it is,
// so it is a literal. Knows d i u x X o c s f e g p m, with flags, width (of what is shown, in
// bytes), precision and the lengths hh h l ll j z t.
__attribute__((format(printf, 2, 3))) void cs_print(FILE *out, const char *format, ...);
void cs_vprint(FILE *out, const char *format, va_list args);
// A verb's help, as it is: a constant of the command's, which has lines and signs of percent.
void cs_print_help(FILE *out, const char *help);

#endif
