// SPDX-License-Identifier: MIT
// record_world PID FILE: stops the .NET process, walks each of its threads, and writes what the
// walks have read to FILE (world.h), for fuzz_walk. Of threads that look alike only the first is
// kept. The process runs on afterwards. The files in worlds/ were recorded from the programs of
// tests/apps.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "contract/descriptor.h"
#include "remote/private.h"
#include "world.h"

enum {
  MOST_LINES = 1 << 16,
  MOST_THREADS = 64,
  MOST_IPS = 4096,
  NEIGHBOURS = 4,  // rows that are kept before and after one that was used
  ABOVE = 256,     // bytes of the stack that are kept above the highest that was read
  BELOW = 256,     // and below the sp
  PAGE = 4096,
};

struct recorder {
  struct cs_world world;  // first: its mem is found again by its address
  struct cs_remote *remote;
  uint64_t lines[MOST_LINES];  // addresses; a set while it is filled
  uint32_t line_count;
  struct cs_stack stack;  // of the thread that is walked
  uint64_t top;           // up to where it was read
  uint64_t ips[MOST_IPS];
  uint32_t ip_count;
  struct world_thread threads[MOST_THREADS];
  uint64_t looks[MOST_THREADS];
  uint32_t thread_count;
  uint16_t new_rule[CS_NO_RULE];  // 1 + its number in the file
  uint16_t old_rule[CS_NO_RULE];
  uint16_t rule_count;
};
static struct recorder rec;

static void fail(const char *why) {
  (void)fprintf(stderr, "record_world: %s\n", why);
  exit(1);
}

// ---- What is read ----

static void note_line(uint64_t line) {
  for (uint32_t i = (uint32_t)(line * 0x9E3779B97F4A7C15u >> 48);; i = (i + 1) % MOST_LINES) {
    if (rec.lines[i] == line) return;
    if (rec.lines[i] != 0) continue;
    rec.lines[i] = line;
    if (++rec.line_count > MOST_LINES / 2) fail("the walks read too much");
    return;
  }
}

static void note(uint64_t address, uint64_t size) {
  for (uint64_t line = address & ~(WORLD_LINE - 1ull); line < address + size; line += WORLD_LINE)
    note_line(line);
}

static bool read_and_note(const struct cs_mem *mem, uint64_t address, void *dst, size_t len) {
  (void)mem;
  if (!cs_remote_read(rec.remote, address, dst, len)) return false;
  note(address, len);
  if (address >= rec.stack.lo && address < rec.stack.hi && address + len > rec.top)
    rec.top = address + len;
  return true;
}

// ---- Threads ----

static void note_ip(const struct cs_frame *frame) {
  if (frame->code.kind != CS_CODE_NATIVE) return;
  for (uint32_t i = 0; i < rec.ip_count; i++)
    if (rec.ips[i] == frame->regs.r[CS_RIP]) return;
  if (rec.ip_count == MOST_IPS) fail("too many native frames");
  rec.ips[rec.ip_count++] = frame->regs.r[CS_RIP];
}

static uint32_t walk(const struct cs_remote_thread *thread, struct cs_walk *walk, uint64_t *look) {
  struct cs_frame frame;
  uint32_t frames = 0;
  cs_walk_begin(walk, &rec.world, &thread->regs, &thread->stack, thread->clr_thread, 0);
  for (*look = 0; cs_walk_next(walk, &frame); frames++) {
    note_ip(&frame);
    (void)world_ask_about(&rec.world, &frame);
    *look = (*look ^ (uint64_t)frame.code.kind ^ (uint64_t)frame.flags << 8) * 0x9E3779B97F4A7C15u;
  }
  *look ^= (uint64_t)walk->stop;
  return frames;
}

static bool is_known(uint64_t look) {
  for (uint32_t i = 0; i < rec.thread_count; i++)
    if (rec.looks[i] == look) return true;
  return false;
}

