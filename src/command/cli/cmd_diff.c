// SPDX-License-Identifier: MIT
// `clrsnap diff`: compares two recordings. Invariant: nothing is written unless both were read and
// can be compared. One thread. Signal-safe: no.
#include <stdio.h>
#include <string.h>

#include "base/perf.h"
#include "base/print.h"
#include "cli/fail_if.h"
#include "cli/options.h"
#include "cli/verbs.h"
#include "formats/format.h"
#include "formats/writers.h"
#include "naming/naming.h"
#include "naming/resolve.h"
#include "profile/diff.h"
#include "recording/recfile.h"
#include "session/view.h"
#include "util/say.h"

enum diff_format { DIFF_BY_SUFFIX, DIFF_TEXT, DIFF_HTML, DIFF_JSON, DIFF_COLLAPSED, DIFF_MARKDOWN };

struct output {
  const char *path;  // "-": standard output
  enum diff_format as;
};

struct options {
  const char *before, *after;  // recordings
  struct output outputs[CS_VIEW_MAX_OUTPUTS];
  unsigned output_count;
  enum diff_format as;  // of --format
  enum cs_normalize normalize;
  uint32_t top;
  enum cs_wire_mode mode;  // a page's first one, otherwise the only one; 0: all that both have
  uint32_t event;          // that cpu mode has to count; 0: any
  bool native, signatures, raw_names, idle;
  struct cs_fail_if fail_if;
};

// ---- The command line ----

static bool set_output(const struct cs_option *option, void *options, const char *value,
                       struct cs_error *err) {
  struct options *o = options;
  if (value[0] == '\0') return cs_error_set(err, "--%s takes a name", option->name);
  if (o->output_count == CS_VIEW_MAX_OUTPUTS)
    return cs_error_set(err, "there can be %d outputs at most", CS_VIEW_MAX_OUTPUTS);
  o->outputs[o->output_count++].path = value;
  return true;
}

static bool set_mode(const struct cs_option *option, void *options, const char *value,
                     struct cs_error *err) {
  struct options *o = options;
  o->mode = cs_mode_by_name(value, strlen(value));
  o->event = o->mode == 0 ? cs_perf_kind_by_name(value, strlen(value)) : 0;
  if (o->event != 0) o->mode = CS_WIRE_MODE_CPU;
  if (o->mode != 0) return true;
  struct cs_spelling spelling = {.word = value};
  cs_offer_modes(&spelling);
  cs_offer_events(&spelling);
  (void)cs_error_set(err, "--%s takes the name of a mode, not '%s'", option->name, value);
  return cs_spelling_suggest(&spelling, "", err);
}

#define DIFF_FORMATS "text|html|json|collapsed|md"
#define DIFF(member) .field = offsetof(struct options, member)
static const struct cs_option table[] = {
    {'o', "output", "OUT", "where to write, - for standard output; can be given several times",
     set_output, .field = 0},
    {0, "format", DIFF_FORMATS, "what to write, if OUT's suffix does not say (text)", cs_set_word,
     DIFF(as), .least = DIFF_TEXT},
    {0, "normalize", "total|rate|none",
     "shares of each recording's total (total), per second of each recording, or as recorded",
     cs_set_word, DIFF(normalize), .least = CS_NORMALIZE_TOTAL},
    {0, "mode", "MODE", "the mode that a page shows first; the only one in tables and stacks",
     set_mode, .field = 0},
    {0, "top", "N", "how many methods a table has at most (20)", cs_set_number, DIFF(top),
     .most = 1000000},
    {0, "native", "on|off", "with native frames (on), or managed ones only", cs_set_on_off,
     DIFF(native)},
    {0, "signatures", "on|off", "methods with their parameters, to distinguish overloads (off)",
     cs_set_on_off, DIFF(signatures)},
    {0, "raw-names", NULL,
     "names as the compiler made them, and every frame as it was on the stack", NULL,
     DIFF(raw_names)},
    {0, "idle", NULL,
     "wall mode: tables, Markdown and conditions with the threads that wait for work, too, which "
     "they leave out (the page has a switch)",
     NULL, DIFF(idle)},
    {0, "fail-if", "CONDITION",
     "end with the exit code 3 if this holds beyond the chance of sampling: 'self(Shop.Cart.*) > "
     "+5%', 'total(Shop.*) > +2pt', 'self(Shop.*) > 30%'; can be given several times",
     cs_add_condition, DIFF(fail_if)},
    {0}};
