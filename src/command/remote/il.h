// SPDX-License-Identifier: MIT
// il: which IL an instruction of a managed method comes from, by the debug info that the runtime
// keeps with jitted code and that ReadyToRun images carry. Nothing is asked of the runtime: it is
// read from memory, another process' or one's own. Not for handlers.
//
// What is answered is what the profiling API's GetILToNativeMapping3 says of the same instruction
// (tests/live/il.sh holds the two against each other); where the debug info is not exactly as it is
// known to be, nothing is answered.
#ifndef CS_REMOTE_IL_H
#define CS_REMOTE_IL_H

#include "codemap/codemap.h"

// What an IL offset may be instead; the numbers are the runtime's.
#define CS_IL_EPILOG 0xFFFFFFFDu
#define CS_IL_PROLOG 0xFFFFFFFEu
#define CS_IL_NO_MAPPING 0xFFFFFFFFu

// `kind` is CS_CODE_JIT or CS_CODE_R2R, `method` where the method's main body begins, `at` an
// address in the method or one of its funclets; for a return address pass it less 1: the call's.
// False: there is no debug info, or none that can be trusted.
bool cs_il_find(const struct cs_world *world, enum cs_code_kind kind, uint64_t method, uint64_t at,
                uint32_t *il);

// ---- il_bounds.c: the encoding, from bytes; these are read, never believed ----
// The map itself: entries of (source, native offset, IL offset), packed in as few bits as they
// need. False: it does not fill its bytes, or `offset` is in no range of it.
bool cs_il_of_bounds(const uint8_t *bounds, size_t size, uint32_t offset, uint32_t *il);

#endif
