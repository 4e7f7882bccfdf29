// SPDX-License-Identifier: MIT
// `clrsnap top`: a recording that is shown while it is made, and of which only sums are kept. A
// program that it has started is asked to end with it. Invariant: standard output gets the tables
// and nothing else; what the program writes goes to standard error or, with a screen, to a file.
// One thread (and that of counters.c); where the workers of a starved pool wait is looked up by a
// process of its own (top_workers.c). Signal-safe: no.
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/start.h"
#include "cli/top_workers.h"
#include "cli/verbs.h"
#include "naming/naming.h"
#include "naming/resolve.h"
#include "naming/runtime_part.h"
#include "process/proc.h"
#include "util/say.h"

struct watch {
  const struct cs_top_options *options;
  struct cs_session session;
  struct cs_start start;
  struct cs_top top;
  struct cs_top_proc proc;
  struct cs_top_moment moment;
  struct cs_counter_reader *counters;
  struct cs_top_workers workers;
  uint32_t *unnamed;  // frames whose names have not arrived yet
  size_t unnamed_count, unnamed_capacity;
  struct cs_top_known *known;
  size_t known_capacity;
  uint8_t *thread_class;
  size_t thread_class_capacity;
  bool screen, quit, failed;
  uint32_t tables;
  uint64_t next_ns;  // when the next table is due; 0: the agent has not begun
  uint64_t last_ns, last_taken;
  char output[4096];  // where the program's output goes while there is a screen
};

// ---- From the recording to the model ----

// Returns whether everything that names the frame has arrived.
static bool name_frame(struct watch *w, size_t frame) {
  struct cs_recording *rec = &w->session.recording;
  struct cs_resolved shown;
  enum cs_key_kind kind = cs_key_kind(rec->frames[frame]);
  if (kind == CS_KEY_NATIVE || kind == CS_KEY_KERNEL) cs_name_native_frame(rec, rec->frames[frame]);
  bool known = cs_resolve_frame(rec, frame, &w->top.methods, &shown);
  if (known)
    cs_top_set_inlined(&w->top, frame, shown.methods, shown.count);
  else
    cs_top_set_frame(&w->top, frame, shown.methods[shown.count - 1]);
  cs_top_set_async(&w->top, frame, shown.awaits, shown.resumes);
  struct cs_runtime_frame part = cs_runtime_frame_of(rec, rec->frames[frame]);
  cs_top_set_part(&w->top, frame,
                  (struct cs_top_part){part.native, part.runtime, (uint8_t)part.class});
  return known;
}

// A function's record may arrive after its first sample.
static void name_frames(struct watch *w) {
  size_t left = 0;
  for (size_t i = 0; i < w->unnamed_count; i++)
    if (!name_frame(w, w->unnamed[i])) w->unnamed[left++] = w->unnamed[i];
  w->unnamed_count = left;
}

static void add_classes(struct cs_top *top) {
  _Static_assert(CS_RUNTIME_CLASS_COUNT <= CS_TOP_CLASSES, "a place for each");
  for (int i = 1; i < CS_RUNTIME_CLASS_COUNT; i++)
    top->class_method[i] =
        cs_profile_frame(&top->methods, cs_runtime_class_text((enum cs_runtime_class)i),
                         i == CS_RUNTIME_JIT ? "libclrjit.so" : "libcoreclr.so", CS_KIND_RUNTIME);
}

static void feed(struct watch *w, uint64_t now) {
  const struct cs_recording *rec = &w->session.recording;
  while (w->top.frame_count < rec->frame_count) {
    CS_APPEND(w->unnamed, w->unnamed_count, w->unnamed_capacity, (uint32_t)w->top.frame_count);
    cs_top_add_frame(&w->top, CS_NO_TEXT);
  }
  for (size_t i = 0; i < rec->sample_count; i++)
    cs_top_add(&w->top, now, rec->samples[i].leaf, rec->samples[i].weight);
}

// ---- A moment ----

static uint64_t lost(const struct cs_session *s) {
  return cs_consumer_lost(&s->consumer) + s->consumer.broken_records + s->recording.broken +
         s->recording.full;
}

