// SPDX-License-Identifier: MIT
// What the user asks to be pushed; the environment (OTEL_*) adds to it.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define CS_PUSH_MAX_HEADERS 32

struct cs_push_options {
  const char *url;                           // NULL: nothing is pushed
  const char *service;                       // NULL: that of the environment, or the program's name
  const char *headers[CS_PUSH_MAX_HEADERS];  // "NAME: VALUE"
  size_t header_count;
  bool live;  // it is pushed by the machine that was recorded
};
