// SPDX-License-Identifier: MIT
// `clrsnap top`: the model's window, sums, order and filter; and the screens, character by
// character.
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "top/top.h"

#define SECOND 1000000000ull

// Two threads; stacks "main work", "main work [libc.so]", "main work main" (recursion), "main
// idle".
struct fixture {
  struct cs_tree tree;
  struct cs_top top;
  uint32_t work, libc, again, idle, other;  // leaves
};
enum { MAIN, WORK, LIBC, IDLE };

static uint32_t push(struct fixture *f, uint32_t parent, uint32_t frame) {
  return cs_tree_child(&f->tree, parent, frame);
}

static void add(struct fixture *f, uint64_t second, uint32_t leaf, uint64_t weight) {
  f->tree.nodes[leaf].weight += weight;
  cs_top_add(&f->top, second * SECOND, leaf, weight);
}

static int set_up(void **state) {
  struct fixture *f = cs_allocate(sizeof *f);
  struct cs_profile *methods = &f->top.methods;
  cs_tree_init(&f->tree);
  cs_top_init(&f->top, &f->tree, 10 * SECOND);
  cs_top_add_frame(&f->top, cs_profile_frame(methods, "App.Main", "app.dll", CS_KIND_USER));
  cs_top_add_frame(&f->top, CS_NO_TEXT);  // WORK, which is named later
  cs_top_add_frame(&f->top, cs_profile_frame(methods, "memcpy", "libc.so.6", CS_KIND_NATIVE));
  cs_top_add_frame(&f->top, cs_profile_frame(methods, "App.Idle", "app.dll", CS_KIND_USER));
  uint32_t main = push(f, push(f, 0, 0), MAIN);
  f->work = push(f, main, WORK);
  f->libc = push(f, f->work, LIBC);
  f->again = push(f, f->work, MAIN);
  f->idle = push(f, main, IDLE);
  f->other = push(f, push(f, 0, 1), WORK);
  cs_top_set_frame(&f->top, WORK, cs_profile_frame(methods, "App.Work", "app.dll", CS_KIND_USER));
  *state = f;
  return 0;
}

static int tear_down(void **state) {
  struct fixture *f = *state;
  cs_top_free(&f->top);
  cs_tree_free(&f->tree);
  free(f);
  return 0;
}

// Compares the table, written as one line: "NAME self total, ..." in percent.
static void assert_methods(const struct fixture *f, const struct cs_top_view *view,
                           const char *want) {
  char got[512] = "";
  size_t count;
  struct cs_top_method *rows = cs_top_methods(&f->top, view, &count);
  for (size_t i = 0; i < count; i++) {
    uint32_t name = f->top.methods.frames[rows[i].frame].name;
    (void)snprintf(got + strlen(got), sizeof got - strlen(got), "%s%s %.0f %.0f", i > 0 ? ", " : "",
                   cs_strings_get(&f->top.methods.strings, name, NULL), 100 * rows[i].self,
                   100 * rows[i].total);
  }
  assert_string_equal(got, want);
  free(rows);
}

static void fill(struct fixture *f) {
  add(f, 1, f->work, 40);
  add(f, 1, f->libc, 30);
  add(f, 1, f->again, 20);
  add(f, 1, f->idle, 10);
}

static void sums_and_order(void **state) {
  struct fixture *f = *state;
  struct cs_top_view view = {.native = true};
  fill(f);
  // App.Main is twice in one stack, but is counted once.
  assert_methods(f, &view, "App.Work 40 90, memcpy 30 30, App.Main 20 100, App.Idle 10 10");
  view.sort = CS_TOP_BY_TOTAL;
  assert_methods(f, &view, "App.Main 20 100, App.Work 40 90, memcpy 30 30, App.Idle 10 10");
  view.sort = CS_TOP_BY_NAME;
  assert_methods(f, &view, "App.Idle 10 10, App.Main 20 100, App.Work 40 90, memcpy 30 30");
}

