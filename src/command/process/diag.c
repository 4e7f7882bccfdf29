// SPDX-License-Identifier: MIT
// The diagnostics port: a Unix socket in the process's temporary directory. Its name contains the
// PID and the start time as the process itself reads them, in namespaces of its own, so a reused
// PID does no harm. Invariant: each failure has a message of its own: no such process, another
// user's process, no .NET program, a port that is switched off, no response, a refusal. One thread.
// Signal-safe: no.
#include "process/diag.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/rights.h"
#include "process/proc.h"
#include "process/target.h"

unsigned cs_diag_patience_s = 30;
_Thread_local struct cs_diag_meanwhile cs_diag_meanwhile;
#define POLL_MS 5
enum { SET_SERVER = 0xFF, SERVER_OK = 0, SERVER_ERROR = 0xFF };
static const char magic[14] = "DOTNET_IPC_V1";

// ---- Payloads ----

void cs_diag_put(struct cs_diag_payload *payload, const void *data, size_t size) {
  if (size > sizeof payload->bytes - payload->size) {
    payload->too_long = true;
    return;
  }
  memcpy(payload->bytes + payload->size, data, size);
  payload->size += size;
}

void cs_diag_put_u32(struct cs_diag_payload *payload, uint32_t value) {
  cs_diag_put(payload, &value, sizeof value);
}

static void put_unit(struct cs_diag_payload *payload, uint32_t unit) {
  uint16_t value = (uint16_t)unit;
  cs_diag_put(payload, &value, sizeof value);
}

// The next character of UTF-8. A byte that is not part of well-formed UTF-8, which paths may
// contain, becomes the character of that number: the runtime uses UTF-16 for paths, so none is
// right.
static uint32_t next_char(const char **text) {
  const uint8_t *p = (const uint8_t *)*text;
  unsigned more = p[0] >= 0xF0 ? 3 : p[0] >= 0xE0 ? 2 : p[0] >= 0xC2 ? 1 : 0;
  uint32_t c = more == 0 ? p[0] : p[0] & (0x3Fu >> more);
  for (unsigned i = 1; i <= more; i++) {
    if ((p[i] & 0xC0) != 0x80) {
      *text += 1;
      return p[0];
    }
    c = c << 6 | (p[i] & 0x3F);
  }
  *text += more + 1;
  return c;
}

void cs_diag_put_text(struct cs_diag_payload *payload, const char *utf8) {
  size_t at = payload->size;
  cs_diag_put_u32(payload, 0);
  size_t start = payload->size;
  while (*utf8 != '\0') {
    uint32_t c = next_char(&utf8);
    if (c >= 0x10000) put_unit(payload, 0xD800 + ((c - 0x10000) >> 10));
    put_unit(payload, c >= 0x10000 ? 0xDC00 + ((c - 0x10000) & 0x3FF) : c);
  }
  put_unit(payload, 0);
  if (payload->too_long) return;
  uint32_t units = (uint32_t)((payload->size - start) / 2);
  memcpy(payload->bytes + at, &units, sizeof units);
}

// ---- The connection ----

// Returns the temporary directory `temp`, as the process calls it, in the process's own root.
static int open_folder(pid_t pid, const char *temp) {
  struct cs_error why;
  struct cs_target *target = cs_target_of(pid);
  errno = ENOENT;
  int fd = cs_target_open_folder(target, temp, &why);
  int error = errno;
  cs_target_free(target);
  errno = error;
  return fd;
}

// Returns why there can be no port in the directory, or NULL if that is not known.
static const char *no_room(pid_t pid, const char *folder) {
  struct statvfs fs;
  int fd = open_folder(pid, folder);
  const char *why = fd < 0 && errno == ENOENT ? "does not exist" : NULL;
  if (fd >= 0 && fstatvfs(fd, &fs) == 0 && (fs.f_flag & ST_RDONLY) != 0)
    why = "is mounted read-only";
  if (fd >= 0) (void)close(fd);
  return why;
}

