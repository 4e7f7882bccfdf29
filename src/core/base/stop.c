// SPDX-License-Identifier: MIT
// The names of the stop reasons. Signal-safe: yes.
#include "base/stop.h"

static const struct {
  const char *token, *text;
} names[] = {
#define NAMES(name, token, text) {token, text},
    CS_STOPS(NAMES)
#undef NAMES
};

const char *cs_stop_token(enum cs_stop stop) {
  return (unsigned)stop < CS_COUNT(names) ? names[stop].token : "?";
}

const char *cs_stop_text(enum cs_stop stop) {
  return (unsigned)stop < CS_COUNT(names) ? names[stop].text : "?";
}
