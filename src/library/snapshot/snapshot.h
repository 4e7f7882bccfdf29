// SPDX-License-Identifier: MIT
// snapshot: clrsnap_snapshot for callers with options of their own.
#pragma once

#include "clrsnap/clrsnap.h"

// clrsnap_snapshot with options of this call's own (enum clrsnap_flag). With CS_SNAPSHOT_QUIET, the
// caller may be in a signal handler on any thread, a native one included: the library's state is
// read, but nothing is done to make it ready; the CLR is not asked about the runtime's state (the
// caller ensures that the event mask allows snapshots); a thread that has not been passed on counts
// as unknown to the runtime; and there is no error text.
#define CS_SNAPSHOT_QUIET (1u << 31)
// The snapshot is one of a round over many threads, between a SuspendRuntime and a ResumeRuntime
// that stop nothing.
#define CS_SNAPSHOT_ROUND (1u << 30)
HRESULT cs_snapshot(uint32_t flags, ThreadID thread, StackSnapshotCallback *callback,
                    ULONG32 info_flags, void *client_data, BYTE context[], ULONG32 context_size);