static bool explain_no_socket(pid_t pid, const char *folder, struct cs_error *err) {
  static const char *const switches[] = {"DOTNET_EnableDiagnostics", "DOTNET_EnableDiagnostics_IPC",
                                         "COMPlus_EnableDiagnostics"};
  for (size_t i = 0; i < sizeof switches / sizeof switches[0]; i++)
    if (cs_proc_is_zero(pid, switches[i]))
      return cs_error_set(err, "process %d was started with %s=0: it has no diagnostics port",
                          (int)pid, switches[i]);
  if (!cs_proc_maps_coreclr(pid))
    return cs_error_set(err,
                        "process %d has no diagnostics port (in %s): it is not a .NET program, "
                        "or its runtime has not started",
                        (int)pid, folder);
  const char *lacking = no_room(pid, folder);
  if (lacking != NULL)
    return cs_error_set(
        err,
        "process %d could not make its diagnostics port, because %s %s: mount a "
        "writable directory there (a tmpfs, an emptyDir); stack and async need none",
        (int)pid, folder, lacking);
  return cs_error_set(err,
                      "process %d is a .NET program, but its diagnostics port is not in %s: is "
                      "it switched off, or has its TMPDIR been changed?",
                      (int)pid, folder);
}

// Returns the socket, O_PATH. Its name is looked up in the target's directory without following
// links.
static int open_socket(int folder, pid_t pid) {
  char name[96];
  unsigned long long started[CS_OWN_START_TIMES];
  unsigned count = cs_proc_own_start_times(pid, started);
  int own_pid = cs_proc_own_pid(pid), fd = -1;
  errno = ESRCH;
  for (unsigned i = 0; i < count && fd < 0; i++) {
    (void)snprintf(name, sizeof name, "dotnet-diagnostic-%d-%llu-socket", own_pid, started[i]);
    fd = cs_target_open_socket(folder, name);
    if (fd < 0 && errno != ENOENT) break;
  }
  return fd;
}

static uint64_t patience_ends(void) {
  return cs_clock_now_ns() + cs_diag_patience_s * 1000000000ull;
}

// Waits for a short part of the time until `deadline`. Returns false if the deadline has passed
// (EAGAIN), or the wait was interrupted (ECANCELED).
static bool wait_a_little(int fd, short events, uint64_t deadline) {
  struct pollfd port = {.fd = fd, .events = events};
  uint64_t now = cs_clock_now_ns();
  const struct cs_diag_meanwhile *m = &cs_diag_meanwhile;
  bool wanted = m->poll == NULL || m->poll(m->context);
  errno = wanted ? EAGAIN : ECANCELED;
  if (!wanted || now >= deadline) return false;
  uint64_t left_ms = (deadline - now) / 1000000 + 1;
  (void)poll(&port, 1, m->poll != NULL && left_ms > POLL_MS ? POLL_MS : (int)left_ms);
  return true;
}

// The queue of connections of a stopped process may be full.
static bool connect_within(int fd, const struct sockaddr_un *addr) {
  for (uint64_t deadline = patience_ends();;) {
    if (connect(fd, (const struct sockaddr *)addr, sizeof *addr) == 0) return true;
    if (errno != EAGAIN && errno != EINTR) return false;
    if (!wait_a_little(-1, 0, deadline)) return false;
  }
}

// Another process may have made a socket of that name; only the target is trusted.
static bool is_served_by(int fd, pid_t pid) {
  struct ucred server;
  socklen_t size = sizeof server;
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &server, &size) != 0) return false;
  errno = EBADE;
  return server.pid == pid;
}

static int connect_in(int folder, pid_t pid) {
  struct sockaddr_un addr = {.sun_family = AF_UNIX};
  int file = open_socket(folder, pid);
  if (file < 0) return -1;
  (void)snprintf(addr.sun_path, sizeof addr.sun_path, "/proc/self/fd/%d", file);
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  bool good = fd >= 0 && connect_within(fd, &addr) && is_served_by(fd, pid);
  int error = errno;
  (void)close(file);
  if (!good && fd >= 0) (void)close(fd);
  errno = error;
  return good ? fd : -1;
}

