// SPDX-License-Identifier: MIT
// Loads a recorded world. The stacks lie at their own addresses, between guard pages, since the
// loop over known return addresses (walk/run.c) loads their words as a handler does. One thread.
#include "world.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "codemap/method.h"
#include "contract/contract.h"
#include "contract/descriptor.h"
#include "remote/il.h"

enum { PAGE = 4096, BLOCK_BITS = 16, MOST_WORLD_BYTES = 4 << 20 };

static void fail(const char *path, const char *why) {
  (void)fprintf(stderr, "%s: %s\n", path, why);
  exit(1);
}

struct input {
  const char *path;
  const uint8_t *at, *end;
};

static const void *take(struct input *in, size_t count, size_t size) {
  const uint8_t *at = in->at;
  if (count != 0 && (size_t)(in->end - in->at) / count < size)
    fail(in->path, "the recorded world is cut off");
  in->at += count * size;
  return at;
}

static void *get_memory(size_t count, size_t size) {
  void *memory = calloc(count + 1, size);
  if (memory == NULL) abort();
  return memory;
}

static void *copy(struct input *in, size_t count, size_t size) {
  const void *from = take(in, count, size);
  void *to = get_memory(count, size);
  if (count != 0) memcpy(to, from, count * size);
  return to;
}

static uint8_t *read_file(const char *path, size_t *size) {
  uint8_t *bytes = get_memory(MOST_WORLD_BYTES, 1);
  FILE *in = fopen(path, "re");
  if (in == NULL) fail(path, "cannot be opened");
  *size = fread(bytes, 1, MOST_WORLD_BYTES, in);
  (void)fclose(in);
  return bytes;
}

// ---- Memory ----

uint8_t *world_at(const struct recorded *w, uint64_t address, uint64_t *left) {
  uint32_t lo = 0, hi = w->segment_count;
  while (lo < hi) {  // the first segment that ends after the address is in [lo, hi]
    uint32_t mid = lo + (hi - lo) / 2;
    if (w->segments[mid].address + w->segments[mid].size <= address)
      lo = mid + 1;
    else
      hi = mid;
  }
  if (lo == w->segment_count || address < w->segments[lo].address) return NULL;
  uint64_t offset = address - w->segments[lo].address;
  *left = w->segments[lo].size - offset;
  return w->segments[lo].bytes + offset;
}

static bool read_recorded(const struct cs_mem *mem, uint64_t address, void *dst, size_t len) {
  struct recorded *w = (struct recorded *)(uintptr_t)mem;
  uint64_t left;
  w->reads++;
  const uint8_t *bytes = world_at(w, address, &left);
  if (bytes == NULL || left < len) {
    w->refused++;
    return false;
  }
  memcpy(dst, bytes, len);
  return true;
}
_Static_assert(offsetof(struct recorded, world) == 0 && offsetof(struct cs_world, mem) == 0,
               "the source of memory leads to its world");

