// SPDX-License-Identifier: MIT
// `clrsnap doctor [PID]`: reports what works here, what does not, and why, as a list or as JSON.
// One thread. Signal-safe: no.
#include <string.h>

#include "base/print.h"
#include "cli/doctor.h"
#include "cli/verbs.h"
#include "process/diag.h"
#include "util/json.h"
#include "util/say.h"

struct options {
  bool json;
  pid_t pid;  // 0: the machine only
};

static const struct cs_option table[] = {
    {0, "json", NULL, "one JSON object", NULL, .field = offsetof(struct options, json)}, {0}};
static const struct cs_option_group groups[] = {{NULL, table, 0}, {0}};

static bool check(void *options, int count, char **operands, struct cs_error *err) {
  struct options *o = options;
  if (count > 1) return cs_error_set(err, "doctor takes one process at most");
  return count == 0 || cs_parse_pid("doctor", operands[0], &o->pid, err);
}

static const char *const states[] = {"good", "note", "fault"};

static void print_list(const struct cs_doctor *d) {
  static const char *const marks[] = {"ok  ", "note", "FAIL"};
  for (unsigned i = 0; i < d->count; i++) {
    const struct cs_finding *f = &d->findings[i];
    cs_print(stdout, "%s  %-18s %s\n", marks[f->state], f->name, f->text);
    if (f->cure[0] != '\0') cs_print(stdout, "%25s-> %s\n", "", f->cure);
  }
}

static void print_json(const struct cs_doctor *d, pid_t pid) {
  struct cs_json_writer j = {.out = stdout};
  cs_json_open(&j, NULL, '{');
  cs_json_bool(&j, "works", !cs_doctor_has_fault(d));
  if (pid != 0)
    cs_json_int(&j, "pid", pid);
  else
    cs_json_null(&j, "pid");
  cs_json_open(&j, "findings", '[');
  for (unsigned i = 0; i < d->count; i++) {
    const struct cs_finding *f = &d->findings[i];
    cs_json_open_line(&j, NULL, '{');
    CS_JSON_TEXTS(&j, {"state", states[f->state]}, {"name", f->name}, {"text", f->text},
                  {"cure", f->cure});
    cs_json_close(&j, "}");
  }
  cs_json_new_line(&j);
  (void)cs_json_end(&j, "]}");
}

static int run(void *options) {
  static struct cs_doctor doctor;
  const struct options *o = options;
  cs_diag_patience_s = 5;
  cs_doctor_machine(&doctor);
  if (o->pid != 0) cs_doctor_process(&doctor, o->pid);
  if (o->json)
    print_json(&doctor, o->pid);
  else
    print_list(&doctor);
  return cs_say_if_lost(cs_doctor_has_fault(&doctor) ? CS_EXIT_FAILURE : 0);
}

const struct cs_command cs_doctor_command = {
    .name = "doctor",
    .summary = "check what works here, or with a process, and explain what does not",
    .usage = "usage: clrsnap doctor [options] [PID]\n",
    .about =
        "Checks what clrsnap needs of this machine and, if PID is given, of a .NET process, which "
        "is neither stopped nor changed. Says what does not work, why, and what can be done.\n"
        "The exit code is 0 if everything works, 1 if something does not, and 2 for a wrong "
        "command line.",
    .groups = groups,
    .examples =
        "  clrsnap doctor\n"
        "  clrsnap doctor 1234\n"
        "  clrsnap doctor --json 1234 | jq '.findings[] | select(.state == \"fault\")'\n",
    .size = sizeof(struct options),
    .check = check,
    .run = run};
