// SPDX-License-Identifier: MIT
// If a walk has left callers out because the thread continues elsewhere, that is checked: the next
// place outside the leaf that the thread comes to must be the one that the walk has given, and the
// thread must never return to a caller that was left out. Otherwise a walk that skips the caller of
// a function that is about to return would be excused, because the thread does get to that place
// one return later.
#include <stdio.h>

#include "oracle.h"

void prediction_make(struct prediction *p, const struct oracle *oracle,
                     const struct comparison *result, const struct entry *const *want) {
  p->made = true;
  p->ip = result->resume_ip;
  p->sp = result->resume_sp;
  p->builds = result->builds;
  p->built_ip = result->built_ip;
  p->built_sp = result->built_sp;
  p->depth = oracle->shadow.count;
  p->skipped = 0;
  for (unsigned i = result->skip_from; i < result->skip_to && p->skipped < MAX_SKIPPED; i++)
    p->skip[p->skipped++] = *want[i];
  p->broken = result->skip_to - result->skip_from > MAX_SKIPPED;
}

// Returns true if the thread has come to the predicted place, or to a caller that the walk had left
// out.
static bool is_settled_by(struct prediction *p, uint64_t ip, uint64_t sp) {
  if (!p->made) return false;
  for (unsigned i = 0; i < p->skipped; i++)
    if (p->skip[i].ip == ip && p->skip[i].slot + 8 == sp) p->broken = true;
  return p->broken || (ip == p->ip && sp == p->sp);
}

void oracle_went(struct oracle *oracle, uint64_t ip, uint64_t sp) {
  struct prediction *p = &oracle->prediction, *bait = &oracle->bait_prediction;
  if (is_settled_by(p, ip, sp) && !p->broken) {
    p->made = false;
    oracle->resumptions++;
  }
  if (!is_settled_by(bait, ip, sp)) return;
  bait->made = false;
  oracle->bait[BAIT_RETURNED].put++;
  oracle->bait[BAIT_RETURNED].found += bait->broken;
}

static bool is_built(const struct prediction *p, const struct entry *entry) {
  return p->built_ip == entry->ip && p->built_sp == entry->slot + 8;
}

void oracle_built(struct oracle *oracle, const struct entry *entry) {
  struct prediction *p = &oracle->prediction;
  if (!p->made || !p->builds) return;
  if (!is_built(p, entry)) p->broken = true;
  struct entry other = *entry;
  other.ip++;
  oracle->bait[BAIT_BUILT].put++;
  oracle->bait[BAIT_BUILT].found += !is_built(p, &other);
}

void oracle_end(struct oracle *oracle) {
  oracle->excuse[EXCUSE_OPEN] += oracle->prediction.made;
  oracle->prediction.made = false;
  oracle->bait_prediction.made = false;
}

void prediction_check(struct oracle *oracle, struct comparison *result,
                      const struct entry *const *want) {
  struct prediction *p = &oracle->prediction;
  const char *why = NULL;
  // The thread may continue at the very place to which the call would have returned anyway.
  bool still = result->caller_ip == p->ip && result->caller_sp == p->sp;
  if (p->made && p->broken) {
    why = "returned to a caller that the walk had left out, or has another one than it had said";
    p->made = false;
  } else if (p->made && !result->resumes && !still && oracle->shadow.count <= p->depth) {
    why = "went on elsewhere than the walk had said";
    p->made = false;
  }
  if (result->resumes) {
    if (p->made && (p->ip != result->resume_ip || p->sp != result->resume_sp))
      why = "goes on elsewhere than the walk had said";
    prediction_make(p, oracle, result, want);
  }
  if (why == NULL) return;
  result->verdict = VERDICT_WRONG;
  (void)snprintf(result->why, sizeof result->why, "%s", why);
}
