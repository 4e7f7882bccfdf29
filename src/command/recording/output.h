// SPDX-License-Identifier: MIT
// An output file. It is opened before the program starts, so that a path that cannot be written is
// found out early. It gets its name only when its content is complete, or, if it grows, when its
// beginning is.
#pragma once

#include <stdio.h>

#include "base/error.h"

struct cs_output {
  char *path;   // its final name
  char *temp;   // its temporary name; NULL: none
  int unnamed;  // descriptor of a file without a name, which vanishes if we die; 0: none
  FILE *file;
  bool sole;  // what is written is nowhere else
};

bool cs_output_open(struct cs_output *out, const char *path, struct cs_error *err);
bool cs_output_is_stdout(const char *path);  // "-"
bool cs_output_stdout(struct cs_output *out, struct cs_error *err);
// Has `write` write the content, and gives the file its name. Returns whether the recording is at
// `path`. If not, *err says why, and, if it is nowhere else (`sole`), where in $TMPDIR or /tmp it
// is now.
typedef bool cs_output_write(void *context, FILE *file);
bool cs_output_commit(struct cs_output *out, cs_output_write *write, void *context,
                      struct cs_error *err);
// Gives the file its name now; what is written later appears in it at once.
bool cs_output_publish(struct cs_output *out, struct cs_error *err);
void cs_output_abandon(struct cs_output *out);  // closes it and removes a temporary file
