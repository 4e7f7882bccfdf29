// SPDX-License-Identifier: MIT
// A request's status is known when the request ends, which may be before its last sample is read,
// or long after. Invariant: a status is sent for its own request only. Of two requests that share a
// place in the table, the older one may lose its status. The agent's thread only. Signal-safe: no.
#include "reporting/statuses.h"

#include <string.h>

#include "state/label_slots.h"
#include "state/state.h"

enum { PLACES = 8192 };

static uint32_t pending[PLACES];  // requests that have samples and may not have ended; 0: none
static uint32_t count;            // places that are not 0; in most recordings there are none

void cs_statuses_init(void) {
  memset(pending, 0, sizeof pending);
  count = 0;
}

void cs_statuses_note(const struct cs_label *label) {
  uint32_t request = cs_label_request(label);
  if (request == 0) return;
  if (pending[request % PLACES] == 0) count++;
  pending[request % PLACES] = request;
}

void cs_statuses_send(void) {
  uint32_t left = count;
  for (uint32_t i = 0; left > 0; i++) {
    if (pending[i] == 0) continue;
    left--;
    struct cs_wire_status status = {pending[i], cs_label_status_of(pending[i])};
    if (status.status == 0) continue;
    if (!cs_producer_put(&cs_agent.wire, CS_WIRE_STATUS, &status, sizeof status, NULL, 0)) return;
    pending[i] = 0;
    count--;
  }
}
