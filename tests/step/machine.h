// SPDX-License-Identifier: MIT
// What the stepper needs to know of the architecture: how calls, returns and signals change the
// stack, and how a thread is stepped. Each architecture has it in arch/ARCHITECTURE, with the names
// of registers in machine_regs.h there.
#pragma once

#include "decode.h"
#include "machine_regs.h"
#include "oracle.h"

// Returns whether the instruction was a call, and has been executed; *entry is then its return
// address.
bool machine_called(const struct insn *insn, const struct cs_regs *before,
                    const struct cs_regs *after, struct entry *entry);
// Returns whether the call is over where the thread is at `ip` with that stack pointer, on the
// stack of the entry.
bool machine_has_ended(const struct entry *entry, uint64_t sp, uint64_t ip);
// Returns whether the thread is at the first instruction of a signal handler.
bool machine_entered_handler(struct oracle *oracle, uint64_t sp_before);
// There: what the signal has interrupted, and the return address of the handler.
void machine_signal(struct oracle *oracle, struct entry *interrupted, struct entry *trampoline);
// The return address that the runtime has made by hand where it leaves the alternate stack.
struct entry machine_made(struct oracle *oracle);
// Returns whether the instruction has jumped, and neither called nor gone on to the next one.
bool machine_jumped(const struct insn *insn, uint64_t ip_before, uint64_t ip);
// Returns whether the address is in an entry of a PLT.
bool machine_is_plt(struct oracle *oracle, uint64_t ip);
// Executes one instruction, as tracee_step does.
enum tracee_event machine_step(struct oracle *oracle, const struct insn *insn, int *signal);

struct jit_call {  // the outermost call into libclrjit that is under way
  uint64_t slot, ip;
  uint64_t steps;
};
// Follows a call into the JIT, which runs to its end after options.per_jit instructions. Returns
// false if the program has ended.
bool machine_mind_jit(struct oracle *oracle, struct jit_call *call);
