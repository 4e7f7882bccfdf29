// SPDX-License-Identifier: MIT
// The responses of a process on its diagnostics port. The target is this process itself: a socket
// stands in for its runtime's port, and serves the input.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "fuzz.h"
#include "process/proc.h"
#include "process/process.h"

static const uint8_t *input;
static size_t input_size;
static int port = -1;
static struct sockaddr_un address = {.sun_family = AF_UNIX};

static void close_port(void) {
  (void)unlink(address.sun_path);
}

static void open_port(void) {
  unsigned long long started;
  const char *temp = getenv("TMPDIR");
  if (!cs_proc_start_time(getpid(), &started)) abort();
  (void)snprintf(address.sun_path, sizeof address.sun_path, "%s/dotnet-diagnostic-%d-%llu-socket",
                 temp != NULL ? temp : "/tmp", (int)getpid(), started);
  port = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (port < 0 || bind(port, (const struct sockaddr *)&address, sizeof address) != 0 ||
      listen(port, 8) != 0)
    abort();
  (void)atexit(close_port);
}

// Called while the response is awaited. Data that does not fit into the socket is cut off.
static bool serve(void *context) {
  (void)context;
  int fd = accept4(port, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (fd < 0) return errno == EAGAIN;
  char command[256];
  (void)recv(fd, command, sizeof command, 0);
  (void)send(fd, input, input_size, MSG_NOSIGNAL);
  (void)close(fd);
  return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct cs_process p;
  if (port < 0) open_port();
  input = data;
  input_size = size;
  cs_diag_meanwhile = (struct cs_diag_meanwhile){serve, NULL};
  if (!cs_process_inspect(&p, getpid())) __builtin_trap();
  if (p.runtime != NULL && strlen(p.runtime) > CS_DIAG_PAYLOAD) __builtin_trap();
  cs_process_free(&p);
  return 0;
}