static void *map_at(uint64_t address, uint64_t size, int protection) {
  void *want = (void *)(uintptr_t)address;
  void *got = mmap(want, size, protection,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
  if (got != MAP_FAILED && got != want) (void)munmap(got, size);
  return got == want ? got : NULL;
}

// The thread's own stack at its own place; its segments are moved there.
static bool place_stack(struct recorded *w, const struct cs_stack *stack) {
  uint64_t size = stack->hi - stack->lo;
  if (map_at(stack->lo - PAGE, PAGE, PROT_NONE) == NULL ||
      map_at(stack->lo, size, PROT_READ | PROT_WRITE) == NULL ||
      map_at(stack->hi, PAGE, PROT_NONE) == NULL)
    return false;
  for (uint32_t i = 0; i < w->segment_count; i++) {
    struct segment *s = &w->segments[i];
    if (s->address < stack->lo || s->address >= stack->hi) continue;
    memcpy((void *)(uintptr_t)s->address, s->bytes, s->size);
    free(s->bytes);
    s->bytes = (void *)(uintptr_t)s->address;
  }
  return true;
}

// ---- Images ----

static void index_blocks(struct cs_image *image) {
  uint32_t last = image->row_ip[image->row_count - 1], row = 0;
  image->block_bits = BLOCK_BITS;
  image->block_count = (last >> BLOCK_BITS) + 1;
  uint32_t *blocks = get_memory(image->block_count, sizeof *blocks);
  for (uint32_t block = 0; block < image->block_count; block++) {
    while (row + 1 < image->row_count && image->row_ip[row + 1] <= block << BLOCK_BITS) row++;
    blocks[block] = row;
  }
  image->block_row = blocks;
}

static void load_rows(struct input *in, struct cs_image *image, const struct world_head *head) {
  struct world_row *rows = copy(in, image->row_count, sizeof *rows);
  uint32_t *ip = get_memory(image->row_count, sizeof *ip);
  uint16_t *rule = get_memory(image->row_count, sizeof *rule);
  for (uint32_t i = 0; i < image->row_count; i++) {
    ip[i] = rows[i].ip;
    rule[i] = rows[i].rule;
    if (rule[i] >= head->rules && rule[i] != CS_NO_RULE) fail(in->path, "a rule is not there");
  }
  free(rows);
  image->row_ip = ip;
  image->row_rule = rule;
  if (image->row_count != 0) index_blocks(image);
}

static void load_images(struct recorded *w, struct input *in, const struct world_head *head) {
  struct cs_images *images = get_memory(1, sizeof *images + head->images * sizeof(struct cs_image));
  const struct world_image *recorded = copy(in, head->images, sizeof *recorded);
  images->sequence = 1;
  images->count = head->images;
  for (uint32_t i = 0; i < head->images; i++) {
    struct cs_image *image = &images->image[i];
    image->begin = recorded[i].begin;
    image->end = recorded[i].end;
    image->row_count = recorded[i].row_count;
    image->is_coreclr = recorded[i].is_coreclr != 0;
    image->path = image->is_coreclr ? "/libcoreclr.so" : "/library.so";
    image->id_size = recorded[i].id_size;
    image->id_address = recorded[i].id_address;
    memcpy(image->id, recorded[i].id, sizeof image->id);
    load_rows(in, image, head);
  }
  free((void *)(uintptr_t)recorded);
  images->rules = copy(in, head->rules, sizeof(struct cs_cfi_rule));
  w->world.images = images;
}

static void load_layout(struct recorded *w, struct input *in, const struct world_head *head) {
  struct cs_error err = {.text = ""};
  const char *json = take(in, head->json_bytes, 1);
  uint64_t *pointers = copy(in, head->pointers, sizeof *pointers);
  if (!cs_descriptor_parse(json, head->json_bytes, pointers, head->pointers, &w->world.layout,
                           &err))
    fail(in->path, err.text);
  free(pointers);
  w->world.layout.coreclr_begin = head->coreclr_begin;
  w->world.layout.coreclr_end = head->coreclr_end;
  w->world.layout.hijack.hijack_return_address = head->hijack_return_address;
  w->world.layout.hijack.hijack_slot = head->hijack_slot;
  w->world.layout.runtime_major = 10;
  cs_contract_add_measured(&w->world.layout);
}

static void load_segments(struct recorded *w, struct input *in, uint32_t count) {
  w->segments = get_memory(count, sizeof *w->segments);
  w->segment_count = count;
  for (uint32_t i = 0; i < count; i++) {
    struct world_segment head;
    memcpy(&head, take(in, 1, sizeof head), sizeof head);
    w->segments[i] = (struct segment){head.address, head.size, copy(in, head.size, 1)};
  }
}

void world_load(struct recorded *w, const char *path) {
  size_t size;
  uint8_t *bytes = read_file(path, &size);
  struct input in = {path, bytes, bytes + size};
  struct world_head head;
  memset(w, 0, sizeof *w);
  memcpy(&head, take(&in, 1, sizeof head), sizeof head);
  if (memcmp(head.magic, WORLD_MAGIC, sizeof head.magic) != 0 ||
      head.rule_bytes != sizeof(struct cs_cfi_rule))
    fail(path, "the world was recorded by another version: see record_world.c");
  load_layout(w, &in, &head);
  w->threads = copy(&in, head.threads, sizeof *w->threads);
  w->thread_count = head.threads;
  load_images(w, &in, &head);
  load_segments(w, &in, head.segments);
  free(bytes);
  w->world.mem =
      (struct cs_mem){.read = read_recorded, .guard_works = true, .stack_in_place = true};
  w->world.unloads_are_reported = true;
  for (uint32_t i = 0; i < w->thread_count; i++)
    if (!place_stack(w, &w->threads[i].stack))
      fail(path, "this process has something where a recorded stack belongs: start it again");
}

// ---- Questions ----

unsigned world_ask_about(const struct cs_world *world, const struct cs_frame *frame) {
  struct cs_method method;
  uint64_t id = frame->code.function_id, start = frame->code.method_start, ip;
  uint32_t il;
  unsigned found = 0;
  if (!cs_code_is_managed(&frame->code)) return 0;
  ip = frame->regs.r[CS_RIP] - ((frame->flags & CS_FRAME_EXACT) != 0 ? 0 : 1);
  if (frame->code.kind == CS_CODE_R2R) found += cs_method_of_r2r(world, ip, &id, &start);
  found += id != 0 && cs_method_read(world, id, &method);
  found += cs_il_find(world, frame->code.kind, start, ip, &il);
  return found;
}
