// SPDX-License-Identifier: MIT
// A stand-in for the C library when the agent is linked, never loaded: both glibc and musl have this function, but
// linked against glibc's own it would name ld-linux-x86-64.so.2, which a system with musl lacks.
void *__tls_get_addr(void *index);
void *__tls_get_addr(void *index) {
  return index;
}
