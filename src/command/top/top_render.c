// SPDX-License-Identifier: MIT
// A moment of `clrsnap top` as a grid of text: facts, what is shown, the table, one line of keys.
// Invariant: no line is wider than the grid, in columns of a terminal, whatever the program calls
// its methods. One thread. Signal-safe: no.
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "base/print.h"
#include "top/top.h"

#define LINES_BELOW 1
#define LINES_MOST 8  // above the rows of the table, where no line needs to be wrapped
#define UNLIMITED 100000
#define NUMBERS 18  // columns of "self % total % "

void cs_grid_init(struct cs_grid *grid, unsigned rows, unsigned columns) {
  *grid = (struct cs_grid){.rows = rows, .columns = columns};
  grid->text = cs_allocate((rows + 1) * sizeof *grid->text);
  grid->style = cs_allocate((rows + 1) * sizeof *grid->style);
}

void cs_grid_free(struct cs_grid *grid) {
  for (unsigned i = 0; i < grid->rows; i++) free(grid->text[i]);
  free(grid->text);
  free(grid->style);
}

// ---- Lines ----

// The next character as it is shown, which may be an escape. Returns the bytes that it takes.
static size_t next_columns(const char *text, size_t len, unsigned *columns) {
  char shown[CS_ESCAPE_MOST];
  uint32_t c;
  size_t taken = cs_escape_next(text, len, shown);
  *columns = 0;
  for (size_t i = 0, size = strlen(shown); i < size;) {
    i += cs_utf8_next(shown + i, size - i, &c, NULL);
    int width = wcwidth((wchar_t)c);
    *columns += width < 0 ? 1 : (unsigned)width;
  }
  return taken;
}

static unsigned width_of(const char *text, size_t len) {
  unsigned columns = 0, one;
  for (size_t i = 0; i < len; columns += one) i += next_columns(text + i, len - i, &one);
  return columns;
}

// Returns the number of bytes at the front that fill at most that many columns.
static size_t fitting(const char *text, size_t len, unsigned columns) {
  size_t i = 0;
  unsigned one;
  while (i < len) {
    size_t n = next_columns(text + i, len - i, &one);
    if (one > columns) break;
    columns -= one;
    i += n;
  }
  return i;
}

// Returns the start of the longest end of a text that fills at most that many columns.
static size_t ending(const char *text, size_t len, unsigned columns) {
  size_t i = 0;
  unsigned one;
  for (unsigned all = width_of(text, len); all > columns && i < len; all -= one)
    i += next_columns(text + i, len - i, &one);
  return i;
}

__attribute__((format(printf, 4, 5))) static void put(struct cs_grid *grid, unsigned row,
                                                      enum cs_grid_style style, const char *format,
                                                      ...) {
  char *raw = NULL, *text = NULL;
  size_t len = 0;
  va_list args;
  if (row >= grid->rows) return;
  va_start(args, format);
  int n = vasprintf(&raw, format, args);
  va_end(args);
  FILE *out = n >= 0 ? open_memstream(&text, &len) : NULL;
  if (out != NULL) {
    cs_put_plain(out, raw, (size_t)n);
    (void)fclose(out);
    text[fitting(text, len, grid->columns)] = '\0';
  }
  if (n >= 0) free(raw);
  free(grid->text[row]);
  grid->text[row] = text;
  grid->style[row] = style;
}

// The rows above the table. Lines that are wider than the grid are wrapped while there are rows to
// spare, so that the table keeps most of the screen.
struct header {
  struct cs_grid *grid;
  unsigned row, spare;
};

static struct header header_of(struct cs_grid *grid) {
  enum { FEW = 16 };
  return (struct header){grid, 0, grid->rows < FEW ? 0 : grid->rows / 4};
}

// Returns the number of bytes at the front that fill at most that many columns and end with a comma
// or a semicolon, or 0 if there are none.
static size_t whole_facts(const char *text, size_t len, unsigned columns) {
  size_t end = fitting(text, len, columns);
  if (end == len) return end;
  while (end > 0 && !(text[end] == ' ' && (text[end - 1] == ',' || text[end - 1] == ';'))) end--;
  return end;
}

