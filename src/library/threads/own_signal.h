// SPDX-License-Identifier: MIT
// own_signal: the real-time signal that asks a thread for something. Any thread; not for handlers.
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "clrsnap/clrsnap.h"

// Installs the handler of signal `wanted`, or of the highest free one for 0, and sets
// cs_threads.signal_number. Returns S_OK, or an error with its reason in `err`.
HRESULT cs_own_signal_install(int wanted, struct cs_error *err);
// Makes sure that our handler of cs_threads.signal_number is installed: if the program has reset
// it, installs it again, because the signal's default would end the process. Returns false if the
// program uses the signal itself, so that it must not be sent.
bool cs_own_signal_ensure(struct cs_error *err);
// Signals of faults, which no handler of ours blocks, as bits of a mask.
enum { CS_FAULT_SIGNALS = 1 << (SIGSEGV - 1) | 1 << (SIGBUS - 1) };
void cs_block_all_but_faults(sigset_t *set);  // what a handler of ours blocks while it runs

// The letter of a thread's state in its status file, and which signals it blocks and which are
// pending for it alone: bit 0 is signal 1.
struct cs_thread_status {
  char state;
  uint64_t blocked, pending;
};
// Reads a thread of this process. Returns false if it has ended, or the kernel does not say.
bool cs_thread_status(uint32_t tid, struct cs_thread_status *status);
// Its signals alone. A thread that waits for signals (sigwait) counts as blocking all.
bool cs_thread_signals(uint32_t tid, uint64_t *blocked, uint64_t *pending);
