// SPDX-License-Identifier: MIT
// Writes the recording file. Invariant: whole records are appended and nothing is ever changed, so
// the file is valid at every moment up to its last whole record. What was taken from the shared
// memory has been given to the kernel before the next records are taken. One thread. Signal-safe:
// no.
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/perf.h"
#include "recording/recfile.h"

#define BATCH_BYTES 65536u  // of nodes, samples or names in one record

bool cs_recfile_open(struct cs_recfile *f, const char *path, struct cs_error *err) {
  memset(f, 0, sizeof *f);
  f->open = cs_output_open(&f->output, path, err);
  return f->open;
}

static void fail(struct cs_recfile *f, int error) {
  if (f->failed) return;
  f->failed = true;
  (void)cs_error_set(&f->error, "cannot write %s: %s; it has what was recorded up to then",
                     f->output.path, strerror(error));
}

static void put(struct cs_recfile *f, const void *data, size_t len) {
  CS_RESERVE(f->buffer, f->used + len, f->capacity);
  if (len > 0) memcpy(f->buffer + f->used, data, len);
  f->used += len;
}

static void put_bytes(struct cs_recfile *f, const char *text, size_t whole) {
  uint16_t len = (uint16_t)(whole < UINT16_MAX ? whole : UINT16_MAX);
  put(f, &len, sizeof len);
  put(f, text, len);
}

static void put_text(struct cs_recfile *f, const struct cs_recording *rec, uint32_t string) {
  size_t len;
  const char *text = cs_strings_get(&rec->strings, string, &len);
  put_bytes(f, text, len);
}

static void put_plain(struct cs_recfile *f, const char *text) {
  put_bytes(f, text, strlen(text));
}

static void begin(struct cs_recfile *f) {
  f->used = 0;
  put(f, &(struct cs_file_record){0}, sizeof(struct cs_file_record));
}

static void end(struct cs_recfile *f, enum cs_file_kind kind) {
  static const uint8_t zeros[8];
  put(f, zeros, -f->used & 7);
  // No reader would accept it; without an IL map of millions of ranges, only lines are lost.
  if (f->failed || f->used > CS_FILE_MAX_RECORD) return;
  struct cs_file_record head = {(uint32_t)f->used, 0, (uint16_t)kind, 0, 0};
  memcpy(f->buffer, &head, sizeof head);
  size_t before = offsetof(struct cs_file_record, kind);
  head.crc = (uint32_t)crc32_z(0, f->buffer + before, f->used - before);
  memcpy(f->buffer, &head, sizeof head);
  if (fwrite(f->buffer, 1, f->used, f->output.file) != f->used) fail(f, errno);
}

static void begin_batch(struct cs_recfile *f, uint32_t first, uint32_t second) {
  begin(f);
  put(f, &first, sizeof first);
  put(f, &second, sizeof second);
}

static void write_meta(struct cs_recfile *f, const struct cs_recording *rec) {
  struct cs_file_meta meta = {.hz = rec->meta.hz,
                              .lines = (rec->lines ? CS_FILE_LINES_WANTED : 0) |
                                       (rec->inlined ? CS_FILE_INLINES_WANTED : 0),
                              .modes = rec->meta.modes};
  begin(f);
  put(f, &meta, sizeof meta);
  put_text(f, rec, rec->meta.program);
  put_plain(f, CLRSNAP_VERSION);
  put_plain(f, rec->meta.event != 0 ? cs_perf_kind(rec->meta.event)->name : "");
  put(f, &rec->meta.event_period, sizeof rec->meta.event_period);
  end(f, CS_FILE_META);
  begin_batch(f, rec->reason_count, rec->complete);
  for (uint32_t i = 0; i < rec->reason_count; i++) {
    put_text(f, rec, rec->reasons[i].token);
    put_text(f, rec, rec->reasons[i].text);
  }
  end(f, CS_FILE_REASONS);
}

static void start_file(struct cs_recfile *f, const struct cs_recording *rec) {
  struct cs_file_head head = {CS_FILE_MAGIC, CS_FILE_VERSION, sizeof head};
  f->begun = true;
  f->nodes = 1;   // node 0 is the root
  f->labels = 1;  // label 0 is none
  if (fwrite(&head, 1, sizeof head, f->output.file) != sizeof head) fail(f, errno);
  write_meta(f, rec);
  if (!cs_output_publish(&f->output, &f->error)) f->failed = true;
}

