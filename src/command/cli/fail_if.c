// SPDX-License-Identifier: MIT
// Conditions of `clrsnap diff`, for builds that are to fail when a method has become slower.
// Invariant: a condition that measures nothing is a failure, so that no build passes because of a
// wrong name. One thread. Signal-safe: no.
#include "cli/fail_if.h"

#include <math.h>
#include <string.h>

#include "base/print.h"
#include "util/say.h"

// Under the condition as it is printed, the place at which it is wrong.
static void point_at(const char *text, size_t at) {
  size_t column = 0;
  for (size_t i = 0; i < at;) {
    char shown[CS_ESCAPE_MOST];
    i += cs_escape_next(text + i, at - i, shown);
    column += shown[0] == '\\' ? strlen(shown) : 1;
  }
  cs_say("  %s", text);
  cs_say("  %*s^", (int)column, "");
}

bool cs_add_condition(const struct cs_option *option, void *field, const char *value,
                      struct cs_error *err) {
  struct cs_fail_if *f = field;
  size_t at;
  if (f->count == CS_FAIL_IF_MOST)
    return cs_error_set(err, "--%s can be given %d times at most", option->name, CS_FAIL_IF_MOST);
  if (cs_condition_parse(value, &f->conditions[f->count], &at, err)) {
    f->count++;
    return true;
  }
  point_at(value, at);
  return false;
}

bool cs_fail_if_check(const struct cs_fail_if *f, enum cs_normalize normalize,
                      struct cs_error *err) {
  for (size_t i = 0; i < f->count && normalize != CS_NORMALIZE_TOTAL; i++)
    if (f->conditions[i].kind != CS_CHANGE_RATIO)
      return cs_error_set(err,
                          "--fail-if '%s' is about shares of the total, which --normalize %s does "
                          "not have; '> +N%%' is about any number",
                          f->conditions[i].text, cs_normalize_token(normalize));
  return true;
}

static const struct cs_diff *diff_of(const struct cs_condition *c, const struct cs_diff *diffs,
                                     size_t count) {
  for (size_t i = 0; i < count; i++)
    if (c->mode == 0 || diffs[i].profile.facts.mode == c->mode) return &diffs[i];
  return NULL;
}

static void put_values(const struct cs_diff *d, const struct cs_comparison *c, FILE *out) {
  const struct cs_mode *mode = cs_mode_of(&d->profile.facts);
  double before = cs_measure_value(&c->before), after = cs_measure_value(&c->after);
  if (c->shares) {
    cs_print(out, "%.2f %% of %s before, %.2f %% after", 100 * before, mode->whole, 100 * after);
    return;
  }
  const char *rate = d->normalize == CS_NORMALIZE_RATE ? " per second" : "";
  cs_put_amount(out, mode->unit, (uint64_t)(before + 0.5));
  cs_print(out, " of %s%s before, ", mode->whole, rate);
  cs_put_amount(out, mode->unit, (uint64_t)(after + 0.5));
  cs_print(out, " after");
}

static void put_change(enum cs_change_kind kind, double change, FILE *out) {
  if (kind == CS_CHANGE_RATIO && isinf(change))
    cs_print(out, "any growth");
  else if (kind == CS_CHANGE_RATIO)
    cs_print(out, "%+.1f %%", 100 * (change - 1));
  else if (kind == CS_CHANGE_DIFFERENCE)
    cs_print(out, "%+.2f points", 100 * change);
  else
    cs_print(out, "%.2f %%", 100 * change);
}

// "4.00 % of CPU time before, 6.10 % after: +52.5 %, 95 % interval +21.0 % to +92.0 %"
static void put_measured(const struct cs_diff *d, const struct cs_comparison *c, FILE *out) {
  double low, high, change = cs_change_measured(c);
  put_values(d, c, out);
  if (isnan(change)) return;
  cs_change_interval(c, &low, &high);
  cs_print(out, ": ");
  if (isinf(change))
    cs_print(out, "new");
  else
    put_change(c->kind, change, out);
  cs_print(out, ", " CS_CHANGE_INTERVAL " interval ");
  put_change(c->kind, low, out);
  cs_print(out, " to ");
  put_change(c->kind, high, out);
}

static void say_verdict(const struct cs_condition *c, const struct cs_verdict *v,
                        const struct cs_diff *d) {
  const char *verdict = v->holds           ? "holds"
                        : v->measured_more ? "is not significant, so it does not hold"
                                           : "does not hold";
  cs_print(stderr, "clrsnap: --fail-if '%s' %s\n", c->text, verdict);
  cs_print(stderr, "clrsnap:   ");
  put_measured(d, &v->comparison, stderr);
  cs_print(stderr, "\n");
  if (d->idle_weight[0] + d->idle_weight[1] > 0)
    cs_print(stderr, "clrsnap:   without idle threads; --idle has them\n");
  cs_diff_put_reasons(d, "clrsnap:   ", stderr);
  if (!v->measured_more) return;
  cs_print(stderr,
           "clrsnap:   chance of a false alarm (sampling shows as much, if the truth is the limit) "
           "%.*g %%; below %.1f %% is significant\n",
           v->chance < 0.995 ? 2 : 3, 100 * v->chance, 100 * CS_CHANGE_SIGNIFICANCE);
}

int cs_fail_if_exit_code(const struct cs_fail_if *f, const struct cs_diff *diffs, size_t count) {
  bool holds = false, failed = false;
  for (size_t i = 0; i < f->count; i++) {
    const struct cs_condition *c = &f->conditions[i];
    const struct cs_diff *d = diff_of(c, diffs, count);
    if (d == NULL) {
      cs_say("--fail-if '%s' cannot be judged: %s mode is not compared", c->text,
             cs_mode(c->mode)->token);
      failed = true;
      continue;
    }
    struct cs_verdict v = cs_condition_check(c, d);
    if (v.names == 0) {
      cs_say("--fail-if '%s' cannot be judged: no method in either recording has such a name",
             c->text);
      failed = true;
      continue;
    }
    say_verdict(c, &v, d);
    holds |= v.holds;
  }
  return failed ? CS_EXIT_FAILURE : holds ? CS_EXIT_CONDITION : 0;
}
