// SPDX-License-Identifier: MIT
// codemap: finds the code that contains an ip: a jitted or ReadyToRun method (or funclet), a stub
// of the runtime, or a native image. Signal-safe: yes, all of it.
//
// Managed code is found in the runtime's own range-section map, nibble maps, code headers and
// ReadyToRun tables, through the offsets of struct cs_layout. What is never freed is read directly;
// what is under a "collectible" mark is read guarded.
#pragma once

#include "base/stop.h"
#include "contract/layout.h"
#include "mem/mem.h"

enum cs_code_kind {  // the kinds up to NATIVE fit in two bits of a call site's word
  CS_CODE_NONE,      // unknown code
  CS_CODE_JIT,       // jitted: an ordinary method, a dynamic method or an IL stub
  CS_CODE_R2R,       // ReadyToRun
  CS_CODE_NATIVE,    // an ELF image or the vdso
  CS_CODE_STUB,      // precode, jump stub, dispatch stub, delay-load thunk, ...: no unwind data
};

struct cs_image;  // images/images.h

struct cs_code {
  enum cs_code_kind kind;
  bool collectible;       // may be unloaded, so its memory is read guarded
  bool funclet;           // not the method's main body (R2R: only known from the unwind info)
  uint32_t stub_kind;     // CS_CODE_STUB: STUB_CODE_BLOCK_*; 0 if only the range is known
  uint64_t begin, end;    // [begin, end) of the unwind entry that contains the ip
  uint64_t base;          // added to relative addresses in the unwind data
  uint64_t unwind_info;   // address of the entry's UNWIND_INFO
  uint64_t method_start;  // of the main body (R2R: of the nearest entry that is not chained)
  uint64_t function_id;   // the code header's MethodDesc; 0 for R2R: see GetFunctionFromIP3
  const struct cs_image *image;  // CS_CODE_NATIVE
};

struct cs_images;  // images/images.h: an immutable, sorted table of native images
struct cs_loader;  // images/loader.h

// Everything that a walk reads besides the thread itself. There is one for each walked process.
struct cs_world {
  struct cs_mem mem;
  struct cs_layout layout;
  const struct cs_images *images;  // replaced as a whole (release); load with cs_load_acquire
  const struct cs_loader *loader;  // says when `images` is out of date; NULL: images never change
  struct cs_sites *sites;          // NULL: the unwind data of every frame is decoded each time
  bool unloads_are_reported;       // code_generation is incremented before any code is freed
  uint32_t code_generation;  // incremented when code is freed: an ip may then be in other code
};

// Reads what the process may free meanwhile. Returns false if it cannot be read, or `at` is 0.
CS_ISLAND static inline bool cs_world_read(const struct cs_world *world, uint64_t at, void *out,
                                           size_t size) {
  return at != 0 && cs_mem_read_guarded(&world->mem, at, out, size);
}

// Returns whether `image` contains the runtime. In a single-file program that is the program
// itself.
CS_ISLAND bool cs_image_is_runtime(const struct cs_world *world, const struct cs_image *image);

// Finds the code that contains `ip`. For a return address pass `ip - 1`, since a call may be a
// function's last instruction. `code->kind` is CS_CODE_NONE if the code is unknown. Returns
// CS_STOP_NONE, or why the map could not be read (CS_STOP_UNREADABLE, CS_STOP_NO_GUARD,
// CS_STOP_BAD_UNWIND, CS_STOP_INTERPRETED).
CS_ISLAND enum cs_stop cs_codemap_find(const struct cs_world *world, uint64_t ip,
                                       struct cs_code *code);
// What a walk keeps from one look-up to the next. Starts as {0}; valid for one walk.
struct cs_collectible_cache;  // codemap/collectible.h
struct cs_near {
  // The range section of the last managed code that was found, since neighbours on a stack are
  // often in one section. It is never that of collectible code.
  uint64_t begin, end;  // both 0: none yet
  uint64_t r2r_module, heap;
  uint32_t flags;
  // What was read of collectible code. A walk that has set it must call cs_collectible_release.
  struct cs_collectible_cache *cache;
  uint64_t prefetched;  // frame pointers below this address have been followed (unwind/ahead.h)
  uint64_t check_at;    // value of the time-stamp counter at which the walk must check its limit;
                        // from then on a run (walk/run.c) looks up no new code. 0: no limit
};
// Like cs_codemap_find. If the ip is in the same section, the search among images and the map's
// seven loads are saved.
CS_ISLAND enum cs_stop cs_codemap_find_near(const struct cs_world *world, uint64_t ip,
                                            struct cs_near *near, struct cs_code *code);
// The same for managed code and stubs only.
CS_ISLAND enum cs_stop cs_codemap_find_managed_near(const struct cs_world *world, uint64_t ip,
                                                    struct cs_near *near, struct cs_code *code);
CS_ISLAND enum cs_stop cs_codemap_find_managed(const struct cs_world *world, uint64_t ip,
                                               struct cs_code *code);

CS_ISLAND static inline bool cs_code_is_managed(const struct cs_code *code) {
  return code->kind == CS_CODE_JIT || code->kind == CS_CODE_R2R;
}