enum cs_file_kind cs_file_kind_of(uint32_t wire_kind) {
  static const enum cs_file_kind kinds[] = {
      [CS_WIRE_START] = CS_FILE_START,
      [CS_WIRE_THREAD] = CS_FILE_THREAD,
      [CS_WIRE_FUNCTION] = CS_FILE_FUNCTION,
      [CS_WIRE_IMAGE] = CS_FILE_IMAGE,
      [CS_WIRE_END] = CS_FILE_AGENT_END,
      [CS_WIRE_IL_MAP] = CS_FILE_IL_MAP,
      [CS_WIRE_BUDGET] = CS_FILE_BUDGET,
      [CS_WIRE_INLINES] = CS_FILE_INLINES,
      [CS_WIRE_STOPS] = CS_FILE_STOPS,
      [CS_WIRE_TICKS] = CS_FILE_TICKS,
      [CS_WIRE_ENGINE] = CS_FILE_ENGINE,
      [CS_WIRE_PUT_OFF] = CS_FILE_PUT_OFF,
      [CS_WIRE_EVENTS] = CS_FILE_EVENTS,
      [CS_WIRE_MODULE] = CS_FILE_MODULE,
      [CS_WIRE_LOST_SIGNALS] = CS_FILE_LOST_SIGNALS,
      [CS_WIRE_SMALL_STACKS] = CS_FILE_SMALL_STACKS,
      [CS_WIRE_SCANS] = CS_FILE_SCANS,
      [CS_WIRE_POOL] = CS_FILE_POOL,
      [CS_WIRE_STATUS] = CS_FILE_STATUS,
      [CS_WIRE_TIMES] = CS_FILE_TIMES,
  };
  return wire_kind < CS_COUNT(kinds) ? kinds[wire_kind] : 0;
}

void cs_recfile_add(struct cs_recfile *f, const struct cs_recording *rec,
                    const struct cs_wire_record *r) {
  if (!f->open || f->failed) return;
  if (!f->begun) start_file(f, rec);
  enum cs_file_kind kind = cs_file_kind_of(r->kind);
  if (kind == 0) return;  // samples are written in batches
  begin(f);
  put(f, r + 1, r->size - sizeof *r);
  end(f, kind);
}

// A root is identified by its mode and the thread's id, every other node by its frame.
static uint64_t frame_of(const struct cs_recording *rec, const struct cs_node *node) {
  if (node->parent != 0) return rec->frames[node->frame];
  const struct cs_rec_root *root = &rec->roots[node->frame];
  return (uint64_t)root->mode << 32 | rec->threads[root->thread].id;
}

static bool put_node(struct cs_recfile *f, const struct cs_recording *rec, size_t i) {
  const struct cs_node *node = &rec->tree.nodes[i];
  const struct cs_file_node out = {node->parent, 0, frame_of(rec, node)};
  put(f, &out, sizeof out);
  return true;
}

static bool put_label(struct cs_recfile *f, const struct cs_recording *rec, size_t i) {
  struct cs_label label = cs_labels_get(&rec->labels, (uint32_t)i);
  put(f, &label, sizeof label);
  return true;
}

static bool put_sample(struct cs_recfile *f, const struct cs_recording *rec, size_t i) {
  put(f, &rec->samples[i], sizeof rec->samples[i]);
  return true;
}

static bool put_symbol(struct cs_recfile *f, const struct cs_recording *rec, size_t i) {
  uint32_t symbol;
  if (!cs_map_get(&rec->symbols, rec->frames[i], &symbol)) return false;
  put(f, &rec->frames[i], sizeof rec->frames[i]);
  put_text(f, rec, symbol);
  return true;
}

static bool put_place(struct cs_recfile *f, const struct cs_recording *rec, size_t i) {
  const struct cs_rec_place *place = &rec->places[i];
  put(f, &place->frame, sizeof place->frame);
  put(f, &place->line, sizeof place->line);
  put_text(f, rec, place->file);
  return true;
}