// Returns the number of bytes at the front that fill at most that many columns and are whole words.
static size_t whole_words(const char *text, size_t len, unsigned columns) {
  size_t end = fitting(text, len, columns);
  if (end == len) return end;
  for (size_t at = end; at > 0; at--)
    if (text[at] == ' ') return at;
  return end;
}

__attribute__((format(printf, 3, 4))) static void put_facts_line(struct header *h,
                                                                 enum cs_grid_style style,
                                                                 const char *format, ...) {
  char *raw = NULL;
  va_list args;
  va_start(args, format);
  int n = vasprintf(&raw, format, args);
  va_end(args);
  if (n < 0) return;
  const char *at = raw;
  for (size_t len = strlen(raw); len > 0; h->row++) {
    size_t end = h->spare > 0 ? whole_facts(at, len, h->grid->columns) : len;
    if (end == 0) end = whole_words(at, len, h->grid->columns);  // a fact that is wider than a line
    if (end < len) h->spare--;
    put(h->grid, h->row, style, "%.*s", (int)end, at);
    at += end;
    len -= end;
    while (len > 0 && *at == ' ') at++, len--;
  }
  free(raw);
}

// A name in a column keeps its end, which distinguishes methods.
struct cell {
  char text[4096];
};
static const char *cell(struct cell *cell, const char *text, size_t len, unsigned columns,
                        bool fill) {
  unsigned width = width_of(text, len);
  size_t from = width > columns && columns > 2 ? ending(text, len, columns - 2) : 0;
  int used = snprintf(cell->text, sizeof cell->text, "%s%.*s", from > 0 ? ".." : "",
                      (int)(len - from), text + from);
  if (used < 0 || (size_t)used >= sizeof cell->text) used = (int)sizeof cell->text - 1;
  for (unsigned i = width; fill && i < columns && (size_t)used + 1 < sizeof cell->text; i++)
    cell->text[used++] = ' ';
  cell->text[used] = '\0';
  return cell->text;
}

static const char *percent(char text[16], double share) {
  if (share < 0)
    (void)snprintf(text, 16, "-");
  else
    (void)snprintf(text, 16, "%.1f", 100 * share);
  return text;
}

static const char *bytes(char text[24], double value) {
  static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  for (; value >= 1024 && unit + 1 < CS_COUNT(units); unit++) value /= 1024;
  (void)snprintf(text, 24, unit == 0 ? "%.0f %s" : "%.1f %s", value, units[unit]);
  return text;
}

// ---- The lines above the table ----

static void put_counters(const struct cs_top_moment *m, struct header *h) {
  const struct cs_top_facts *f = &m->facts;
  const struct cs_counters *c = &f->counters;
  char cpu[16], rss[24], heap[24], alloc[24], gc[16];
  if (c->known)
    put_facts_line(h, CS_GRID_PLAIN,
                   "CPU %s %%, memory %s, heap %s, alloc %s/s, GC %s %% (%" PRIu64 "+%" PRIu64
                   "+%" PRIu64 ")",
                   percent(cpu, f->cpu), bytes(rss, (double)f->rss_bytes),
                   bytes(heap, c->heap_bytes), bytes(alloc, c->alloc_bytes_per_s),
                   percent(gc, c->gc_pause), c->gc_counts[0], c->gc_counts[1], c->gc_counts[2]);
  else
    put_facts_line(h, CS_GRID_PLAIN, "CPU %s %%, memory %s; allocations and GC: %s",
                   percent(cpu, f->cpu), bytes(rss, (double)f->rss_bytes),
                   c->why[0] != '\0' ? c->why : "not yet known");
}

