// SPDX-License-Identifier: MIT
// The names of the stop reasons. Signal-safe: yes.
#include "base/stop.h"

const char *cs_stop_token(enum cs_stop stop) {
  static const char *const tokens[] = {
#define CS_STOP_TOKEN(name, token, text) token,
      CS_STOPS(CS_STOP_TOKEN)
#undef CS_STOP_TOKEN
  };
  return (unsigned)stop < CS_COUNT(tokens) ? tokens[stop] : "?";
}

const char *cs_stop_text(enum cs_stop stop) {
  static const char *const texts[] = {
#define CS_STOP_TEXT(name, token, text) text,
      CS_STOPS(CS_STOP_TEXT)
#undef CS_STOP_TEXT
  };
  return (unsigned)stop < CS_COUNT(texts) ? texts[stop] : "?";
}
