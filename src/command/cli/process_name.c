// SPDX-License-Identifier: MIT
// Asks every .NET process for its main assembly, as `clrsnap ps` does. One thread. Signal-safe: no.
#include "cli/process_name.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "process/process.h"
#include "util/say.h"
#include "util/spelling.h"

enum { PATIENCE_S = 2 };  // for a stopped process, which would never respond

struct search {
  const char *name;
  bool list;  // says each that is found
  unsigned found;
  pid_t pid;
  struct cs_spelling spelling;
  char nearest[256];
};

static void consider(const struct cs_process *p, void *data) {
  struct search *s = data;
  if (p->assembly == NULL) return;
  cs_spelling_offer(&s->spelling, p->assembly, strlen(p->assembly));
  if (s->spelling.found == p->assembly) {  // which is freed
    (void)snprintf(s->nearest, sizeof s->nearest, "%s", p->assembly);
    s->spelling.found = s->nearest;
  }
  if (strcasecmp(p->assembly, s->name) != 0) return;
  s->found++;
  s->pid = p->pid;
  if (s->list) cs_say("%7d  %s", (int)p->pid, p->command != NULL ? p->command : "");
}

static bool search(struct search *s, struct cs_error *err) {
  s->spelling.word = s->name;
  unsigned patience = cs_diag_patience_s;
  cs_diag_patience_s = PATIENCE_S;
  bool good = cs_processes_visit(consider, s, err);
  cs_diag_patience_s = patience;
  return good;
}

bool cs_find_process(const char *name, pid_t *pid, struct cs_error *err) {
  struct search s = {.name = name};
  if (!search(&s, err)) return false;
  *pid = s.pid;
  if (s.found == 1) return true;
  if (s.found == 0)
    return cs_error_set(err, "no .NET process is called '%s'; 'clrsnap ps' lists them", name) ||
           cs_spelling_suggest(&s.spelling, "", err);
  struct search again = {.name = name, .list = true};
  (void)search(&again, NULL);
  return cs_error_set(err, "%u processes are called '%s': choose one by its number", s.found, name);
}

bool cs_is_process(const char *name) {
  struct search s = {.name = name};
  return search(&s, NULL) && s.found > 0;
}

bool cs_suggest_process(const char *word, struct cs_error *err) {
  struct search s = {.name = word};
  if (!search(&s, NULL) || s.spelling.found == NULL) return false;
  (void)cs_error_set(err, "no program can be found that is called '%s', and no .NET process", word);
  (void)cs_spelling_suggest(&s.spelling, "", err);
  return true;
}

void cs_explain_missing(const char *word, struct cs_error *err) {
  if (cs_is_program(word) || cs_is_process(word)) return;
  bool number = word[strspn(word, "0123456789")] == '\0';
  (void)cs_error_set(err, "program not found: %s; %s", word,
                     number ? "to attach to the process of that number, give nothing after it"
                            : "no .NET process has that name either");
}

bool cs_is_program(const char *word) {
  const char *path = getenv("PATH");
  char file[4096];
  if (strchr(word, '/') != NULL || word[0] == '\0') return true;
  for (const char *at = path != NULL ? path : ""; *at != '\0';) {
    size_t len = strcspn(at, ":");
    int size = snprintf(file, sizeof file, "%.*s/%s", (int)len, at, word);
    if (size > 0 && (size_t)size < sizeof file && access(file, X_OK) == 0) return true;
    at += len + (at[len] == ':');
  }
  return false;
}
