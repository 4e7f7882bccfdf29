// SPDX-License-Identifier: MIT
// Conditions on comparisons. Invariant: a condition that was accepted has been read to its last
// character. One thread. Signal-safe: no.
#include "profile/condition.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/prefix.h"

#define AWAITS " [awaits]"

struct reader {
  const char *text, *at;
  struct cs_error *err;
};

static void skip_blanks(struct reader *r) {
  while (*r->at == ' ') r->at++;
}

static bool take(struct reader *r, const char *word) {
  skip_blanks(r);
  if (!cs_has_prefix(r->at, word)) return false;
  r->at += strlen(word);
  return true;
}

static bool expected(struct reader *r, const char *what) {
  skip_blanks(r);
  return cs_error_set(r->err, "--fail-if: %s is expected %s", what,
                      *r->at != '\0' ? "there" : "at the end");
}

static bool read_mode(struct reader *r, struct cs_condition *c) {
  size_t len = strcspn(r->at, ":(");
  c->mode = (enum cs_wire_mode)0;
  if (r->at[len] != ':') return true;
  c->mode = cs_mode_by_name(r->at, len);
  if (c->mode == 0) return expected(r, "the name of a mode, like cpu or alloc,");
  r->at += len + 1;
  return true;
}

// Signatures contain parentheses: the glob ends with the last one before the '>' of the limit,
// which generic names contain as well, so that both are looked for from the end.
static bool read_glob(struct reader *r, struct cs_condition *c) {
  const char *limit = strrchr(r->at, '>'), *end = limit;
  if (!take(r, "(")) return expected(r, "'('");
  while (end != NULL && end > r->at && *end != ')') end--;
  if (end == NULL || end < r->at || *end != ')') {
    const char *close = strrchr(r->at, ')');
    r->at = close != NULL ? close + 1 : r->at + strlen(r->at);
    return expected(r, close != NULL ? "'>'" : "')'");
  }
  c->glob = r->at;
  c->glob_len = (size_t)(end - r->at);
  if (c->glob_len == 0) return expected(r, "the name of a method");
  r->at = end + 1;
  return true;
}

static bool read_limit(struct reader *r, struct cs_condition *c) {
  if (!take(r, ">")) return expected(r, "'>'");
  bool grows = take(r, "+");
  skip_blanks(r);
  const char *digits = r->at;
  size_t length = strspn(digits, "0123456789.");
  char *end;
  double number = strtod(digits, &end);
  if (length == 0 || end != digits + length) return expected(r, "a number, like 5 or 0.5,");
  r->at = end;
  if (take(r, "%")) {
    c->kind = grows ? CS_CHANGE_RATIO : CS_CHANGE_LEVEL;
    c->limit = grows ? 1 + number / 100 : number / 100;
  } else if (grows && take(r, "pt")) {
    c->kind = CS_CHANGE_DIFFERENCE;
    c->limit = number / 100;
  } else {
    return expected(r, grows ? "'%' or 'pt'" : "'%', or '+' before the number,");
  }
  if (c->kind == CS_CHANGE_RATIO || number < 100) return true;
  r->at = digits;
  return expected(r, "less than 100, the whole,");
}

bool cs_condition_parse(const char *text, struct cs_condition *out, size_t *at,
                        struct cs_error *err) {
  struct reader r = {text, text, err};
  *out = (struct cs_condition){.text = text};
  skip_blanks(&r);
  bool good = read_mode(&r, out);
  if (good && take(&r, "total"))
    out->total = true;
  else if (good && !take(&r, "self"))
    good = expected(&r, "self(METHOD) or total(METHOD)");
  good = good && read_glob(&r, out) && read_limit(&r, out);
  skip_blanks(&r);
  if (good && *r.at != '\0') good = expected(&r, "the end");
  *at = (size_t)(r.at - text);
  return good;
}

// Goes back to the last star only: what is before it has matched as early as it can.
bool cs_glob_matches(const char *glob, size_t glob_len, const char *name, size_t len) {
  size_t g = 0, n = 0, star = SIZE_MAX, from = 0;
  while (n < len) {
    if (g < glob_len && glob[g] == '*') {
      star = g++;
      from = n;
    } else if (g < glob_len && (glob[g] == '?' || glob[g] == name[n])) {
      g++;
      n++;
    } else if (star != SIZE_MAX) {
      g = star + 1;
      n = ++from;
    } else {
      return false;
    }
  }
  while (g < glob_len && glob[g] == '*') g++;
  return g == glob_len;
}

static bool *match_frames(const struct cs_condition *c, const struct cs_profile *p, size_t *names) {
  bool *match = cs_allocate((p->frame_count + 1) * sizeof *match);
  for (uint32_t i = 0; i < p->frame_count; i++) {
    size_t len, suffix = strlen(AWAITS);
    const char *name = cs_profile_method(p, i, &len);
    if (p->frames[i].kind == CS_KIND_AWAITS && len > suffix) len -= suffix;
    match[i] = cs_glob_matches(c->glob, c->glob_len, name, len);
    *names += match[i];
  }
  return match;
}

// Returns whether the node's own samples count. In modes of events a type or a reason is below the
// method to which they belong.
static bool is_self(const struct cs_profile *p, const struct cs_node *node, const bool *match) {
  const struct cs_node *parent = &p->tree.nodes[node->parent];
  if (node->parent == 0) return false;
  if (match[node->frame]) return true;
  return p->frames[node->frame].kind == CS_KIND_TYPE && parent->parent != 0 && match[parent->frame];
}

struct cs_verdict cs_condition_check(const struct cs_condition *c, const struct cs_diff *d) {
  const struct cs_profile *p = &d->profile;
  struct cs_verdict v = {.names = 0};
  double part[2] = {0, 0}, squares[2] = {0, 0};
  bool *match = match_frames(c, p, &v.names);
  bool *inside = cs_allocate(p->tree.count * sizeof *inside);
  for (size_t i = 1; i < p->tree.count; i++) {
    const struct cs_node *node = &p->tree.nodes[i];
    inside[i] = node->parent != 0 && (inside[node->parent] || match[node->frame]);
    if (c->total ? !inside[i] : !is_self(p, node, match)) continue;
    part[0] += (double)d->weight[i];
    squares[0] += d->squares[i];
    part[1] += (double)node->weight;
    squares[1] += node->squares;
  }
  free(match);
  free(inside);
  v.comparison = cs_diff_compare(d, c->kind, part, squares);
  v.measured_more = cs_change_measured(&v.comparison) > c->limit;
  v.chance = cs_change_chance(&v.comparison, c->limit);
  v.holds = v.measured_more && v.chance < CS_CHANGE_SIGNIFICANCE;
  return v;
}