static const struct cs_option_group groups[] = {{NULL, table, 0}, {0}};
static const struct options defaults = {.native = true, .top = 20};

static bool refuse_output(const char *output, struct cs_error *err) {
  struct cs_spelling spelling = {0};
  unsigned index;
  const struct cs_format *format = cs_format_suggest_suffix(output, &spelling);
  if (format != NULL && !cs_find_word(DIFF_FORMATS, format->name, &index)) spelling.found = NULL;
  (void)cs_error_set(
      err,
      "a comparison's format is chosen by .txt, .html, .json, .collapsed, .md, or by "
      "--format: '%s' has none of these",
      output);
  return cs_spelling_suggest(&spelling, "", err);
}

// An output's format: that of --format, that of its suffix, or text.
static bool choose_format(const struct options *o, struct output *output, struct cs_error *err) {
  unsigned index = 0;
  output->as = o->as;
  if (o->as != DIFF_BY_SUFFIX) return true;
  if (!cs_output_is_stdout(output->path)) {
    const struct cs_format *format = cs_format_by_path(output->path);
    if (format == NULL || !cs_find_word(DIFF_FORMATS, format->name, &index))
      return refuse_output(output->path, err);
    if (!cs_format_check_name(output->path, err)) return false;
  }
  output->as = (enum diff_format)(DIFF_TEXT + index);
  return true;
}

static bool choose_formats(struct options *o, struct cs_error *err) {
  if (o->as != DIFF_BY_SUFFIX && o->output_count > 1) return cs_error_set(err, CS_VIEW_ONE_FORMAT);
  if (o->output_count == 0) o->outputs[o->output_count++].path = "-";
  for (unsigned i = 0; i < o->output_count; i++)
    if (!choose_format(o, &o->outputs[i], err)) return false;
  return true;
}

static bool check(void *options, int count, char **operands, struct cs_error *err) {
  struct options *o = options;
  if (count != 2) return cs_error_set(err, "diff takes two recordings, not %d", count);
  o->before = operands[0];
  o->after = operands[1];
  return choose_formats(o, err) && cs_fail_if_check(&o->fail_if, o->normalize, err);
}

// ---- The comparison ----

struct side {
  const char *path;
  struct cs_recording rec;
  struct cs_profile profiles[CS_WIRE_MODES];  // by mode; empty if it was not recorded
};

// What is written: the modes that both have, and in a page those that only one of them has, too.
struct comparison {
  struct cs_diff diffs[CS_WIRE_MODES];  // of the first `compared`
  struct cs_profile profiles[CS_WIRE_MODES];
  size_t compared, count;
};

static bool read_side(struct side *side) {
  struct cs_error err, note;
  if (!cs_recfile_read(side->path, &side->rec, &note, &err)) {
    cs_say("%s", err.text);
    return false;
  }
  if (note.text[0] != '\0') cs_say("%s", note.text);
  return true;
}

static bool count_the_same(const struct side sides[2]) {
  return sides[0].rec.meta.event == sides[1].rec.meta.event;
}

static uint32_t in_both(const struct side sides[2]) {
  uint32_t both = sides[0].rec.meta.modes & sides[1].rec.meta.modes;
  return count_the_same(sides) ? both : both & ~CS_WIRE_MODE_BIT(CS_WIRE_MODE_CPU);
}

static const char *counted_by(const struct side *side) {
  return cs_perf_kind(side->rec.meta.event)->words;
}