static void put_pool(const struct cs_top_moment *m, struct header *h) {
  const struct cs_top_pool *p = &m->facts.pool;
  if (!p->known || p->threads == 0) return;
  put_facts_line(h, CS_GRID_PLAIN,
                 "pool %" PRIu32 " threads, %" PRIu32 " of them asleep; %" PRIu64
                 " items queued, %.0f completed/s",
                 p->threads, p->asleep, p->queued, p->completed_per_s);
  if (!p->starved) return;
  const struct cs_top_cause *c = &p->cause;
  if (c->place[0] != '\0')
    put_facts_line(h, CS_GRID_BOLD,
                   "the pool is starved: %" PRIu32 " of %" PRIu32 " workers wait in %s; %" PRIu64
                   " items queued (%.0f s ago)",
                   c->waiting, c->workers, c->place, c->queued, c->age_s);
  else
    put_facts_line(h, CS_GRID_BOLD,
                   "the pool is starved: %" PRIu32 " of %" PRIu32 " workers wait; %" PRIu64
                   " items queued; where they wait is %s%s",
                   p->asleep, p->threads, p->queued,
                   c->why[0] != '\0' ? "not known: " : "being determined", c->why);
}

static void put_facts(const struct cs_top_moment *m, struct header *h) {
  const struct cs_top_facts *f = &m->facts;
  char complete[16];
  if (f->pid == 0) {
    put(h->grid, 0, CS_GRID_BOLD, "clrsnap top: waiting for a .NET runtime in %s", f->program);
    h->row = 3;
    return;
  }
  put(h->grid, h->row++, CS_GRID_BOLD, "clrsnap top: %d %s", f->pid, f->program);
  put_facts_line(h, CS_GRID_PLAIN,
                 ".NET %s, %s %" PRIu32 " Hz, %.0f s; %" PRIu64 " samples, %.0f/s, lost %" PRIu64
                 ", complete %s %%",
                 f->runtime, f->mode, f->hz, f->elapsed_s, f->samples, f->samples_per_s, f->lost,
                 percent(complete, f->complete));
  put_counters(m, h);
  put_pool(m, h);
}

static void put_view(const struct cs_top_moment *m, struct header *h) {
  static const char *const sorts[] = {"self", "total", "name"};
  const struct cs_top_view *v = &m->view;
  const char *sort = v->threads && v->sort != CS_TOP_BY_NAME ? "CPU" : sorts[v->sort];
  char span[48], filter[CS_TOP_FILTER + 48] = "";
  if (v->whole)
    (void)snprintf(span, sizeof span, "since the start");
  else
    (void)snprintf(span, sizeof span, "last %g s", m->facts.window_s);
  if (m->typing == NULL && v->filter[0] != '\0')
    (void)snprintf(filter, sizeof filter, ", with \"%s\"%s", v->filter,
                   m->facts.inlined || v->threads ? "" : " (not inlined ones)");
  const char *mode = m->facts.mode;
  put_facts_line(h, m->frozen ? CS_GRID_BOLD : CS_GRID_PLAIN, "%s%s, %s, by %s, %% of %s%s%s",
                 m->frozen ? "FROZEN: " : "", v->threads ? "threads" : "methods", span, sort,
                 cs_mode(cs_mode_by_name(mode, strlen(mode)))->whole,
                 v->native ? "" : ", native frames off", filter);
}

// ---- Tables ----

static const char *text_of(const struct cs_top *top, uint32_t string, size_t *len) {
  return cs_strings_get(&top->methods.strings, string, len);
}

static unsigned widest(const struct cs_top_moment *m, size_t first, size_t last, bool modules) {
  unsigned most = 0;
  for (size_t i = first; i < last; i++) {
    const struct cs_profile_frame *frame = &m->top->methods.frames[m->methods[i].frame];
    size_t len;
    const char *text = text_of(m->top, modules ? frame->module : frame->name, &len);
    unsigned width = width_of(text, len);
    if (width > most) most = width;
  }
  return most;
}

