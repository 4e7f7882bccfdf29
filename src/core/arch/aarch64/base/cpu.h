// SPDX-License-Identifier: MIT
// Operations that need special instructions: raw system calls, the time counter, the pause in a
// spin loop, the thread pointer, signed return addresses. Header only, without state. Signal-safe:
// yes.
#pragma once

#include <stdint.h>

// Raw system calls, without libc and errno. Each returns what the kernel returns: -errno on
// failure.
static inline long cs_syscall6(long n, long a, long b, long c, long d, long e, long f) {
  register long x8 __asm__("x8") = n;
  register long x0 __asm__("x0") = a;
  register long x1 __asm__("x1") = b;
  register long x2 __asm__("x2") = c;
  register long x3 __asm__("x3") = d;
  register long x4 __asm__("x4") = e;
  register long x5 __asm__("x5") = f;
  __asm__ volatile("svc #0"
                   : "+r"(x0)
                   : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
                   : "memory");
  return x0;
}
enum {
  CS_ADDRESS_BITS = 48,        // of a user-space address, unless the program asks for higher ones
  CS_SYSCALL_BYTES = 4,        // of the instruction
  CS_RED_ZONE = 0,             // bytes below sp that a function may use
  CS_SYS_CLOCK_GETTIME = 113,  // without <sys/syscall.h>
};

// Returns the counter of the generic timer, the only clock that a handler reads. base/clock.h
// converts it to nanoseconds, outside of handlers.
static inline uint64_t cs_tsc(void) {
  uint64_t ticks;
  __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
  return ticks;
}

// Returns the address that a return address on the stack or in lr stands for, which may be signed
// (pointer authentication). The instruction is xpaclri, written as a hint, so that older
// processors, which sign nothing, ignore it.
static inline uint64_t cs_ip_of(uint64_t return_address) {
  register uint64_t lr __asm__("x30") = return_address;
  __asm__("hint #7" : "+r"(lr));
  return lr;
}

// Orders later accesses after the store of an atomic read-modify-write. Without it a later load may
// be executed before the store, even if the operation is sequentially consistent.
static inline void cs_fence_after_rmw(void) {
  __asm__ volatile("dmb ish" ::: "memory");
}

// Tells the processor that the calling loop waits for another thread.
static inline void cs_cpu_pause(void) {
  __asm__ volatile("yield");
}

// Returns the calling thread's thread pointer.
static inline uint64_t cs_thread_pointer(void) {
  uint64_t pointer;
  __asm__("mrs %0, tpidr_el0" : "=r"(pointer));
  return pointer;
}
