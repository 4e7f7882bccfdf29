// SPDX-License-Identifier: MIT
// The options of `clrsnap record`: a table of names, and one function per kind of value. Invariant:
// what is accepted has been checked to its last character and against its limits. One thread.
// Signal-safe: no.
#include "cli/options.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

// 499: not in step with anything that a program does every 1, 2, 5 or 10 ms.
#define DEFAULT_HZ 499
#define MAX_HZ 10000
#define MAX_SECONDS 604800.0
// 2048 frames are 16 KiB a sample; deeper stacks are cut at their root and shown as cut.
#define DEFAULT_DEPTH 2048
#define MAX_DEPTH 65536
// At 100 threads, 499 Hz and 60 frames a stack, 16 MiB last 0.6 s; it is emptied every 20 ms.
#define DEFAULT_BUFFER_MIB 16
#define MAX_BUFFER_MIB 1024

const char cs_record_help[] =
    "usage: clrsnap record [options] [--] program [arguments]\n"
    "\n"
    "Starts a .NET program, samples the stacks of its threads until it ends, and writes a flame\n"
    "graph. The runtime is never stopped. Input, output, signals and the exit code are the\n"
    "program's own.\n"
    "\n"
    "  -d, --duration SECONDS   stop recording after that time; the program runs on\n"
    "  -F, --frequency HZ       samples per second and thread, 1 to 10000 (499)\n"
    "      --mode cpu|wall      cpu: threads that run (default); wall: waiting ones too\n"
    "  -o, --output FILE        where to write (flame.html; flame.collapsed)\n"
    "      --format html|collapsed\n"
    "                           a page for the browser (default), or one line per stack\n"
    "      --depth N            frames per stack, 1 to 65536 (2048)\n"
    "      --native on|off      with native frames (on), or managed ones only\n"
    "      --signatures on|off  methods with their parameters, so that overloads are told apart "
    "(off)\n"
    "      --lines              methods by source line, from portable PDBs\n"
    "      --top N              print the N hottest methods\n"
    "      --buffer MIB         shared memory to the program, 1 to 1024 (16)\n"
    "  -h, --help               this text\n";

enum {
  OPT_MODE = 256,
  OPT_FORMAT,
  OPT_DEPTH,
  OPT_NATIVE,
  OPT_SIGNATURES,
  OPT_LINES,
  OPT_TOP,
  OPT_BUFFER
};

static const struct option long_options[] = {
    {"duration", required_argument, NULL, 'd'},
    {"frequency", required_argument, NULL, 'F'},
    {"output", required_argument, NULL, 'o'},
    {"help", no_argument, NULL, 'h'},
    {"mode", required_argument, NULL, OPT_MODE},
    {"format", required_argument, NULL, OPT_FORMAT},
    {"depth", required_argument, NULL, OPT_DEPTH},
    {"native", required_argument, NULL, OPT_NATIVE},
    {"signatures", required_argument, NULL, OPT_SIGNATURES},
    {"lines", no_argument, NULL, OPT_LINES},
    {"top", required_argument, NULL, OPT_TOP},
    {"buffer", required_argument, NULL, OPT_BUFFER},
    {NULL, 0, NULL, 0},
};

static bool parse_number(const char *name, const char *text, uint32_t max, uint32_t *out,
                         struct cs_error *err) {
  char *end;
  errno = 0;
  unsigned long value = strtoul(text, &end, 10);
  if (text[0] >= '0' && text[0] <= '9' && *end == '\0' && errno == 0 && value >= 1 &&
      value <= max) {
    *out = (uint32_t)value;
    return true;
  }
  return cs_error_set(err, "%s wants a whole number from 1 to %u, not '%s'", name, max, text);
}

static bool parse_seconds(const char *text, double *out, struct cs_error *err) {
  char *end;
  double value = strtod(text, &end);
  if (end != text && *end == '\0' && isfinite(value) && value > 0 && value <= MAX_SECONDS) {
    *out = value;
    return true;
  }
  return cs_error_set(err, "--duration wants seconds, more than 0 and at most %.0f, not '%s'",
                      MAX_SECONDS, text);
}

