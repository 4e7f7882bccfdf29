// SPDX-License-Identifier: MIT
// `clrsnap ps`: lists the .NET processes that this user can see, as a table or as JSON. One thread.
// Signal-safe: no.
#include <string.h>

#include "base/print.h"
#include "cli/verbs.h"
#include "process/process.h"
#include "util/json.h"
#include "util/say.h"

enum { PATIENCE_S = 2 };  // for a stopped process, which would never respond

struct list {
  bool json;
  struct cs_json_writer writer;
  unsigned count;
};

static void put_json(const struct cs_process *p, struct cs_json_writer *j) {
  cs_json_open_line(j, NULL, '{');
  cs_json_int(j, "pid", p->pid);
  cs_json_uint(j, "uid", p->uid);
  CS_JSON_TEXTS(j, {"runtime", p->runtime}, {"product", p->product}, {"assembly", p->assembly},
                {"command", p->command}, {"problem", p->responds ? NULL : p->why.text});
  cs_json_close(j, "}");
}

static void put_row(const struct cs_process *p, const struct list *list) {
  if (list->count == 0)
    cs_print(stdout, "%7s  %-9s %-24s %s\n", "PID", "RUNTIME", "ASSEMBLY", "COMMAND");
  cs_print(stdout, "%7d  %-9s %-24s %s\n", (int)p->pid, p->runtime != NULL ? p->runtime : "?",
           p->assembly != NULL ? p->assembly : "?", p->command != NULL ? p->command : "");
  if (!p->responds) cs_print(stdout, "%7s  (%s)\n", "", p->why.text);
}

static void put(const struct cs_process *p, void *data) {
  struct list *list = data;
  if (list->json)
    put_json(p, &list->writer);
  else
    put_row(p, list);
  list->count++;
}

static const struct cs_option table[] = {
    {0, "json", NULL, "an array of JSON objects", NULL, .field = offsetof(struct list, json)}, {0}};
static const struct cs_option_group groups[] = {{NULL, table, 0}, {0}};

static bool check(void *options, int count, char **operands, struct cs_error *err) {
  (void)options;
  return count == 0 || cs_error_set(err, "ps takes no arguments, not '%s'", operands[0]);
}

static int run(void *options) {
  struct list *list = options;
  struct cs_error err = {""};
  cs_diag_patience_s = PATIENCE_S;
  list->writer = (struct cs_json_writer){.out = stdout};
  if (list->json) cs_json_open(&list->writer, NULL, '[');
  bool good = cs_processes_visit(put, list, &err);
  cs_json_new_line(&list->writer);
  if (list->json) (void)cs_json_end(&list->writer, "]");
  if (!good) cs_say("%s", err.text);
  if (good && list->count == 0 && !list->json) cs_say("there is no .NET process that you can see");
  return cs_say_if_lost(good ? 0 : CS_EXIT_FAILURE);
}

const struct cs_command cs_ps_command = {
    .name = "ps",
    .summary = "list the .NET processes that you can see",
    .usage = "usage: clrsnap ps [options]\n",
    .about =
        "Lists the .NET processes that you can see: number, runtime, main assembly, command line. "
        "The assembly is the process's name, which other verbs take in place of its number. Where "
        "a process cannot be asked for these, a line below it says why.",
    .groups = groups,
    .examples =
        "  clrsnap ps\n"
        "  clrsnap record -d 10 $(clrsnap ps --json | jq '.[] | select(.assembly == "
        "\"Shop\").pid')\n",
    .size = sizeof(struct list),
    .check = check,
    .run = run};
