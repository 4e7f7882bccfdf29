// SPDX-License-Identifier: MIT
// Messages. The library runs in someone else's process, so it is silent by default: cs_log writes
// to the file that CLRSNAP_LOG names, and nowhere else. cs_log_important also prints to stderr,
// each message once per process. Any thread. Not for handlers.
#pragma once

#define CS_LOG_ENV "CLRSNAP_LOG"

__attribute__((format(printf, 1, 2))) void cs_log(const char *format, ...);
__attribute__((format(printf, 1, 2))) void cs_log_important(const char *format, ...);