// "main [runtime] [GC] [runtime] memcpy", where only the third frame has a class of its own, and a
// thread with a class.
static void frames_of_the_runtime_have_classes(void **state) {
  struct fixture *f = *state;
  enum { LIB = IDLE + 1, GC, LEAF, CLASS = 3, OF_THREAD = 4 };
  static const uint8_t of_threads[] = {0, 0, OF_THREAD};
  const struct cs_top_part managed = {0}, native = {.native = true};
  const struct cs_top_part runtime = {true, true, 0}, collects = {true, true, CLASS};
  struct cs_profile *methods = &f->top.methods;
  uint32_t lib = cs_profile_frame(methods, "[lib]", "lib.so", CS_KIND_RUNTIME);
  for (int i = LIB; i <= LEAF; i++) cs_top_add_frame(&f->top, lib);
  f->top.class_method[CLASS] = cs_profile_frame(methods, "[GC]", "lib.so", CS_KIND_RUNTIME);
  f->top.class_method[OF_THREAD] = cs_profile_frame(methods, "[JIT]", "lib.so", CS_KIND_RUNTIME);
  f->top.thread_class = of_threads;
  f->top.thread_count = 3;
  for (uint32_t i = MAIN; i <= IDLE; i++) cs_top_set_part(&f->top, i, i == LIBC ? native : managed);
  for (uint32_t i = LIB; i <= LEAF; i++) cs_top_set_part(&f->top, i, i == GC ? collects : runtime);
  uint32_t main = push(f, push(f, 0, 0), MAIN), first = push(f, main, LIB);
  uint32_t inner = push(f, push(f, first, GC), LEAF);
  add(f, 1, push(f, inner, LIBC), 10);                // memcpy, called by the collector
  add(f, 1, inner, 20);                               // its class is its caller's
  add(f, 1, first, 30);                               // no class
  add(f, 1, push(f, push(f, inner, WORK), LIB), 15);  // a managed method ends the class
  add(f, 1, push(f, push(f, 0, 2), LIB), 25);         // the thread's class
  assert_methods(
      f, &(struct cs_top_view){.native = true},
      "[lib] 45 45, [JIT] 25 25, [GC] 20 45, memcpy 10 10, App.Main 0 75, App.Work 0 15");
}

static void native_time_goes_to_the_caller(void **state) {
  struct fixture *f = *state;
  fill(f);
  assert_methods(f, &(struct cs_top_view){.native = false},
                 "App.Work 70 90, App.Main 20 100, App.Idle 10 10");
}

static void filters_by_name_and_module(void **state) {
  struct fixture *f = *state;
  fill(f);
  assert_methods(f, &(struct cs_top_view){.native = true, .filter = "WORK"}, "App.Work 40 90");
  assert_methods(f, &(struct cs_top_view){.native = true, .filter = "libc"}, "memcpy 30 30");
  assert_methods(f, &(struct cs_top_view){.native = true, .filter = "nothing"}, "");
}

static void the_window_slides(void **state) {
  struct fixture *f = *state;
  struct cs_top_view view = {.native = true}, whole = {.native = true, .whole = true};
  fill(f);
  add(f, 6, f->idle, 100);
  cs_top_expire(&f->top, 10 * SECOND);
  assert_methods(f, &view, "App.Idle 55 55, App.Work 20 45, memcpy 15 15, App.Main 10 100");
  cs_top_expire(&f->top, 11 * SECOND);
  assert_methods(f, &view, "App.Idle 100 100, App.Main 0 100");
  assert_methods(f, &whole, "App.Idle 55 55, App.Work 20 45, memcpy 15 15, App.Main 10 100");
  cs_top_expire(&f->top, 16 * SECOND);
  assert_methods(f, &view, "");
}

