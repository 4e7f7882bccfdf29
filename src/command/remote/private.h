// SPDX-License-Identifier: MIT
// Private to component remote. Not for handlers.
#pragma once

#include "contract/contract.h"
#include "native/maps.h"
#include "remote/remote.h"

enum {
  CS_PAGE_BYTES = 4096,
  // 16 MiB: the pages of a whole .NET process's stacks, code headers and unwind data.
  CS_PAGE_SLOTS = 4096,
};

struct cs_page {
  uint64_t number;  // address / CS_PAGE_BYTES
  // The cache's generation when the page was read: the page is valid while it is the same.
  uint64_t generation;
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
  int *signal;  // that was about to be delivered when the thread stopped; 0: none
  unsigned count, capacity;
};

// A mapping that may contain a stack.
struct cs_area {
  uint64_t begin, end;
  bool first_stack;  // the kernel marks it as the first thread's stack
};

enum { CS_GC_METHODS = 93 };
// The methods of the collector's interface (collector.c), read in a generation of the cache.
struct cs_gc_methods {
  uint64_t generation;  // 0: never read
  bool known;
  uint64_t method[CS_GC_METHODS];
};

struct cs_remote {
  struct cs_world world;  // first: remote.c derives this struct's address from that of its mem
  int pid;
  struct cs_process_memory process;
  struct cs_page_cache cache;
  struct cs_maps maps;
  struct cs_native *native;
  struct cs_area *areas;  // read in areas_generation
  size_t area_count, area_capacity;
  uint64_t areas_generation;
  uint64_t unwind_index;  // the runtime's .eh_frame_hdr; 0: not found
  struct cs_gc_methods gc_methods;
  uint64_t debug_table;     // g_dacTable (collector.c); 0: not found
  bool own_namespace;       // of PIDs: the runtime has other ids for its threads than we have
  struct cs_stopped asked;  // to stop, and not waited for yet
  struct cs_stopped late;   // asked to stop, and waited for in vain
  uint64_t patience_ns;     // of cs_remote_stop
  struct cs_stopped stopped;
};

// Returns whether the process has a PID namespace other than ours.
bool cs_remote_in_namespace(int pid);

// Finds CoreCLR in the process's maps, and among its exported symbols its descriptor and its table
// for the debugger.
bool cs_remote_find_runtime(struct cs_remote *remote, struct cs_contract_place *place,
                            struct cs_error *err);
