// SPDX-License-Identifier: MIT
// Private to room remote. Not for handlers.
#ifndef CS_REMOTE_PRIVATE_H
#define CS_REMOTE_PRIVATE_H

#include "contract/contract.h"
#include "native/maps.h"
#include "remote/remote.h"

enum {
  CS_PAGE_BYTES = 4096,
  // 16 MiB of pages: those of a whole .NET process' stacks, code headers and unwind data.
  CS_PAGE_SLOTS = 4096,
};

struct cs_page {
  uint64_t number;      // address / CS_PAGE_BYTES
  uint64_t generation;  // valid only if it is the cache's
  bool readable;
};

struct cs_page_cache {
  struct cs_process_memory *process;
  uint64_t generation;  // counts invalidations, from 1
  struct cs_page page[CS_PAGE_SLOTS];
  uint8_t *bytes;  // CS_PAGE_BYTES each
};
bool cs_page_cache_init(struct cs_page_cache *cache, struct cs_process_memory *process);
void cs_page_cache_free(struct cs_page_cache *cache);
bool cs_page_cache_read(struct cs_page_cache *cache, uint64_t address, void *dst, size_t len);

struct cs_stopped {
  int *tid;
  int *signal;  // that was about to be delivered when it stopped; 0: none
  unsigned count, capacity;
};

// A mapping that a stack may be.
struct cs_area {
  uint64_t begin, end;
  bool first_stack;  // the one that the kernel names as the first thread's
};

enum { CS_GC_METHODS = 93 };
// The methods of the collector's interface (collector.c), as of a generation of the cache.
struct cs_gc_methods {
  uint64_t generation;  // 0: never read
  bool known;
  uint64_t method[CS_GC_METHODS];
};

struct cs_remote {
  struct cs_world world;  // first: its mem is found again by its address
  int pid;
  struct cs_process_memory process;
  struct cs_page_cache cache;
  struct cs_maps maps;
  struct cs_native *native;
  struct cs_area *areas;  // as of the generation of the cache
  size_t area_count, area_capacity;
  uint64_t areas_generation;
  uint64_t unwind_index;  // the runtime's .eh_frame_hdr; 0: not found
  struct cs_gc_methods gc_methods;
  uint64_t debug_table;    // g_dacTable (collector.c); 0: not found
  bool own_namespace;      // of process ids: the runtime knows its threads by other numbers than we
  struct cs_stopped told;  // to stop, and not waited for yet
  struct cs_stopped stopped;
};

// Has the process a namespace of process ids that is not ours?
bool cs_remote_in_namespace(int pid);

// Finds CoreCLR in the process' maps, its descriptor and its table for the debugger among the
// symbols that it exports.
bool cs_remote_find_runtime(struct cs_remote *remote, struct cs_contract_place *place,
                            struct cs_error *err);

#endif