// The queue is a ring that grows while its first item is not its lowest. Samples of one leaf at one
// time are one item; samples at different times are not.
static void the_queue_grows_and_merges(void **state) {
  struct fixture *f = *state;
  struct cs_top_view view = {.native = true};
  for (uint32_t i = 0; i < 1000; i++) add(f, 1, push(f, f->work, 100 + i), 1);
  cs_top_expire(&f->top, 11 * SECOND);
  assert_int_equal(f->top.queue_count, 0);
  for (uint32_t i = 0; i < 5000; i++) {
    add(f, 12, push(f, f->work, 100 + i), 1);
    add(f, 12, f->idle, 1);
  }
  for (uint32_t i = 0; i < 5000; i++) {
    add(f, 13, f->idle, 1);
    add(f, 13, f->libc, 1);
  }
  assert_int_equal(f->top.queue_count, 5000 + 1 + 2);
  assert_methods(f, &view, "App.Idle 50 50, App.Work 25 50, memcpy 25 25, App.Main 0 100");
  cs_top_expire(&f->top, 22 * SECOND);
  assert_methods(f, &view, "App.Idle 50 50, memcpy 50 50, App.Main 0 100, App.Work 0 50");
  cs_top_expire(&f->top, 23 * SECOND);
  assert_methods(f, &view, "");
}

// An inlined method's time is its own, and is part of the totals of the methods that it is inlined
// into.
static void inlined_methods_are_their_own(void **state) {
  struct fixture *f = *state;
  const uint32_t chain[] = {0, 2, 1};
  struct cs_top_view view = {.native = true};
  fill(f);
  cs_top_set_inlined(&f->top, LIBC, chain, 3);
  cs_top_set_inlined(&f->top, IDLE, chain, 1);
  assert_string_equal(cs_strings_get(&f->top.methods.strings, f->top.methods.frames[1].name, NULL),
                      "memcpy");
  // libc's 30 now belong to memcpy, which is inlined into Idle, which is inlined into Main. Idle's
  // 10 now belong to Main.
  assert_methods(f, &view, "App.Work 40 90, App.Main 30 100, memcpy 30 30, App.Idle 0 30");
}

// Idle awaits Work, which libc has resumed: neither libc nor anything else below Idle has called
// Work.
static void who_awaits_is_the_caller(void **state) {
  struct fixture *f = *state;
  struct cs_top_view view = {.native = true};
  uint32_t main = push(f, push(f, 0, 0), MAIN);
  uint32_t last = push(f, main, IDLE), first = push(f, last, IDLE);
  uint32_t body = push(f, push(f, push(f, first, LIBC), LIBC), WORK);
  add(f, 1, body, 60);
  add(f, 1, push(f, main, LIBC), 40);  // it has resumed nothing
  assert_methods(f, &view, "App.Work 60 60, memcpy 40 100, App.Main 0 100, App.Idle 0 60");
  cs_top_set_async(&f->top, IDLE, true, false);
  cs_top_set_async(&f->top, LIBC, false, true);
  assert_methods(f, &view, "App.Work 60 60, memcpy 40 40, App.Idle 0 60, App.Main 0 40");
}

static void a_frozen_table_stays(void **state) {
  struct fixture *f = *state;
  struct cs_top_view view = {.native = true};
  fill(f);
  cs_top_freeze(&f->top, true);
  add(f, 2, f->idle, 1000);
  cs_top_expire(&f->top, 30 * SECOND);
  assert_methods(f, &view, "App.Work 40 90, memcpy 30 30, App.Main 20 100, App.Idle 10 10");
  view.whole = true;
  assert_methods(f, &view, "App.Work 40 90, memcpy 30 30, App.Main 20 100, App.Idle 10 10");
  cs_top_freeze(&f->top, false);
  assert_methods(f, &view, "App.Idle 92 92, App.Work 4 8, memcpy 3 3, App.Main 2 100");
}