// The notes of a thread that is then left out do no harm.
static void record_thread(struct cs_remote_thread *thread) {
  struct cs_walk of;
  uint64_t look, sp = thread->regs.r[CS_RSP];
  rec.stack = thread->stack;
  rec.top = sp + 8;
  uint32_t frames = walk(thread, &of, &look);
  if (frames < 2 || rec.thread_count == MOST_THREADS || is_known(look)) return;
  if (sp < thread->stack.lo || sp >= thread->stack.hi) return;
  thread->stack.lo = (sp - BELOW) & ~(PAGE - 1ull);
  uint64_t hi = (rec.top + ABOVE + PAGE - 1) & ~(PAGE - 1ull);
  if (hi < thread->stack.hi) thread->stack.hi = hi;
  uint64_t end = rec.top + ABOVE < thread->stack.hi ? rec.top + ABOVE : thread->stack.hi;
  note(sp - BELOW, end - (sp - BELOW));
  rec.stack = thread->stack;
  struct world_thread *out = &rec.threads[rec.thread_count];
  memcpy(out->r, thread->regs.r, sizeof out->r);
  out->stack = thread->stack;
  out->clr_thread = thread->clr_thread;
  out->frames = walk(thread, &of, &look);
  out->stop = (uint32_t)of.stop;
  rec.looks[rec.thread_count++] = look;
  (void)printf("thread %d: %u frames, %s\n", thread->tid, out->frames, cs_stop_token(of.stop));
}

static void record_threads(void) {
  struct cs_error err = {.text = ""};
  struct cs_remote_thread thread;
  const int *tids;
  unsigned count = cs_remote_threads(rec.remote, &tids);
  for (unsigned i = 0; i < count; i++)
    if (cs_remote_thread(rec.remote, tids[i], &thread, &err)) record_thread(&thread);
  if (rec.thread_count == 0) fail("no thread could be walked");
}

// ---- Writing ----

static void put(FILE *out, const void *bytes, size_t size) {
  if (size != 0 && fwrite(bytes, 1, size, out) != size) fail("the file cannot be written");
}

static uint16_t rule_for(uint16_t old) {
  if (old == CS_NO_RULE) return CS_NO_RULE;
  if (rec.new_rule[old] == 0) {
    rec.old_rule[rec.rule_count++] = old;
    rec.new_rule[old] = rec.rule_count;
  }
  return (uint16_t)(rec.new_rule[old] - 1);
}

// Keeps the rows near the ips that were seen in the image; in between there is a gap.
static uint32_t choose_rows(const struct cs_image *image, struct world_row *out) {
  uint32_t count = 0;
  bool wanted = true;  // row 0 is always there
  out[count++] = (struct world_row){.ip = 0, .rule = CS_NO_RULE};
  for (uint32_t i = 0; i < image->row_count; i++) {
    uint32_t from = i > NEIGHBOURS ? i - NEIGHBOURS : 0, to = i + NEIGHBOURS + 1;
    uint64_t begin = image->begin + image->row_ip[from];
    uint64_t end = to < image->row_count ? image->begin + image->row_ip[to] : image->end;
    bool was = wanted;
    wanted = false;
    for (uint32_t k = 0; k < rec.ip_count && !wanted; k++)
      wanted = rec.ips[k] >= begin && rec.ips[k] <= end;
    if (!wanted && !was) continue;
    uint16_t rule = wanted ? rule_for(image->row_rule[i]) : CS_NO_RULE;
    if (image->row_ip[i] == 0) count = 0;
    out[count++] = (struct world_row){.ip = image->row_ip[i], .rule = rule};
  }
  return count;
}

static bool was_seen(const struct cs_image *image) {
  for (uint32_t k = 0; k < rec.ip_count; k++)
    if (rec.ips[k] >= image->begin && rec.ips[k] <= image->end) return true;
  return false;
}

