// SPDX-License-Identifier: MIT
// Which IL an instruction of a managed method comes from, by the debug info that the runtime keeps
// for jitted code and that ReadyToRun images contain. It is read from memory, another process's or
// one's own; the runtime is not called. Not for handlers.
//
// The result is what the profiling API's GetILToNativeMapping3 returns for the same instruction
// (tests/live/stack/il.sh compares the two); where the debug info has an unexpected form, there is
// none.
#pragma once

#include "codemap/codemap.h"

// Special values of an IL offset; the numbers are the runtime's.
#define CS_IL_EPILOG 0xFFFFFFFDu
#define CS_IL_PROLOG 0xFFFFFFFEu
#define CS_IL_NO_MAPPING 0xFFFFFFFFu

// `kind` is CS_CODE_JIT or CS_CODE_R2R, `method` the beginning of the method's main body, `at` an
// address in the method or one of its funclets; for a return address pass the address less 1, which
// is in the call. Returns false if there is no debug info, or none that can be trusted.
bool cs_il_find(const struct cs_world *world, enum cs_code_kind kind, uint64_t method, uint64_t at,
                uint32_t *il);

// Finds the IL offset in the map itself: entries of (source, native offset, IL offset), packed in
// as few bits as they need. Returns false if the map does not fill its bytes, or `offset` is in no
// range of it.
bool cs_il_of_bounds(const uint8_t *bounds, size_t size, uint32_t offset, uint32_t *il);