static const struct cs_top_task tasks[] = {
    {100, "app", 'S', 0, 0.25}, {101, "dotnet-ef", 'S', 0, 0.75}, {102, ".NET Sig", 'S', 0, 0}};
static const struct cs_top_known known[] = {{100, "Main"}, {101, ""}};

static void threads(void **state) {
  struct fixture *f = *state;
  struct cs_top_view view = {.native = true};
  size_t count;
  fill(f);
  add(f, 1, f->other, 300);
  struct cs_top_thread *rows = cs_top_threads(&f->top, &view, tasks, 3, known, 2, &count);
  assert_int_equal(count, 3);
  assert_int_equal(rows[0].tid, 101);
  assert_string_equal(rows[0].name, "dotnet-ef");  // no name of its own: the kernel's
  assert_int_equal(100 * rows[0].share, 75);
  assert_int_equal(rows[1].tid, 100);
  assert_string_equal(rows[1].name, "Main");
  assert_int_equal(100 * rows[1].share, 25);
  uint32_t hottest = f->top.methods.frames[rows[1].hottest].name;
  assert_string_equal(cs_strings_get(&f->top.methods.strings, hottest, NULL), "App.Work");
  assert_int_equal(rows[2].hottest, CS_NO_TEXT);
  free(rows);
  view.sort = CS_TOP_BY_NAME;
  (void)strcpy(view.filter, "d");
  rows = cs_top_threads(&f->top, &view, tasks, 3, known, 2, &count);
  assert_int_equal(count, 1);
  free(rows);
}

// ---- Screens ----

static struct cs_top_moment moment_of(const struct fixture *f) {
  struct cs_top_moment m = {.top = &f->top, .view.native = true};
  m.facts = (struct cs_top_facts){.program = "dotnet app.dll",
                                  .runtime = "10.0.12",
                                  .mode = "cpu",
                                  .pid = 4711,
                                  .hz = 499,
                                  .elapsed_s = 12.4,
                                  .window_s = 10,
                                  .cpu = 1.25,
                                  .rss_bytes = 64 << 20,
                                  .samples = 5000,
                                  .samples_per_s = 480,
                                  .complete = 0.999};
  m.methods = cs_top_methods(&f->top, &m.view, &m.method_count);
  m.threads = cs_top_threads(&f->top, &m.view, tasks, 3, known, 2, &m.thread_count);
  return m;
}

static void assert_screen(const struct cs_top_moment *m, unsigned rows, unsigned columns,
                          const char *want) {
  struct cs_grid grid;
  char got[4096] = "";
  cs_grid_init(&grid, rows, columns);
  cs_top_render(m, &grid);
  for (unsigned i = 0; i < rows; i++) {
    const char *text = grid.text[i] != NULL ? grid.text[i] : "";
    assert_true(strlen(text) <= columns);
    (void)snprintf(got + strlen(got), sizeof got - strlen(got), "%s|\n", text);
  }
  assert_string_equal(got, want);
  cs_grid_free(&grid);
}

static void free_moment(struct cs_top_moment *m) {
  free(m->methods);
  free(m->threads);
}

static void screen_of_80(void **state) {
  struct fixture *f = *state;
  fill(f);
  struct cs_top_moment m = moment_of(f);
  assert_screen(
      &m, 10, 80,
      "clrsnap top: 4711 dotnet app.dll|\n"
      ".NET 10.0.12, cpu 499 Hz, 12 s; 5000 samples, 480/s, lost 0, complete 99.9 %|\n"
      "CPU 125.0 %, memory 64.0 MiB; allocations and GC: not yet known|\n"
      "methods, last 10 s, by self, % of CPU time|\n"
      " self %  total %  method|\n"
      "   40.0     90.0  App.Work|\n"
      "   30.0     30.0  memcpy|\n"
      "   20.0    100.0  App.Main|\n"
      "   10.0     10.0  App.Idle|\n"
      "q quit  ? help  tab threads  s,t,n sort  w span  N native  / filter  space stop|\n");
  free_moment(&m);
}