// Both its port and the agent's library are opened in its root directory.
static bool is_within_reach(pid_t pid, struct cs_error *err) {
  struct cs_target *target = cs_target_of(pid);
  bool reached = cs_target_is_within_reach(target);
  int error = errno;
  cs_target_free(target);
  if (reached) return true;
  if (error == ENOENT || error == ESRCH) return cs_error_set(err, "process %d has ended", (int)pid);
  struct cs_error why;
  (void)cs_rights_lacking(pid, &why);
  return cs_error_set(err, "the files of process %d cannot be accessed: %s", (int)pid, why.text);
}

bool cs_diag_check(pid_t pid, struct cs_error *err) {
  char path[64];
  struct stat st;
  (void)snprintf(path, sizeof path, "/proc/%d", (int)pid);
  if (!cs_proc_check(pid, err)) return false;
  if (stat(path, &st) != 0) return cs_error_set(err, "process %d has ended", (int)pid);
  if (geteuid() != 0 && st.st_uid != geteuid())
    return cs_error_set(err,
                        "process %d belongs to another user (%u); only that user and root may "
                        "attach to it",
                        (int)pid, (unsigned)st.st_uid);
  return is_within_reach(pid, err);
}

char *cs_diag_folder(pid_t pid) {
  char *named = cs_proc_variable(pid, "TMPDIR");
  if (named != NULL && named[0] != '\0') return named;
  free(named);
  return strdup("/tmp");
}

bool cs_diag_has_port(pid_t pid) {
  char *temp = cs_diag_folder(pid);
  int folder = temp != NULL ? open_folder(pid, temp) : -1;
  free(temp);
  if (folder < 0) return false;
  int file = open_socket(folder, pid);
  (void)close(folder);
  if (file >= 0) (void)close(file);
  return file >= 0;
}

bool cs_diag_find(pid_t pid, struct cs_error *err) {
  if (!cs_diag_check(pid, err)) return false;
  if (cs_diag_has_port(pid)) return true;
  char *temp = cs_diag_folder(pid);
  (void)explain_no_socket(pid, temp != NULL ? temp : "/tmp", err);
  free(temp);
  return false;
}

static bool no_answer(pid_t pid, struct cs_error *err) {
  if (errno == ECANCELED)
    return cs_error_set(err, "interrupted before process %d had responded", (int)pid);
  if (errno == EAGAIN)
    return cs_error_set(err, "process %d %shas not responded for %u s", (int)pid,
                        cs_proc_is_stopped(pid) ? CS_PROC_STOPPED ", and " : "",
                        cs_diag_patience_s);
  if (cs_proc_has_ended(pid)) return cs_error_set(err, "process %d has ended", (int)pid);
  return cs_error_set(err, "process %d has closed its diagnostics port: %m", (int)pid);
}

static int connect_to(pid_t pid, struct cs_error *err) {
  if (!cs_diag_check(pid, err)) return -1;
  char *temp = cs_diag_folder(pid);
  int folder = temp != NULL ? open_folder(pid, temp) : -1;
  int fd = folder >= 0 ? connect_in(folder, pid) : -1;
  if (fd < 0 && errno == ESRCH)
    (void)cs_error_set(err, "process %d has just ended", (int)pid);
  else if (fd < 0 && errno == ENOENT)
    (void)explain_no_socket(pid, temp != NULL ? temp : "/tmp", err);
  else if (fd < 0 && (errno == ECANCELED || errno == EAGAIN))
    (void)no_answer(pid, err);
  else if (fd < 0 && errno == EBADE)
    (void)cs_error_set(err, "the diagnostics port of process %d in %s is another process'",
                       (int)pid, temp != NULL ? temp : "its temporary directory");
  else if (fd < 0)
    (void)cs_error_set(err, "cannot reach the diagnostics port of process %d in %s: %m", (int)pid,
                       temp != NULL ? temp : "its temporary directory");
  if (folder >= 0) (void)close(folder);
  free(temp);
  return fd;
}

