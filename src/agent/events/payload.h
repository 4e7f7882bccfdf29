// SPDX-License-Identifier: MIT
// Texts in the payload of an event: UTF-16, with a NUL at the end. Not for handlers.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"

// Both return false if nothing ends the text.
bool cs_payload_pass_text(struct cs_bytes *p);
// Takes a text, whose number as a name is in *name. An empty one counts as "?". `class`: that of
// the object that the name is about; 0: not known.
bool cs_payload_take_name(struct cs_bytes *p, uint64_t class, uint32_t *name);
