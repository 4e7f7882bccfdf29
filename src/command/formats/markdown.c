// SPDX-License-Identifier: MIT
// A recording as a short page of Markdown: what was recorded, where each mode's time, bytes or
// events go, and what is odd. Own code comes first: what a method of one's own spends in libraries
// and in the runtime is counted for it, since that is where it can be changed. One thread.
// Signal-safe: no.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/print.h"
#include "formats/markdown.h"
#include "formats/markdown_brief.h"
#include "formats/writers.h"
#include "profile/blockers.h"
#include "profile/change.h"
#include "profile/pool.h"

struct page {
  const struct cs_profile_set *set;
  struct cs_markdown_section *sections;  // by profile
};

static void put_amount(const struct cs_markdown_section *s, uint64_t amount, FILE *out) {
  cs_print(out, " %10.*f", s->decimals, (double)amount / s->unit);
}

static void put_methods(const struct cs_markdown_section *s, const struct cs_detail *d, FILE *out) {
  const struct cs_markdown_row *rows = s->rows;
  cs_print(out, "   here %10s       self      total  own method\n", s->unit_name);
  for (size_t i = 0; i < s->own && i < d->methods; i++) {
    cs_print(out, "%5.1f %%", cs_section_share(s, rows[i].here));
    put_amount(s, rows[i].here, out);
    put_amount(s, rows[i].self, out);
    put_amount(s, rows[i].total, out);
    cs_print(out, "  ");
    cs_section_put_function(s, rows[i].function, d->name, out);
    cs_section_put_place(s, &rows[i], out);
    cs_print(out, "\n");
  }
  if (s->own > d->methods) cs_print(out, "  (%zu more)\n", s->own - d->methods);
  if (s->elsewhere > 0) {
    cs_print(out, "%5.1f %%", cs_section_share(s, s->elsewhere));
    put_amount(s, s->elsewhere, out);
    cs_print(out, "%24s[stacks without own code]\n", "");
  }
  if (s->p->facts.unwalked_weight > 0) {
    cs_print(out, "%5.1f %%", cs_section_share(s, s->p->facts.unwalked_weight));
    put_amount(s, s->p->facts.unwalked_weight, out);
    cs_print(out, "%24s" CS_WIRE_UNWALKED "\n", "");
  }
}

// A mode whose only row may be of any code has one of these if it has none of own code.
static void put_others(const struct cs_markdown_section *s, const struct cs_detail *d, FILE *out) {
  size_t most = d->others == 0 && s->own == 0 ? d->methods : d->others;
  const struct cs_markdown_row *rows = s->rows + s->own;
  if (most == 0) return;
  if (s->others > 0) cs_print(out, "\n   self %10s  not own code\n", s->unit_name);
  for (size_t i = 0; i < s->others && i < most; i++) {
    cs_print(out, "%5.1f %%", cs_section_share(s, rows[i].self));
    put_amount(s, rows[i].self, out);
    cs_print(out, "  ");
    cs_section_put_function(s, rows[i].function, d->name, out);
    cs_print(out, "\n");
  }
  if (s->others > most) cs_print(out, "  (%zu more)\n", s->others - most);
}

// ---- Stacks ----

static void put_stacks(const struct cs_markdown_section *s, const struct cs_detail *d, FILE *out) {
  if (d->stacks == 0) return;
  cs_print(out, "\n  share  stack, its callers first\n");
  for (size_t i = 0; i < s->stack_count && i < d->stacks; i++) {
    cs_print(out, "%5.1f %%  ", cs_section_share(s, s->tree.nodes[s->stacks[i]].weight));
    cs_section_put_stack(s, s->stacks[i], d, out);
    cs_print(out, "\n");
  }
  if (s->stack_count > d->stacks) cs_print(out, "  (%zu more)\n", s->stack_count - d->stacks);
}

// ---- The page ----

static void put_pool(const struct cs_facts *f, FILE *out) {
  if (f->pool.scans == 0) return;
  if (cs_pool_has_cause(f)) {
    cs_print(out, "**");
    cs_pool_put_cause(f, out);
    cs_print(out, ".**\n");
  }
  cs_print(out, "Thread pool: ");
  cs_pool_put(f, out);
  cs_print(out, ".\n");
}

static void put_runtime(const struct cs_facts *f, FILE *out) {
  if (f->mode != CS_WIRE_MODE_CPU || f->runtime_weight == 0 || f->weight == 0) return;
  double all = (double)f->weight / 100.0;
  cs_print(out,
           "%.1f %% of %s is in functions of the runtime without names; %.1f %% in those without a "
           "class either.\n",
           (double)f->runtime_weight / all, cs_mode_of(f)->whole,
           (double)f->unclassed_weight / all);
}

