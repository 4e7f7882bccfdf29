// SPDX-License-Identifier: MIT
// The async methods that await the ones on a stack (signal/awaits.h). In a recording that does not
// want them, all of these do nothing. Not for handlers.
#pragma once

#include "base/error.h"
#include "clr_names/names.h"
#include "signal/sample.h"

bool cs_awaits_start(bool attached, struct cs_error *err);
void cs_awaits_publish(void);  // from then on, handlers use the tables
void cs_awaits_free(void);     // when no handler uses them any more

// ---- The runtime's callbacks ----
void cs_awaits_suspended(void);  // all threads are stopped: RuntimeSuspendFinished
void cs_awaits_resuming(void);   // they are about to continue: RuntimeResumeStarted
void cs_awaits_forget(void);     // a module has been unloaded: drops what was learnt of its classes

// ---- The agent's thread ----
// Returns the class of the boxes that the method runs (struct cs_await_site.class), or 0 if it runs
// none. Asks the CLR.
uint64_t cs_awaits_box_class(FunctionID function, const struct cs_method_name *name);
// Notes that a method has been named under this id.
void cs_awaits_note_method(uint32_t id, const struct cs_method_name *name, uint64_t box_class);
// Learns from a sample what handlers do not know yet, and fills in the frames of the awaiting
// methods, innermost first. Returns how many, CS_AWAITS_MOST at most. `wire`: the sample's own
// frames.
uint32_t cs_awaits_to_wire(const struct cs_sample *s, const uint64_t *wire, uint64_t *out);
void cs_awaits_log(void);  // logs how chains have ended
