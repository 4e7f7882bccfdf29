// SPDX-License-Identifier: MIT
// The Markdown page of a recording with so many modes that tables for each would leave no room for
// what is in them: one code block, with a heading and some rows for each mode. One thread.
// Signal-safe: no.
#include "formats/markdown_brief.h"

#include <inttypes.h>

#include "base/print.h"
#include "profile/blockers.h"
#include "profile/pool.h"

void cs_brief_put_first(const struct cs_profile_set *set, unsigned most_name, FILE *out) {
  for (size_t i = 0; i < set->count; i++) {
    const struct cs_profile *p = &set->profiles[i];
    const struct cs_facts *f = &p->facts;
    if (cs_pool_has_cause(f)) {
      cs_pool_put_cause(f, out);
      cs_print(out, "\n");
    } else if (f->pool.scans > 0) {
      cs_print(out, "thread pool: ");
      cs_pool_put(f, out);
      cs_print(out, "\n");
    }
    if (f->samples > 0 && f->mode == CS_WIRE_MODE_HOLDERS) {
      cs_print(out, "waits for locks: ");
      cs_holders_put(p, most_name, out);
      cs_print(out, "\n");
    }
    if (f->mode != CS_WIRE_MODE_GC) continue;
    struct cs_blockers blockers;
    cs_blockers_find(&blockers, p);
    if (blockers.count > 0) {
      cs_print(out, "pauses held up by ");
      cs_blocker_put_place(p, &blockers.at[0], most_name, out);
      cs_print(out, ": ");
      cs_blocker_put_time(&blockers.at[0], out);
      cs_print(out, "\n");
    }
    cs_blockers_free(&blockers);
  }
}

static void put_heading(const struct cs_markdown_section *s, FILE *out) {
  const struct cs_facts *f = &s->p->facts;
  const struct cs_mode *mode = cs_mode_of(f);
  cs_print(out, "%s: ", mode->token);
  if (f->samples == 0) {
    cs_markdown_say_nothing(f, out);
    cs_print(out, "\n");
    return;
  }
  if (mode->unit != CS_UNIT_COUNT || f->events == 0) {  // else the number of samples is the amount
    cs_put_whole(out, mode, cs_facts_whole(f));
    cs_print(out, "; ");
  }
  cs_put_samples(out, f);
  if (cs_facts_have_all(f))
    cs_print(out, ", every one");
  else if (cs_facts_are_by_count(f))
    cs_print(out, ", not chosen at random by .NET 9: shares may be far off");
  else
    cs_print(out, ", +-%.1f points", s->error);
  if (f->mode == CS_WIRE_MODE_CPU && f->duration_ns > 0 && f->processors > 0)
    cs_print(out, "; %.2f of %" PRIu32 " processors", (double)f->weight / (double)f->duration_ns,
             f->processors);
  if (s->idle > 0) {
    cs_print(out, "; without ");
    cs_put_amount(out, mode->unit, s->idle);
    cs_print(out, " of idle threads");
  }
  cs_print(out, "\n");
}

static void begin_row(const struct cs_markdown_section *s, uint64_t weight, FILE *out) {
  cs_print(out, "%5.1f %% %9.*f %s  ", cs_section_share(s, weight), s->decimals,
           (double)weight / s->unit, s->unit_name);
}

static void put_cause(const struct cs_markdown_section *s, size_t row, unsigned most, FILE *out) {
  if (row <= CS_MARKDOWN_CAUSES && s->causes[row] != CS_NO_ROW) {
    cs_print(out, ": ");
    cs_section_put_function(s, s->causes[row], most, out);
  }
  cs_print(out, "\n");
}

// A type is printed with the methods that it belongs to.
static void put_others(const struct cs_markdown_section *s, const struct cs_detail *d, FILE *out) {
  size_t count = 0;
  for (size_t i = s->own; i < s->own + s->others && count < d->others; i++) {
    const struct cs_markdown_row *row = &s->rows[i];
    if (1000 * row->self < s->shown) break;
    if (cs_section_kind(s, row->function) == CS_KIND_TYPE) continue;
    cs_print(out, "%s%.1f %% ", count++ == 0 ? "  itself, not own code: " : ", ",
             cs_section_share(s, row->self));
    cs_section_put_function(s, row->function, d->name, out);
  }
  if (count > 0) cs_print(out, "\n");
}

void cs_brief_put_mode(const struct cs_markdown_section *s, const struct cs_detail *d, FILE *out) {
  put_heading(s, out);
  if (s->p->facts.samples == 0) return;
  size_t rows = 0;
  for (; rows < s->own && rows < d->methods && 1000 * s->rows[rows].here >= s->shown; rows++) {
    size_t i = rows;
    begin_row(s, s->rows[i].here, out);
    cs_section_put_function(s, s->rows[i].function, d->name, out);
    cs_section_put_place(s, &s->rows[i], out);
    put_cause(s, i < CS_MARKDOWN_CAUSES ? i : CS_NO_ROW, d->name, out);
  }
  if (s->own > rows) cs_print(out, "  (%zu more)\n", s->own - rows);
  if (s->elsewhere > 0) {
    begin_row(s, s->elsewhere, out);
    cs_print(out, "[without own code]");
    put_cause(s, CS_MARKDOWN_CAUSES, d->name, out);
  }
  if (s->p->facts.unwalked_weight > 0) {
    begin_row(s, s->p->facts.unwalked_weight, out);
    cs_print(out, CS_WIRE_UNWALKED "\n");
  }
  put_others(s, d, out);
  for (size_t i = 0; i < s->stack_count && i < d->stacks; i++) {
    cs_print(out, "  stack %.1f %%: ", cs_section_share(s, s->tree.nodes[s->stacks[i]].weight));
    cs_section_put_stack(s, s->stacks[i], d, out);
    cs_print(out, "\n");
  }
}
