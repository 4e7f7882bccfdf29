// SPDX-License-Identifier: MIT
// See made_up.h.
#include "aarch64/made_up.h"

#include <stdio.h>
#include <string.h>

#define RETURN_IP 0xF23456789AB0ull
#define FAR_BELOW ((uint64_t)0x40000)  // an sp that has gone somewhere below the frame (localloc)
enum { MAX_REPORTS = 40 };

struct step_state made_up_frame;
static bool keeps_left;
const struct cs_stack made_up_stack = {.lo = MADE_UP_STACK_LO, .hi = MADE_UP_STACK_HI};

static uint64_t callers_value(int slot) {
  return slot == STEP_LR ? RETURN_IP : 0xCA11E400 + (uint64_t)slot * 0x1110;
}

static uint64_t stack_word(uint64_t address) {
  const struct step_state *state = &made_up_frame;
  for (int i = 0; i < STEP_SAVED; i++) {
    bool left = keeps_left && state->sp_known && state->left[i] <= state->sp_below;
    int32_t below = state->saved[i] != 0 ? state->saved[i] : left ? state->left[i] : 0;
    if (below != 0 && address == MADE_UP_CFA - (uint64_t)(int64_t)below) return callers_value(i);
  }
  return (address * 0x9E3779B97F4A7C15ull) >> 17 | 1;  // nothing's value
}

bool made_up_read(uint64_t address, void *dst, size_t len) {
  if (address < MADE_UP_STACK_LO || address >= MADE_UP_STACK_HI || len != 8 || (address & 7) != 0)
    return false;
  uint64_t value = stack_word(address);
  memcpy(dst, &value, sizeof value);
  return true;
}

void made_up_regs(struct cs_regs *regs, uint64_t ip, bool keeps) {
  const struct step_state *state = &made_up_frame;
  for (unsigned i = 0; i < CS_REG_COUNT; i++) regs->r[i] = 0xDEAD0001 + i * 0x10000;
  regs->known = CS_REGS_ALL;
  keeps_left = keeps;
  for (int i = 0; i < STEP_SAVED; i++) {
    bool kept = i == STEP_FP ? state->fp_kept : i == STEP_LR ? state->lr_kept : true;
    if (state->own[i] || (keeps && kept && state->saved[i] != 0))
      regs->r[STEP_FIRST + i] = callers_value(i);
  }
  regs->r[CS_SP] = MADE_UP_CFA - (state->sp_known ? (uint64_t)(int64_t)state->sp_below : FAR_BELOW);
  if (state->fp_is_frame) regs->r[CS_FP] = MADE_UP_CFA - (uint64_t)(int64_t)state->fp_below;
  regs->r[CS_IP] = ip;
}

bool made_up_is_caller(const struct cs_regs *regs) {
  const struct step_state *state = &made_up_frame;
  if (regs->r[CS_IP] != RETURN_IP || regs->r[CS_SP] != MADE_UP_CFA) return false;
  for (int i = 0; i < STEP_LR; i++)
    if ((state->own[i] || state->saved[i] != 0) && regs->r[STEP_FIRST + i] != callers_value(i))
      return false;
  return true;
}

void made_up_report(const char *what, uint64_t function, uint32_t at, int stop,
                    const struct cs_regs *regs) {
  static int reports;
  const struct step_state *state = &made_up_frame;
  if (reports++ >= MAX_REPORTS) return;
  printf(
      "%s: function at %#llx + %#x (stop %d): sp cfa%+lld, ip %#llx, fp %#llx; the frame is "
      "cfa - sp %d%s, cfa - fp %d%s\n",
      what, (unsigned long long)function, at * 4, stop, (long long)(regs->r[CS_SP] - MADE_UP_CFA),
      (unsigned long long)regs->r[CS_IP], (unsigned long long)regs->r[CS_FP], state->sp_below,
      state->sp_known ? "" : " (not known)", state->fp_below,
      state->fp_is_frame ? "" : " (not a frame)");
}
