// SPDX-License-Identifier: MIT
// Finds the native image that contains an address, by binary search, and checks whether it is still
// that image. Signal-safe: yes.
#include "images/images.h"

CS_ISLAND const struct cs_image *cs_images_find(const struct cs_images *images, uint64_t ip) {
  uint32_t lo = 0, hi = images->count;
  while (lo < hi) {  // the first image that ends after the ip is in [lo, hi]
    uint32_t mid = lo + (hi - lo) / 2;
    if (images->image[mid].end <= ip)
      lo = mid + 1;
    else
      hi = mid;
  }
  if (lo == images->count || ip < images->image[lo].begin) return NULL;
  return &images->image[lo];
}

CS_ISLAND bool cs_image_is_mapped(const struct cs_mem *mem, const struct cs_image *image) {
  uint8_t id[CS_BUILD_ID_MAX];
  if (image->stays) return true;
  // Without a build id nothing distinguishes it from an image that took its place.
  if (image->id_size == 0 || !cs_mem_read_guarded(mem, image->id_address, id, image->id_size))
    return false;
  for (unsigned i = 0; i < image->id_size; i++)
    if (id[i] != image->id[i]) return false;
  return true;
}
