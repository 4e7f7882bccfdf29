// SPDX-License-Identifier: MIT
// Invariant: nothing is done to a process before it is known to be one that can be recorded. One
// thread. Signal-safe: no.
#include "cli/start.h"

#include <stdlib.h>
#include <sys/resource.h>

#include "cli/process_name.h"
#include "process/attach.h"
#include "process/label_hook.h"
#include "process/launch.h"
#include "process/proc.h"
#include "session/attach_agent.h"
#include "session/hand_over.h"
#include "util/say.h"

bool cs_start_prepare(struct cs_start *s, struct cs_error *err) {
  const struct cs_agent_options *o = s->options;
  pid_t pid = o->pid;
  if (pid != 0 &&
      (!cs_diag_find(pid, err) || (o->ask.inlined && !cs_attach_check_inlined(pid, err)) ||
       !cs_session_attach(s->session, pid, err)))
    return false;
  s->agent = cs_find_agent(err);
  if (s->agent == NULL) return false;
  if (o->ask.labels && (s->hook = cs_label_hook_find(s->agent, err)) == NULL) return false;
  free(s->program);
  s->program = pid != 0 ? cs_proc_command_line(pid) : cs_join_words(o->program);
  return s->program != NULL || cs_error_set(err, "out of memory");
}

// The files that the process loads are there for as long as this takes.
static bool load(struct cs_start *s, struct cs_error *err) {
  pid_t pid = s->options->pid;
  struct cs_handed handed;
  bool good = cs_hand_over(pid, s->agent, s->hook, s->session, &handed, err) &&
              cs_attach_agent(s->session, handed.agent, &s->options->ask, err);
  if (good && handed.hook != NULL) s->other_hook = cs_label_hook_other(pid, handed.hook);
  good = good && (handed.hook == NULL || cs_label_hook_call(pid, handed.hook, err));
  cs_handed_free(&handed);
  return good;
}

// How much the program needs is not known, so it is started nevertheless.
static void warn_of_limit(const struct cs_consumer_opts *ask) {
  const struct {
    int which;
    const char *words;
    uint64_t needed;
  } limits[] = {
      {RLIMIT_AS, "address space (ulimit -v)", cs_attach_address_space(ask->capacity, ask->modes)},
      {RLIMIT_DATA, "private memory (ulimit -d)", cs_attach_private_memory(ask->modes)}};
  for (size_t i = 0; i < CS_COUNT(limits); i++) {
    struct rlimit limit;
    if (getrlimit(limits[i].which, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) continue;
    cs_say(
        "the program has %llu MiB of %s, of which the recording takes up to %llu: if it runs out "
        "of memory, raise the limit",
        (unsigned long long)limit.rlim_cur >> 20, limits[i].words,
        (unsigned long long)limits[i].needed >> 20);
  }
}

bool cs_start_agent(struct cs_start *s, int *exit_code, struct cs_error *err) {
  const struct cs_agent_options *o = s->options;
  struct cs_session *session = s->session;
  *exit_code = CS_EXIT_FAILURE;
  if (o->pid != 0) return load(s, err);
  warn_of_limit(&o->ask);
  if (!cs_consumer_create(&session->consumer, &o->ask, err)) return false;
  if (o->ask.inlined && setenv(CS_RICH_DEBUG_INFO, "1", 1) != 0)
    return cs_error_set(err, "out of memory");
  if (!cs_session_expect_child(session, err)) return false;
  session->child = cs_launch(o->program, s->agent, s->hook, session->consumer.path,
                             &session->old_mask, exit_code, err);
  if (session->child == 0 && *exit_code == CS_EXIT_NOT_FOUND)
    cs_explain_missing(o->program[0], err);
  return session->child != 0;
}

void cs_start_free(struct cs_start *s) {
  free(s->agent);
  free(s->hook);
  free(s->other_hook);
  free(s->program);
}