// Numbers of samples and processors, and by which engine. The line goes on.
static void put_size(const struct cs_facts *f, FILE *out) {
  const struct cs_mode *mode = cs_mode_of(f);
  cs_put_samples(out, f);
  if (f->weight != cs_facts_whole(f)) {
    cs_print(out, ", which stand for ");
    cs_put_amount(out, mode->unit, f->weight);
  }
  if (mode->timed && f->hz > 0) cs_print(out, " at %" PRIu32 " Hz", f->hz);
  if (f->engine.used != CS_WIRE_ENGINE_AUTO)
    cs_print(out, ", engine %s", cs_wire_engine_name(f->engine.used));
  if (mode->timed && f->duration_ns > 0) {
    cs_print(out, "; %.2f", (double)f->weight / (double)f->duration_ns);
    if (f->mode == CS_WIRE_MODE_CPU && f->processors > 0)
      cs_print(out, " of %" PRIu32, f->processors);
    cs_print(out, " %s",
             f->mode == CS_WIRE_MODE_CPU     ? "processors used"
             : f->mode == CS_WIRE_MODE_ASYNC ? "operations at a time"
                                             : "threads at a time");
  }
}

static void put_error(const struct cs_markdown_section *s, FILE *out) {
  const struct cs_facts *f = &s->p->facts;
  if (cs_facts_have_all(f))
    cs_print(out, "; every one was recorded.\n");
  else if (cs_facts_are_by_count(f))
    cs_print(
        out,
        "; .NET 9 chooses small ones by their count of bytes, not at random: where the same is "
        "allocated in turn, a share may be far off and a type missing.\n");
  else
    cs_print(out,
             "; a share may be off by up to %.1f points (" CS_CHANGE_INTERVAL ", by the counts).\n",
             s->error);
}

static void put_mode(const struct cs_markdown_section *s, const struct cs_detail *d, FILE *out) {
  const struct cs_facts *f = &s->p->facts;
  const struct cs_mode *mode = cs_mode_of(f);
  cs_print(out, "\n## %s: ", mode->token);
  cs_put_whole(out, mode, cs_facts_whole(f));
  cs_print(out, "\n\n");
  put_size(f, out);
  if (f->samples == 0) {
    cs_print(out, ": ");
    cs_markdown_say_nothing(f, out);
    cs_print(out, ".\n");
    put_pool(f, out);
    return;
  }
  put_error(s, out);
  if (s->idle > 0) {
    cs_put_amount(out, mode->unit, s->idle);
    cs_print(out,
             " of idle threads (the pool's, timers, sockets, ...) are left out; shares are of the "
             "rest.\n");
  }
  put_runtime(f, out);
  put_pool(f, out);
  if (f->mode == CS_WIRE_MODE_HOLDERS) {
    cs_print(out, "Waits for locks: ");
    cs_holders_put(s->p, 2 * d->name, out);
    cs_print(out, ".\n");
  }
  if (d->methods == 0) return;
  cs_print(out, "\n");
  cs_markdown_code(out);
  put_methods(s, d, out);
  put_others(s, d, out);
  put_stacks(s, d, out);
  cs_markdown_code_end(out);
}

static void put_modes(const struct page *page, const struct cs_details *details, FILE *out) {
  if (!details->page->brief) {
    for (size_t i = 0; i < page->set->count; i++)
      put_mode(&page->sections[i], details->mode[i], out);
    return;
  }
  cs_print(
      out,
      "\nOf each mode: own code, by what it has in itself and in what it calls that is not own "
      "code; after the colon\nwhat half or more of it was for. A share may be off by as much as "
      "is said after +- (" CS_CHANGE_INTERVAL ").\n\n");
  cs_markdown_code(out);
  for (size_t i = 0; i < page->set->count; i++) {
    if (i > 0) cs_print(out, "\n");
    cs_brief_put_mode(&page->sections[i], details->mode[i], out);
  }
  cs_markdown_code_end(out);
}

static void put_page(const void *what, const struct cs_details *details, FILE *out) {
  const struct page *page = what;
  const struct cs_detail *d = details->page;
  const struct cs_profile_set *set = page->set;
  const struct cs_facts *f = &set->profiles[0].facts;
  cs_print(out, "# Recording of %.1f s", (double)f->duration_ns / 1e9);
  cs_print(out, "%s%s, process %" PRIu32 "\n\n", f->runtime[0] != '\0' ? ", .NET " : "", f->runtime,
           f->pid);
  cs_markdown_code(out);
  cs_markdown_name(out, f->program, strlen(f->program), 2 * d->name);
  cs_print(out, "\n");
  if (d->brief) cs_brief_put_first(set, 2 * d->name, out);
  cs_markdown_code_end(out);
  if (!d->brief)
    cs_print(out,
             "\nself: in the method itself%s. here: self, and what it calls that is not own code "
             "(framework,\nruntime, system). total: with all that it calls; recursion counts once. "
             "Shares are of the mode's whole.\n",
             f->inlined.wanted ? "" : ", with what is inlined there");
  put_modes(page, details, out);
  cs_print(out, "\n## What is odd\n\n");
  if (cs_markdown_odd(set, d->brief ? 4 : 8, out) == 0)
    cs_print(out, "Nothing: no sample was lost, and nearly all walks are complete.\n");
}

bool cs_write_markdown(const struct cs_profile_set *set, FILE *out) {
  struct cs_markdown_section *sections = cs_allocate(set->count * sizeof *sections);
  for (size_t i = 0; i < set->count; i++) cs_section_add_up(&sections[i], &set->profiles[i]);
  bool written = cs_markdown_fit(put_page, &(struct page){set, sections}, set->count, out);
  for (size_t i = 0; i < set->count; i++) cs_section_free(&sections[i]);
  free(sections);
  return written;
}