// A page has all modes, also those that cannot be compared.
static bool is_page(const struct output *output) {
  return output->as == DIFF_HTML || output->as == DIFF_JSON;
}

static bool has_page(const struct options *o, bool wanted) {
  for (unsigned i = 0; i < o->output_count; i++)
    if (is_page(&o->outputs[i]) == wanted) return true;
  return false;
}

static bool has_stacks(const struct options *o) {
  for (unsigned i = 0; i < o->output_count; i++)
    if (o->outputs[i].as == DIFF_COLLAPSED) return true;
  return false;
}

// Checks that the sides can be compared: both must have the mode of --mode, or one in common; a
// file of stacks has one mode only.
static bool check_modes(const struct side sides[2], const struct options *o) {
  uint32_t both = in_both(sides);
  char has_a[CS_MODE_NAMES_BYTES], has_b[CS_MODE_NAMES_BYTES];
  if (!count_the_same(sides) && (o->mode == 0 || o->mode == CS_WIRE_MODE_CPU)) {
    cs_say("%s counts %s in cpu mode, %s counts %s: they cannot be compared", o->before,
           counted_by(&sides[0]), o->after, counted_by(&sides[1]));
    return false;
  }
  if (o->event != 0 && o->event != sides[0].rec.meta.event) {
    cs_say("%s counts %s in cpu mode: it has no %s mode", o->before, counted_by(&sides[0]),
           cs_perf_kind(o->event)->name);
    return false;
  }
  (void)cs_mode_names(sides[0].rec.meta.modes, has_a);
  (void)cs_mode_names(sides[1].rec.meta.modes, has_b);
  if (o->mode != 0 && (both & CS_WIRE_MODE_BIT(o->mode)) == 0) {
    cs_say("%s has %s, %s has %s: not both have %s mode", o->before, has_a, o->after, has_b,
           cs_mode(o->mode)->token);
    return false;
  }
  if (both == 0) {
    cs_say("%s has %s, %s has %s: they have no mode in common; record both with the same --mode",
           o->before, has_a, o->after, has_b);
    return false;
  }
  if (o->mode == 0 && has_stacks(o) && (both & (both - 1)) != 0) {
    cs_say("both recordings have the modes %s: choose one with --mode", cs_mode_names(both, has_a));
    return false;
  }
  return true;
}

static void resolve_side(struct side *side, const struct options *o) {
  struct cs_profile found[CS_WIRE_MODES];
  // By method, because a line that has moved would seem to be a new one.
  const struct cs_resolve_opts opts = {.native = o->native,
                                       .signatures = o->signatures,
                                       .raw_names = o->raw_names,
                                       .async_callers = !o->raw_names,
                                       .group_threads = true};
  cs_name_frames(&side->rec);
  size_t count = cs_resolve(&side->rec, side->rec.meta.modes, &opts, found);
  for (size_t i = 0; i < count; i++) side->profiles[found[i].facts.mode] = found[i];
}

// A mode of events without events is a result; a side without any samples is not.
static bool has_samples(const struct side *side, uint32_t modes) {
  for (unsigned mode = 0; mode < CS_WIRE_MODES; mode++) {
    if ((modes & CS_WIRE_MODE_BIT(mode)) != 0 && side->profiles[mode].facts.samples > 0)
      return true;
  }
  cs_say("%s has no samples: there is nothing to compare with", side->path);
  return false;
}

static void compare_mode(struct comparison *c, const struct side sides[2], unsigned mode,
                         const struct options *o, bool to_read) {
  struct cs_diff *diff = &c->diffs[c->compared++];
  cs_diff_make(diff, &sides[0].profiles[mode], &sides[1].profiles[mode], o->normalize,
               to_read && !o->idle);
  c->profiles[c->count++] = diff->profile;  // which the diff still owns
}

static uint32_t in_one(const struct side sides[2]) {
  return (sides[0].rec.meta.modes | sides[1].rec.meta.modes) & ~in_both(sides);
}

