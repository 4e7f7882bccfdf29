// SPDX-License-Identifier: MIT
// Such time is a sample with the reason CS_STOP_BLOCKED and no frames. One thread. Signal-safe: no.
#include "profile/blocked.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/print.h"
#include "base/stop.h"
#include "util/say.h"

static bool is_cut(const struct cs_profile *p, uint32_t frame) {
  char name[64];
  (void)snprintf(name, sizeof name, "[cut: %s]", cs_stop_token(CS_STOP_BLOCKED));
  return p->frames[frame].kind == CS_KIND_CUT &&
         strcmp(cs_strings_get(&p->strings, p->frames[frame].name, NULL), name) == 0;
}

// Keeps those with the most time, in order.
static void add(struct cs_blocked_facts *b, const char *name, uint64_t weight) {
  size_t at = b->threads < CS_BLOCKED_NAMED ? b->threads : CS_BLOCKED_NAMED;
  b->threads++;
  for (; at > 0 && b->named[at - 1].weight < weight; at--)
    if (at < CS_BLOCKED_NAMED) b->named[at] = b->named[at - 1];
  if (at == CS_BLOCKED_NAMED) return;
  b->named[at].weight = weight;
  (void)snprintf(b->named[at].thread, sizeof b->named[at].thread, "%s",
                 name[0] != '\0' ? name : "a thread without a name");
}

void cs_blocked_find(struct cs_profile *p) {
  struct cs_blocked_facts *b = &p->facts.blocked;
  const struct cs_node *nodes = p->tree.nodes;
  for (size_t i = 1; i < p->tree.count; i++) {
    const struct cs_node *above = &nodes[nodes[i].parent];
    if (nodes[i].parent == 0 || above->parent != 0 || !is_cut(p, nodes[i].frame)) continue;
    b->samples += nodes[i].samples;
    b->weight += nodes[i].weight;
    add(b, cs_strings_get(&p->strings, p->threads[above->frame].name, NULL), nodes[i].weight);
  }
}

void cs_put_blocked(FILE *out, const struct cs_facts *f) {
  const struct cs_blocked_facts *b = &f->blocked;
  enum cs_unit unit = cs_mode_of(f)->unit;
  uint32_t named = b->threads < CS_BLOCKED_NAMED ? b->threads : CS_BLOCKED_NAMED;
  cs_put_amount(out, unit, b->weight);
  cs_print(out, " without stacks: threads ran with their signals blocked (");
  for (uint32_t i = 0; i < named; i++) {
    cs_print(out, "%s%s ", i > 0 ? ", " : "", b->named[i].thread);
    cs_put_amount(out, unit, b->named[i].weight);
  }
  uint32_t more = b->threads - named;
  if (more > 0)
    cs_print(out, ", and %" PRIu32 " more %s", more, cs_plural(more, "thread", "threads"));
  cs_print(out, ")");
}
