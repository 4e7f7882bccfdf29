// SPDX-License-Identifier: MIT
// The log. Invariant: each line is one write(2), so that lines of several threads, and of several
// processes that share a file, do not mix. No line is longer than LINE_BYTES or contains a
// character that a terminal interprets. The file is opened for the first line and stays open
// (O_CLOEXEC: children open their own); if the program has closed it, it is reopened. Any thread.
// Signal-safe: no.
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/own_file.h"
#include "base/print.h"

#define LINE_BYTES 1024
#define REMEMBERED 32  // the number of important messages of which repetitions are recognised

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool opened;
static struct cs_own_file file;
static uint64_t printed_hash[REMEMBERED];
static unsigned printed_count;

// A failure is ignored: there is no other place to report it to.
static void write_line(int fd, char *line, size_t len) {
  line[len] = '\n';
  ssize_t written = write(fd, line, len + 1);
  (void)written;
}

static size_t clamp(int printed, size_t used) {
  if (printed < 0) return used;
  size_t len = used + (size_t)printed;
  return len < LINE_BYTES - 1 ? len : LINE_BYTES - 2;
}

// The caller holds the lock.
static int log_file(void) {
  int fd = cs_own_file_fd(&file);
  if (fd >= 0 || (opened && file.number == 0)) return fd;
  const char *path = getenv(CS_LOG_ENV);
  bool first = !opened;
  opened = true;
  if (path == NULL || path[0] == '\0') return -1;
  cs_own_file_close(&file);
  if (cs_own_file_keep(&file, open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600)))
    return cs_own_file_fd(&file);
  if (first) {
    char line[LINE_BYTES];
    size_t len = clamp(snprintf(line, sizeof line, "clrsnap: cannot open %s=%s: %s", CS_LOG_ENV,
                                path, strerrorname_np(errno)),
                       0);
    write_line(STDERR_FILENO, line, len);
  }
  return -1;
}

static void log_to_file(const char *text) {
  int fd = log_file();
  if (fd < 0) return;
  struct timespec now;
  (void)clock_gettime(CLOCK_REALTIME, &now);
  struct tm utc;
  (void)gmtime_r(&now.tv_sec, &utc);
  char line[LINE_BYTES];
  size_t len = strftime(line, sizeof line, "%Y-%m-%dT%H:%M:%S", &utc);
  len = clamp(snprintf(line + len, sizeof line - len, ".%03ldZ %d/%ld %s", now.tv_nsec / 1000000,
                       getpid(), syscall(SYS_gettid), text),
              len);
  write_line(fd, line, len);
}

static bool is_first_time(const char *text) {
  uint64_t h = cs_hash_bytes(text, strlen(text));
  for (unsigned i = 0; i < printed_count; i++) {
    if (printed_hash[i] == h) return false;
  }
  if (printed_count == REMEMBERED) return false;  // the log still has all of them
  printed_hash[printed_count++] = h;
  return true;
}

// The arguments are not trusted (base/print.h).
static void put(bool important, const char *format, va_list args) {
  char text[LINE_BYTES], raw[LINE_BYTES], shown[CS_ESCAPE_MOST];
  size_t used = 0;
  (void)vsnprintf(raw, sizeof raw, format, args);
  for (size_t i = 0, len = strlen(raw); i < len;) {
    i += cs_escape_next(raw + i, len - i, shown);
    if (used + strlen(shown) >= LINE_BYTES) break;
    used += strlen(strcpy(text + used, shown));
  }
  text[used] = '\0';
  (void)pthread_mutex_lock(&lock);
  log_to_file(text);
  if (important && is_first_time(text))
    write_line(STDERR_FILENO, raw, clamp(snprintf(raw, sizeof raw, "clrsnap: %s", text), 0));
  (void)pthread_mutex_unlock(&lock);
}

void cs_log(const char *format, ...) {
  va_list args;
  va_start(args, format);
  put(false, format, args);
  va_end(args);
}

void cs_log_important(const char *format, ...) {
  va_list args;
  va_start(args, format);
  put(true, format, args);
  va_end(args);
}
