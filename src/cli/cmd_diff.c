// SPDX-License-Identifier: MIT
// `clrsnap diff`: two recordings compared. Invariant: nothing is written unless both were read and
// can be compared. One thread. Signal-safe: no.
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/options_diff.h"
#include "cli/recfile.h"
#include "cli/resolve.h"

struct side {
  struct cs_recording rec;
  struct cs_profile profile;
};

static bool read_side(struct side *side, const char *path) {
  struct cs_error err, note;
  if (!cs_recfile_read(path, &side->rec, &note, &err)) {
    cs_say("%s", err.text);
    return false;
  }
  if (note.text[0] != '\0') cs_say("%s", note.text);
  return true;
}

// "cpu, alloc"
static const char *mode_names(uint32_t modes, char *text, size_t room) {
  size_t used = 0;
  text[0] = '\0';
  for (unsigned mode = 0; mode < CS_WIRE_MODES; mode++) {
    if ((modes & CS_WIRE_MODE_BIT(mode)) == 0 || used >= room) continue;
    used += (size_t)snprintf(text + used, room - used, "%s%s", used > 0 ? ", " : "",
                             cs_mode((enum cs_wire_mode)mode)->token);
  }
  return text;
}

// The one mode that is compared: that of --mode, or the only one that both have.
static bool choose_mode(const struct side *before, const struct side *after,
                        struct cs_diff_options *o) {
  uint32_t a = before->rec.meta.modes, b = after->rec.meta.modes, both = a & b;
  char has_a[128], has_b[128];
  (void)mode_names(a, has_a, sizeof has_a);
  (void)mode_names(b, has_b, sizeof has_b);
  if (o->mode != 0 && (both & CS_WIRE_MODE_BIT(o->mode)) == 0) {
    cs_say("%s has %s, %s has %s: not both have the mode %s", o->before, has_a, o->after, has_b,
           cs_mode(o->mode)->token);
    return false;
  }
  if (o->mode != 0) return true;
  if (both == 0) {
    cs_say("%s has %s, %s has %s: they have no mode in common; record both with the same --mode",
           o->before, has_a, o->after, has_b);
    return false;
  }
  if ((both & (both - 1)) != 0) {
    cs_say("both recordings have the modes %s: choose one with --mode",
           mode_names(both, has_a, sizeof has_a));
    return false;
  }
  o->mode = (enum cs_wire_mode)__builtin_ctz(both);
  return true;
}

static bool resolve_side(struct side *side, const char *path, const struct cs_diff_options *o) {
  cs_name_frames(&side->rec);
  // By method: a line that moved has not grown.
  cs_resolve(&side->rec, o->mode,
             &(struct cs_resolve_opts){.native = o->native,
                                       .signatures = o->signatures,
                                       .raw_names = o->raw_names,
                                       .async_callers = !o->raw_names,
                                       .group_threads = true},
             &side->profile);
  if (side->profile.facts.samples > 0) return true;
  cs_say("%s has no samples: there is nothing to compare with", path);
  return false;
}

struct content {
  const struct cs_diff *diff;
  const struct cs_diff_options *options;
};

static bool write_content(void *context, FILE *file) {
  const struct content *c = context;
  const struct cs_profile_set set = {&c->diff->profile, 1};
  switch (c->options->as) {
    case CS_DIFF_HTML:
      return cs_write_html(&set, file);
    case CS_DIFF_JSON:
      return cs_write_json(&set, file);
    case CS_DIFF_COLLAPSED:
      return cs_write_diff_collapsed(c->diff, file);
    default:
      return cs_write_diff_text(c->diff, c->options->top, file);
  }
}

static bool write_diff(const struct cs_diff *diff, const struct cs_diff_options *o) {
  struct content content = {diff, o};
  struct cs_output output;
  struct cs_error err;
  bool to_file = o->output != NULL && strcmp(o->output, "-") != 0;
  bool ok = to_file ? cs_output_open(&output, o->output, &err) : cs_output_stdout(&output, &err);
  ok = ok && cs_output_commit(&output, write_content, &content, &err);
  if (!ok) cs_say("%s", err.text);
  if (ok && to_file) cs_say("wrote %s", o->output);
  return ok;
}

static bool compare(struct side *before, struct side *after, struct cs_diff_options *o) {
  if (!read_side(before, o->before) || !read_side(after, o->after)) return false;
  if (!choose_mode(before, after, o)) return false;
  if (!resolve_side(before, o->before, o) || !resolve_side(after, o->after, o)) return false;
  struct cs_diff diff;
  cs_diff_make(&diff, &before->profile, &after->profile, o->normalize);
  bool ok = write_diff(&diff, o);
  cs_diff_free(&diff);
  return ok;
}

int cs_cmd_diff(int argc, char **argv) {
  static struct side sides[2];  // a recording's histogram is large for a stack
  struct cs_diff_options options;
  struct cs_error err;
  if (!cs_diff_options_parse(&options, argc, argv, &err)) {
    cs_say("%s; 'clrsnap help diff' lists the options", err.text);
    return CS_EXIT_USAGE;
  }
  if (options.help) {
    cs_diff_print_help(stdout);
    return 0;
  }
  for (int i = 0; i < 2; i++) {
    cs_recording_init(&sides[i].rec);
    cs_profile_init(&sides[i].profile);
  }
  bool ok = compare(&sides[0], &sides[1], &options);
  for (int i = 0; i < 2; i++) {
    cs_profile_free(&sides[i].profile);
    cs_recording_free(&sides[i].rec);
  }
  return ok ? 0 : CS_EXIT_FAILURE;
}
