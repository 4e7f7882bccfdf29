// SPDX-License-Identifier: MIT
// gzip by zlib, in bounded pieces, because zlib counts in 32 bits. Invariant: the header contains
// neither time nor name, so that the same bytes give the same file. One thread. Signal-safe: no.
#include "util/gzip.h"

#include <zlib.h>

bool cs_write_gzip(const uint8_t *data, size_t size, FILE *out) {
  z_stream z = {0};
  uint8_t chunk[65536];
  int result = Z_OK;
  // 16 + 15 bits: with gzip's header, which contains no time.
  if (deflateInit2(&z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 16 + 15, 8, Z_DEFAULT_STRATEGY) != Z_OK)
    return false;
  do {
    if (z.avail_in == 0) {
      size_t part = size < (1u << 30) ? size : 1u << 30;
      z.next_in = (Bytef *)(uintptr_t)data;
      z.avail_in = (uInt)part;
      data += part;
      size -= part;
    }
    z.next_out = chunk;
    z.avail_out = sizeof chunk;
    result = deflate(&z, size == 0 ? Z_FINISH : Z_NO_FLUSH);
    size_t made = sizeof chunk - z.avail_out;
    if (fwrite(chunk, 1, made, out) != made) break;
  } while (result == Z_OK);
  (void)deflateEnd(&z);
  return result == Z_STREAM_END && fflush(out) == 0 && !ferror(out);
}
