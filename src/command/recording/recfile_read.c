// SPDX-License-Identifier: MIT
// Reads the recording file. Invariant: a record is used only after its checksum, its size and every
// index in it have been checked; the first invalid record ends the file, and what precedes it is
// kept. One thread. Signal-safe: no.
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

#include "base/bytes.h"
#include "base/perf.h"
#include "recording/pool_waits.h"
#include "recording/recfile.h"

// The limit of --depth, the thread, and a cut. A file that claims to have stacks of a million
// frames is refused.
#define MAX_NODE_DEPTH (65536u + 2)

struct reader {
  FILE *file;
  const char *path;
  struct cs_recording *rec;
  uint64_t at;      // where the record begins
  uint8_t *record;  // its bytes
  size_t capacity;
  struct place {
    uint32_t depth;
    enum cs_wire_mode mode;
  } * places;  // per node
  size_t place_count, place_capacity;
};

static bool take_text(struct cs_bytes *c, struct cs_recording *rec, uint32_t *string) {
  uint16_t len;
  if (!cs_take(c, &len, sizeof len) || c->left < len) return false;
  *string = cs_strings_add(&rec->strings, (const char *)c->at, len);
  return cs_take(c, NULL, len);
}

// An unknown event is refused: its samples would be mistaken for CPU time.
static bool read_event(struct cs_recording *rec, struct cs_bytes *c) {
  uint32_t version, name;
  if (!take_text(c, rec, &version) || !take_text(c, rec, &name) ||
      !cs_take(c, &rec->meta.event_period, sizeof rec->meta.event_period))
    return false;
  const char *event = cs_recording_get(rec, name);
  rec->meta.event = cs_perf_kind_by_name(event, strlen(event));
  return event[0] == '\0' || rec->meta.event != 0;
}

static bool read_meta(struct cs_recording *rec, struct cs_bytes *c) {
  struct cs_file_meta meta;
  if (!cs_take(c, &meta, sizeof meta) || !take_text(c, rec, &rec->meta.program)) return false;
  if (meta.modes == 0) return false;
  rec->meta.modes = meta.modes & CS_WIRE_ALL_MODES;
  rec->meta.hz = meta.hz;
  rec->lines = meta.lines != 0;
  rec->inlined = (meta.lines & CS_FILE_INLINES_WANTED) != 0;
  return read_event(rec, c);
}

// Valid only before the first node: frames and samples refer to reasons by index.
static bool read_reasons(struct cs_recording *rec, struct cs_bytes *c) {
  uint32_t count, complete;
  struct cs_rec_reason reasons[CS_REC_MAX_REASONS];
  if (!cs_take(c, &count, sizeof count) || !cs_take(c, &complete, sizeof complete) ||
      count > CS_REC_MAX_REASONS || complete >= count || rec->tree.count > 1) {
    return false;
  }
  for (uint32_t i = 0; i < count; i++) {
    if (!take_text(c, rec, &reasons[i].token) || !take_text(c, rec, &reasons[i].text)) return false;
  }
  memcpy(rec->reasons, reasons, sizeof reasons[0] * count);
  rec->reason_count = count;
  rec->complete = complete;
  return true;
}

static bool add_node(struct reader *r, const struct cs_file_node *node) {
  if (node->parent >= r->place_count || r->places[node->parent].depth >= MAX_NODE_DEPTH)
    return false;
  struct cs_recording *rec = r->rec;
  struct place place = r->places[node->parent];
  if (!cs_recording_add_node(rec, node->parent, node->frame)) return false;
  place.depth++;
  if (node->parent == 0) place.mode = rec->roots[rec->tree.nodes[r->place_count].frame].mode;
  CS_APPEND(r->places, r->place_count, r->place_capacity, place);
  return true;
}

static bool read_nodes(struct reader *r, struct cs_bytes *c) {
  uint32_t first, count;
  struct cs_file_node node;
  if (!cs_take(c, &first, sizeof first) || !cs_take(c, &count, sizeof count) ||
      first != r->rec->tree.count) {
    return false;
  }
  for (uint32_t i = 0; i < count; i++) {
    if (!cs_take(c, &node, sizeof node) || !add_node(r, &node)) return false;
  }
  return true;
}

static bool read_labels(struct cs_recording *rec, struct cs_bytes *c) {
  uint32_t head[2];
  struct cs_label label;
  if (!cs_take(c, head, sizeof head) || head[0] != cs_labels_count(&rec->labels)) return false;
  for (uint32_t i = 0; i < head[1]; i++)
    if (!cs_take(c, &label, sizeof label) || cs_labels_add(&rec->labels, &label) != head[0] + i)
      return false;
  return true;
}

static bool read_samples(struct reader *r, struct cs_bytes *c) {
  uint32_t head[2];
  struct cs_rec_sample sample;
  if (!cs_take(c, head, sizeof head)) return false;
  for (uint32_t i = 0; i < head[0]; i++) {
    if (!cs_take(c, &sample, sizeof sample) || sample.leaf >= r->place_count ||
        !cs_recording_add_sample(r->rec, r->places[sample.leaf].mode, &sample))
      return false;
  }
  return true;
}

