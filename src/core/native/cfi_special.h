// SPDX-License-Identifier: MIT
// Private to the component: the forms in .eh_frame that only one architecture has
// (native/cfi_special.c). Not for handlers.
#pragma once

#include "native/cfi_expression.h"
#include "native/cfi_private.h"

// Returns whether a rule marked as a signal frame describes exactly the kernel's frame, which is
// read as a whole from the ucontext.
bool cs_cfi_is_kernel_frame(const struct cs_cfi_rule *rule);
// Returns whether the state describes the place where setcontext will continue, by a ucontext at
// the CFA.
bool cs_cfi_is_ucontext(const struct cs_cfi_state *state);

// What the code of a function's last row says about its unwind data.
enum cs_cfi_end {
  CS_CFI_END_RIGHT,
  CS_CFI_END_WRONG,       // the code returns where the frame has the wrong size
  CS_CFI_END_NOT_CALLED,  // so it does, and no call can have entered the function
};
enum cs_cfi_end cs_cfi_check_end(const struct cs_cfi_build *build, uint32_t last_row, uint32_t end,
                                 int32_t height);

// Parses a CFA expression that only this architecture has. Returns false if the expression has
// another form.
bool cs_cfa_special(struct cs_cursor c, struct cs_cfa_form *form);