static void write_images(FILE *out, struct world_head *head) {
  const struct cs_images *images = rec.world.images;
  char *rows = NULL;
  size_t row_bytes = 0;
  FILE *row_out = open_memstream(&rows, &row_bytes);
  if (row_out == NULL) abort();
  for (uint32_t i = 0; i < images->count; i++) {
    const struct cs_image *from = &images->image[i];
    struct world_row *chosen = calloc(from->row_count + 2, sizeof *chosen);
    if (chosen == NULL) abort();
    if (was_seen(from)) {
      struct world_image image = {.begin = from->begin,
                                  .end = from->end,
                                  .id_address = from->id_address,
                                  .row_count = choose_rows(from, chosen),
                                  .is_coreclr = from->is_coreclr,
                                  .id_size = from->id_size};
      memcpy(image.id, from->id, sizeof image.id);
      put(out, &image, sizeof image);
      put(row_out, chosen, image.row_count * sizeof *chosen);
      note(from->id_address, from->id_size);
      head->images++;
    }
    free(chosen);
  }
  (void)fclose(row_out);
  put(out, rows, row_bytes);
  free(rows);
  for (uint16_t i = 0; i < rec.rule_count; i++)
    put(out, &images->rules[rec.old_rule[i]], sizeof images->rules[0]);
  head->rules = rec.rule_count;
}

static int by_value(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return x < y ? -1 : x > y;
}

static void write_memory(FILE *out, struct world_head *head) {
  qsort(rec.lines, MOST_LINES, sizeof rec.lines[0], by_value);
  for (uint32_t i = 0; i < MOST_LINES;) {
    uint32_t first = i++;
    if (rec.lines[first] == 0) continue;
    while (i < MOST_LINES && rec.lines[i] == rec.lines[i - 1] + WORLD_LINE) i++;
    struct world_segment segment = {rec.lines[first], (i - first) * WORLD_LINE, 0};
    uint8_t *bytes = malloc(segment.size);
    if (bytes == NULL || !cs_remote_read(rec.remote, segment.address, bytes, segment.size))
      fail("what was read is not there any more");
    put(out, &segment, sizeof segment);
    put(out, bytes, segment.size);
    free(bytes);
    head->segments++;
  }
}

static void write_descriptor(FILE *out, struct world_head *head) {
  struct cs_contract_place place;
  struct cs_descriptor_head from;
  struct cs_error err = {.text = ""};
  if (!cs_remote_find_runtime(rec.remote, &place, &err)) fail(err.text);
  if (!cs_remote_read(rec.remote, place.descriptor, &from, sizeof from)) fail("no descriptor");
  size_t size = from.json_bytes + from.pointer_count * sizeof(uint64_t);
  uint8_t *bytes = malloc(size);
  if (bytes == NULL || !cs_remote_read(rec.remote, from.json, bytes, from.json_bytes) ||
      !cs_remote_read(rec.remote, from.pointers, bytes + from.json_bytes,
                      from.pointer_count * sizeof(uint64_t)))
    fail("the descriptor cannot be read");
  put(out, bytes, size);
  free(bytes);
  head->json_bytes = from.json_bytes;
  head->pointers = from.pointer_count;
}

static void write_file(const char *path) {
  const struct cs_layout *l = &rec.world.layout;
  struct world_head head = {.magic = WORLD_MAGIC,
                            .threads = rec.thread_count,
                            .rule_bytes = sizeof(struct cs_cfi_rule),
                            .coreclr_begin = l->coreclr_begin,
                            .coreclr_end = l->coreclr_end,
                            .hijack_return_address = l->hijack.hijack_return_address,
                            .hijack_slot = l->hijack.hijack_slot};
  FILE *out = fopen(path, "we");
  if (out == NULL) fail("the file cannot be opened");
  put(out, &head, sizeof head);
  write_descriptor(out, &head);
  put(out, rec.threads, rec.thread_count * sizeof rec.threads[0]);
  write_images(out, &head);
  write_memory(out, &head);
  rewind(out);
  put(out, &head, sizeof head);
  if (fclose(out) != 0) fail("the file cannot be written");
}

int main(int argc, char **argv) {
  struct cs_error err = {.text = ""};
  if (argc != 3 || atoi(argv[1]) <= 0) {
    (void)fprintf(stderr, "usage: record_world PID FILE\n");
    return 2;
  }
  rec.remote = cs_remote_open(atoi(argv[1]), &err);
  if (rec.remote == NULL || !cs_remote_stop(rec.remote, &err)) fail(err.text);
  cs_remote_refresh_images(rec.remote);
  rec.world = *cs_remote_world(rec.remote);
  rec.world.mem.read = read_and_note;
  record_threads();
  write_file(argv[2]);
  cs_remote_close(rec.remote);
  return 0;
}
