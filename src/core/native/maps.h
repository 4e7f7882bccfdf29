// SPDX-License-Identifier: MIT
// The executable file mappings of a process, and guarded reads of its memory. Not for handlers.
#pragma once

#include "base/error.h"
#include "base/own_file.h"
#include "native/cursor.h"

// A contiguous executable part of a file (neighbouring mappings are joined), or the vdso. A file
// with several executable segments that do not touch has several candidates, and becomes several
// images.
struct cs_candidate {
  uint64_t begin, end;
  uint64_t offset;  // of `begin` in the file
  uint64_t base;    // address of the file's first byte
  uint64_t inode;
  uint32_t device;   // major << 20 | minor
  const char *path;  // in `text`
};

struct cs_maps {
  char *text;  // the file's content, split into strings
  size_t text_capacity;
  struct cs_candidate *candidate;  // sorted by address
  uint32_t count;
  size_t capacity;
};

// One line of the maps, of any kind.
struct cs_mapping {
  uint64_t begin, end, offset, inode;
  uint32_t device;  // major << 20 | minor
  bool readable, writable, executable;
  const char *path;  // "" if it has none; of a deleted file it ends in " (deleted)"
};

// Reads /proc/PID/maps (pid 0: of this process). Earlier content is overwritten.
bool cs_maps_read(struct cs_maps *maps, int pid, struct cs_error *err);
// Calls `visit` for each mapping, in ascending order, until it returns false. `maps` has no
// candidates afterwards.
bool cs_maps_each(struct cs_maps *maps, int pid,
                  bool (*visit)(const struct cs_mapping *mapping, void *arg), void *arg,
                  struct cs_error *err);
// Returns whether the path is that of a file called `name`, in any directory, deleted or not.
bool cs_path_is(const char *path, const char *name);
void cs_maps_free(struct cs_maps *maps);

// A process whose memory is read without a lock, and without faults even if it is unmapped
// meanwhile.
struct cs_process_memory {
  int pid;
  struct cs_own_file mem;  // /proc/PID/mem, used after process_vm_readv was refused
};
void cs_process_memory_init(struct cs_process_memory *process, int pid);
void cs_process_memory_close(struct cs_process_memory *process);
// Reads all `len` bytes, or returns false.
bool cs_process_memory_read(struct cs_process_memory *process, uint64_t address, void *dst,
                            size_t len);
