// SPDX-License-Identifier: MIT
// Stands in for the C library when the agent is linked, and is never loaded. Both glibc and musl have this function, but
// an agent linked against glibc's own would name ld-linux-x86-64.so.2, which a system with musl lacks.
void *__tls_get_addr(void *index);
void *__tls_get_addr(void *index) {
  return index;
}
