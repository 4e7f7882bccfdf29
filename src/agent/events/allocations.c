// SPDX-License-Identifier: MIT
// .NET 10 samples allocations at random. .NET 9 does not: when 100 KiB have been allocated in a
// part of the heap since its last tick, it reports the object that filled this quota, and the exact
// number of bytes. The sum of the ticks is the sum of all bytes. Small objects share blocks of
// about 8 KiB, and the reported object is the one for which a block was taken; an object of more
// than 8 KiB has a block of its own.
//
// The probability that a block fills the quota is proportional to the block's size, so each tick
// must stand for the same amount, 100 KiB, whatever block it reports. The excess, which is larger
// for larger blocks, goes to the next tick. That is right if objects come in no particular order.
// After a tick the runtime counts from 0 again, so in a program that repeats a sequence of
// allocations, the same few objects may fill the quota each time: of two alternating objects of
// 90,000 bytes, always the second. No weight corrects that. But large objects are taken from the
// callback that reports every one of them, and the ticks of their part of the heap are left out.
//
// Invariant: of each object either its own bytes are counted, or those that a tick has. Threads:
// the runtime's, several at a time. Signal-safe: no.
#include "events/allocations.h"

#include "clr_names/class.h"
#include "clr_names/text.h"
#include "contract/supported.h"
#include "events/payload.h"
#include "life/library.h"
#include "state/state.h"
#include "state/sums.h"
#include "state/throttle.h"

enum { TICK = 102400 };  // bytes from one sampled object to the next, on average or at least

bool cs_allocations_have_ticks(void) {
  return cs_wants(CS_WIRE_MODE_ALLOC) &&
         cs_library.world.layout.runtime_major < CS_SAMPLING_RUNTIME;
}

// 1 - e^-x, without libm, which the program may not have loaded.
static double one_less_exp(double x) {
  int doublings = 0;
  if (x > 40) return 1;
  for (; x > 0.01; doublings++) x /= 2;
  double y = x * (1 - x / 2 * (1 - x / 3 * (1 - x / 4)));
  while (doublings-- > 0) y *= 2 - y;
  return y;
}

// The runtime samples one of 102,400 bytes at random, and reports the object that contains it. So
// an object stands for its size divided by the probability that one of that size is reported.
static uint64_t estimate(uint64_t size) {
  double bytes = (double)size;
  return size == 0 ? 0 : (uint64_t)(bytes / one_less_exp(bytes / TICK) + 0.5);
}

// An object of a class that stands for so many bytes. Returns false if it is not to be walked.
static bool weigh(uint64_t type, uint64_t bytes, struct cs_sample_event *e) {
  e->class = type;
  return cs_throttle_take(CS_WIRE_MODE_ALLOC, bytes, cs_type_sum_of(type), &e->weight) &&
         e->weight > 0;
}

bool cs_allocation_read_sampled(struct cs_bytes *p, struct cs_sample_event *e) {
  uint64_t type, size;
  // kind, CLR instance, id of the type; the name; the heap; the object's address
  if (!cs_take(p, NULL, 4 + 2) || !cs_take(p, &type, sizeof type)) return false;
  struct cs_bytes name = *p;
  return cs_payload_pass_text(p) && cs_take(p, NULL, 8) && cs_take(p, &size, sizeof size) &&
         weigh(type, estimate(size), e) && cs_payload_take_name(&name, 0, &e->type);
}

// What the tick's object stands for, of the bytes since the tick before. One that is larger than
// the limit is met always, and stands for itself.
static uint64_t share_of_tick(uint64_t bytes, uint64_t size) {
  static uint64_t excess;  // atomic: of earlier ticks; at most some 100 KiB
  uint64_t own = size > TICK ? size : TICK;
  if (own > bytes) own = bytes;
  uint64_t earlier = size > TICK ? 0 : cs_take_seq(&excess, 0u);
  cs_add_seq(&excess, bytes - own);
  return own + earlier;
}

bool cs_allocation_read_tick(struct cs_bytes *p, struct cs_sample_event *e) {
  enum { LARGE = 1 };
  uint32_t part;
  uint64_t bytes, type, size;
  // 32 bits of the amount, the part of the heap, CLR instance, amount, id of the type; the name;
  // the heap, the object's address, its size
  if (!cs_take(p, NULL, 4) || !cs_take(p, &part, sizeof part) || part == LARGE ||
      !cs_take(p, NULL, 2) || !cs_take(p, &bytes, sizeof bytes) || !cs_take(p, &type, sizeof type))
    return false;
  struct cs_bytes name = *p;
  return cs_payload_pass_text(p) && cs_take(p, NULL, 4 + 8) && cs_take(p, &size, sizeof size) &&
         weigh(type, share_of_tick(bytes, size), e) && cs_payload_take_name(&name, 0, &e->type);
}

// A large object that is pinned is in another part of the heap, which has ticks.
bool cs_allocation_read_large(uint64_t object, uint64_t class, struct cs_sample_event *e,
                              char name[CS_EVENT_NAME_BYTES]) {
  enum { LARGE_OBJECT_HEAP = 3 };  // of COR_PRF_GC_GENERATION
  ICorProfilerInfo15 *info = cs_agent.info;
  COR_PRF_GC_GENERATION_RANGE range;
  SIZE_T bytes = 0;
  if (info == NULL || info->lpVtbl->GetObjectGeneration(info, object, &range) != S_OK ||
      range.generation != LARGE_OBJECT_HEAP ||
      info->lpVtbl->GetObjectSize2(info, object, &bytes) != S_OK || !weigh(class, bytes, e))
    return false;
  struct cs_text_out out = cs_text_begin(name, CS_EVENT_NAME_BYTES);
  cs_class_write_as_event(info, class, &out);
  return true;
}
