// SPDX-License-Identifier: MIT
// What .eh_frame of AArch64 code contains besides plain rows: the kernel's signal frame. No
// function that describes itself wrongly is known. Not for handlers.
#include "native/cfi_special.h"

// The kernel's trampoline describes the frame record that the kernel has written: fp and lr, at fp.
// libcs may describe more; a trampoline is recognised by its code, and the mark says the same.
bool cs_cfi_is_kernel_frame(const struct cs_cfi_rule *rule) {
  return rule->cfa_how != CS_CFA_NONE;
}

// setcontext describes itself as a plain leaf.
bool cs_cfi_is_ucontext(const struct cs_cfi_state *state) {
  (void)state;
  return false;
}

enum cs_cfi_end cs_cfi_check_end(const struct cs_cfi_build *build, uint32_t last_row, uint32_t end,
                                 int32_t height) {
  (void)build;
  (void)last_row;
  (void)end;
  (void)height;
  return CS_CFI_END_RIGHT;
}

bool cs_cfa_special(struct cs_cursor c, struct cs_cfa_form *form) {
  (void)c;
  (void)form;
  return false;
}