// The module is shown where there is room, and takes none from the names.
static void wide_screens(void **state) {
  struct fixture *f = *state;
  char name[81] = "";
  memset(name, 'x', 80);
  cs_top_set_frame(&f->top, WORK,
                   cs_profile_frame(&f->top.methods, name, "A.Long.Module.Name.dll", CS_KIND_USER));
  add(f, 1, f->other, 1);
  struct cs_top_moment m = moment_of(f);
  char want[256];
  (void)snprintf(want, sizeof want, "  100.0    100.0  ..%.58s  ..ng.Module.Name.dll", name);
  struct cs_grid grid;
  cs_grid_init(&grid, 8, 100);
  cs_top_render(&m, &grid);
  assert_string_equal(grid.text[5], want);
  cs_grid_free(&grid);
  (void)snprintf(want, sizeof want, "  100.0    100.0  %s  A.Long.Module.Name.dll", name);
  cs_grid_init(&grid, 8, 200);
  cs_top_render(&m, &grid);
  assert_string_equal(grid.text[5], want);
  cs_grid_free(&grid);
  free_moment(&m);
}

static void screen_of_threads(void **state) {
  struct fixture *f = *state;
  fill(f);
  struct cs_top_moment m = moment_of(f);
  m.view.threads = m.view.whole = m.frozen = true;
  m.typing = "foo";
  m.facts.counters = (struct cs_counters){.known = true,
                                          .alloc_bytes_per_s = 1536,
                                          .heap_bytes = 12e6,
                                          .gc_pause = 0.0125,
                                          .gc_counts = {5, 2, 1}};
  assert_screen(&m, 10, 76,
                "clrsnap top: 4711 dotnet app.dll|\n"
                ".NET 10.0.12, cpu 499 Hz, 12 s; 5000 samples, 480/s, lost 0, complete 99.9 %|\n"
                "CPU 125.0 %, memory 64.0 MiB, heap 11.4 MiB, alloc 1.5 KiB/s, GC 1.2 % (5+2+|\n"
                "FROZEN: threads, since the start, by CPU, % of CPU time|\n"
                "    tid   CPU %    share %  thread     hottest method|\n"
                "    101    75.0        0.0  dotnet-ef  |\n"
                "    100    25.0      100.0  Main       App.Work|\n"
                "    102     0.0        0.0  .NET Sig   |\n"
                "|\n"
                "/foo_|\n");
  // A method that does not fit keeps its end.
  struct cs_grid grid;
  bool found = false;
  cs_grid_init(&grid, 12, 46);
  cs_top_render(&m, &grid);
  for (unsigned i = 0; i < grid.rows; i++)
    found = found || strcmp(grid.text[i], "    100    25.0      100.0  Main       ...Work") == 0;
  assert_true(found);
  cs_grid_free(&grid);
  free_moment(&m);
}

// A text that does not fit keeps its end, and no line is ever wider than the screen.
static void narrow_screens(void **state) {
  struct fixture *f = *state;
  fill(f);
  struct cs_top_moment m = moment_of(f);
  m.scroll = 3;
  (void)strcpy(m.view.filter, "App");
  struct cs_grid wide;
  cs_grid_init(&wide, 10, 80);
  cs_top_render(&m, &wide);
  assert_string_equal(
      wide.text[3], "methods, last 10 s, by self, % of CPU time, with \"App\" (not inlined ones)");
  m.facts.inlined = true;
  cs_top_render(&m, &wide);
  assert_string_equal(wide.text[3], "methods, last 10 s, by self, % of CPU time, with \"App\"");
  cs_grid_free(&wide);
  m.view.native = false;
  (void)strcpy(m.view.filter, "x");
  assert_screen(&m, 7, 24,
                "clrsnap top: 4711 dotnet|\n"
                ".NET 10.0.12, cpu 499 Hz|\n"
                "CPU 125.0 %, memory 64.0|\n"
                "methods, last 10 s, by s|\n"
                " self %  total %  method|\n"
                "   10.0     10.0  ..Idle|\n"
                "q quit  ? help|\n");
  m.help = true;
  for (unsigned rows = 0; rows < 30; rows++) {
    for (unsigned columns = 1; columns < 100; columns += 7) {
      struct cs_grid grid;
      cs_grid_init(&grid, rows, columns);
      m.help = !m.help;
      m.view.threads = !m.view.threads;
      cs_top_render(&m, &grid);
      for (unsigned i = 0; i < rows; i++)
        assert_true(grid.text[i] == NULL || strlen(grid.text[i]) <= columns);
      cs_grid_free(&grid);
    }
  }
  free_moment(&m);
}