static bool put_pool_wait(struct cs_recfile *f, const struct cs_recording *rec, size_t i) {
  put(f, &rec->pool_waits.items[i], sizeof rec->pool_waits.items[i]);
  return true;
}

// Writes the items [from, to) in batches. `put_item` returns whether there is anything to write of
// item `i`. Returns the first item that is left, which is `to` unless writing fails.
static size_t write_items(struct cs_recfile *f, const struct cs_recording *rec,
                          enum cs_file_kind kind, size_t from, size_t to,
                          bool (*put_item)(struct cs_recfile *f, const struct cs_recording *rec,
                                           size_t i)) {
  bool numbered = kind == CS_FILE_NODES || kind == CS_FILE_LABELS;  // by the first one's number
  while (from < to && !f->failed) {
    uint32_t count = 0;
    begin_batch(f, numbered ? (uint32_t)from : 0, 0);
    for (; from < to && f->used < BATCH_BYTES; from++) count += put_item(f, rec, from);
    if (count == 0) break;
    memcpy(f->buffer + sizeof(struct cs_file_record) + numbered * sizeof count, &count,
           sizeof count);
    end(f, kind);
  }
  return from;
}

void cs_recfile_flush(struct cs_recfile *f, const struct cs_recording *rec) {
  if (!f->begun || f->failed) return;
  f->nodes = write_items(f, rec, CS_FILE_NODES, f->nodes, rec->tree.count, put_node);
  f->labels =
      write_items(f, rec, CS_FILE_LABELS, f->labels, cs_labels_count(&rec->labels), put_label);
  f->samples = write_items(f, rec, CS_FILE_SAMPLES, f->samples, rec->sample_count, put_sample);
  if (fflush(f->output.file) != 0) fail(f, errno);
}

static void write_line_facts(struct cs_recfile *f, const struct cs_line_facts *l) {
  struct cs_file_lines facts = {l->places,       l->named,   l->methods,      l->unmapped,
                                l->why_unmapped, l->modules, l->with_symbols, 0};
  begin(f);
  put(f, &facts, sizeof facts);
  put_plain(f, l->missing);
  end(f, CS_FILE_LINES);
}

static void write_symbol_facts(struct cs_recfile *f, const struct cs_symbol_facts *s) {
  uint32_t counts[] = {s->images, s->refused};
  begin(f);
  put(f, counts, sizeof counts);
  put_plain(f, s->missing);
  put_plain(f, s->kernel);
  end(f, CS_FILE_IMAGES);
}

static void write_fate(struct cs_recfile *f, const struct cs_recording *rec) {
  begin(f);
  put_plain(f, rec->fate);
  end(f, CS_FILE_FATE);
}

static void write_totals(struct cs_recfile *f, const struct cs_recording *rec) {
  if (!rec->ended && rec->fate[0] != '\0') write_fate(f, rec);
  struct cs_rec_totals totals = rec->totals;
  totals.broken += rec->broken;
  totals.full += rec->full;
  begin(f);
  put(f, &totals, sizeof totals);
  end(f, CS_FILE_END);
}

bool cs_recfile_finish(struct cs_recfile *f, const struct cs_recording *rec, struct cs_error *err) {
  if (f->begun && !f->failed) {
    cs_recfile_flush(f, rec);
    (void)write_items(f, rec, CS_FILE_SYMBOLS, 0, rec->frame_count, put_symbol);
    (void)write_items(f, rec, CS_FILE_PLACES, 0, rec->place_count, put_place);
    (void)write_items(f, rec, CS_FILE_POOL_WAITS, 0, rec->pool_waits.count, put_pool_wait);
    write_symbol_facts(f, &rec->symbol_facts);
    if (rec->lines) write_line_facts(f, &rec->line_facts);
    write_totals(f, rec);
    if (fflush(f->output.file) != 0) fail(f, errno);
  }
  if (f->failed) *err = f->error;
  return f->begun && !f->failed;
}

void cs_recfile_close(struct cs_recfile *f) {
  if (!f->open) return;
  cs_output_abandon(&f->output);  // it is published: this only closes it
  free(f->buffer);
  memset(f, 0, sizeof *f);
}