// A mode that only one of them has is shown in the page, after those that can be compared.
static void show_uncompared(struct comparison *c, const struct side sides[2]) {
  for (unsigned mode = 0; mode < CS_WIRE_MODES; mode++) {
    if ((in_one(sides) & CS_WIRE_MODE_BIT(mode)) == 0) continue;
    bool before = (sides[0].rec.meta.modes & CS_WIRE_MODE_BIT(mode)) != 0;
    c->profiles[c->count] = sides[!before].profiles[mode];
    c->profiles[c->count++].only = before ? CS_ONLY_BEFORE : CS_ONLY_AFTER;
  }
}

static void say_uncompared(const struct side sides[2]) {
  for (unsigned mode = 0; mode < CS_WIRE_MODES; mode++) {
    if ((in_one(sides) & CS_WIRE_MODE_BIT(mode)) == 0) continue;
    bool before = (sides[0].rec.meta.modes & CS_WIRE_MODE_BIT(mode)) != 0;
    cs_say("%s was recorded without %s mode, which is not compared", sides[before].path,
           cs_mode((enum cs_wire_mode)mode)->token);
  }
}

// The mode of --mode comes first; without `all`, it is the only one. `to_read`: by a person or a
// condition, without idle threads.
static void compare_modes(struct comparison *c, const struct side sides[2], const struct options *o,
                          bool all, bool to_read) {
  uint32_t both = in_both(sides);
  if (o->mode != 0) compare_mode(c, sides, o->mode, o, to_read);
  for (unsigned mode = 0; mode < CS_WIRE_MODES && (o->mode == 0 || all); mode++) {
    if ((both & CS_WIRE_MODE_BIT(mode)) != 0 && mode != o->mode)
      compare_mode(c, sides, mode, o, to_read);
  }
}

struct content {
  const struct comparison *comparison;
  enum diff_format as;
  uint32_t top;
};

static bool write_tables(const struct comparison *c, size_t top, FILE *file) {
  for (size_t i = 0; i < c->compared; i++) {
    if (i > 0) cs_print(file, "\n\n");
    if (!cs_write_diff_text(&c->diffs[i], top, file)) return false;
  }
  return true;
}

static bool write_content(void *context, FILE *file) {
  const struct content *c = context;
  const struct cs_profile_set set = {c->comparison->profiles, c->comparison->count};
  switch (c->as) {
    case DIFF_HTML:
      return cs_write_html(&set, file);
    case DIFF_JSON:
      return cs_write_json(&set, file);
    case DIFF_COLLAPSED:
      return cs_write_diff_collapsed(&c->comparison->diffs[0], file);
    case DIFF_MARKDOWN:
      return cs_write_diff_markdown(c->comparison->diffs, c->comparison->compared, file);
    default:
      return write_tables(c->comparison, c->top, file);
  }
}

static bool write_comparison(const struct comparison *c, const struct output *to, uint32_t top,
                             uint64_t recording_bytes) {
  struct content content = {c, to->as, top};
  struct cs_output output;
  struct cs_error err;
  const struct cs_profile_set set = {c->profiles, 1};
  if (to->as == DIFF_COLLAPSED &&
      !cs_output_is_bounded(to->path, &set, CS_EXPAND_STACKS, recording_bytes))
    return false;
  bool ok = cs_output_is_stdout(to->path) ? cs_output_stdout(&output, &err)
                                          : cs_output_open(&output, to->path, &err);
  ok = ok && cs_output_commit(&output, write_content, &content, &err);
  if (!ok) cs_say("%s", err.text);
  if (ok && !cs_output_is_stdout(to->path)) cs_say("wrote %s", to->path);
  return ok;
}

static void free_comparison(struct comparison *c) {
  for (size_t i = 0; i < c->compared; i++) cs_diff_free(&c->diffs[i]);
}

