// SPDX-License-Identifier: MIT
// The HTTP statuses of requests of which there are samples. The agent's thread only. Not for
// handlers.
#pragma once

#include "base/label.h"

void cs_statuses_init(void);
void cs_statuses_note(const struct cs_label *label);  // of a sample
void cs_statuses_send(void);                          // sends those that are known
