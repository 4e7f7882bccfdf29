// SPDX-License-Identifier: MIT
// Proves whose registers are right where CoreCLR's and the library's differ (contexts.c). Managed
// code of the program (Registers.cs) keeps values in callee-saved registers and calls a native
// function by P/Invoke; that function saves the registers with which it was entered
// (truth_entry.S), which are the caller's. So every register of the first frame of a walk from
// there is known. The library's must be exactly those; CoreCLR's must be those, too, except for rbx
// and r12 to r15, which must be 0: CoreCLR's mistake. Threads: the program's own. Signal-safe: no.
#include <pthread.h>
#include <string.h>

#include "contexts.h"
#include "ours.h"

const char *const oracle_name = "registers";

static uint64_t walks, compared, wrong_by_clr, right_by_chance;
static uint32_t ready;

ORACLE_EXPORT int oracle_registers(int value);
ORACLE_EXPORT int oracle_registers_ready(void);
int truth_compare(const uint64_t *entry) __attribute__((visibility("hidden")));

int oracle_registers_ready(void) {
  return (int)__atomic_load_n(&ready, __ATOMIC_ACQUIRE);
}

// The check calls the CLR, which a managed thread may do only in a callback.
static void *wait_until_ready(void *unused) {
  (void)unused;
  if (ours_ready()) __atomic_store_n(&ready, 1, __ATOMIC_RELEASE);
  return NULL;
}

int truth_compare(const uint64_t *entry) {
  static struct stack clr, ours;
  stack_by_clr(&clr, 0, COR_PRF_SNAPSHOT_REGISTER_CONTEXT);
  stack_by_ours(&ours, 0, COR_PRF_SNAPSHOT_REGISTER_CONTEXT);
  walks++;
  ORACLE_CHECK(clr.hr == S_OK && ours.hr == S_OK && clr.count > 2 && clr.count == ours.count,
               "walks: %s with %u frames, %s with %u", stack_hresult(clr.hr), clr.count,
               stack_hresult(ours.hr), ours.count);
  if (clr.count == 0 || ours.count == 0) return 0;
  ORACLE_CHECK(contexts_is_inlined_call(entry[STACK_RSP], entry[STACK_RIP]),
               "the caller has no Frame of its own: the call was not compiled into it");
  for (int r = 0; r < STACK_REGS; r++) {
    uint64_t truth = entry[r], theirs = clr.frames[0].reg[r], mine = ours.frames[0].reg[r];
    compared++;
    ORACLE_CHECK(mine == truth, "register %d is %#lx, ours %#lx", r, (unsigned long)truth,
                 (unsigned long)mine);
    bool left_alone = r == STACK_RBX || (r >= STACK_R12 && r <= STACK_R15);
    ORACLE_CHECK(theirs == (left_alone ? 0 : truth), "register %d is %#lx, CoreCLR's %#lx", r,
                 (unsigned long)truth, (unsigned long)theirs);
    if (left_alone) *(truth != theirs ? &wrong_by_clr : &right_by_chance) += 1;
  }
  return 0;
}

DWORD oracle_setup(ICorProfilerCallback11Vtbl *vtbl, DWORD *high) {
  contexts_start();
  ours_start(vtbl, 0);
  pthread_t thread;
  int error = pthread_create(&thread, NULL, wait_until_ready, NULL);
  ORACLE_CHECK(error == 0, "pthread_create: %s", strerror(error));
  return COR_PRF_ENABLE_STACK_SNAPSHOT | ours_mask(high);
}

int oracle_report(void) {
  printf(
      "%lu walks, %lu registers compared with what they were; CoreCLR has %lu wrong (0), and of\n"
      "those that it leaves alone %lu right, because they were 0\n",
      (unsigned long)walks, (unsigned long)compared, (unsigned long)wrong_by_clr,
      (unsigned long)right_by_chance);
  ORACLE_CHECK(walks >= 1000 && wrong_by_clr > walks, "too few walks, or nothing to tell apart");
  return 0;
}