static void take_facts(struct watch *w, uint64_t now) {
  const struct cs_session *s = &w->session;
  const struct cs_recording *rec = &s->recording;
  struct cs_top_facts *f = &w->moment.facts;
  double span = w->last_ns > 0 ? (double)(now - w->last_ns) / 1e9 : 0;
  // After an attach, the PID is the one in our namespace, not the process's own.
  int agent = w->options->agent.pid != 0 ? (int)w->options->agent.pid
                                         : (int)cs_consumer_agent_pid(&s->consumer);
  f->pid = s->began_ns > 0 ? agent : 0;
  f->program = w->start.program;
  f->runtime = rec->runtime;
  f->mode = w->options->mode == CS_WIRE_MODE_WALL ? "wall" : "cpu";
  f->hz = w->options->agent.ask.hz;
  f->inlined = w->options->agent.ask.inlined;
  f->window_s = w->options->window_s;
  f->interval_s = span;
  f->elapsed_s = s->began_ns > 0 ? (double)(now - s->began_ns) / 1e9 : 0;
  f->samples = rec->taken;
  f->samples_per_s = span > 0 ? (double)(rec->taken - w->last_taken) / span : -1;
  f->lost = lost(s);
  f->complete = rec->taken > 0
                    ? (double)rec->sums[w->options->mode].stops[rec->complete] / (double)rec->taken
                    : -1;
  if (f->pid != 0) (void)cs_top_proc_read(&w->proc, f->pid, now);
  if (w->options->no_counters)
    (void)snprintf(f->counters.why, sizeof f->counters.why, "not asked for (--no-counters)");
  else if (f->pid != 0 && w->counters == NULL)
    w->counters = cs_counters_open(f->pid);
  if (w->counters != NULL) cs_counters_get(w->counters, &f->counters);
  cpu_set_t set;
  unsigned processors =
      sched_getaffinity(f->pid, sizeof set, &set) == 0 ? (unsigned)CPU_COUNT(&set) : 0;
  cs_top_pool_read(&f->pool, &w->proc, &f->counters, processors);
  cs_top_workers_see(&w->workers, f->pid, now, &f->pool);
  f->cpu = w->proc.at_ns > 0 ? w->proc.cpu : -1;
  f->rss_bytes = w->proc.rss_bytes;
  w->last_ns = now;
  w->last_taken = rec->taken;
}

// The recording owns the names; they are valid until its next text is added.
static size_t list_known(struct watch *w) {
  const struct cs_recording *rec = &w->session.recording;
  CS_RESERVE(w->known, rec->root_count, w->known_capacity);
  CS_RESERVE(w->thread_class, rec->root_count, w->thread_class_capacity);
  for (size_t i = 0; i < rec->root_count; i++) {
    const struct cs_rec_thread *thread = &rec->threads[rec->roots[i].thread];
    w->known[i] = (struct cs_top_known){thread->tid, cs_recording_get(rec, thread->name)};
    w->thread_class[i] = (uint8_t)cs_runtime_class_by(CS_SIGN_THREAD, w->known[i].name);
  }
  w->top.thread_class = w->thread_class;
  w->top.thread_count = rec->root_count;
  return rec->root_count;
}

static void free_tables(struct cs_top_moment *m) {
  free(m->methods);
  free(m->threads);
  m->methods = NULL;
  m->threads = NULL;
}

static void make_tables(struct watch *w) {
  struct cs_top_moment *m = &w->moment;
  name_frames(w);
  size_t known = list_known(w);  // after the frames were named, which may move all texts
  free_tables(m);
  m->methods = cs_top_methods(&w->top, &m->view, &m->method_count);
  m->threads = cs_top_threads(&w->top, &m->view, w->proc.tasks, w->proc.count, w->known, known,
                              &m->thread_count);
}

static void print_table(struct watch *w) {
  if (w->options->json)
    cs_top_write_json(&w->moment, w->options->rows, stdout);
  else
    cs_top_write_text(&w->moment, w->options->rows, stdout);
  w->tables++;
  if (fflush(stdout) == 0 && !ferror(stdout)) return;
  // A reader that has had enough closes the pipe.
  if (errno != EPIPE) cs_say("the table could not be written: %m");
  w->failed = errno != EPIPE;
  w->quit = true;
}

static void refresh(struct watch *w, uint64_t now) {
  if (!w->moment.frozen) {
    cs_top_expire(&w->top, now);
    take_facts(w, now);
  }
  make_tables(w);
  if (w->screen)
    cs_screen_draw(&w->moment);
  else
    print_table(w);
}

