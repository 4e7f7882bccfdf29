// SPDX-License-Identifier: MIT
// The last error of each thread, and the texts of the public API. Not for handlers, except
// clrsnap_version and the stop texts, which are constants.
#include "life/error.h"

#include "base/stop.h"
#include "clrsnap/clrsnap.h"

static _Thread_local struct cs_error last_error;

struct cs_error *cs_last_error(void) {
  return &last_error;
}

CLRSNAP_API const char *clrsnap_last_error(void) {
  return last_error.text;
}

CLRSNAP_API const char *clrsnap_version(void) {
  return CLRSNAP_VERSION;
}

CLRSNAP_API const char *clrsnap_stop_text(uint32_t stop) {
  return cs_stop_text(stop < CS_STOP_COUNT ? (enum cs_stop)stop : CS_STOP_NONE);
}

CLRSNAP_API const char *clrsnap_stop_token(uint32_t stop) {
  return cs_stop_token(stop < CS_STOP_COUNT ? (enum cs_stop)stop : CS_STOP_NONE);
}
