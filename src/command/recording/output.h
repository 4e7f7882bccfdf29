// SPDX-License-Identifier: MIT
// A file that is written: opened before the program starts, so that a path that
// cannot be written costs nothing; given its name only when all of it is there, or, of a file that
// grows, its beginning.
#ifndef CS_RECORDING_OUTPUT_H
#define CS_RECORDING_OUTPUT_H

#include <stdio.h>

#include "base/error.h"

struct cs_output {
  char *path;   // as it will be called
  char *temp;   // what it is called meanwhile; NULL: nothing
  int unnamed;  // 0, or a descriptor of the file, which has no name yet: it goes with us
  FILE *file;
};

bool cs_output_open(struct cs_output *out, const char *path, struct cs_error *err);
bool cs_output_stdout(struct cs_output *out, struct cs_error *err);
// Gives the file its name. `write` has the content written; when it or the renaming fails it is
// tried again in $TMPDIR or /tmp, and *err says where the recording is now. True: at `path`.
typedef bool cs_output_write(void *context, FILE *file);
bool cs_output_commit(struct cs_output *out, cs_output_write *write, void *context,
                      struct cs_error *err);
// Gives the file its name now; what is written from then on is there as it comes.
bool cs_output_publish(struct cs_output *out, struct cs_error *err);
void cs_output_abandon(struct cs_output *out);  // closes it; takes the temporary file away

#endif
