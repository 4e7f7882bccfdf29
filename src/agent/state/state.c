// SPDX-License-Identifier: MIT
// The agent's shared state. Any thread. Signal-safe: no.
#include "state/state.h"

#include "base/futex.h"

struct cs_options cs_options;
struct cs_agent cs_agent;

// A forked child inherits the state, but is not recorded.
bool cs_agent_is_active(void) {
  uint32_t state = cs_load_acquire(&cs_agent.state);
  return (state == CS_AGENT_WAITING || state == CS_AGENT_RECORDING) &&
         getpid() == cs_agent.wire.pid;
}

void cs_agent_set_state(enum cs_agent_state state) {
  cs_store_release(&cs_agent.state, (uint32_t)state);
  cs_futex_wake(&cs_agent.state);
}

void cs_agent_wake(void) {
  cs_add_seq(&cs_agent.wake, 1);
  cs_futex_wake(&cs_agent.wake);
}

bool cs_send(enum cs_wire_kind kind, const void *record, size_t size) {
  return cs_producer_put(&cs_agent.wire, kind, record, size, NULL, 0);
}