static bool is_on(const struct cs_grid *grid, const char *text) {
  for (unsigned i = 0; i < grid->rows; i++)
    if (grid->text[i] != NULL && strstr(grid->text[i], text) != NULL) return true;
  return false;
}

// Nothing of the help is cut on a usual screen, and on one of 60 columns; the last word is there.
static void help_fits_a_usual_screen(void **state) {
  static const unsigned columns[] = {60, 80, 120, 200};
  struct fixture *f = *state;
  fill(f);
  struct cs_top_moment m = moment_of(f);
  m.help = true;
  for (size_t i = 0; i < CS_COUNT(columns); i++) {
    struct cs_grid grid;
    cs_grid_init(&grid, 24, columns[i]);
    cs_top_render(&m, &grid);
    assert_true(is_on(&grid, "managed callers") && is_on(&grid, "processor is free"));
    cs_grid_free(&grid);
  }
  free_moment(&m);
}

// What does not fit a line is on the next one, whole.
static void facts_are_wrapped(void **state) {
  struct fixture *f = *state;
  fill(f);
  struct cs_top_moment m = moment_of(f);
  m.facts.counters = (struct cs_counters){
      .known = true, .alloc_bytes_per_s = 1536, .heap_bytes = 12e6, .gc_pause = 0.0125};
  m.facts.pool = (struct cs_top_pool){.known = true,
                                      .threads = 40,
                                      .asleep = 37,
                                      .queued = 212,
                                      .completed_per_s = 2,
                                      .starved = true};
  assert_screen(&m, 33, 60,
                "clrsnap top: 4711 dotnet app.dll|\n"
                ".NET 10.0.12, cpu 499 Hz, 12 s; 5000 samples, 480/s, lost 0,|\n"
                "complete 99.9 %|\n"
                "CPU 125.0 %, memory 64.0 MiB, heap 11.4 MiB,|\n"
                "alloc 1.5 KiB/s, GC 1.2 % (0+0+0)|\n"
                "pool 40 threads, 37 of them asleep; 212 items queued,|\n"
                "2 completed/s|\n"
                "the pool is starved: 37 of 40 workers wait;|\n"
                "212 items queued; where they wait is being determined|\n"
                "methods, last 10 s, by self, % of CPU time|\n"
                " self %  total %  method|\n"
                "   40.0     90.0  App.Work|\n"
                "   30.0     30.0  memcpy|\n"
                "   20.0    100.0  App.Main|\n"
                "   10.0     10.0  App.Idle|\n"
                "|\n|\n|\n|\n|\n|\n|\n|\n|\n|\n|\n|\n|\n|\n|\n|\n|\n"
                "q quit  ? help  tab threads  s,t,n sort  w span  N native|\n");
  m.facts.pool.cause = (struct cs_top_cause){.waiting = 35,
                                             .workers = 39,
                                             .queued = 200,
                                             .age_s = 3,
                                             .place = "Task.Wait at A.B (C.cs:1)"};
  struct cs_grid grid;
  cs_grid_init(&grid, 33, 60);
  cs_top_render(&m, &grid);
  assert_true(is_on(&grid, "the pool is starved: 35 of 39 workers wait in Task.Wait at"));
  assert_true(is_on(&grid, "A.B (C.cs:1); 200 items queued (3 s ago)"));
  cs_grid_free(&grid);
  m.facts.pool.cause = (struct cs_top_cause){.why = "it may not be read"};
  cs_grid_init(&grid, 33, 200);
  cs_top_render(&m, &grid);
  assert_true(is_on(&grid, "212 items queued; where they wait is not known: it may not be read"));
  cs_grid_free(&grid);
  free_moment(&m);
}

