// SPDX-License-Identifier: MIT
// Why a walk or a step ended. One list for all components, so that the reason why a single step
// failed reaches the recording unchanged. Plain data. Signal-safe: yes.
#pragma once

#include "base/base.h"

// X(name, short token for files and counters, sentence for people)
#define CS_STOPS(X)                                                                                \
  X(NONE, "none", "the walk goes on")                                                              \
  X(BASE, "base", "the stack's base was reached: the walk is complete")                            \
  X(DEPTH, "depth", "the depth limit was reached")                                                 \
  X(UNKNOWN_CODE, "unknown-code", "the ip is in no managed method, stub or loaded ELF image")      \
  X(NO_NATIVE_RULE, "no-native-rule", "the native code at the ip has no .eh_frame entry")          \
  X(NATIVE_RULE, "native-rule", "the native code's unwind rule has a form that is not supported")  \
  X(STUB, "stub", "a stub's caller could not be found")                                            \
  X(BAD_SP, "bad-sp", "the next stack pointer is outside the stack, misaligned or not above")      \
  X(BAD_UNWIND, "bad-unwind", "the managed unwind data is malformed")                              \
  X(UNWIND_VERSION, "unwind-version", "the managed unwind data has a version other than 1")        \
  X(UNREADABLE, "unreadable", "memory that the walk needs could not be read")                      \
  X(NO_GUARD, "no-guard", "code that may be unloaded cannot be read: process_vm_readv is refused") \
  X(NO_BOUNDS, "no-bounds", "the thread's stack bounds are not known")                             \
  X(BAD_SEED, "bad-seed", "the seed's registers cannot be those of a frame")                       \
  X(BUFFER, "buffer", "the buffer for frames was full")                                            \
  X(TIME, "time", "the walk had used all of its CPU time")                                         \
  X(PUT_OFF, "put-off", "no walk: the thread's last ones took too much of its time")               \
  X(INTERPRETED, "interpreted", "the ip is in code of the runtime's interpreter")                  \
  X(ASLEEP, "asleep",                                                                              \
    "the thread sleeps where its caller is found by registers that are not known")                 \
  X(BLOCKED, "blocked", "no walk: the thread ran with its signals blocked")

enum cs_stop {
#define CS_STOP_ENUM(name, token, text) CS_STOP_##name,
  CS_STOPS(CS_STOP_ENUM)
#undef CS_STOP_ENUM
      CS_STOP_COUNT
};

// Return the token ("bad-sp"), and the sentence.
const char *cs_stop_token(enum cs_stop stop);
const char *cs_stop_text(enum cs_stop stop);
