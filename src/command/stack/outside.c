// SPDX-License-Identifier: MIT
// Stops all threads with ptrace, walks them with the handler's walker over memory that the kernel
// reads, and lets them go. Invariant: the process runs again whatever happens in this file, and a
// thread's state is that of the instant of its stack. One thread. Signal-safe: no.
#include "stack/outside.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "process/proc.h"
#include "remote/remote.h"
#include "util/map.h"

enum { HURRY_NS = 50000000 };

// ---- What a thread was doing before ----

// A small file of a thread, without the kernel's newline at its end: a name may contain newlines.
static bool read_text(char *out, size_t cap, int pid, int tid, const char *file) {
  char path[96];
  (void)snprintf(path, sizeof path, "/proc/%d/task/%d/%s", pid, tid, file);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  ssize_t n = read(fd, out, cap - 1);
  (void)close(fd);
  if (n < 0) return false;
  out[n > 0 && out[n - 1] == '\n' ? n - 1 : n] = '\0';
  return true;
}

static const char *name_of_call(long number) {
  static const struct {
    long number;
    const char *name;
  } calls[] = {
#ifdef SYS_poll  // and its like, which newer architectures do not have
      {SYS_poll, "poll"},
      {SYS_select, "select"},
      {SYS_epoll_wait, "epoll_wait"},
#endif
      {SYS_futex, "futex"},
      {SYS_epoll_pwait, "epoll_pwait"},
      {SYS_ppoll, "ppoll"},
      {SYS_pselect6, "pselect6"},
      {SYS_read, "read"},
      {SYS_pread64, "pread64"},
      {SYS_write, "write"},
      {SYS_recvfrom, "recvfrom"},
      {SYS_recvmsg, "recvmsg"},
      {SYS_sendto, "sendto"},
      {SYS_sendmsg, "sendmsg"},
      {SYS_accept, "accept"},
      {SYS_accept4, "accept4"},
      {SYS_connect, "connect"},
      {SYS_nanosleep, "nanosleep"},
      {SYS_clock_nanosleep, "clock_nanosleep"},
      {SYS_wait4, "wait4"},
      {SYS_waitid, "waitid"},
      {SYS_rt_sigtimedwait, "rt_sigtimedwait"},
      {SYS_fsync, "fsync"},
      {SYS_flock, "flock"},
      {SYS_openat, "openat"},
      {SYS_restart_syscall, "a call that was interrupted"},
  };
  for (size_t i = 0; i < CS_COUNT(calls); i++)
    if (calls[i].number == number) return calls[i].name;
  return NULL;
}

static void put_call(char *state, size_t cap, const char *verb, long number) {
  const char *call = name_of_call(number);
  if (call != NULL)
    (void)snprintf(state, cap, "%s in %s", verb, call);
  else
    (void)snprintf(state, cap, "%s in system call %ld", verb, number);
}

// A thread in uninterruptible sleep, usually until a device has finished.
static void describe_device(struct cs_outside_thread *thread, int pid) {
  static const char verb[] = "waiting for a device";
  char text[256];
  if (read_text(text, sizeof text, pid, thread->tid, "syscall") && isdigit((unsigned char)*text))
    put_call(thread->state, sizeof thread->state, verb, strtol(text, NULL, 10));
  else
    (void)snprintf(thread->state, sizeof thread->state, "%s", verb);
}

// The part of a thread's state that is lost when it is stopped. Whether it runs or waits is known
// afterwards, too. The letter follows the name, which may have parentheses itself.
static void read_state(struct cs_outside_thread *thread, int pid) {
  char text[512];
  const char *letter = NULL, *state = "unknown";
  if (read_text(text, sizeof text, pid, thread->tid, "stat")) letter = strrchr(text, ')');
  switch (letter != NULL && letter[1] != '\0' ? letter[2] : '?') {
    case 'R':
    case 'S':
      state = "running";
      break;
    case 'D':
      describe_device(thread, pid);
      return;
    case 'T':
      state = "stopped by a signal";
      break;
    case 't':
      state = "stopped by a debugger";
      break;
  }
  (void)snprintf(thread->state, sizeof thread->state, "%s", state);
}