static void a_pool_is_starved_or_not(void **state) {
  (void)state;
  struct cs_top_task workers[4] = {{.name = ".NET TP Worker", .state = 'S'},
                                   {.name = ".NET TP Worker", .state = 'S'},
                                   {.name = ".NET TP Worker", .state = 'R'},
                                   {.name = ".NET TP Gate", .state = 'S'}};
  struct cs_top_proc proc = {.tasks = workers, .count = 4};
  struct cs_counters late = {
      .pool_known = true, .pool_threads = 4, .pool_queued = 9, .pool_late_s = 2};
  struct cs_top_pool pool;
  cs_top_pool_read(&pool, &proc, &late, 2);
  // The runtime counts a worker that the program has renamed.
  assert_true(!pool.starved && pool.threads == 4 && pool.asleep == 2 && pool.queued == 9);
  late.pool_threads = 1;  // since then two have started
  cs_top_pool_read(&pool, &proc, &late, 2);
  assert_true(pool.starved && pool.threads == 2 && pool.asleep == 2);
  late.pool_threads = 3;
  cs_top_pool_read(&pool, &proc, &late, 2);
  assert_true(pool.starved);
  cs_top_pool_read(&pool, &proc, &late, 1);  // it uses all processors
  assert_false(pool.starved);
  late.pool_late_s = 1;  // items have waited for a moment
  cs_top_pool_read(&pool, &proc, &late, 2);
  assert_false(pool.starved);
  late.pool_late_s = 2;
  workers[0].state = workers[1].state = 'R';  // full load
  cs_top_pool_read(&pool, &proc, &late, 8);
  assert_false(pool.starved);
  workers[0].state = workers[1].state = 'S';
  late.pool_known = false;
  cs_top_pool_read(&pool, &proc, &late, 2);
  assert_false(pool.starved);
}

static void strange_names_do_no_harm(void **state) {
  struct fixture *f = *state;
  cs_top_set_frame(&f->top, WORK,
                   cs_profile_frame(&f->top.methods, "A\x1b[2J\n\xff%s%n", "m\t", CS_KIND_USER));
  add(f, 1, f->other, 1);
  struct cs_top_moment m = moment_of(f);
  struct cs_grid grid;
  cs_grid_init(&grid, 8, 120);
  cs_top_render(&m, &grid);
  assert_string_equal(grid.text[5], "  100.0    100.0  A\\x1b[2J\\x0a\\xff%s%n  m\\x09");
  cs_grid_free(&grid);
  free_moment(&m);
}

int main(void) {
#define TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
  const struct CMUnitTest tests[] = {
      TEST(sums_and_order),
      TEST(native_time_goes_to_the_caller),
      TEST(frames_of_the_runtime_have_classes),
      TEST(filters_by_name_and_module),
      TEST(the_window_slides),
      TEST(the_queue_grows_and_merges),
      TEST(inlined_methods_are_their_own),
      TEST(who_awaits_is_the_caller),
      TEST(a_frozen_table_stays),
      TEST(threads),
      TEST(screen_of_80),
      TEST(wide_screens),
      TEST(screen_of_threads),
      TEST(narrow_screens),
      TEST(help_fits_a_usual_screen),
      TEST(facts_are_wrapped),
      TEST(a_pool_is_starved_or_not),
      TEST(strange_names_do_no_harm),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
