// SPDX-License-Identifier: MIT
// A frame in a sample, as one word: its kind in the two topmost bits.
//   0 managed  function id (30 bits) << 32 | exact << 31 | offset from the method's start (31 bits)
//              exact: interrupted there; otherwise a return address, and the call is before it
//   1 native   image id (22 bits) << 40 | offset from the image's beginning (40 bits)
//   2 unknown  the address itself (61 bits); or, with CS_WIRE_FRAME_IN_KERNEL, the lower 48 bits of
//              an address in the kernel, whose other bits are ones
//   3 awaits   function id (30 bits) << 32: not on the stack; it awaits the frame before it
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define CS_WIRE_FRAME_KIND(f) ((unsigned)((f) >> 62))
#define CS_WIRE_FRAME_MANAGED 0u
#define CS_WIRE_FRAME_NATIVE 1u
#define CS_WIRE_FRAME_UNKNOWN 2u
#define CS_WIRE_FRAME_AWAITS 3u
#define CS_WIRE_FRAME_IN_KERNEL (5ull << 61)
#define CS_WIRE_FRAME_IS_KERNEL(f) ((f) >> 61 == 5)
#define CS_WIRE_KERNEL_ADDRESS 0xFFFFFFFFFFFFull
#define CS_WIRE_MANAGED_EXACT 0x80000000u
#define CS_WIRE_MANAGED_OFFSET 0x7FFFFFFFu
#define CS_WIRE_NATIVE_OFFSET 0xFFFFFFFFFFull

// Code that is too far from the method's start is given no offset.
static inline uint64_t cs_wire_managed_frame(uint32_t function, uint64_t offset, bool exact) {
  if (offset > CS_WIRE_MANAGED_OFFSET) return (uint64_t)function << 32;
  return (uint64_t)function << 32 | (exact ? CS_WIRE_MANAGED_EXACT : 0) | offset;
}
// Returns the frame that names the subject of a sample, in front of its frames: a type, a lock, a
// reason.
static inline uint64_t cs_wire_name_frame(uint32_t name) {
  return cs_wire_managed_frame(name, 0, false);
}
static inline uint64_t cs_wire_native_frame(uint32_t image, uint64_t offset) {
  return (uint64_t)CS_WIRE_FRAME_NATIVE << 62 | (uint64_t)image << 40 |
         (offset & CS_WIRE_NATIVE_OFFSET);
}
static inline uint64_t cs_wire_unknown_frame(uint64_t address) {
  return (uint64_t)CS_WIRE_FRAME_UNKNOWN << 62 | address;
}
static inline uint64_t cs_wire_awaiting_frame(uint32_t function) {
  return (uint64_t)CS_WIRE_FRAME_AWAITS << 62 | (uint64_t)function << 32;
}

// For managed and awaiting frames.
static inline uint32_t cs_wire_frame_function(uint64_t frame) {
  return (uint32_t)(frame >> 32) & 0x3FFFFFFFu;
}
static inline uint32_t cs_wire_frame_image(uint64_t frame) {
  return (uint32_t)(frame >> 40) & 0x3FFFFFu;
}
static inline uint64_t cs_wire_frame_offset(uint64_t native_frame) {
  return native_frame & CS_WIRE_NATIVE_OFFSET;
}
