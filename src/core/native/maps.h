// SPDX-License-Identifier: MIT
// A process' executable file mappings, and guarded reads of its memory. Not for handlers.
#ifndef CS_NATIVE_MAPS_H
#define CS_NATIVE_MAPS_H

#include "base/error.h"
#include "native/cursor.h"

// One executable stretch of one file (neighbouring mappings of it joined), or the vdso. A file with
// several executable segments that do not touch is several candidates, and becomes several images.
struct cs_candidate {
  uint64_t begin, end;
  uint64_t offset;  // of `begin` in the file
  uint64_t base;    // where the file's first byte is mapped
  uint64_t inode;
  uint32_t device;   // major << 20 | minor
  const char *path;  // in `text`
};

struct cs_maps {
  char *text;  // the file as it was read, cut into strings
  size_t text_capacity;
  struct cs_candidate *candidate;  // sorted by address
  uint32_t count, capacity;
};

// One line of the maps, whatever is mapped.
struct cs_mapping {
  uint64_t begin, end, offset, inode;
  uint32_t device;  // major << 20 | minor
  bool readable, writable, executable;
  const char *path;  // "" when it has none; a deleted file's ends in " (deleted)"
};

// Reads /proc/PID/maps (pid 0: self). What was there before is overwritten.
bool cs_maps_read(struct cs_maps *maps, int pid, struct cs_error *err);
// Calls `visit` for each mapping, by rising address, until it answers false; `maps` has no
// candidates afterwards.
bool cs_maps_each(struct cs_maps *maps, int pid,
                  bool (*visit)(const struct cs_mapping *mapping, void *arg), void *arg,
                  struct cs_error *err);
// Is it the file NAME, in whatever folder, deleted or not?
bool cs_path_is(const char *path, const char *name);
void cs_maps_free(struct cs_maps *maps);

// A process whose memory is read without a fault and without a lock, whatever is unmapped
// meanwhile.
struct cs_process_memory {
  int pid;
  int mem_fd;  // /proc/PID/mem, once process_vm_readv has been refused; else -1
};
void cs_process_memory_init(struct cs_process_memory *process, int pid);
void cs_process_memory_close(struct cs_process_memory *process);
// Reads all of it or answers false.
bool cs_process_memory_read(struct cs_process_memory *process, uint64_t address, void *dst,
                            size_t len);

#endif
