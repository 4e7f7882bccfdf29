// SPDX-License-Identifier: MIT
// The start of a program for glibc 2.27, whose __libc_start_main expects to be given the functions
// that run the constructors; since 2.34 it finds them itself. Part of packages only.
#include <stddef.h>

#include "first_versions.h"

typedef void call(int argc, char **argv, char **env);
extern call *__preinit_array_start[], *__preinit_array_end[];
extern call *__init_array_start[], *__init_array_end[];

// Destructors are run by the dynamic loader.
static void construct(int argc, char **argv, char **env) {
  for (call **at = __preinit_array_start; at < __preinit_array_end; at++) (*at)(argc, argv, env);
  for (call **at = __init_array_start; at < __init_array_end; at++) (*at)(argc, argv, env);
}

int old_start_main(int (*main)(int, char **, char **), int argc, char **argv, call *construct,
                   void (*destruct)(void), void (*loaders)(void), void *stack_end);
__asm__(".symver old_start_main,__libc_start_main@GLIBC_" FIRST_GLIBC);

int __libc_start_main(int (*main)(int, char **, char **), int argc, char **argv, call *none,
                      void (*none_either)(void), void (*loaders)(void), void *stack_end);
int __libc_start_main(int (*main)(int, char **, char **), int argc, char **argv, call *none,
                      void (*none_either)(void), void (*loaders)(void), void *stack_end) {
  (void)none, (void)none_either;
  return old_start_main(main, argc, argv, construct, NULL, loaders, stack_end);
}
