// SPDX-License-Identifier: MIT
// `clrsnap doctor [PID]`: what works here and what does not, and why, as a list or as JSON. One
// thread. Signal-safe: no.
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/doctor.h"
#include "cli/options.h"
#include "process/diag.h"
#include "util/json.h"
#include "util/say.h"

static const char help[] =
    "usage: clrsnap doctor [options] [PID]\n"
    "\n"
    "Tries what clrsnap needs of this machine and, if it is given, of a .NET process, which is\n"
    "neither stopped nor changed, and says what does not work, why, and what can be done.\n"
    "\n"
    "      --json               one JSON object\n"
    "  -h, --help               this text\n"
    "\n"
    "The exit code is 0 when all works, 1 when something does not, 2 for a wrong command line.\n"
    "\n"
    "Examples:\n"
    "  clrsnap doctor\n"
    "  clrsnap doctor 1234\n"
    "  clrsnap doctor --json 1234 | jq '.findings[] | select(.state == \"fault\")'\n";

struct options {
  bool json, help;
  uint32_t pid;  // 0: the machine only
};

static bool parse(struct options *o, int argc, char **argv, struct cs_error *err) {
  if (!cs_parse_options(&cs_only_json, &o->json, argc, argv, &o->help, err)) return false;
  if (o->help || optind == argc) return true;
  if (optind + 1 != argc) return cs_error_set(err, "doctor wants one process at most");
  return cs_parse_number("doctor", argv[optind], INT32_MAX, &o->pid, err);
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

static void print_json(const struct cs_doctor *d, uint32_t pid) {
  struct cs_json_writer j = {.out = stdout};
  cs_json_open(&j, NULL, '{');
  cs_json_bool(&j, "works", !cs_doctor_has_fault(d));
  if (pid != 0)
    cs_json_uint(&j, "pid", pid);
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

int cs_cmd_doctor(int argc, char **argv) {
  static struct cs_doctor doctor;
  struct cs_error err = {""};
  struct options o = {0};
  if (!parse(&o, argc, argv, &err)) {
    cs_say("%s; 'clrsnap help doctor' lists the options", err.text);
    return CS_EXIT_USAGE;
  }
  if (o.help) {
    cs_print_help(stdout, help);
    return 0;
  }
  cs_diag_patience_s = 5;
  cs_doctor_machine(&doctor);
  if (o.pid != 0) cs_doctor_process(&doctor, (pid_t)o.pid);
  if (o.json)
    print_json(&doctor, o.pid);
  else
    print_list(&doctor);
  return cs_doctor_has_fault(&doctor) ? CS_EXIT_FAILURE : 0;
}
