// SPDX-License-Identifier: MIT
// The diagnostics port of a running .NET program: one command, one response, one connection.
// https://github.com/dotnet/diagnostics/blob/main/documentation/design-docs/ipc-protocol.md
#pragma once

#include <sys/types.h>

#include "base/error.h"
#include "clrsnap/cortypes.h"

enum { CS_DIAG_EVENT_PIPE = 2, CS_DIAG_PROFILER = 3, CS_DIAG_PROCESS = 4 };  // command sets
enum { CS_DIAG_ATTACH = 1 };                                                 // of CS_DIAG_PROFILER
enum { CS_DIAG_COLLECT = 3 };  // of CS_DIAG_EVENT_PIPE: CollectTracing2
enum { CS_DIAG_INFO = 4, CS_DIAG_APPLY_STARTUP_HOOK = 7 };  // of CS_DIAG_PROCESS: ProcessInfo2, ...

// A message's size, header included, is a 16-bit number.
enum { CS_DIAG_HEADER = 20, CS_DIAG_PAYLOAD = 65535 - CS_DIAG_HEADER };

// The payload of a message. What does not fit is left out, and too_long is set.
struct cs_diag_payload {
  uint8_t bytes[CS_DIAG_PAYLOAD];
  size_t size;
  bool too_long;
};
void cs_diag_put(struct cs_diag_payload *payload, const void *data, size_t size);
void cs_diag_put_u32(struct cs_diag_payload *payload, uint32_t value);
void cs_diag_put_text(struct cs_diag_payload *payload, const char *utf8);

extern unsigned cs_diag_patience_s;  // how long to wait for a response; 30 by default
// Called every few milliseconds while this thread waits for a response. When it returns false, the
// wait ends, and the command fails as interrupted. NULL: nothing is called.
struct cs_diag_meanwhile {
  bool (*poll)(void *context);
  void *context;
};
extern _Thread_local struct cs_diag_meanwhile cs_diag_meanwhile;

// Sends one command to the process and waits for the response. Returns true if the process reports
// success; `answer` then holds the payload of the response. Otherwise returns false, with the
// reason in *err; *refusal is the HRESULT that the process responded with, or 0 if there was no
// response. The two payloads may be the same object.
bool cs_diag_command(pid_t pid, uint8_t set, uint8_t id, const struct cs_diag_payload *payload,
                     struct cs_diag_payload *answer, HRESULT *refusal, struct cs_error *err);

// The same for a command whose response is followed by a stream. Returns the connection, which is
// non-blocking, or -1.
int cs_diag_stream(pid_t pid, uint8_t set, uint8_t id, const struct cs_diag_payload *payload,
                   struct cs_diag_payload *answer, HRESULT *refusal, struct cs_error *err);

// cs_diag_check, and the process is a .NET program with a port.
bool cs_diag_find(pid_t pid, struct cs_error *err);
// Returns whether the port exists; false, too, if that cannot be seen.
bool cs_diag_has_port(pid_t pid);
// Checks that the process exists and that this user may connect to its port.
bool cs_diag_check(pid_t pid, struct cs_error *err);

// The process's temporary directory, which its port is in; the caller frees it. Returns NULL if
// memory has run out.
char *cs_diag_folder(pid_t pid);
