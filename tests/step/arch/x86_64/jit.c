// SPDX-License-Identifier: MIT
// A call into the JIT has millions of instructions, so its end runs at full speed.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "machine.h"

static bool in_jit(const struct oracle *oracle) {
  const struct cs_images *images = cs_remote_world(oracle->remote)->images;
  const struct cs_image *image = cs_images_find(images, oracle->thread.regs.r[CS_RIP]);
  return image != NULL && strstr(image->path, "/libclrjit.so") != NULL;
}

static bool run_out_of_jit(struct oracle *oracle, uint64_t slot, uint64_t ip) {
  if (tracee_return(&oracle->tracee, slot, ip) != TRACEE_STEPPED) return false;
  oracle_read_registers(oracle);
  const struct cs_regs *regs = &oracle->thread.regs;
  if (regs->r[CS_RIP] != ip) {
    char where[96];
    (void)snprintf(where, sizeof where,
                   "to %#" PRIx64 ", sp %#" PRIx64 ": at %#" PRIx64 ", sp %#" PRIx64, ip, slot + 8,
                   regs->r[CS_RIP], regs->r[CS_RSP]);
    oracle_die("a call into the JIT did not return", where);
  }
  shadow_settle(&oracle->shadow, slot + 8, ip);
  oracle_went(oracle, ip, slot + 8);
  oracle->excuse[EXCUSE_UNSTEPPED]++;
  cs_remote_invalidate(oracle->remote);
  return true;
}

bool machine_mind_jit(struct oracle *oracle, struct jit_call *call) {
  if (call->slot == 0) {
    if (!in_jit(oracle)) return true;
    const struct entry *top = &oracle->shadow.entry[oracle->shadow.count - 1];
    *call = (struct jit_call){top->slot, top->ip, 0};
  } else if (oracle->thread.regs.r[CS_RSP] > call->slot) {
    call->slot = 0;
    return true;
  }
  if (++call->steps <= oracle->options.per_jit) return true;
  uint64_t slot = call->slot;
  call->slot = 0;
  return run_out_of_jit(oracle, slot, call->ip);
}
