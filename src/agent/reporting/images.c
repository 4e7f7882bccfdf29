// SPDX-License-Identifier: MIT
// Native images: a record and an id for each (file, place) in a sample. Invariant: an id is never
// given to two images, even if one is unloaded and another one takes its place. The agent's thread
// only. Signal-safe: no.
#include "reporting/images.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "life/library.h"
#include "state/state.h"

enum { MAX_IMAGES = 1 << 20 };  // ids have 22 bits in a frame

struct known_image {
  uint64_t begin, end, bias, inode;
  uint32_t device, id_size;
  uint8_t id[CS_BUILD_ID_MAX];
  char *path;
};
static struct known_image *images;
static uint32_t count;
static size_t capacity;

static bool is_same(const struct known_image *known, const struct cs_image *image) {
  return known->begin == image->begin && known->end == image->end && known->bias == image->bias &&
         known->inode == image->inode && known->device == image->device &&
         known->id_size == image->id_size && memcmp(known->id, image->id, known->id_size) == 0 &&
         strcmp(known->path, image->path) == 0;
}

static bool make_room(void) {
  struct known_image *moved =
      count < MAX_IMAGES ? cs_grow_or_not(images, count, &capacity, sizeof *moved) : NULL;
  if (moved != NULL) images = moved;
  return moved != NULL;
}

bool cs_image_to_wire(const struct cs_image *image, uint32_t *id) {
  for (uint32_t i = count; i-- > 0;) {  // newest first: other images may have been in its place
    *id = i;
    if (is_same(&images[i], image)) return true;
  }
  struct known_image known = {.begin = image->begin,
                              .end = image->end,
                              .bias = image->bias,
                              .inode = image->inode,
                              .device = image->device,
                              .id_size = image->id_size};
  memcpy(known.id, image->id, sizeof known.id);
  if (!make_room() || (known.path = strdup(image->path)) == NULL) return false;
  bool runtime = cs_image_is_runtime(&cs_library.world, image);
  struct cs_wire_image record = {.id = count,
                                 .build_id_size = image->id_size,
                                 .flags = runtime ? CS_WIRE_IMAGE_RUNTIME : 0,
                                 .begin = image->begin,
                                 .end = image->end,
                                 .bias = image->bias,
                                 .inode = image->inode,
                                 .device = image->device};
  _Static_assert(sizeof record.build_id == sizeof image->id, "the whole id");
  memcpy(record.build_id, image->id, sizeof record.build_id);
  const char *strings[] = {known.path};
  if (!cs_producer_put(&cs_agent.wire, CS_WIRE_IMAGE, &record, sizeof record, strings, 1)) {
    free(known.path);
    return false;
  }
  *id = count;
  images[count++] = known;
  return true;
}

void cs_image_ids_free(void) {
  for (uint32_t i = 0; i < count; i++) free(images[i].path);
  free(images);
  images = NULL;
  capacity = count = 0;
}