static bool read_pool_waits(struct cs_recording *rec, struct cs_bytes *c) {
  uint32_t head[2];
  struct cs_rec_pool_wait wait;
  if (!cs_take(c, head, sizeof head)) return false;
  for (uint32_t i = 0; i < head[0]; i++) {
    if (!cs_take(c, &wait, sizeof wait) || wait.node == 0 || wait.node >= rec->tree.count)
      return false;
    cs_pool_waits_add(&rec->pool_waits, &wait);
  }
  return true;
}

static bool read_symbols(struct cs_recording *rec, struct cs_bytes *c) {
  uint32_t head[2], name;
  uint64_t frame;
  if (!cs_take(c, head, sizeof head)) return false;
  for (uint32_t i = 0; i < head[0]; i++) {
    if (!cs_take(c, &frame, sizeof frame) || !take_text(c, rec, &name)) return false;
    cs_recording_set_symbol(rec, frame, cs_recording_get(rec, name));
  }
  return true;
}

static bool read_places(struct cs_recording *rec, struct cs_bytes *c) {
  uint32_t head[2], line, file;
  uint64_t frame;
  if (!cs_take(c, head, sizeof head)) return false;
  for (uint32_t i = 0; i < head[0]; i++) {
    if (!cs_take(c, &frame, sizeof frame) || !cs_take(c, &line, sizeof line) ||
        !take_text(c, rec, &file)) {
      return false;
    }
    cs_recording_set_place(rec, frame, file, line);
  }
  return true;
}

static bool read_line_facts(struct cs_recording *rec, struct cs_bytes *c) {
  struct cs_file_lines l;
  uint32_t missing;
  if (!cs_take(c, &l, sizeof l) || !take_text(c, rec, &missing)) return false;
  rec->line_facts = (struct cs_line_facts){.wanted = true,
                                           .places = l.places,
                                           .named = l.named,
                                           .methods = l.methods,
                                           .unmapped = l.unmapped,
                                           .why_unmapped = l.why_unmapped,
                                           .modules = l.modules,
                                           .with_symbols = l.with_symbols};
  (void)snprintf(rec->line_facts.missing, sizeof rec->line_facts.missing, "%s",
                 cs_recording_get(rec, missing));
  return true;
}

static bool read_symbol_facts(struct cs_recording *rec, struct cs_bytes *c) {
  uint32_t counts[2], missing, kernel;
  if (!cs_take(c, counts, sizeof counts) || !take_text(c, rec, &missing) ||
      !take_text(c, rec, &kernel))
    return false;
  rec->symbol_facts = (struct cs_symbol_facts){.images = counts[0], .refused = counts[1]};
  (void)snprintf(rec->symbol_facts.missing, sizeof rec->symbol_facts.missing, "%s",
                 cs_recording_get(rec, missing));
  (void)snprintf(rec->symbol_facts.kernel, sizeof rec->symbol_facts.kernel, "%s",
                 cs_recording_get(rec, kernel));
  return true;
}

static bool read_fate(struct cs_recording *rec, struct cs_bytes *c) {
  uint32_t fate;
  if (!take_text(c, rec, &fate)) return false;
  (void)snprintf(rec->fate, sizeof rec->fate, "%s", cs_recording_get(rec, fate));
  return true;
}

static bool read_totals(struct cs_recording *rec, struct cs_bytes *c) {
  if (!cs_take(c, &rec->totals, sizeof rec->totals)) return false;
  rec->finished = true;
  rec->named = true;  // as far as that was possible then
  return true;
}

// A record of the agent's. The word before the payload becomes the header of such records. An
// invalid one, perhaps of a later version, is counted, as if it came from the agent.
static bool read_wire(struct reader *r, uint32_t size, enum cs_wire_kind kind) {
  uint8_t *at = r->record + sizeof(struct cs_file_record) - sizeof(struct cs_wire_record);
  struct cs_wire_record head = {
      (uint32_t)(size - sizeof(struct cs_file_record) + sizeof(struct cs_wire_record)),
      (uint16_t)kind, 0};
  memcpy(at, &head, sizeof head);
  cs_recording_add(r->rec, (const struct cs_wire_record *)(const void *)at);
  return true;
}

static bool read_agents(struct reader *r, const struct cs_file_record *head) {
  for (uint32_t kind = 0; head->kind != 0 && kind < CS_FILE_WIRE_KINDS; kind++)
    if (cs_file_kind_of(kind) == head->kind)
      return read_wire(r, head->size, (enum cs_wire_kind)kind);
  return true;  // of a later version: ignored
}