// ---- What the session calls ----

static bool is_due(struct watch *w, uint64_t now) {
  uint64_t interval = (uint64_t)(w->options->interval_s * 1e9);
  if (w->next_ns == 0) {
    // A screen shows something at once; a table covers an interval that has passed.
    if (w->session.began_ns == 0) return w->screen && w->last_ns == 0;
    take_facts(w, now);
    w->next_ns = now + (w->screen ? 200000000u : interval);
  }
  if (now < w->next_ns) return false;
  while (w->next_ns <= now) w->next_ns += interval;
  return true;
}

static void toggle_freeze(struct watch *w) {
  w->moment.frozen = !w->moment.frozen;
  cs_top_freeze(&w->top, w->moment.frozen);
}

static bool on_poll(void *context, uint64_t now) {
  struct watch *w = context;
  feed(w, now);
  enum cs_top_key key = w->screen ? cs_screen_keys(&w->moment) : CS_TOP_NOTHING;
  if (key == CS_TOP_QUIT) w->quit = true;
  if (key == CS_TOP_FREEZE) toggle_freeze(w);
  if (w->quit) return false;
  if (is_due(w, now)) {
    refresh(w, now);
  } else if (key != CS_TOP_NOTHING) {
    make_tables(w);
    cs_screen_draw(&w->moment);
  }
  if (w->options->count > 0 && !w->screen && w->tables >= w->options->count) w->quit = true;
  return !w->quit;
}

static void on_signal(void *context, int number) {
  struct watch *w = context;
  switch (number) {
    case SIGINT:
    case SIGTERM:
    case SIGHUP:
    case SIGQUIT:
      w->quit = true;
      break;
    case SIGWINCH:
      if (w->screen) cs_screen_resize();
      break;
    case SIGTSTP:
      if (w->screen)
        cs_screen_suspend();
      else
        (void)kill(getpid(), SIGSTOP);
      break;
    default:
      break;
  }
}

// ---- The program ----

// Redirects the input and output that the program inherits while it is started.
static bool divert(struct watch *w, int saved[3], struct cs_error *err) {
  int to = STDERR_FILENO, from = STDIN_FILENO;
  for (int i = 0; i < 3; i++) saved[i] = fcntl(i, F_DUPFD_CLOEXEC, 3);
  if (w->screen) {
    const char *temp = getenv("TMPDIR");
    (void)snprintf(w->output, sizeof w->output, "%s/clrsnap-top-XXXXXX",
                   temp != NULL && temp[0] != '\0' ? temp : "/tmp");
    to = mkostemp(w->output, O_CLOEXEC);
    from = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (to < 0 || from < 0) {
      w->output[0] = '\0';
      return cs_error_set(err, "cannot make a file for the program's output: %m");
    }
    (void)dup2(from, STDIN_FILENO);
    (void)dup2(to, STDERR_FILENO);
    (void)close(from);
  }
  (void)dup2(to, STDOUT_FILENO);
  if (w->screen) (void)close(to);
  return true;
}

static void restore(const int saved[3]) {
  for (int i = 0; i < 3; i++) {
    if (saved[i] < 0) continue;
    (void)dup2(saved[i], i);
    (void)close(saved[i]);
  }
}

static bool start_agent(struct watch *w, int *exit_code, struct cs_error *err) {
  int saved[3];
  if (w->options->agent.pid != 0) return cs_start_agent(&w->start, exit_code, err);
  bool good = divert(w, saved, err) && cs_start_agent(&w->start, exit_code, err);
  restore(saved);
  return good;
}

static void report_output(struct watch *w) {
  if (w->output[0] == '\0') return;
  FILE *file = fopen(w->output, "re");
  bool empty = file == NULL || fgetc(file) == EOF;
  if (file != NULL) (void)fclose(file);
  if (empty)
    (void)unlink(w->output);
  else
    cs_say("what the program has written is in %s", w->output);
}

// A program that was started for this ends with the command.
static int end_program(struct watch *w) {
  struct cs_session *s = &w->session;
  s->watcher = (struct cs_watcher){0};
  if (s->attached != 0) return 0;
  // If its agent has finished recording, the program is about to end by itself.
  bool ends = s->recording.ended || cs_consumer_agent_state(&s->consumer) == CS_WIRE_AGENT_DONE;
  if (ends && !w->quit) cs_session_wait(s);
  if (s->child_ended) return cs_session_exit_code(s);
  (void)kill(s->child, SIGTERM);
  (void)kill(s->child, SIGCONT);
  cs_session_wait(s);
  return 0;
}