// ---- Messages ----

static bool send_all(int fd, const void *data, size_t size, uint64_t deadline) {
  for (size_t done = 0; done < size;) {
    ssize_t n = send(fd, (const char *)data + done, size - done, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN && wait_a_little(fd, POLLOUT, deadline)) continue;
    if (n <= 0) return false;
    done += (size_t)n;
  }
  return true;
}

// Reads exactly `size` bytes: the server may keep the connection open after its response.
static bool receive_all(int fd, void *to, size_t size, uint64_t deadline) {
  for (size_t done = 0; done < size;) {
    ssize_t n = recv(fd, (char *)to + done, size - done, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN && wait_a_little(fd, POLLIN, deadline)) continue;
    if (n == 0) errno = ECONNRESET;
    if (n <= 0) return false;
    done += (size_t)n;
  }
  return true;
}

static bool exchange(int fd, const uint8_t head[CS_DIAG_HEADER],
                     const struct cs_diag_payload *payload, uint8_t back[CS_DIAG_HEADER],
                     struct cs_diag_payload *answer) {
  uint16_t size;
  uint64_t deadline = patience_ends();
  if (!send_all(fd, head, CS_DIAG_HEADER, deadline) ||
      !send_all(fd, payload->bytes, payload->size, deadline) ||
      !receive_all(fd, back, CS_DIAG_HEADER, deadline))
    return false;
  memcpy(&size, back + sizeof magic, sizeof size);
  answer->size = size >= CS_DIAG_HEADER ? (size_t)size - CS_DIAG_HEADER : 0;
  return receive_all(fd, answer->bytes, answer->size, deadline);
}

static bool is_done(pid_t pid, const uint8_t back[CS_DIAG_HEADER],
                    const struct cs_diag_payload *answer, HRESULT *refusal, struct cs_error *err) {
  if (memcmp(back, magic, sizeof magic) != 0 || back[16] != SET_SERVER)
    return cs_error_set(err, "process %d has sent an unknown response", (int)pid);
  if (back[17] == SERVER_OK) return true;
  *refusal = E_FAIL;
  if (back[17] == SERVER_ERROR && answer->size >= sizeof *refusal)
    memcpy(refusal, answer->bytes, sizeof *refusal);
  return cs_error_set(err, "process %d refuses (0x%08x)", (int)pid, (unsigned)*refusal);
}

int cs_diag_stream(pid_t pid, uint8_t set, uint8_t id, const struct cs_diag_payload *payload,
                   struct cs_diag_payload *answer, HRESULT *refusal, struct cs_error *err) {
  uint8_t head[CS_DIAG_HEADER] = {0}, back[CS_DIAG_HEADER];
  uint16_t size = (uint16_t)(CS_DIAG_HEADER + payload->size);
  *refusal = 0;
  if (payload->too_long) {
    (void)cs_error_set(err, "the message is longer than 65535 bytes");
    return -1;
  }
  memcpy(head, magic, sizeof magic);
  memcpy(head + sizeof magic, &size, sizeof size);
  head[16] = set;
  head[17] = id;
  int fd = connect_to(pid, err);
  if (fd < 0) return -1;
  bool answered = exchange(fd, head, payload, back, answer) || no_answer(pid, err);
  if (answered && is_done(pid, back, answer, refusal, err)) return fd;
  (void)close(fd);
  return -1;
}

bool cs_diag_command(pid_t pid, uint8_t set, uint8_t id, const struct cs_diag_payload *payload,
                     struct cs_diag_payload *answer, HRESULT *refusal, struct cs_error *err) {
  int fd = cs_diag_stream(pid, set, id, payload, answer, refusal, err);
  if (fd >= 0) (void)close(fd);
  return fd >= 0;
}
