// SPDX-License-Identifier: MIT
// Labels: which Activity is current on a thread, as the startup hook (src/agent/labels) writes it
// into the thread's slot (signal/label.h). Not for handlers.
#pragma once

#include "signal/thread.h"

// Called when a recording that wants labels begins, and at the end of any recording.
void cs_labels_begin(void);
void cs_labels_end(void);
// Returns whether the hook runs. It may never: a program can be built without startup hooks.
bool cs_labels_have_hook(void);
// Links a registry entry to the slot that its thread has already. Any thread.
void cs_label_slot_link(struct cs_thread *thread);
// Returns the HTTP status with which a request has ended, or 0 if it has not ended, or if that was
// so long ago that its status is forgotten.
uint32_t cs_label_status_of(uint32_t request);
