// SPDX-License-Identifier: MIT
// Operations that need special instructions: raw system calls, the time counter, the pause in a
// spin loop, the thread pointer. Header only, without state. Signal-safe: yes.
#pragma once

#include <stdint.h>

// Raw system calls, without libc and errno. Each returns what the kernel returns: -errno on
// failure.
static inline long cs_syscall6(long n, long a, long b, long c, long d, long e, long f) {
  register long r10 __asm__("r10") = d;
  register long r8 __asm__("r8") = e;
  register long r9 __asm__("r9") = f;
  long ret;
  __asm__ volatile("syscall"
                   : "=a"(ret)
                   : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                   : "rcx", "r11", "memory");
  return ret;
}
enum {
  CS_ADDRESS_BITS = 47,        // of a user-space address
  CS_SYSCALL_BYTES = 2,        // of the instruction
  CS_RED_ZONE = 128,           // bytes below sp that a function may use
  CS_SYS_CLOCK_GETTIME = 228,  // without <sys/syscall.h>
};

// Returns the time-stamp counter, the only clock that a handler reads. base/clock.h converts it to
// nanoseconds, outside of handlers.
static inline uint64_t cs_tsc(void) {
  uint32_t lo, hi;
  __asm__ volatile("rdtsc" : "=a"(lo), "=d"(hi));
  return ((uint64_t)hi << 32) | lo;
}

// Returns the address that a return address on the stack stands for. On this architecture it is the
// same.
static inline uint64_t cs_ip_of(uint64_t return_address) {
  return return_address;
}

// Orders later accesses after the store of an atomic read-modify-write. Not every architecture does
// so without a fence; this one does.
static inline void cs_fence_after_rmw(void) {
  __asm__ volatile("" ::: "memory");
}

// Tells the processor that the calling loop waits for another thread.
static inline void cs_cpu_pause(void) {
  __builtin_ia32_pause();
}

// Returns the calling thread's thread pointer: on x86-64 its own address is its first word (psABI,
// TLS variant II).
static inline uint64_t cs_thread_pointer(void) {
  uint64_t pointer;
  __asm__("mov %%fs:0, %0" : "=r"(pointer));
  return pointer;
}