// Returns the width of the module's column, if there is room for one beside a long name: that of
// the widest visible module, but at most a quarter of the line.
static unsigned module_columns(const struct cs_top_moment *m, size_t first, size_t last,
                               unsigned columns) {
  unsigned width = widest(m, first, last, true);
  if (columns + NUMBERS < 100) return 0;
  return width < columns / 4 ? width : columns / 4;
}

static void put_methods(const struct cs_top_moment *m, struct header *h, size_t rows) {
  struct cs_grid *grid = h->grid;
  size_t first = m->scroll < m->method_count ? m->scroll : m->method_count;
  size_t last = m->method_count - first < rows ? m->method_count : first + rows;
  unsigned left = grid->columns > NUMBERS ? grid->columns - NUMBERS : 1;
  unsigned module = module_columns(m, first, last, left);
  unsigned room = module > 0 && left > module + 2 ? left - module - 2 : left;
  unsigned name = widest(m, first, last, false);
  if (name < 6) name = 6;
  if (name > room) name = room;
  static struct cell title, text, place;
  put(grid, h->row++, CS_GRID_TITLE, " self %%  total %%  %s%s",
      cell(&title, "method", 6, name, module > 0), module > 0 ? "  module" : "");
  for (size_t i = first; i < last; i++) {
    const struct cs_top_method *row = &m->methods[i];
    const struct cs_profile_frame *frame = &m->top->methods.frames[row->frame];
    size_t len, module_len;
    const char *method = text_of(m->top, frame->name, &len);
    const char *where = text_of(m->top, frame->module, &module_len);
    put(grid, h->row++, frame->kind == CS_KIND_USER ? CS_GRID_BOLD : CS_GRID_PLAIN,
        "%7.1f  %7.1f  %s%s%s", 100 * row->self, 100 * row->total,
        cell(&text, method, len, name, module > 0 && module_len > 0),
        module > 0 && module_len > 0 ? "  " : "",
        module > 0 ? cell(&place, where, module_len, module, false) : "");
  }
}

static void put_threads(const struct cs_top_moment *m, struct header *h, size_t rows) {
  struct cs_grid *grid = h->grid;
  size_t first = m->scroll < m->thread_count ? m->scroll : m->thread_count;
  size_t last = m->thread_count - first < rows ? m->thread_count : first + rows;
  unsigned left = grid->columns > 28 ? grid->columns - 28 : 1, name = 6;
  for (size_t i = first; i < last; i++) {
    unsigned width = width_of(m->threads[i].name, strlen(m->threads[i].name));
    if (width > name) name = width;
  }
  if (name > left / 3 + 5) name = left / 3 + 5;
  static struct cell title, text, hot;
  put(grid, h->row++, CS_GRID_TITLE, "    tid   CPU %%    share %%  %s  hottest method",
      cell(&title, "thread", 6, name, true));
  for (size_t i = first; i < last; i++) {
    const struct cs_top_thread *t = &m->threads[i];
    size_t len = 0;
    const char *method = t->hottest != CS_NO_TEXT
                             ? text_of(m->top, m->top->methods.frames[t->hottest].name, &len)
                             : "";
    char cpu[16];
    put(grid, h->row++, CS_GRID_PLAIN, "%7" PRIu32 "  %6s     %6.1f  %s  %s", t->tid,
        percent(cpu, t->cpu), 100 * t->share, cell(&text, t->name, strlen(t->name), name, true),
        cell(&hot, method, len, left > name + 2 ? left - name - 2 : 3, false));
  }
}

// ---- Keys ----

static const struct {
  const char *key, *text;
} keys[] = {
    {"tab", "methods or threads"},
    {"s t n", "sort by self, total, name; threads by CPU"},
    {"w", "the last seconds, or since the start"},
    {"N", "native frames, or their time in managed callers"},
    {"/", "only what has a text in its name or module; Enter ends this, Escape removes it"},
    {"space", "freeze and run"},
    {"up down", "move in the table; so do page-up, page-down, home"},
    {"q", "quit; so does Ctrl-C"},
    {"?", "this help; any key leaves it"},
    {"", ""},
    {"self %",
     "time in the method itself; total %: with what it calls; share %: of all threads'; "
     "what is inlined is its caller's, unless --inlined was given"},
    {"CPU %", "of one processor since the last refresh"},
    {"GC %",
     "part of the last second that collections paused; after it, collections of "
     "generation 0+1+2 since top began (each counts in the lower ones)"},
    {"pool", "threads of the thread pool by the runtime's count, and those named " CS_POOL_WORKER
             " that sleep; starved: items wait for more than a second, most workers sleep, and a "
             "processor is free"},
};

