// SPDX-License-Identifier: MIT
// Whether a module's file is still the one that a process has loaded. The runtime keeps no file
// open; so what proves it is time: a file that was last changed, in whatever way, before there was
// anything to load it (ctime, which nobody sets) is the one that was loaded. Else, if only its name
// or the like has changed since, a mapping of the very file proves it. What is not proven is not
// believed: the lines of another build would be wrong ones. One thread. Signal-safe: no.
#include "cli/loaded.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "cli/proc.h"

static uint64_t clock_ns(clockid_t id) {
  struct timespec t;
  (void)clock_gettime(id, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t time_ns(const struct timespec *t) {
  return (uint64_t)t->tv_sec * 1000000000u + (uint64_t)t->tv_nsec;
}

static uint64_t start_ns(pid_t pid) {
  enum { START_TIME = 20 };  // words behind the name, which may have anything in it
  size_t size = 0;
  uint64_t ticks = 0;
  char *text = cs_proc_read(pid, "stat", &size);
  char *at = text != NULL ? strrchr(text, ')') : NULL;
  for (int i = 0; at != NULL && i < START_TIME; i++) at = strchr(at + 1, ' ');
  if (at != NULL) ticks = strtoull(at, NULL, 10);
  free(text);
  if (ticks == 0) return 0;
  ticks++;  // it was before the tick's end; and a runtime needs longer than one to load anything
  return clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_BOOTTIME) +
         ticks * (1000000000u / (uint64_t)sysconf(_SC_CLK_TCK));
}

static bool is_mapped(pid_t pid, const struct stat *st) {
  size_t size = 0;
  char *maps = cs_proc_read(pid, "maps", &size), *next = NULL;
  bool found = false;
  for (char *line = maps != NULL ? strtok_r(maps, "\n", &next) : NULL; line != NULL && !found;
       line = strtok_r(NULL, "\n", &next)) {
    unsigned major, minor;
    uint64_t inode;
    found = sscanf(line, "%*s %*s %*s %x:%x %" SCNu64, &major, &minor, &inode) == 3 &&
            inode == st->st_ino && makedev(major, minor) == st->st_dev;
  }
  free(maps);
  return found;
}

static bool has_agent(pid_t pid) {
  size_t size = 0;
  char *maps = cs_proc_read(pid, "maps", &size);
  bool found = maps != NULL && strstr(maps, "/libclrsnap.so") != NULL;
  free(maps);
  return found;
}

uint64_t cs_loaded_since(pid_t pid, bool is_ours, uint64_t opened_ns) {
  uint64_t started = start_ns(pid);
  if (is_ours) return started;
  return started > opened_ns && has_agent(pid) ? started : opened_ns;
}

void cs_loaded_note(struct cs_recording *rec, uint32_t function, pid_t pid, uint64_t since_ns) {
  struct stat st;
  uint32_t i;
  if (!cs_map_get(&rec->function_ids, function, &i)) return;
  uint32_t path = rec->functions[i].text[CS_FN_MODULE];
  const char *name = cs_recording_get(rec, path);
  if (name[0] != '/' || cs_map_get(&rec->file_ids, path, &i) || stat(name, &st) != 0) return;
  bool proven =
      time_ns(&st.st_ctim) <= since_ns || (time_ns(&st.st_mtim) <= since_ns && is_mapped(pid, &st));
  struct cs_rec_file file = {(uint64_t)st.st_size, time_ns(&st.st_mtim)};
  cs_recording_set_file(rec, path, proven ? file : (struct cs_rec_file){CS_REC_NO_FILE, 0});
}