// At the instant of its stack: a thread may have begun to wait since its state was read.
static void settle_state(struct cs_outside_thread *thread, int call) {
  if (call >= 0 && strcmp(thread->state, "running") == 0)
    put_call(thread->state, sizeof thread->state, "waiting", call);
}

static void list_threads(struct cs_outside *outside) {
  char path[64];
  size_t capacity = 0;
  struct dirent *entry;
  (void)snprintf(path, sizeof path, "/proc/%d/task", outside->pid);
  DIR *dir = opendir(path);
  while (dir != NULL && (entry = readdir(dir)) != NULL) {
    int tid = atoi(entry->d_name);
    if (tid <= 0) continue;
    CS_APPEND(outside->threads, outside->count, capacity, (struct cs_outside_thread){.tid = tid});
    struct cs_outside_thread *thread = &outside->threads[outside->count - 1];
    (void)read_text(thread->name, sizeof thread->name, outside->pid, tid, "comm");
    read_state(thread, outside->pid);
  }
  if (dir != NULL) (void)closedir(dir);
}

// ---- Walking ----

static struct cs_outside_thread *find_thread(struct cs_outside *outside, int tid) {
  for (uint32_t i = 0; i < outside->count; i++)
    if (outside->threads[i].tid == tid) return &outside->threads[i];
  return NULL;  // it has started since they were listed
}

static void walk_thread(struct cs_remote *remote, struct cs_outside_thread *thread,
                        struct cs_outside_names *names, struct cs_outside_locks *locks,
                        bool native) {
  static struct cs_walk walk;
  struct cs_remote_thread stopped;
  struct cs_frame frame;
  struct cs_error err;
  size_t capacity = 0;
  if (!cs_remote_thread(remote, thread->tid, &stopped, &err))
    return;  // it has ended in the meantime
  thread->walked = true;
  settle_state(thread, stopped.call);
  thread->managed = stopped.clr_thread != 0;
  thread->cooperative = cs_is_cooperative(cs_remote_world(remote), stopped.clr_thread);
  cs_outside_thread_name(cs_remote_world(remote), stopped.clr_thread, thread->name,
                         sizeof thread->name);
  cs_remote_walk_begin(remote, &stopped, &walk);
  while (cs_walk_next(&walk, &frame) && thread->count < CS_OUTSIDE_MAX_FRAMES) {
    cs_outside_note_frame(remote, &frame, &thread->signs);
    cs_outside_lock_frame(locks, &frame, thread);
    if (!native && !cs_code_is_managed(&frame.code)) continue;
    thread->frames = cs_grow(thread->frames, thread->count, &capacity, sizeof *thread->frames);
    struct cs_outside_frame *out = &thread->frames[thread->count++];
    *out = (struct cs_outside_frame){.kind = frame.code.kind,
                                     .flags = frame.flags,
                                     .funclet = frame.code.funclet,
                                     .ip = frame.regs.r[CS_IP],
                                     .sp = frame.regs.r[CS_SP]};
    cs_outside_identify(names, &frame, out);
  }
  thread->stop = walk.stop;
  thread->stop_ip = walk.stop_ip;
  cs_outside_note_thread(remote, &stopped, thread);
  cs_outside_lock_thread(locks, &stopped, thread);
}

static void walk_all(struct cs_outside *outside, struct cs_remote *remote,
                     struct cs_outside_names *names, struct cs_heap *heap,
                     struct cs_outside_locks *locks, bool native) {
  const int *tids;
  unsigned count = cs_remote_threads(remote, &tids);
  for (unsigned i = 0; i < count; i++) {
    struct cs_outside_thread *thread = find_thread(outside, tids[i]);
    if (thread != NULL) walk_thread(remote, thread, names, locks, native);
  }
  cs_outside_classify(remote, outside);
  cs_outside_lock_owners(locks, outside);
  if (heap != NULL) cs_outside_pool_read(remote, heap, &outside->pool.now);
}

