// SPDX-License-Identifier: MIT
// CPU time and memory of a process and its threads, from /proc. CPU is what was used between two
// readings, so the first one has none. One thread. Signal-safe: no.
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "top/top.h"

// User and system time in ticks, of a "stat" file; its second field, the name, may hold anything.
static bool read_stat(const char *path, char name[16], uint64_t *ticks, char *state) {
  char text[1024];
  FILE *in = fopen(path, "re");
  if (in == NULL) return false;
  size_t got = fread(text, 1, sizeof text - 1, in);
  (void)fclose(in);
  text[got] = '\0';
  char *open = strchr(text, '('), *close = strrchr(text, ')');
  unsigned long long user, system;
  if (open == NULL || close == NULL ||
      sscanf(close + 1, " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu", state, &user,
             &system) != 3)
    return false;
  *close = '\0';
  (void)snprintf(name, 16, "%s", open + 1);
  *ticks = user + system;
  return true;
}

static uint64_t read_rss(pid_t pid) {
  char path[64];
  unsigned long long pages = 0;
  (void)snprintf(path, sizeof path, "/proc/%d/statm", (int)pid);
  FILE *in = fopen(path, "re");
  if (in == NULL) return 0;
  if (fscanf(in, "%*u %llu", &pages) != 1) pages = 0;
  (void)fclose(in);
  return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

// In processors. Ticks and the clock are separate, so a busy thread may have one tick too many.
static double usage(uint64_t before, uint64_t now, double seconds) {
  if (now < before || seconds <= 0) return -1;
  return (double)(now - before) / (double)sysconf(_SC_CLK_TCK) / seconds;
}

static const struct cs_top_task *find_task(const struct cs_top_proc *proc, uint32_t tid) {
  for (size_t i = 0; i < proc->count; i++)
    if (proc->tasks[i].tid == tid) return &proc->tasks[i];
  return NULL;
}

static void read_tasks(struct cs_top_proc *next, const struct cs_top_proc *last, pid_t pid,
                       double seconds) {
  char folder[64], path[128];
  (void)snprintf(folder, sizeof folder, "/proc/%d/task", (int)pid);
  DIR *dir = opendir(folder);
  for (struct dirent *e; dir != NULL && (e = readdir(dir)) != NULL;) {
    struct cs_top_task task = {.tid = (uint32_t)strtoul(e->d_name, NULL, 10)};
    if (task.tid == 0) continue;
    (void)snprintf(path, sizeof path, "%s/%u/stat", folder, task.tid);
    if (!read_stat(path, task.name, &task.ticks, &task.state)) continue;
    const struct cs_top_task *before = find_task(last, task.tid);
    // A thread that has started since the last reading has used all of its time since then.
    task.cpu =
        last->at_ns == 0 ? -1 : usage(before != NULL ? before->ticks : 0, task.ticks, seconds);
    CS_APPEND(next->tasks, next->count, next->capacity, task);
  }
  if (dir != NULL) (void)closedir(dir);
}

bool cs_top_proc_read(struct cs_top_proc *proc, pid_t pid, uint64_t now_ns) {
  struct cs_top_proc next = {.at_ns = now_ns, .cpu = -1};
  char path[64], name[16], state;
  double seconds = (double)(now_ns - proc->at_ns) / 1e9;
  (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
  if (!read_stat(path, name, &next.ticks, &state)) return false;
  read_tasks(&next, proc, pid, seconds);
  next.rss_bytes = read_rss(pid);
  if (next.count == 0 || next.rss_bytes == 0) {  // it has just ended
    free(next.tasks);
    return false;
  }
  if (proc->at_ns != 0) next.cpu = usage(proc->ticks, next.ticks, seconds);
  free(proc->tasks);
  *proc = next;
  return true;
}

void cs_top_proc_free(struct cs_top_proc *proc) {
  free(proc->tasks);
  *proc = (struct cs_top_proc){0};
}

// Starved by the rule of docs/thread-pool.md. That no worker is idle follows from the queue, which
// an idle one would empty.
void cs_top_pool_read(struct cs_top_pool *pool, const struct cs_top_proc *proc,
                      const struct cs_counters *counters, unsigned processors) {
  enum { SECONDS = 2 };
  *pool = (struct cs_top_pool){.known = counters->pool_known,
                               .threads = counters->pool_threads,
                               .queued = counters->pool_queued,
                               .completed_per_s = counters->pool_completed_per_s};
  for (size_t i = 0; i < proc->count; i++) {
    const struct cs_top_task *task = &proc->tasks[i];
    if (strcmp(task->name, CS_POOL_WORKER) != 0) continue;
    if (task->state == 'S' || task->state == 'D') pool->asleep++;
  }
  // The count is the runtime's of some time in the last second.
  if (pool->threads < pool->asleep) pool->threads = pool->asleep;
  pool->starved = pool->known && counters->pool_late_s >= SECONDS && pool->asleep > 0 &&
                  2 * pool->asleep >= pool->threads && pool->threads - pool->asleep < processors;
}