// ---- The verb ----

static bool prepare(struct watch *w, struct cs_error *err) {
  const struct cs_top_options *o = w->options;
  struct cs_session *s = &w->session;
  if (!cs_start_prepare(&w->start, err)) return false;
  if (!cs_session_open(s, err)) return false;
  s->progress = false;
  s->recording.keep_samples = true;
  s->recording.lines = s->recording.inlined = o->agent.ask.inlined;  // inlining is known by place
  w->moment.view = o->view;
  w->moment.top = &w->top;
  w->screen = !o->json && !o->text && isatty(STDOUT_FILENO) == 1;
  cs_top_init(&w->top, &s->recording.tree, (uint64_t)(o->window_s * 1e9));
  add_classes(&w->top);
  return true;
}

static bool open_screen(struct watch *w, struct cs_error *err) {
  if (!w->screen) return true;
  int in = open("/dev/tty", O_RDONLY | O_CLOEXEC);
  int out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
  if (in < 0 || out < 0)
    return cs_error_set(err, "cannot read keys from /dev/tty (%m); --text wants none");
  return cs_screen_open(in, out, err);
}

// The agent ends before its process does.
static bool ends_now(int pid) {
  enum { NAPS = 100, NAP_US = 20000 };
  for (int i = 0; i < NAPS && !cs_proc_has_ended(pid); i++) (void)usleep(NAP_US);
  return cs_proc_has_ended(pid);
}

// Returns false if there was nothing to show, and the reason has been printed.
static bool conclude(struct watch *w) {
  char message[256];
  const struct cs_session *s = &w->session;
  if (cs_consumer_agent_state(&s->consumer) == CS_WIRE_AGENT_REFUSED) {
    cs_consumer_message(&s->consumer, message, sizeof message);
    cs_say("nothing to show: %s", message);
    return false;
  }
  int pid = (int)w->options->agent.pid;
  bool began = s->began_ns > 0 || s->recording.started;
  if (began && pid != 0 && !w->quit && ends_now(pid)) cs_say("process %d has ended", pid);
  if (began || (!s->child_ended && w->quit)) return true;
  if (pid == 0) pid = (int)cs_consumer_agent_pid(&s->consumer);  // it had loaded the agent
  if (pid != 0) {
    cs_say("nothing to show: process %d has ended before it began to record", pid);
    return false;
  }
  cs_say(
      "nothing to show: no .NET runtime in %s has loaded the agent; 'clrsnap help record' and "
      "clrsnap-record(1) say when that happens",
      w->options->agent.program[0]);
  return false;
}

static int run(struct watch *w) {
  struct cs_error err = {""};
  int exit_code = CS_EXIT_FAILURE;
  if (!prepare(w, &err) || !start_agent(w, &exit_code, &err)) {
    cs_say("%s", err.text);
    return exit_code;
  }
  w->session.watcher = (struct cs_watcher){w, on_poll, on_signal};
  bool opened = open_screen(w, &err);
  if (opened) cs_session_record(&w->session);
  // The rest of a program that has ended: what arrived since the last table.
  if (opened && !w->screen && !w->quit && w->session.began_ns > 0) refresh(w, cs_clock_now_ns());
  cs_screen_close();
  if (!opened) cs_say("%s", err.text);
  bool seen = opened && conclude(w);
  exit_code = end_program(w);
  report_output(w);
  return seen && !w->failed ? exit_code : CS_EXIT_FAILURE;
}

static void clean_up(struct watch *w) {
  cs_top_workers_end(&w->workers);
  if (w->counters != NULL) cs_counters_close(w->counters);
  free_tables(&w->moment);
  cs_top_free(&w->top);
  cs_top_proc_free(&w->proc);
  cs_session_close(&w->session);
  cs_start_free(&w->start);
  free(w->unnamed);
  free(w->known);
  free(w->thread_class);
}

int cs_run_top(void *options) {
  static struct watch w;  // the session's histogram is large for a stack
  w.options = options;
  w.start = (struct cs_start){.options = &w.options->agent, .session = &w.session};
  w.session.signals = -1;
  int exit_code = run(&w);
  clean_up(&w);
  return exit_code;
}
