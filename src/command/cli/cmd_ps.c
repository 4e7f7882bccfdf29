// SPDX-License-Identifier: MIT
// `clrsnap ps`: the .NET processes that this user can see, as a table or as JSON. One thread.
// Signal-safe: no.
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/options.h"
#include "process/process.h"
#include "util/json.h"
#include "util/say.h"

enum { PATIENCE_S = 2 };  // for a process that is stopped: it would never answer

static const char help[] =
    "usage: clrsnap ps [options]\n"
    "\n"
    "Lists the .NET processes that you can see: number, runtime, main assembly, command line. Of\n"
    "one that cannot be asked, a line below says why.\n"
    "\n"
    "      --json               an array of JSON objects\n"
    "  -h, --help               this text\n"
    "\n"
    "Examples:\n"
    "  clrsnap ps\n"
    "  clrsnap record -d 10 $(clrsnap ps --json | jq '.[] | select(.assembly == \"Shop\").pid')\n";

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
                {"command", p->command}, {"problem", p->answers ? NULL : p->why.text});
  cs_json_close(j, "}");
}

static void put_row(const struct cs_process *p, const struct list *list) {
  if (list->count == 0)
    cs_print(stdout, "%7s  %-9s %-24s %s\n", "PID", "RUNTIME", "ASSEMBLY", "COMMAND");
  cs_print(stdout, "%7d  %-9s %-24s %s\n", (int)p->pid, p->runtime != NULL ? p->runtime : "?",
           p->assembly != NULL ? p->assembly : "?", p->command != NULL ? p->command : "");
  if (!p->answers) cs_print(stdout, "%7s  (%s)\n", "", p->why.text);
}

static void put(const struct cs_process *p, void *data) {
  struct list *list = data;
  if (list->json)
    put_json(p, &list->writer);
  else
    put_row(p, list);
  list->count++;
}

static bool parse(struct list *list, bool *wants_help, int argc, char **argv,
                  struct cs_error *err) {
  if (!cs_parse_options(&cs_only_json, &list->json, argc, argv, wants_help, err)) return false;
  return *wants_help || optind == argc || cs_error_set(err, "ps takes no arguments");
}

int cs_cmd_ps(int argc, char **argv) {
  struct cs_error err = {""};
  struct list list = {0};
  bool wants_help = false;
  if (!parse(&list, &wants_help, argc, argv, &err)) {
    cs_say("%s; 'clrsnap help ps' lists the options", err.text);
    return CS_EXIT_USAGE;
  }
  if (wants_help) {
    cs_print_help(stdout, help);
    return 0;
  }
  cs_diag_patience_s = PATIENCE_S;
  list.writer = (struct cs_json_writer){.out = stdout};
  if (list.json) cs_json_open(&list.writer, NULL, '[');
  bool good = cs_processes_visit(put, &list, &err);
  cs_json_new_line(&list.writer);
  if (list.json) (void)cs_json_end(&list.writer, "]");
  if (!good) cs_say("%s", err.text);
  if (good && list.count == 0 && !list.json) cs_say("there is no .NET process that you can see");
  return good ? 0 : CS_EXIT_FAILURE;
}
