// SPDX-License-Identifier: MIT
// attach PID LIBRARY CLSID [TIMEOUT_MS [CLIENT_DATA|@FILE]]: makes the .NET process PID load a
// profiler, as DiagnosticsClient.AttachProfiler does: one message to the process' diagnostics
// socket. Prints the HRESULT that comes back; exit code 0 when it is S_OK, 1 otherwise, 2 for wrong
// usage.
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "clrsnap/cortypes.h"

#define HEADER_BYTES 20

struct message {
  uint8_t bytes[8192];
  size_t len;
};

static void put(struct message *m, const void *data, size_t len) {
  if (len > sizeof m->bytes - m->len) {
    (void)fprintf(stderr, "attach: the path is too long\n");
    exit(2);
  }
  memcpy(m->bytes + m->len, data, len);
  m->len += len;
}

static void put_u32(struct message *m, uint32_t value) {
  put(m, &value, sizeof value);
}

// u32 count of UTF-16 units with the NUL, then the units. Paths are ASCII here.
static void put_string(struct message *m, const char *text) {
  put_u32(m, (uint32_t)strlen(text) + 1);
  for (;; text++) {
    uint16_t unit = (uint8_t)*text;
    put(m, &unit, sizeof unit);
    if (*text == '\0') return;
  }
}

static int parse_clsid(const char *text, GUID *out) {
  unsigned d[8], a, b, c;
  if (sscanf(text, "{%8x-%4x-%4x-%2x%2x-%2x%2x%2x%2x%2x%2x}", &a, &b, &c, &d[0], &d[1], &d[2],
             &d[3], &d[4], &d[5], &d[6], &d[7]) != 11) {
    return -1;
  }
  out->Data1 = a;
  out->Data2 = (uint16_t)b;
  out->Data3 = (uint16_t)c;
  for (int i = 0; i < 8; i++) out->Data4[i] = (uint8_t)d[i];
  return 0;
}

// The name of the socket contains the start time of the process: field 22 of its stat.
static int connect_to(const char *pid) {
  char path[64], stat[2048];
  (void)snprintf(path, sizeof path, "/proc/%s/stat", pid);
  FILE *file = fopen(path, "r");
  if (file == NULL) return -1;
  size_t n = fread(stat, 1, sizeof stat - 1, file);
  (void)fclose(file);
  stat[n] = '\0';
  char *p = strrchr(stat, ')');  // the name in field 2 may hold anything
  for (int field = 2; p != NULL && field < 22; field++) p = strchr(p + 1, ' ');
  if (p == NULL) return -1;
  struct sockaddr_un addr = {.sun_family = AF_UNIX};
  const char *tmp = getenv("TMPDIR");
  (void)snprintf(addr.sun_path, sizeof addr.sun_path, "%s/dotnet-diagnostic-%s-%llu-socket",
                 tmp != NULL && tmp[0] != '\0' ? tmp : "/tmp", pid, strtoull(p + 1, NULL, 10));
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0 || connect(fd, (struct sockaddr *)&addr, sizeof addr) != 0) return -1;
  return fd;
}

// Reads exactly that many bytes, because the server may leave the connection open after its
// response.
static int read_all(int fd, void *to, size_t len) {
  for (size_t done = 0; done < len;) {
    ssize_t n = read(fd, (char *)to + done, len - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return -1;
    done += (size_t)n;
  }
  return 0;
}

// The client data, either from the command line or from a file.
static void put_data(struct message *m, const char *data) {
  static uint8_t bytes[4096];
  size_t len = strlen(data);
  if (data[0] == '@') {
    FILE *file = fopen(data + 1, "rb");
    len = file != NULL ? fread(bytes, 1, sizeof bytes, file) : 0;
    if (file != NULL) (void)fclose(file);
    data = (const char *)bytes;
  }
  put_u32(m, (uint32_t)len);
  put(m, data, len);
}

int main(int argc, char **argv) {
  GUID clsid;
  if (argc < 4 || parse_clsid(argv[3], &clsid) != 0) {
    (void)fprintf(stderr, "usage: attach PID LIBRARY {CLSID} [TIMEOUT_MS [CLIENT_DATA|@FILE]]\n");
    return 2;
  }
  struct message m = {.len = 0};
  uint8_t head[HEADER_BYTES] = "DOTNET_IPC_V1";
  head[16] = 3;  // command set PROFILER
  head[17] = 1;  // AttachProfiler
  put(&m, head, sizeof head);
  put_u32(&m, argc > 4 ? (uint32_t)strtoul(argv[4], NULL, 10) : 10000);
  put(&m, &clsid, sizeof clsid);
  put_string(&m, argv[2]);
  put_data(&m, argc > 5 ? argv[5] : "");
  uint16_t size = (uint16_t)m.len;
  memcpy(m.bytes + 14, &size, sizeof size);

  int fd = connect_to(argv[1]);
  if (fd < 0) {
    (void)fprintf(stderr, "attach: no diagnostics socket of process %s: %s\n", argv[1],
                  strerror(errno));
    return 1;
  }
  uint8_t reply[HEADER_BYTES + 4];
  if (write(fd, m.bytes, m.len) != (ssize_t)m.len || read_all(fd, reply, sizeof reply) != 0) {
    (void)fprintf(stderr, "attach: process %s did not answer: %s\n", argv[1], strerror(errno));
    return 1;
  }
  (void)close(fd);
  uint32_t hr;
  memcpy(&hr, reply + HEADER_BYTES, sizeof hr);
  (void)printf("0x%08x\n", hr);
  return reply[16] == 0xFF && reply[17] == 0 && hr == 0 ? 0 : 1;
}