static bool read_record(struct reader *r, const struct cs_file_record *head) {
  struct cs_bytes c = {r->record + sizeof *head, head->size - sizeof *head};
  switch (head->kind) {
    case CS_FILE_META:
      return read_meta(r->rec, &c);
    case CS_FILE_REASONS:
      return read_reasons(r->rec, &c);
    case CS_FILE_IMAGES:
      return read_symbol_facts(r->rec, &c);
    case CS_FILE_NODES:
      return read_nodes(r, &c);
    case CS_FILE_LABELS:
      return read_labels(r->rec, &c);
    case CS_FILE_SAMPLES:
      return read_samples(r, &c);
    case CS_FILE_SYMBOLS:
      return read_symbols(r->rec, &c);
    case CS_FILE_POOL_WAITS:
      return read_pool_waits(r->rec, &c);
    case CS_FILE_PLACES:
      return read_places(r->rec, &c);
    case CS_FILE_LINES:
      return read_line_facts(r->rec, &c);
    case CS_FILE_FATE:
      return read_fate(r->rec, &c);
    case CS_FILE_END:
      return read_totals(r->rec, &c);
    default:
      return read_agents(r, head);
  }
}

// Reads the bytes of one record into r->record. Returns false if the file ends here (*note stays
// empty if it ends after a whole record), or these are no record.
static bool load_record(struct reader *r, struct cs_file_record *head, struct cs_error *note) {
  size_t got = fread(head, 1, sizeof *head, r->file);
  if (got == 0 && !ferror(r->file)) return false;
  if (got == sizeof *head &&
      (head->size < sizeof *head || head->size % 8 != 0 || head->size > CS_FILE_MAX_RECORD)) {
    return cs_error_set(note, "%s is damaged at byte %" PRIu64 ": what comes before it was read",
                        r->path, r->at);
  }
  if (got == sizeof *head) {
    CS_RESERVE(r->record, head->size, r->capacity);
    memcpy(r->record, head, sizeof *head);
    size_t more = head->size - sizeof *head;
    if (fread(r->record + sizeof *head, 1, more, r->file) == more) return true;
  }
  if (ferror(r->file)) return cs_error_set(note, "cannot read all of %s: %m", r->path);
  return cs_error_set(note,
                      "%s ends within a record, at byte %" PRIu64 ": what comes before it was read",
                      r->path, r->at);
}

static bool is_sound(const struct reader *r, const struct cs_file_record *head) {
  size_t before = offsetof(struct cs_file_record, kind);
  return (uint32_t)crc32_z(0, r->record + before, head->size - before) == head->crc;
}

static void read_records(struct reader *r, struct cs_error *note) {
  struct cs_file_record head;
  while (load_record(r, &head, note)) {
    if (!is_sound(r, &head) || !read_record(r, &head)) {
      (void)cs_error_set(note, "%s is damaged at byte %" PRIu64 ": what comes before it was read",
                         r->path, r->at);
      return;
    }
    r->at += head.size;
    r->rec->bytes = r->at;
  }
  if (note->text[0] == '\0' && !r->rec->finished) {
    (void)cs_error_set(note, "%s has no end: its recorder is still running or was killed", r->path);
  }
}

static bool read_head(struct reader *r, struct cs_error *err) {
  struct cs_file_head head;
  size_t got = fread(&head, 1, sizeof head, r->file);
  if (ferror(r->file)) return cs_error_set(err, "cannot read %s: %m", r->path);
  if (got < sizeof head || memcmp(head.magic, CS_FILE_MAGIC, sizeof head.magic) != 0)
    return cs_error_set(err, "%s is not a recording of clrsnap", r->path);
  if (head.version != CS_FILE_VERSION)
    return cs_error_set(err, "%s was written by %s clrsnap (file version %u; this one reads %u)",
                        r->path, head.version > CS_FILE_VERSION ? "a newer" : "an older",
                        head.version, CS_FILE_VERSION);
  if (head.head_bytes < sizeof head || head.head_bytes % 8 != 0 || head.head_bytes > 4096) {
    return cs_error_set(err, "%s is damaged: its header is invalid", r->path);
  }
  // Not fseek: the file may be a pipe.
  for (uint32_t i = sizeof head; i < head.head_bytes; i++) {
    if (getc(r->file) == EOF) return cs_error_set(err, "%s ends within its header", r->path);
  }
  r->at = head.head_bytes;
  return true;
}

bool cs_recfile_read(const char *path, struct cs_recording *rec, struct cs_error *note,
                     struct cs_error *err) {
  struct reader r = {.path = path, .rec = rec};
  struct stat st;
  note->text[0] = '\0';
  r.file = fopen(path, "re");
  if (r.file == NULL) return cs_error_set(err, "cannot read %s: %m", path);
  bool ok = fstat(fileno(r.file), &st) != 0 || !S_ISDIR(st.st_mode) ||
            cs_error_set(err, "cannot read %s: %s", path, strerror(EISDIR));
  if (ok) ok = read_head(&r, err);
  CS_APPEND(r.places, r.place_count, r.place_capacity, (struct place){0});  // node 0
  if (ok) read_records(&r, note);
  if (ok && rec->meta.modes == 0)
    ok = cs_error_set(
        err, "%s has nothing to show: it ends before the description of what was recorded", path);
  (void)fclose(r.file);
  free(r.record);
  free(r.places);
  return ok;
}
