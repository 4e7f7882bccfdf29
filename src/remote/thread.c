// SPDX-License-Identifier: MIT
// A stopped thread of another process: its registers by ptrace, the bounds of its stack by the
// process' maps, and the runtime's Thread by its OS id. Invariant: a thread's own stack is the
// mapping that holds its thread pointer (the C library puts that on top of it), the first thread's
// the one that the kernel names; any other mapping that holds the sp is an alternate stack. One
// thread at a time. Signal-safe: no.
#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>

#include "remote/private.h"

enum { MAX_THREADS = 65536 };  // of the runtime's list: only to end a looped one

static bool read_user(int tid, struct user_regs_struct *u) {
  struct iovec io = {.iov_base = u, .iov_len = sizeof *u};
  return ptrace(PTRACE_GETREGSET, tid, (void *)NT_PRSTATUS, &io) == 0 && io.iov_len == sizeof *u;
}

// A call that waits ends early when its thread is stopped: with EINTR, or with one of the kernel's
// own errors, by which it is made again.
static int waiting_call(const struct user_regs_struct *u) {
  enum { ERESTARTSYS = 512, ERESTARTNOINTR, ERESTARTNOHAND, ERESTART_RESTARTBLOCK = 516 };
  int64_t call = (int64_t)u->orig_rax, result = -(int64_t)u->rax;
  bool ended_early = result == EINTR || result == ERESTARTSYS || result == ERESTARTNOINTR ||
                     result == ERESTARTNOHAND || result == ERESTART_RESTARTBLOCK;
  return call >= 0 && call <= INT32_MAX && ended_early ? (int)call : -1;
}

static void set_registers(const struct user_regs_struct *user, struct cs_regs *regs) {
  const struct user_regs_struct u = *user;
  *regs = (struct cs_regs){
      .r = {[CS_RAX] = u.rax,
            [CS_RCX] = u.rcx,
            [CS_RDX] = u.rdx,
            [CS_RBX] = u.rbx,
            [CS_RSP] = u.rsp,
            [CS_RBP] = u.rbp,
            [CS_RSI] = u.rsi,
            [CS_RDI] = u.rdi,
            [CS_R8] = u.r8,
            [CS_R9] = u.r9,
            [CS_R10] = u.r10,
            [CS_R11] = u.r11,
            [CS_R12] = u.r12,
            [CS_R13] = u.r13,
            [CS_R14] = u.r14,
            [CS_R15] = u.r15,
            [CS_RIP] = u.rip},
      .known = CS_REGS_ALL,
  };
}

bool cs_remote_registers(int tid, struct cs_regs *regs, uint64_t *fs_base) {
  struct user_regs_struct u;
  if (!read_user(tid, &u)) return false;
  set_registers(&u, regs);
  if (fs_base != NULL) *fs_base = u.fs_base;
  return true;
}

struct bounds {
  uint64_t sp, thread_pointer;
  bool is_first;  // of the process
  struct cs_stack stack;
  uint64_t sp_lo, sp_hi;  // the mapping that holds the sp
};

static bool visit(const struct cs_mapping *m, void *arg) {
  struct bounds *b = arg;
  if (!m->writable || !m->readable) return true;
  bool own = b->is_first ? strcmp(m->path, "[stack]") == 0
                         : b->thread_pointer >= m->begin && b->thread_pointer < m->end;
  if (own) {
    b->stack.lo = m->begin;
    b->stack.hi = m->end;
  }
  if (b->sp >= m->begin && b->sp < m->end) {
    b->sp_lo = m->begin;
    b->sp_hi = m->end;
  }
  return true;
}

static bool find_stack(struct cs_remote *remote, struct cs_remote_thread *thread,
                       struct cs_error *err) {
  struct bounds b = {.sp = thread->regs.r[CS_RSP],
                     .thread_pointer = thread->fs_base,
                     .is_first = thread->tid == remote->pid};
  if (!cs_maps_each(&remote->maps, remote->pid, visit, &b, err)) return false;
  if (b.stack.hi == 0) {  // no thread pointer: a thread that no C library has made
    b.stack.lo = b.sp_lo;
    b.stack.hi = b.sp_hi;
  } else if (b.sp_lo != b.stack.lo) {
    b.stack.alt_lo = b.sp_lo;
    b.stack.alt_hi = b.sp_hi;
  }
  thread->stack = b.stack;
  return true;
}

// The thread's number in the process' own namespace, which is what the runtime knows it by.
static int own_tid(int pid, int tid) {
  char path[64], line[256];
  int last = tid;
  (void)snprintf(path, sizeof path, "/proc/%d/task/%d/status", pid, tid);
  FILE *file = fopen(path, "re");
  if (file == NULL) return tid;
  while (fgets(line, sizeof line, file) != NULL) {
    if (strncmp(line, "NSpid:", 6) != 0) continue;
    const char *tab = strrchr(line, '\t');
    if (tab != NULL) (void)sscanf(tab, "%d", &last);
    break;
  }
  (void)fclose(file);
  return last;
}

uint64_t cs_remote_clr_thread(struct cs_remote *remote, int tid) {
  const struct cs_layout *layout = &remote->world.layout;
  const struct cs_mem *mem = &remote->world.mem;
  uint32_t wanted = (uint32_t)own_tid(remote->pid, tid), os_id;
  uint64_t store, link;
  if (!cs_mem_u64(mem, layout->thread_store, &store) || store == 0 ||
      !cs_mem_u64(mem, store + layout->thread_store_fields.first_link, &link))
    return 0;
  for (int i = 0; i < MAX_THREADS && link != 0; i++) {
    uint64_t thread = link - layout->thread.link_next;
    if (!cs_mem_u32(mem, thread + layout->thread.os_id, &os_id)) return 0;
    if (os_id == wanted) return thread;
    if (!cs_mem_u64(mem, link, &link)) return 0;
  }
  return 0;
}

bool cs_remote_thread(struct cs_remote *remote, int tid, struct cs_remote_thread *thread,
                      struct cs_error *err) {
  struct user_regs_struct u;
  *thread = (struct cs_remote_thread){.tid = tid};
  if (!read_user(tid, &u))
    return cs_error_set(
        err, "the registers of thread %d cannot be read: %s", tid,
        errno == ESRCH ? "it is not stopped by this tracer" : strerrorname_np(errno));
  set_registers(&u, &thread->regs);
  thread->fs_base = u.fs_base;
  thread->call = waiting_call(&u);
  if (!find_stack(remote, thread, err)) return false;
  thread->clr_thread = cs_remote_clr_thread(remote, tid);
  return true;
}
