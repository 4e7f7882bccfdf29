// SPDX-License-Identifier: MIT
// What `clrsnap stack` says of the thread pool. One thread. Signal-safe: no.
#include <inttypes.h>

#include "base/path.h"
#include "base/print.h"
#include "cli/stack_parts.h"
#include "util/say.h"

void cs_stack_wait_place(const struct cs_outside_wait *wait, char *text, size_t cap) {
  const struct cs_outside_frame *at = wait->at;
  int n = snprintf(text, cap, "%s",
                   wait->in != NULL ? cs_outside_short_name(wait->in->name) : "native code");
  if (at == NULL || n < 0 || (size_t)n >= cap) return;
  n += snprintf(text + n, cap - (size_t)n, " at %s", at->name);
  if (at->source != NULL && (size_t)n < cap)
    (void)snprintf(text + n, cap - (size_t)n, " (%s:%" PRIu32 ")", cs_file_of_source(at->source),
                   at->line);
}

void cs_stack_print_pool(const struct cs_outside_pool *pool) {
  enum { PLACES = 5 };
  char place[1024];
  uint32_t workers = pool->running + pool->waiting + pool->idle;
  if (pool->now.state == CS_POOL_UNUSED) return;
  cs_print(stdout, "Thread pool: %" PRIu32 " workers", workers);
  if (pool->now.state == CS_POOL_KNOWN)
    cs_print(stdout, " (min %" PRIu32 ", max %" PRIu32 ")", pool->now.min, pool->now.max);
  cs_print(stdout, ": %" PRIu32 " run, %" PRIu32 " wait, %" PRIu32 " idle; ", pool->running,
           pool->waiting, pool->idle);
  if (pool->now.state == CS_POOL_KNOWN)
    cs_print(stdout, "%" PRIu64 " items queued, %" PRIu64 " completed\n", pool->now.queued,
             pool->now.completed);
  else
    cs_print(stdout, "its queues cannot be read: %s\n", pool->now.why);
  for (uint32_t i = 0; i < pool->wait_count && i < PLACES; i++) {
    cs_stack_wait_place(&pool->waits[i], place, sizeof place);
    if (i == 0 && pool->starved)
      cs_print(stdout, "The pool is starved: %" PRIu32 " of %" PRIu32 " workers wait in ",
               pool->waits[i].workers, workers);
    else
      cs_print(stdout, "  %" PRIu32 " %s in ", pool->waits[i].workers,
               pool->waits[i].workers == 1 ? "waits" : "wait");
    cs_print(stdout, "%s", place);
    if (i == 0 && pool->starved) cs_print(stdout, "; %" PRIu64 " items queued", pool->now.queued);
    cs_print(stdout, "\n");
  }
  if (pool->wait_count > PLACES)
    cs_print(stdout, "  and at %" PRIu32 " more %s\n", pool->wait_count - PLACES,
             cs_plural(pool->wait_count - PLACES, "place", "places"));
  if (pool->now.state == CS_POOL_KNOWN && pool->now.queued == 0 && workers == pool->idle)
    cs_print(stdout,
             "No worker has an item. What suspended operations await is on no stack: see "
             "clrsnap async.\n");
}

void cs_stack_put_pool(struct cs_json_writer *j, const struct cs_outside_pool *pool) {
  bool known = pool->now.state == CS_POOL_KNOWN;
  cs_json_open(j, "thread_pool", '{');
  CS_JSON_UINTS(j, {"running", pool->running}, {"waiting", pool->waiting}, {"idle", pool->idle});
  if (known) {
    CS_JSON_UINTS(j, {"workers", pool->now.workers}, {"min", pool->now.min}, {"max", pool->now.max},
                  {"queued", pool->now.queued}, {"queued_local", pool->now.local},
                  {"completed", pool->now.completed});
    cs_json_bool(j, "starved", pool->starved);
  }
  if (pool->now.state == CS_POOL_UNKNOWN) cs_json_text(j, "unknown_because", pool->now.why);
  cs_json_open(j, "waits", '[');
  for (uint32_t i = 0; i < pool->wait_count; i++) {
    const struct cs_outside_wait *wait = &pool->waits[i];
    cs_json_open(j, NULL, '{');
    cs_json_uint(j, "workers", wait->workers);
    if (wait->in != NULL) cs_json_text(j, "in", cs_outside_short_name(wait->in->name));
    if (wait->at != NULL) cs_json_text(j, "at", wait->at->name);
    if (wait->at != NULL && wait->at->source != NULL) {
      cs_json_text(j, "file", wait->at->source);
      cs_json_uint(j, "line", wait->at->line);
    }
    cs_json_close(j, "}");
  }
  cs_json_close(j, "]}");
}