// Formats differ in which modes they have, and in whether they have idle threads.
static bool write_output(const struct side sides[2], const struct options *o,
                         const struct output *to) {
  struct comparison comparison = {0};
  bool to_read = to->as == DIFF_TEXT || to->as == DIFF_MARKDOWN;
  compare_modes(&comparison, sides, o, is_page(to), to_read);
  if (is_page(to)) show_uncompared(&comparison, sides);
  bool ok = write_comparison(&comparison, to, o->top, sides[0].rec.bytes + sides[1].rec.bytes);
  free_comparison(&comparison);
  return ok;
}

// Conditions are about a comparison without idle threads.
static int check_conditions(const struct side sides[2], const struct options *o) {
  struct comparison comparison = {0};
  if (o->fail_if.count == 0) return 0;
  compare_modes(&comparison, sides, o, has_page(o, true), true);
  int code = cs_fail_if_exit_code(&o->fail_if, comparison.diffs, comparison.compared);
  free_comparison(&comparison);
  return code;
}

// Returns the exit code.
static int compare(struct side sides[2], const struct options *o) {
  if (!read_side(&sides[0]) || !read_side(&sides[1]) || !check_modes(sides, o))
    return CS_EXIT_FAILURE;
  uint32_t modes = in_both(sides);
  if (o->mode != 0 && !has_page(o, true)) modes = CS_WIRE_MODE_BIT(o->mode);
  for (int i = 0; i < 2; i++) {
    resolve_side(&sides[i], o);
    if (!has_samples(&sides[i], modes)) return CS_EXIT_FAILURE;
  }
  if (o->mode == 0 && has_page(o, false)) say_uncompared(sides);
  bool ok = true;
  for (unsigned i = 0; i < o->output_count; i++) ok = write_output(sides, o, &o->outputs[i]) && ok;
  int code = check_conditions(sides, o);
  return ok ? code : CS_EXIT_FAILURE;
}

static int run(void *options) {
  static struct side sides[2];  // a recording's histogram is large for a stack
  const struct options *o = options;
  for (int i = 0; i < 2; i++) {
    sides[i].path = i == 0 ? o->before : o->after;
    cs_recording_init(&sides[i].rec);
  }
  int code = compare(sides, o);
  for (int i = 0; i < 2; i++) {
    for (int m = 0; m < CS_WIRE_MODES; m++) cs_profile_free(&sides[i].profiles[m]);
    cs_recording_free(&sides[i].rec);
  }
  return code;
}

const struct cs_command cs_diff_command = {
    .name = "diff",
    .summary = "show what grew and what shrank between two recordings",
    .usage = "usage: clrsnap diff [options] A B\n",
    .about =
        "Compares two recordings (clrsnap record -o A.clrsnap): what grew and what shrank from A "
        "(before) to B (after), in each mode that both have. Prints two tables of methods, by "
        "their own time, unless --output is given. A page shows both in one flame graph, red where "
        "it grew and blue where it shrank, with a switch between the modes.",
    .groups = groups,
    .notes =
        "\n"
        "Formats, and the suffixes that choose them:\n"
        "  text        .txt               what grew and what shrank, as tables\n"
        "  html        .html              a page for the browser: flame graph in two colours\n"
        "  json        .json              for scripts: one call tree, with both numbers\n"
        "  collapsed   .collapsed         one line per stack, with its time before and after\n"
        "  md          .md                a summary of at most 4 KB, for people and assistants\n",
    .examples =
        "  clrsnap diff monday.clrsnap tuesday.clrsnap\n"
        "  clrsnap diff -o diff.html monday.clrsnap tuesday.clrsnap\n"
        "  clrsnap diff --fail-if 'self(Shop.Cart.*) > +5%' main.clrsnap change.clrsnap\n"
        "  clrsnap diff --normalize none --top 50 short.clrsnap long.clrsnap\n",
    .size = sizeof(struct options),
    .defaults = &defaults,
    .check = check,
    .run = run};
