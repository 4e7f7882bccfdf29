// SPDX-License-Identifier: MIT
// From a recording's records to the facts of a profile. One thread. Signal-safe: no.
#include "naming/facts.h"

#include <stdlib.h>
#include <string.h>

#include "util/map.h"

static int by_count(const void *a, const void *b) {
  const struct cs_profile_stop *x = a, *y = b;
  return CS_ORDER(y->count, x->count) ?: strcmp(x->token, y->token);
}

static void fill_stops(const struct cs_recording *rec, const uint64_t *stops, struct cs_facts *f) {
  f->complete = stops[rec->complete];
  for (unsigned i = 0; i < rec->reason_count; i++) {
    if (i == rec->complete || stops[i] == 0) continue;
    const struct cs_rec_reason *reason = &rec->reasons[i];
    f->stops[f->stop_count++] = (struct cs_profile_stop){
        cs_recording_get(rec, reason->token), cs_recording_get(rec, reason->text), stops[i]};
  }
  qsort(f->stops, f->stop_count, sizeof *f->stops, by_count);
}

static const char *thread_name(const struct cs_recording *rec, uint32_t id) {
  uint32_t i;
  return cs_map_get(&rec->thread_ids, id, &i) ? cs_recording_get(rec, rec->threads[i].name) : "";
}

static void fill_lost(const struct cs_recording *rec, enum cs_wire_mode mode, struct cs_facts *f) {
  f->lost_samples = mode < CS_COUNT(rec->end.lost) ? rec->end.lost[mode] : 0;
  f->lost_broken = rec->totals.broken + rec->broken;
  f->lost_full = rec->totals.full + rec->full;
  // The END record has it too, but a target that was killed has only the first one.
  f->lost_ring = rec->finished ? rec->totals.lost_ring : rec->end.lost_wire;
  f->lost_target = rec->end.lost_ring;
}

// The facts that only one mode has.
static void fill_own(const struct cs_recording *rec, enum cs_wire_mode mode, struct cs_facts *f) {
  if (mode != CS_WIRE_MODE_ASYNC) {
    f->hz = rec->meta.hz;
  } else {
    f->scans = rec->scans;
    f->scans_why = cs_recording_get(rec, rec->scans_why);
  }
  // Reads are of the whole recording.
  if (mode == CS_WIRE_MODE_WALL && rec->only == NULL) f->pool = rec->pool;
  if (mode != CS_WIRE_MODE_CPU) return;
  f->event = rec->meta.event;
  f->event_period = rec->meta.event_period;
  // Until the end, the threads' time is that of an earlier moment than the samples.
  f->engine = (struct cs_engine_facts){(enum cs_wire_engine_kind)rec->engine.requested,
                                       (enum cs_wire_engine_kind)rec->engine.used,
                                       rec->ended && rec->only == NULL ? rec->engine.cpu_ns : 0,
                                       rec->engine.others,
                                       rec->engine.without,
                                       cs_recording_get(rec, rec->engine_text[CS_ENGINE_WHY]),
                                       cs_recording_get(rec, rec->engine_text[CS_ENGINE_UNSEEN])};
}

void cs_facts_fill(struct cs_facts *f, const struct cs_recording *rec, enum cs_wire_mode mode) {
  const struct cs_rec_sums *sums = &rec->sums[mode];
  memcpy(f->runtime, rec->runtime, sizeof f->runtime);
  f->program = cs_recording_get(rec, rec->meta.program);
  f->mode = mode;
  fill_own(rec, mode, f);
  f->pid = rec->start.pid;
  f->processors = rec->start.processors;
  f->start_ns = rec->start.start_ns;
  f->duration_ns = rec->totals.recorded_ns > rec->last_ns ? rec->totals.recorded_ns : rec->last_ns;
  f->samples = sums->samples;
  f->weight = sums->weight;
  // The agent's counts are of the whole recording.
  f->part = rec->only != NULL;
  f->events = f->part ? 0 : rec->events[mode].events;
  f->events_value = f->part ? 0 : rec->events[mode].value;
  fill_lost(rec, mode, f);
  fill_stops(rec, sums->stops, f);
  f->labelled = sums->labelled;
  f->labels_full = rec->labels_full;
  f->asleep = sums->asleep;
  f->asleep_weight = sums->asleep_weight;
  f->held_count = rec->held.count;
  f->held_p50_ns = cs_held_percentile(&rec->held, 0.50);
  f->held_p99_ns = cs_held_percentile(&rec->held, 0.99);
  f->held_max_ns = rec->held.max_ns;
  f->ended = rec->ended;
  f->fate = rec->fate[0] != '\0'
                ? rec->fate
                : "was killed or stopped, became another one by exec, or ended without notice";
  f->finished = rec->finished;
  f->suspensions = rec->end.runtime_suspensions;
  f->ticks = rec->ticks;
  f->times = rec->times;
  f->lost_signals = rec->lost_signals;
  f->small_stacks = rec->small_stacks;
  f->stopped = rec->stops;
  f->put_off = rec->put_off;
  f->put_off_thread = thread_name(rec, rec->put_off.thread);
  f->stackless_thread = thread_name(rec, rec->put_off.stackless_thread);
  f->inlined.wanted = rec->inlined;
  for (size_t i = 0; i < rec->inlines_count; i++)
    ++*(rec->inlines[i].head.nodes > 0 ? &f->inlined.methods : &f->inlined.unread);
  f->budget = rec->budget;
}
