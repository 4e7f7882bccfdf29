// SPDX-License-Identifier: MIT
// Whether a signal that this process received was sent to its whole process group. The kernel does
// not say so; but a process that only receives signals, and is in the same group, has received it
// too. One thread. Signal-safe: no.
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"

struct cs_witness {
  int socket;  // 0: none
};

// Starts the witness for `signals`, all of which the caller has blocked. It is no child of this
// process, and ends when this process, and all forks of it that have not closed the witness, have
// ended. Returns false with the reason in *err.
bool cs_witness_open(struct cs_witness *w, const sigset_t *signals, struct cs_error *err);
// Returns whether the witness received `signal_number` from process `sender`, too, within the last
// second. To be called once for each such signal, as soon as it has been received. Takes some ms.
// Returns false as well if the witness was killed or is stopped.
bool cs_witness_saw(const struct cs_witness *w, int signal_number, pid_t sender);
void cs_witness_close(struct cs_witness *w);
