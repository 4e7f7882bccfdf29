// SPDX-License-Identifier: MIT
// replay FOLDER: runs a fuzz target over each file of the folder, and then over each file with its
// bytes changed one at a time, so that a corpus of one file yields some hundred inputs, and one of
// many files some thousand.
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

enum { MOST_BYTES = 1 << 20, MOST_CHANGES = 200, CHANGES_IN_ALL = 4000 };
static unsigned long inputs;

static void run(const uint8_t *data, size_t size) {
  uint8_t *exact = malloc(size > 0 ? size : 1);  // whose end a sanitizer knows
  if (exact == NULL) abort();
  memcpy(exact, data, size);
  (void)LLVMFuzzerTestOneInput(exact, size);
  free(exact);
  inputs++;
}

static void replay_file(const char *path, size_t changes) {
  static uint8_t bytes[MOST_BYTES];
  FILE *in = fopen(path, "re");
  if (in == NULL) {
    perror(path);
    exit(1);
  }
  size_t size = fread(bytes, 1, sizeof bytes, in);
  (void)fclose(in);
  run(bytes, size);
  for (size_t i = 0; i < changes && size > 0; i++) {
    size_t at = i * 2654435761u % size;
    uint8_t old = bytes[at];
    bytes[at] = (uint8_t)(i % 3 == 0 ? 0xFF : i % 3 == 1 ? 0 : old ^ 1u << i % 8);
    run(bytes, size);
    bytes[at] = old;
  }
  run(bytes, size / 2);
}

static int is_input(const struct dirent *entry) {
  return entry->d_name[0] != '.';
}

int main(int argc, char **argv) {
  struct dirent **names;
  int count = argc == 2 ? scandir(argv[1], &names, is_input, alphasort) : -1;
  if (count < 0) {
    (void)fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
    return 2;
  }
  size_t changes = CHANGES_IN_ALL / ((size_t)count + 1);
  for (int i = 0; i < count; i++) {
    char *path;
    if (asprintf(&path, "%s/%s", argv[1], names[i]->d_name) < 0) abort();
    replay_file(path, changes < MOST_CHANGES ? changes : MOST_CHANGES);
    free(path);
    free(names[i]);
  }
  free(names);
  (void)printf("%lu inputs\n", inputs);
  return inputs > 0 ? 0 : 1;
}
