// SPDX-License-Identifier: MIT
// What the library has to say. It lives in somebody else's process, so it is silent by default:
// cs_log goes to the file named by CLRSNAP_LOG and nowhere else; cs_log_important is also printed
// to stderr, the same sentence once a process. Any thread. Not for handlers.
#ifndef CS_BASE_LOG_H
#define CS_BASE_LOG_H

#define CS_LOG_ENV "CLRSNAP_LOG"

__attribute__((format(printf, 1, 2))) void cs_log(const char *format, ...);
__attribute__((format(printf, 1, 2))) void cs_log_important(const char *format, ...);

#endif