static void name_all(struct cs_outside *outside, struct cs_heap_modules *modules,
                     struct cs_outside_names *names, bool raw) {
  uint64_t begin = cs_clock_now_ns();
  cs_outside_add_modules(names, outside->lines);
  for (uint32_t t = 0; t < outside->count; t++) {
    struct cs_outside_thread *thread = &outside->threads[t];
    // The process runs again, so names may take priority over others for a moment only.
    if (cs_clock_now_ns() - begin > HURRY_NS) cs_remote_restore_priority();
    for (uint32_t i = 0; i < thread->count; i++) {
      cs_outside_name(names, &thread->frames[i]);
      cs_outside_line(outside->lines, &thread->frames[i]);
    }
    if (!raw) cs_outside_classes(thread);
    if (cs_outside_is_waiting(thread) && !thread->suspends && thread->waits_for == NULL)
      thread->waits_for = cs_outside_wait(thread->frames, thread->count);
  }
  cs_outside_lock_finish(modules, outside);
  cs_outside_refused(names, outside->refused, sizeof outside->refused);
  cs_outside_pool_sort(outside);
}

static bool stop_and_walk(struct cs_outside *outside, struct cs_remote *remote,
                          struct cs_heap_modules *modules, struct cs_heap *heap,
                          const struct cs_outside_options *options, struct cs_error *err) {
  struct cs_outside_locks *locks = cs_outside_locks_new(cs_remote_world(remote), heap);
  uint64_t begin = cs_clock_now_ns();
  bool ok = cs_remote_stop(remote, err);
  if (ok) {
    cs_remote_refresh_images(remote);
    struct cs_outside_names *names =
        cs_outside_names_new(modules, outside->target, options->raw_names);
    walk_all(outside, remote, names, heap, locks, options->native);
    cs_remote_resume(remote);
    outside->stopped_ns = cs_clock_now_ns() - begin;
    cs_remote_invalidate(remote);
    name_all(outside, modules, names, options->raw_names);
    cs_outside_names_free(names);
  }
  cs_outside_locks_free(locks);
  return ok;
}

static bool take(struct cs_outside *outside, struct cs_remote *remote,
                 const struct cs_outside_options *options, struct cs_error *err) {
  struct cs_heap_modules *modules = cs_heap_modules_new(remote);
  struct cs_heap *heap = cs_outside_pool_open(modules, &outside->pool);
  bool ok = stop_and_walk(outside, remote, modules, heap, options, err);
  if (ok && !options->once && cs_outside_pool_may_starve(outside)) {
    cs_remote_raise_priority();
    cs_outside_pool_confirm(remote, heap, outside);
  }
  cs_heap_free(heap);
  cs_heap_modules_free(modules);
  return ok;
}

struct cs_outside *cs_outside_take(int pid, const struct cs_outside_options *options,
                                   struct cs_error *err) {
  cs_remote_raise_priority();
  struct cs_remote *remote = cs_remote_open(pid, err);
  if (remote == NULL) return NULL;
  struct cs_outside *outside = cs_allocate(sizeof *outside);
  outside->pid = pid;
  cs_remote_version(remote, outside->version);
  outside->command = cs_proc_command_line(pid);
  outside->target = cs_target_of(pid);
  outside->lines = cs_lines_new(outside->target);
  list_threads(outside);
  bool ok = take(outside, remote, options, err);
  cs_remote_close(remote);
  if (ok) return outside;
  cs_outside_free(outside);
  return NULL;
}

void cs_outside_free(struct cs_outside *outside) {
  if (outside == NULL) return;
  for (uint32_t t = 0; t < outside->count; t++) {
    struct cs_outside_thread *thread = &outside->threads[t];
    for (uint32_t i = 0; i < thread->count; i++) {
      free(thread->frames[i].name);
      free(thread->frames[i].module);
    }
    free(thread->frames);
    free(thread->lock.type_name);
  }
  free(outside->threads);
  free(outside->pool.waits);
  cs_lines_free(outside->lines);
  cs_target_free(outside->target);
  free(outside->command);
  free(outside);
}
