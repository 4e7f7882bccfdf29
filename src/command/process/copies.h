// SPDX-License-Identifier: MIT
// Files of ours for a process that cannot see them, such as one in a container. They are copied
// into a directory that the process sees, with the rights of its user, and removed as soon as they
// are no longer needed, even if this command is killed. One thread.
#pragma once

#include "process/target.h"

enum { CS_COPY_FILES = 2, CS_COPY_FOLDERS = 4 };

struct cs_copy_request {
  uid_t uid;  // the process's user, which is to own the files
  gid_t gid;
  const char *folders[CS_COPY_FOLDERS + 1];  // to try, as the process calls them; up to a NULL
  char name[96];                             // of the directory to make there
  const char *files[CS_COPY_FILES + 1];      // absolute paths, up to a NULL
  bool dry_run;                              // make nothing, only find out whether it would work
  bool (*wanted)(void *context);  // polled; when it returns false, the wait ends. NULL: never
  void *context;
};

struct cs_copies {
  const char *folder;  // that they were copied into; NULL: the process sees our own files
  pid_t keeper;        // the child that removes them; 0: none
  int lifeline;
};

// Returns false if this command may not open as many files as cs_copies_make() does; *err says so.
bool cs_copies_check_limit(const struct cs_copy_request *request, struct cs_error *err);
// Returns false on failure; *err says why no directory takes them.
bool cs_copies_make(const struct cs_target *target, const struct cs_copy_request *request,
                    struct cs_copies *out, struct cs_error *err);
void cs_copies_remove(struct cs_copies *copies);  // may be called again
