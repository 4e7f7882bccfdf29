// SPDX-License-Identifier: MIT
// Which native image an address is in: a binary search over the sorted table. Signal-safe: yes.
#include "native/image.h"

CS_ISLAND const struct cs_image *cs_images_find(const struct cs_images *images, uint64_t ip) {
  uint32_t lo = 0, hi = images->count;
  while (lo < hi) {  // the first image that ends behind the ip is in [lo, hi]
    uint32_t mid = lo + (hi - lo) / 2;
    if (images->image[mid].end <= ip)
      lo = mid + 1;
    else
      hi = mid;
  }
  if (lo == images->count || ip < images->image[lo].begin) return NULL;
  return &images->image[lo];
}