// One of two words; *second says which.
static bool parse_word(const char *name, const char *text, const char *first, const char *other,
                       bool *second, struct cs_error *err) {
  *second = strcmp(text, other) == 0;
  if (*second || strcmp(text, first) == 0) return true;
  return cs_error_set(err, "%s wants '%s' or '%s', not '%s'", name, first, other, text);
}

static bool apply(struct cs_record_options *o, int opt, const char *arg, struct cs_error *err) {
  bool second = false;
  uint32_t mib = 0;
  switch (opt) {
    case 'd':
      return parse_seconds(arg, &o->seconds, err);
    case 'F':
      return parse_number("--frequency", arg, MAX_HZ, &o->hz, err);
    case OPT_DEPTH:
      return parse_number("--depth", arg, MAX_DEPTH, &o->depth, err);
    case OPT_TOP:
      return parse_number("--top", arg, 1000000, &o->top, err);
    case OPT_MODE:
      if (!parse_word("--mode", arg, "cpu", "wall", &second, err)) return false;
      o->mode = second ? CS_WIRE_MODE_WALL : CS_WIRE_MODE_CPU;
      return true;
    case OPT_FORMAT:
      if (!parse_word("--format", arg, "html", "collapsed", &second, err)) return false;
      o->format = second ? CS_FORMAT_COLLAPSED : CS_FORMAT_HTML;
      return true;
    case OPT_NATIVE:
      if (!parse_word("--native", arg, "on", "off", &second, err)) return false;
      o->native = !second;
      return true;
    case OPT_SIGNATURES:
      return parse_word("--signatures", arg, "off", "on", &o->signatures, err);
    case OPT_LINES:
      o->lines = true;
      return true;
    case OPT_BUFFER:
      if (!parse_number("--buffer", arg, MAX_BUFFER_MIB, &mib, err)) return false;
      // The ring's size is a power of two: the next one that holds what was asked for.
      while (o->buffer_bytes < (uint64_t)mib << 20) o->buffer_bytes <<= 1;
      while (o->buffer_bytes >> 1 >= (uint64_t)mib << 20) o->buffer_bytes >>= 1;
      return true;
    default:
      o->output = arg;
      return arg[0] != '\0' || cs_error_set(err, "--output wants a name");
  }
}

bool cs_option_refused(int opt, char **argv, struct cs_error *err) {
  if (optopt > 0 && optopt < 256 && argv[optind - 1][1] != '-') {
    return cs_error_set(err, opt == ':' ? "option '-%c' wants a value" : "unknown option '-%c'",
                        optopt);
  }
  return cs_error_set(err, opt == ':' ? "option '%s' wants a value" : "unknown option '%s'",
                      argv[optind - 1]);
}

bool cs_record_options_parse(struct cs_record_options *o, int argc, char **argv,
                             struct cs_error *err) {
  *o = (struct cs_record_options){.hz = DEFAULT_HZ,
                                  .mode = CS_WIRE_MODE_CPU,
                                  .depth = DEFAULT_DEPTH,
                                  .native = true,
                                  .buffer_bytes = (uint64_t)DEFAULT_BUFFER_MIB << 20};
  opterr = 0;
  optind = 1;
  int opt;
  // '+': the first word that is no option is the program; the rest is its own.
  while ((opt = getopt_long(argc, argv, "+:d:F:o:h", long_options, NULL)) != -1) {
    if (opt == 'h') {
      o->help = true;
      return true;
    }
    if (opt == ':' || opt == '?') return cs_option_refused(opt, argv, err);
    if (!apply(o, opt, optarg, err)) return false;
  }
  if (optind >= argc) return cs_error_set(err, "no program to record");
  o->program = argv + optind;
  if (o->output == NULL) {
    o->output = o->format == CS_FORMAT_HTML ? "flame.html" : "flame.collapsed";
  }
  return true;
}
