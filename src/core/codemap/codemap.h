// SPDX-License-Identifier: MIT
// codemap: from an instruction's address to the code that it belongs to: a jitted or ReadyToRun
// method (or funclet), a stub of the runtime, or a native image. Signal-safe: yes, all of it.
//
// Source for managed code is the runtime's own range-section map, nibble maps, code headers and
// ReadyToRun tables, read through the offsets of `cs_layout`. What can never be freed is read
// directly; what lies under a "collectible" mark is read guarded.
#ifndef CS_CODEMAP_CODEMAP_H
#define CS_CODEMAP_CODEMAP_H

#include "base/stop.h"
#include "contract/layout.h"
#include "mem/mem.h"

enum cs_code_kind {  // those up to NATIVE have two bits in a call site's word (unwind/sites.h)
  CS_CODE_NONE,      // in nothing that is known
  CS_CODE_JIT,       // jitted: ordinary, dynamic method or IL stub
  CS_CODE_R2R,       // ReadyToRun
  CS_CODE_NATIVE,    // an ELF image or the vdso
  CS_CODE_STUB,      // precode, jump stub, dispatch stub, delay-load thunk ...: no unwind data
};

struct cs_image;  // images/images.h

struct cs_code {
  enum cs_code_kind kind;
  bool collectible;       // may be unloaded: its memory is read guarded
  bool funclet;           // not the method's main body (R2R: only known when the infos say so)
  uint32_t stub_kind;     // CS_CODE_STUB: the runtime's STUB_CODE_BLOCK_* value, 0 if only a range
  uint64_t begin, end;    // of the unwind entry that holds the ip: [begin, end)
  uint64_t base;          // what the unwind data's relative addresses are relative to
  uint64_t unwind_info;   // address of the entry's UNWIND_INFO
  uint64_t method_start;  // start of the method's main body (R2R: of the nearest non-chained entry)
  uint64_t function_id;   // MethodDesc from the code header; 0 for R2R: ask GetFunctionFromIP3
  const struct cs_image *image;  // CS_CODE_NATIVE
};

struct cs_images;  // images/images.h: an immutable, sorted table of native images
struct cs_loader;  // images/loader.h

// Everything that a walk reads besides the thread itself. One per process that is walked.
struct cs_world {
  struct cs_mem mem;
  struct cs_layout layout;
  const struct cs_images *images;  // replaced as a whole (release); load with cs_load_acquire
  const struct cs_loader *loader;  // tells when `images` is old; NULL: nothing comes or goes
  struct cs_sites *sites;          // NULL: every frame's unwind data is decoded anew
  bool deaths_are_told;      // whatever code dies bumps code_generation before its memory is freed
  uint32_t code_generation;  // bumped whenever code died: ips before and after are not the same
};

// Is the runtime in that image? Of a program that is a single file it is the program itself.
CS_ISLAND bool cs_image_is_runtime(const struct cs_world *world, const struct cs_image *image);

// Finds what `ip` is in. For a return address pass `ip - 1` (a call may be a function's last
// instruction). `code->kind` is CS_CODE_NONE when nothing is known of it. Answers CS_STOP_NONE, or
// why the map could not be read (CS_STOP_UNREADABLE, CS_STOP_NO_GUARD, CS_STOP_BAD_UNWIND).
CS_ISLAND enum cs_stop cs_codemap_find(const struct cs_world *world, uint64_t ip,
                                       struct cs_code *code);
// What a walk keeps from one look-up to the next. Begins as {0}; good for as long as one walk.
struct cs_mortal;  // codemap/mortal.h
struct cs_near {
  // Where the last look-up of managed code ended: neighbours on a stack are often neighbours in the
  // map. Never of code that can die.
  uint64_t begin, end;  // a range section; 0 and 0: none yet
  uint64_t r2r_module, heap;
  uint32_t flags;
  // What was read of code that can die. Whoever has had such a look-up calls cs_mortal_release.
  struct cs_mortal *mortal;
  uint64_t look_at;  // of the time-stamp counter, from when on nothing new is learnt in a run; 0:
                     // the walk has no limit
};
// cs_codemap_find, with that. A hit saves the search among images and the map's seven loads.
CS_ISLAND enum cs_stop cs_codemap_find_near(const struct cs_world *world, uint64_t ip,
                                            struct cs_near *near, struct cs_code *code);
// Both for managed code and stubs only.
CS_ISLAND enum cs_stop cs_codemap_find_managed_near(const struct cs_world *world, uint64_t ip,
                                                    struct cs_near *near, struct cs_code *code);
CS_ISLAND enum cs_stop cs_codemap_find_managed(const struct cs_world *world, uint64_t ip,
                                               struct cs_code *code);

CS_ISLAND static inline bool cs_code_is_managed(const struct cs_code *code) {
  return code->kind == CS_CODE_JIT || code->kind == CS_CODE_R2R;
}

#endif
