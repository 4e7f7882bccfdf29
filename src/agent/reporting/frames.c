// SPDX-License-Identifier: MIT
// Frames of samples. The walk has noted only in what kind of code an ip is; the agent's thread has
// time to find the method, stub or image, once for each ip.
//
// Invariants: the code map is read inside the epoch, since it may be freed; images are those of the
// table that the walk has used, which is kept until then; the CLR is called outside of the epoch.
// Collectible code is named only if none has been unloaded since the sample was taken. The agent's
// thread only. Signal-safe: no.
#include "reporting/frames.h"

#include <string.h>

#include "base/grow.h"
#include "base/hash.h"
#include "life/library.h"
#include "reporting/images.h"
#include "reporting/methods.h"
#include "reporting/unload.h"

#include "state/state.h"
enum { CACHE_BITS = 14 };  // 16,384 ips, 256 KiB: the call sites of a large program

struct cached {
  uint64_t frame;  // as in the ring; 0: free
  uint64_t wire;
};
static struct cached cache[1 << CACHE_BITS];
static uint32_t cache_generation;

static struct cached *slot_of(uint64_t frame) {
  return &cache[cs_hash_word(frame, CACHE_BITS)];
}

// Within one generation, a managed ip always means the same.
static void check_cache(uint32_t generation) {
  if (generation == cache_generation) return;
  memset(cache, 0, sizeof cache);
  cache_generation = generation;
}

static bool native_to_wire(const struct cs_image *image, uint64_t ip, uint64_t *out) {
  uint32_t id;
  if (!cs_image_to_wire(image, &id)) return false;
  *out = cs_wire_native_frame(id, ip - image->begin);
  return true;
}

static bool unloaded_to_wire(uint64_t *out) {
  uint32_t id;
  if (!cs_unloaded_to_wire(&id)) return false;
  *out = cs_wire_managed_frame(id, 0, false);
  return true;
}

// Finds the code that the ip was in. Returns true if it is native: then *out is set, unless there
// was no room for it, which sets *full. Otherwise sets *code. Images are looked up in the walk's
// table, because other images may have taken their place since.
static bool look_up(uint64_t frame, const struct cs_frame_origin *origin, struct cs_code *code,
                    uint64_t *out, bool *full) {
  uint64_t ip = CS_FRAME_WORD_IP(frame), at = (frame & CS_FRAME_WORD_EXACT) != 0 ? ip : ip - 1;
  bool native = origin->all || CS_FRAME_WORD_KIND(frame) == CS_CODE_NATIVE;
  const struct cs_image *image =
      native && origin->images != NULL ? cs_images_find(origin->images, at) : NULL;
  *full = false;
  if (image != NULL) {
    *full = !native_to_wire(image, ip, out);
    return true;
  }
  uint32_t parity = cs_epoch_enter(&cs_signal.epoch);
  if (cs_codemap_find_managed(&cs_library.world, at, code) != CS_STOP_NONE)
    code->kind = CS_CODE_NONE;
  cs_epoch_leave(&cs_signal.epoch, parity);
  return false;
}

static bool managed_to_wire(uint64_t frame, const struct cs_code *code, uint32_t generation,
                            uint64_t *out) {
  uint32_t id, now = cs_load_acquire(&cs_library.world.code_generation);
  if (code->collectible && !cs_unload_is_alive(generation)) return unloaded_to_wire(out);
  struct cs_method_at method = {code->method_start, code->function_id, code->collectible, now};
  if (!cs_method_at_to_wire(&method, &id)) return false;
  *out = cs_wire_managed_frame(id, CS_FRAME_WORD_IP(frame) - code->method_start,
                               (frame & CS_FRAME_WORD_EXACT) != 0);
  return true;
}

static bool translate(uint64_t frame, const struct cs_frame_origin *origin, uint64_t *out) {
  uint32_t generation = origin->code_generation;
  uint64_t ip = CS_FRAME_WORD_IP(frame);
  enum cs_code_kind walked = CS_FRAME_WORD_KIND(frame);
  struct cs_code code;
  bool full, walked_managed = walked == CS_CODE_JIT || walked == CS_CODE_R2R;
  if (look_up(frame, origin, &code, out, &full)) {
    // The library may not have been known during the walk; if the walk found managed code there,
    // the library was loaded since.
    return walked_managed ? unloaded_to_wire(out) : !full;
  }
  if (walked_managed)
    return cs_code_is_managed(&code) ? managed_to_wire(frame, &code, generation, out)
                                     : unloaded_to_wire(out);
  uint32_t id;
  if (walked == CS_CODE_STUB) {
    uint32_t kind = code.kind == CS_CODE_STUB ? code.stub_kind : 0;
    if (kind == 0 && !cs_unknown_to_wire(ip, &id)) return false;
    if ((kind != 0 || id == 0) && !cs_stub_to_wire(kind, &id)) return false;
  } else if (!cs_unknown_to_wire(ip, &id)) {
    return false;
  }
  *out = id != 0 ? cs_wire_managed_frame(id, 0, false) : cs_wire_unknown_frame(ip);
  return true;
}

bool cs_frame_to_wire(uint64_t frame, const struct cs_frame_origin *origin, uint64_t *out) {
  uint32_t code_generation = origin->code_generation;
  check_cache(code_generation);
  struct cached *cached = slot_of(frame);
  if (cached->frame == frame) {
    *out = cached->wire;
    return true;
  }
  if (!translate(frame, origin, out)) return false;
  // What was found under a newer generation must not be cached under the sample's. Native images
  // come and go without a new generation, and are found fast.
  if (cs_load_acquire(&cs_library.world.code_generation) == code_generation &&
      CS_WIRE_FRAME_KIND(*out) == CS_WIRE_FRAME_MANAGED)
    *cached = (struct cached){frame, *out};
  return true;
}

void cs_frames_forget(void) {
  cs_pages_zero(cache, sizeof cache);
}
