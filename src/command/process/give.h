// SPDX-License-Identifier: MIT
// Files of ours that a process is to load, for a process that does not see them: one in a
// container. They are copied for as long as they are needed into a folder of its own, as its user,
// and taken away again even when this command is killed meanwhile. Part of the command. One thread.
#ifndef CS_PROCESS_GIVE_H
#define CS_PROCESS_GIVE_H

#include "process/target.h"

enum { CS_GIVE_FILES = 2, CS_GIVE_FOLDERS = 4 };

struct cs_give {
  uid_t uid;  // whose files they are to be: the process'
  gid_t gid;
  const char *folders[CS_GIVE_FOLDERS + 1];  // that are tried, as the process calls them; NULL ends
  char name[96];                             // of the folder that is made there
  const char *files[CS_GIVE_FILES + 1];      // absolute paths; NULL ends
  bool only_look;                            // nothing is made: would it work?
  bool (*wanted)(void *context);             // asked while it takes time; NULL: for ten seconds
  void *context;
};

struct cs_given {
  const char *folder;  // where they are in; NULL: the process sees our own, nothing was done
  pid_t keeper;        // 0: none
  int lifeline;
};

// False: *err says why no folder takes them.
bool cs_give(const struct cs_target *target, const struct cs_give *give, struct cs_given *out,
             struct cs_error *err);
void cs_take_back(struct cs_given *given);  // may be called again

#endif
