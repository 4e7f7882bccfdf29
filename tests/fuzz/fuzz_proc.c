// SPDX-License-Identifier: MIT
// /proc of a process: the input is the content of every file that is opened below /proc/1. Built
// with --wrap for fopen and open.
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz.h"
#include "native/maps.h"
#include "process/proc.h"
#include "remote/private.h"
#include "top/top.h"

static const uint8_t *input;
static size_t input_size;

static bool is_faked(const char *path) {
  return strncmp(path, "/proc/1/", 8) == 0;
}

FILE *__real_fopen(const char *path, const char *mode);
FILE *__wrap_fopen(const char *path, const char *mode);
FILE *__wrap_fopen(const char *path, const char *mode) {
  if (!is_faked(path)) return __real_fopen(path, mode);
  return input_size > 0 ? fmemopen((void *)(uintptr_t)input, input_size, "r") : NULL;
}

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...) {
  static int fd = -1;
  va_list args;
  va_start(args, flags);
  int mode = va_arg(args, int);
  va_end(args);
  if (!is_faked(path)) return __real_open(path, flags, mode);
  if (fd < 0) fd = memfd_create("proc", MFD_CLOEXEC);
  if (fd < 0 || ftruncate(fd, 0) != 0 || pwrite(fd, input, input_size, 0) != (ssize_t)input_size ||
      lseek(fd, 0, SEEK_SET) != 0)
    abort();
  return dup(fd);
}

static bool visit(const struct cs_mapping *mapping, void *arg) {
  size_t *bytes = arg;
  if (mapping->begin >= mapping->end) __builtin_trap();
  *bytes += strlen(mapping->path);
  return true;
}

static void read_maps(void) {
  static struct cs_maps maps;
  struct cs_error err;
  size_t bytes = 0;
  if (cs_maps_read(&maps, 1, &err))
    for (uint32_t i = 0; i < maps.count; i++)
      if (maps.candidate[i].begin >= maps.candidate[i].end) __builtin_trap();
  (void)cs_maps_each(&maps, 1, visit, &bytes, &err);
  if (bytes > input_size) __builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct cs_top_proc top = {0};
  unsigned long long started;
  input = data;
  input_size = size;
  read_maps();
  (void)cs_proc_start_time(1, &started);
  (void)cs_proc_own_pid(1);
  (void)cs_remote_in_namespace(1);
  (void)cs_proc_maps_coreclr(1);
  (void)cs_proc_is_zero(1, "DOTNET_EnableDiagnostics");
  free(cs_proc_variable(1, "TMPDIR"));
  free(cs_proc_command_line(1));
  (void)cs_top_proc_read(&top, 1, 1000000000);
  cs_top_proc_free(&top);
  return 0;
}