// Instead of all else, because it fills a small screen.
static void put_help(struct cs_grid *grid) {
  enum { KEY = 10, WIDEST = 80 };
  unsigned columns = grid->columns < WIDEST ? grid->columns : WIDEST, row = 0;
  unsigned room = columns > 2 * KEY ? columns - KEY : KEY;
  put(grid, row++, CS_GRID_BOLD, "Keys");
  for (unsigned i = 0; i < CS_COUNT(keys); i++) {
    const char *text = keys[i].text, *key = keys[i].key;
    do {
      size_t len = strlen(text), end = whole_words(text, len, room);
      if (row + LINES_BELOW < grid->rows)
        put(grid, row++, CS_GRID_PLAIN, "  %-*s%.*s", KEY - 2, key, (int)end, text);
      text += end;
      while (*text == ' ') text++;
      key = "";
    } while (*text != '\0');
  }
}

// Whole keys, as many as there is room for.
static void put_footer(const struct cs_top_moment *m, struct cs_grid *grid) {
  char text[128];
  if (m->typing != NULL) {
    put(grid, grid->rows - 1, CS_GRID_BOLD, "/%s_", m->typing);
    return;
  }
  int n = snprintf(text, sizeof text,
                   "q quit  ? help  tab %s  s,t,n sort  w span  N native  / filter  space %s",
                   m->view.threads ? "methods" : "threads", m->frozen ? "run" : "stop");
  size_t len = n > 0 ? (size_t)n : 0, end = len;
  while (end > grid->columns) {
    end--;
    while (end > 0 && !(text[end] == ' ' && text[end + 1] == ' ')) end--;
  }
  put(grid, grid->rows - 1, CS_GRID_DIM, "%.*s", (int)end, text);
}

static void put_table(const struct cs_top_moment *m, struct header *h, size_t rows) {
  if (m->view.threads)
    put_threads(m, h, rows);
  else
    put_methods(m, h, rows);
}

void cs_top_render(const struct cs_top_moment *moment, struct cs_grid *grid) {
  struct header h = header_of(grid);
  if (grid->rows == 0) return;
  if (moment->help) {
    put_help(grid);
  } else {
    put_facts(moment, &h);
    put_view(moment, &h);
    unsigned above = h.row + 1;
    grid->room = grid->rows > above + LINES_BELOW ? grid->rows - above - LINES_BELOW : 0;
    put_table(moment, &h, grid->room);
  }
  if (grid->rows > 1) put_footer(moment, grid);
}

void cs_top_write_text(const struct cs_top_moment *moment, size_t limit, FILE *out) {
  struct cs_grid grid;
  size_t rows = moment->view.threads ? moment->thread_count : moment->method_count;
  if (rows > limit) rows = limit;
  cs_grid_init(&grid, LINES_MOST + (unsigned)rows, UNLIMITED);
  struct header h = {&grid, 0, 0};
  put_facts(moment, &h);
  put_view(moment, &h);
  put_table(moment, &h, rows);
  for (unsigned i = 0; i < grid.rows; i++) {
    const char *text = grid.text[i] != NULL ? grid.text[i] : "";
    size_t len = strlen(text);
    while (len > 0 && text[len - 1] == ' ') len--;
    if (grid.text[i] != NULL) {
      cs_put_plain(out, text, len);
      cs_print(out, "\n");
    }
  }
  cs_print(out, "\n");
  cs_grid_free(&grid);
}
