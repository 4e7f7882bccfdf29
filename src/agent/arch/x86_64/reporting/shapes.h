// SPDX-License-Identifier: MIT
// The shapes of the runtime's stubs that are in no map: their first bytes. Plain data.
#pragma once

#include <stdint.h>

enum { CS_ANY = 0x100, CS_SHAPE_BYTES = 20 };

struct cs_shape {
  const char *name;
  uint16_t align;  // of its first byte
  uint16_t size;   // of the longest instance
  uint16_t count;  // of `bytes`
  uint16_t bytes[CS_SHAPE_BYTES];
};
static const struct cs_shape cs_shapes[] = {
    // jmp [target]; mov r10, [method]; jmp [prestub], and the older form without the first
    {"[precode stub]",
     8,
     24,
     15,
     {0xFF, 0x25, CS_ANY, CS_ANY, 0x00, 0x00, 0x4C, 0x8B, 0x15, CS_ANY, CS_ANY, 0x00, 0x00, 0xFF,
      0x25}},
    {"[precode stub]", 8, 24, 9, {0x4C, 0x8B, 0x15, CS_ANY, CS_ANY, 0x00, 0x00, 0xFF, 0x25}},
    // mov rax, [counter]; dec word [rax]; je; jmp; jmp
    {"[call counting stub]", 8, 24, 20, {0x48,   0x8B,   0x05, CS_ANY, CS_ANY, 0x00, 0x00,
                                         0x66,   0xFF,   0x08, 0x74,   0x06,   0xFF, 0x25,
                                         CS_ANY, CS_ANY, 0x00, 0x00,   0xFF,   0x25}},
    // mov rax, rsp; mov r11, rdi; then arguments move
    {"[delegate shuffle thunk]", 8, 128, 6, {0x48, 0x8B, 0xC4, 0x49, 0x89, 0xFB}},
    // add rdi, 8; mov rax, target; jmp rax: calls a boxed value's method
    {"[unboxing stub]", 8, 16, 6, {0x48, 0x83, 0xC7, 0x08, 0x48, 0xB8}},
    // mov rsi, [rdi] before it: the type is a hidden argument
    {"[unboxing stub]", 8, 19, 9, {0x48, 0x8B, 0x37, 0x48, 0x83, 0xC7, 0x08, 0x48, 0xB8}},
    // mov rsi, type; mov rax, target; jmp rax: passes shared generic code its hidden argument
    {"[instantiating stub]",
     8,
     22,
     12,
     {0x48, 0xBE, CS_ANY, CS_ANY, CS_ANY, CS_ANY, CS_ANY, CS_ANY, CS_ANY, CS_ANY, 0x48, 0xB8}},
    {"[instantiating stub]",
     8,
     25,
     15,
     {0x48, 0x89, 0xF2, 0x48, 0xBE, CS_ANY, CS_ANY, CS_ANY, CS_ANY, CS_ANY, CS_ANY, CS_ANY, CS_ANY,
      0x48, 0xB8}},
    // mov [rdi], rsi; then as one of the templates in libcoreclr goes on
    {"[write barrier]", 16, 0x140, 8, {0x48, 0x89, 0x37, 0x49, 0x89, 0xF8, 0x48, 0xB8}},
    {"[write barrier]", 16, 0x140, 8, {0x48, 0x89, 0x37, 0x48, 0x89, 0xF8, 0x49, 0xBA}},
    {"[write barrier]", 16, 0x140, 8, {0x48, 0x89, 0x37, 0x48, 0x89, 0xF8, 0x49, 0xB8}},
    {"[write barrier]", 16, 0x140, 8, {0x48, 0x89, 0x37, 0x0F, 0x1F, 0x00, 0x48, 0xB8}},
    {"[write barrier]", 16, 0x140, 8, {0x48, 0x89, 0x37, 0x0F, 0x1F, 0x00, 0x49, 0xB8}},
};
