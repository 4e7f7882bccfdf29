// SPDX-License-Identifier: MIT
// Children that compute for a while and exit with a code, by fork, vfork and posix_spawn; and
// exec of another program.
#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "torture.h"

extern char **environ;

static int code_of(pid_t child) {
  int status;
  if (child < 0) return 1000 + errno;
  while (waitpid(child, &status, 0) != child)
    if (errno != EINTR) return 2000 + errno;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 3000 + WTERMSIG(status);
}

int torture_fork(int code) {
  pid_t child = fork();
  if (child == 0) {
    uint64_t sum = spin(1, 200000);
    char *block = malloc(1 << 20);
    for (int i = 0; i < 1 << 20; i += 4096) block[i] = (char)sum;
    _exit(spin(1, 200000) == sum && block[4096] == (char)sum ? code : 255 - code);
  }
  return code_of(child);
}

static void command(char *text, const char *code) {
  (void)sprintf(text, "exit %.8s", code);
}

int torture_vfork(const char *code) {
  char text[32];
  command(text, code);
  pid_t child = vfork();
  if (child == 0) {
    (void)execl("/bin/sh", "sh", "-c", text, (char *)0);
    _exit(254);
  }
  return code_of(child);
}

int torture_spawn(const char *code) {
  char text[32];
  pid_t child;
  command(text, code);
  char *args[] = {"sh", "-c", text, 0};
  int error = posix_spawn(&child, "/bin/sh", 0, 0, args, environ);
  return error != 0 ? 1000 + error : code_of(child);
}

int torture_exec(const char *code) {
  char text[64];
  (void)sprintf(text, "sleep 0.05; exit %.8s", code);
  return execl("/bin/sh", "sh", "-c", text, (char *)0);
}
