// SPDX-License-Identifier: MIT
// `clrsnap perfmap PID`: writes /tmp/perf-PID.map where perf looks for it: in the process's own
// /tmp, under the PID that it has in its own namespace. Invariants: no symbolic link is followed
// and no file is opened that exists already, since everybody may write to /tmp; the name is given
// to the whole file only. perf ignores a map that belongs neither to root nor to its own user, so
// the file belongs to the caller. One thread. Signal-safe: no.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/path.h"
#include "cli/verbs.h"
#include "process/proc.h"
#include "process/target.h"
#include "recording/output.h"
#include "stack/perfmap.h"
#include "util/say.h"

struct options {
  pid_t pid;
  const char *output;  // NULL: where perf looks
  bool raw_names;
};

#define PERFMAP(member) .field = offsetof(struct options, member)
static const struct cs_option table[] = {
    {'o', "output", "FILE", "where to write, - for standard output (where perf looks)", NULL,
     PERFMAP(output)},
    {0, "raw-names", NULL, "names as the compiler made them: <LoadAsync>d__4.MoveNext", NULL,
     PERFMAP(raw_names)},
    {0}};
static const struct cs_option_group groups[] = {{NULL, table, 0}, {0}};

static bool check(void *options, int count, char **operands, struct cs_error *err) {
  return cs_parse_only_pid("perfmap", count, operands, &((struct options *)options)->pid, err);
}

// With DOTNET_PerfMapEnabled the runtime keeps the file open and goes on writing to it.
static bool runtime_writes(pid_t pid, const char *name) {
  char path[64], link[PATH_MAX];
  bool found = false;
  (void)snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
  DIR *files = opendir(path);
  for (const struct dirent *e; files != NULL && !found && (e = readdir(files)) != NULL;) {
    ssize_t len = readlinkat(dirfd(files), e->d_name, link, sizeof link - 1);
    if (len <= 0) continue;
    link[len] = '\0';
    found = strcmp(cs_file_of(link), name) == 0;
  }
  if (files != NULL) (void)closedir(files);
  return found;
}

static bool write_temporary(int folder, const char *name, const struct cs_perfmap *map,
                            struct cs_error *err) {
  int fd = openat(folder, name, O_CREAT | O_EXCL | O_NOFOLLOW | O_WRONLY | O_CLOEXEC, 0600);
  FILE *file = fd >= 0 ? fdopen(fd, "w") : NULL;
  if (file == NULL) {
    (void)cs_error_set(err, "a file cannot be made in its /tmp: %s", strerror(errno));
    if (fd >= 0) (void)close(fd);
    return false;
  }
  bool written = cs_perfmap_write(map, file);
  int why = errno;
  written = fclose(file) == 0 && written;
  return written || cs_error_set(err, "the map cannot be written to its /tmp: %s", strerror(why));
}

static bool write_for_perf(const struct options *o, const struct cs_perfmap *map,
                           struct cs_error *err) {
  char name[64], temporary[64];
  uint64_t random = 0;
  (void)snprintf(name, sizeof name, "perf-%d.map", cs_proc_own_pid(o->pid));
  if (runtime_writes(o->pid, name))
    return cs_error_set(err,
                        "the runtime of process %d writes %s itself (DOTNET_PerfMapEnabled); "
                        "--output writes to another file",
                        (int)o->pid, name);
  if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random)
    return cs_error_set(err, "no random number: %s", strerror(errno));
  (void)snprintf(temporary, sizeof temporary, ".clrsnap-%016" PRIx64, random);
  struct cs_target *target = cs_target_of(o->pid);
  int folder = cs_target_open_folder(target, "/tmp", err);
  bool written = folder >= 0 && write_temporary(folder, temporary, map, err);
  if (written && renameat(folder, temporary, folder, name) != 0)
    written = cs_error_set(err, "/tmp/%s cannot be replaced: %s", name, strerror(errno));
  if (folder >= 0 && !written) (void)unlinkat(folder, temporary, 0);
  if (folder >= 0) (void)close(folder);
  cs_target_free(target);
  if (written) cs_say("wrote /tmp/%s", name);
  return written;
}

static bool write_content(void *context, FILE *file) {
  return cs_perfmap_write(context, file);
}

static bool write_output(const struct options *o, struct cs_perfmap *map, struct cs_error *err) {
  struct cs_output output;
  bool named = strcmp(o->output, "-") != 0;
  bool written =
      (named ? cs_output_open(&output, o->output, err) : cs_output_stdout(&output, err)) &&
      cs_output_commit(&output, write_content, map, err);
  if (written && named) cs_say("wrote %s", o->output);
  return written;
}

static void say_counts(const struct cs_perfmap_counts *c, bool for_perf) {
  cs_say("  %" PRIu32 " jitted methods, %" PRIu32 " ReadyToRun ones", c->jitted, c->precompiled);
  cs_say("  methods that are compiled or run for the first time later are not in it");
  if (for_perf && c->double_mapped)
    cs_say(
        "  perf takes this program's jitted code for a library's, and finds no names: start it "
        "with DOTNET_EnableWriteXorExecute=0");
}

static int run(void *options) {
  const struct options *o = options;
  struct cs_error err = {""};
  struct cs_perfmap *map =
      cs_proc_check(o->pid, &err) ? cs_perfmap_read(o->pid, o->raw_names, &err) : NULL;
  bool good = map != NULL &&
              (o->output != NULL ? write_output(o, map, &err) : write_for_perf(o, map, &err));
  if (good)
    say_counts(cs_perfmap_counts(map), o->output == NULL);
  else
    cs_say("%s", err.text);
  cs_perfmap_free(map);
  return good ? 0 : CS_EXIT_FAILURE;
}

const struct cs_command cs_perfmap_command = {
    .name = "perfmap",
    .summary = "name a running program's managed code for perf, samply and bpftrace",
    .usage = "usage: clrsnap perfmap [options] PID\n",
    .about =
        "Writes /tmp/perf-PID.map for a running .NET program. perf, samply and bpftrace read this "
        "file for the names of managed code: jitted and dynamic methods, and ReadyToRun code that "
        "has run. The program is read from outside while it runs; it needs no preparation, and "
        "nothing stays active afterwards.",
    .groups = groups,
    .examples =
        "  clrsnap perfmap 1234 && perf top -p 1234\n"
        "  perf record -g -p 1234 -- sleep 10; clrsnap perfmap 1234; perf report\n",
    .size = sizeof(struct options),
    .check = check,
    .run = run};
