// SPDX-License-Identifier: MIT
// The diagnostics port of a running .NET program: one command, one answer, one connection.
// https://github.com/dotnet/diagnostics/blob/main/documentation/design-docs/ipc-protocol.md
#ifndef CS_PROCESS_DIAG_H
#define CS_PROCESS_DIAG_H

#include <sys/types.h>

#include "base/error.h"
#include "clrsnap/cortypes.h"

enum { CS_DIAG_EVENT_PIPE = 2, CS_DIAG_PROFILER = 3, CS_DIAG_PROCESS = 4 };  // command sets
enum { CS_DIAG_ATTACH = 1 };                                                 // of CS_DIAG_PROFILER
enum { CS_DIAG_COLLECT = 3 };  // of CS_DIAG_EVENT_PIPE: CollectTracing2
enum { CS_DIAG_INFO = 4, CS_DIAG_APPLY_STARTUP_HOOK = 7 };  // of CS_DIAG_PROCESS: ProcessInfo2, ...

// The size of a message has 16 bits, its header included.
enum { CS_DIAG_HEADER = 20, CS_DIAG_PAYLOAD = 65535 - CS_DIAG_HEADER };

// What goes with a command. What does not fit is left out and remembered.
struct cs_diag_payload {
  uint8_t bytes[CS_DIAG_PAYLOAD];
  size_t size;
  bool too_long;
};
void cs_diag_put(struct cs_diag_payload *payload, const void *data, size_t size);
void cs_diag_put_u32(struct cs_diag_payload *payload, uint32_t value);
void cs_diag_put_text(struct cs_diag_payload *payload, const char *utf8);

extern unsigned cs_diag_patience_s;  // how long an answer is waited for: 30 seconds, unless set
// What this thread does meanwhile, every some milliseconds; false: it waits no longer, and *err of
// the command says that it was interrupted. NULL: nothing.
struct cs_diag_meanwhile {
  bool (*look)(void *context);
  void *context;
};
extern _Thread_local struct cs_diag_meanwhile cs_diag_meanwhile;

// Sends one command to the process and waits for its answer. True: it has answered
// "done", and `answer` holds what came with that. False: *err says what; *refusal is the HRESULT
// with which the process has refused, or 0 when it was not so much as reached. The payload and the
// answer may be the same.
bool cs_diag_command(pid_t pid, uint8_t set, uint8_t id, const struct cs_diag_payload *payload,
                     struct cs_diag_payload *answer, HRESULT *refusal, struct cs_error *err);

// The same for a command whose answer is followed by a stream. Returns the connection, which does
// not block, or -1.
int cs_diag_stream(pid_t pid, uint8_t set, uint8_t id, const struct cs_diag_payload *payload,
                   struct cs_diag_payload *answer, HRESULT *refusal, struct cs_error *err);

// The same, and is it a .NET program with a port?
bool cs_diag_find(pid_t pid, struct cs_error *err);
// Is there a port where it would be? Answers false where that cannot be seen, too.
bool cs_diag_has_port(pid_t pid);
// Is there such a process, and may this user reach its port?
bool cs_diag_check(pid_t pid, struct cs_error *err);

// The process' temporary folder, where its port is; the caller frees it. NULL: no memory.
char *cs_diag_folder(pid_t pid);

#endif
