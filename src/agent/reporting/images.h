// SPDX-License-Identifier: MIT
// Native images as the wire knows them. The agent's thread only. Not for handlers.
#pragma once

#include "images/images.h"

bool cs_image_to_wire(const struct cs_image *image, uint32_t *id);  // false: no room
void cs_image_ids_free(void);  // when the recording is over; the next one has its own ids
