// SPDX-License-Identifier: MIT
// Streaming compression: a page's data is never in memory as a whole. Invariant: at most two
// compressed bytes are held back until a third makes four letters of them. One thread. Signal-safe:
// no.
#include "page/pack.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <zlib.h>

struct pack {
  z_stream z;
  FILE *out;
  uint8_t waiting[3];
  unsigned waiting_count;
};

static bool put_letters(struct pack *p, unsigned bytes) {
  static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const uint8_t *b = p->waiting;
  uint32_t bits = (uint32_t)b[0] << 16 | (uint32_t)b[1] << 8 | b[2];
  char text[4];
  for (unsigned i = 0; i < 4; i++) {
    text[i] = i <= bytes ? letters[bits >> (18 - 6 * i) & 63] : '=';
  }
  return fwrite(text, 1, sizeof text, p->out) == sizeof text;
}

static bool put_base64(struct pack *p, const uint8_t *data, size_t len) {
  for (size_t i = 0; i < len; i++) {
    p->waiting[p->waiting_count++] = data[i];
    if (p->waiting_count < 3) continue;
    if (!put_letters(p, 3)) return false;
    p->waiting_count = 0;
  }
  return true;
}

static bool compress_some(struct pack *p, const char *data, size_t len, int flush) {
  uint8_t packed[16384];
  p->z.next_in = (Bytef *)(uintptr_t)data;
  p->z.avail_in = (uInt)len;
  do {
    p->z.next_out = packed;
    p->z.avail_out = sizeof packed;
    if (deflate(&p->z, flush) == Z_STREAM_ERROR) return false;
    if (!put_base64(p, packed, sizeof packed - p->z.avail_out)) return false;
  } while (p->z.avail_out == 0);
  return true;
}

static ssize_t pack_write(void *cookie, const char *data, size_t len) {
  return compress_some(cookie, data, len, Z_NO_FLUSH) ? (ssize_t)len : 0;
}

static int pack_close(void *cookie) {
  struct pack *p = cookie;
  bool ok = compress_some(p, "", 0, Z_FINISH);
  for (unsigned i = p->waiting_count; i < 3; i++) p->waiting[i] = 0;
  if (p->waiting_count > 0 && !put_letters(p, p->waiting_count)) ok = false;
  (void)deflateEnd(&p->z);
  free(p);
  return ok ? 0 : EOF;
}

FILE *cs_pack_open(FILE *out) {
  struct pack *p = calloc(1, sizeof *p);
  if (p == NULL) return NULL;
  p->out = out;
  if (deflateInit(&p->z, Z_DEFAULT_COMPRESSION) != Z_OK) {
    free(p);
    return NULL;
  }
  cookie_io_functions_t io = {.write = pack_write, .close = pack_close};
  FILE *file = fopencookie(p, "w", io);
  if (file == NULL) {
    (void)deflateEnd(&p->z);
    free(p);
    return NULL;
  }
  (void)setvbuf(file, NULL, _IOFBF, 1 << 16);
  return file;
}
