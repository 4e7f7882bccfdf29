// SPDX-License-Identifier: MIT
// replay PATH...: a fuzz target over each file, and over each file of each folder; then over each
// file with its bytes changed one at a time, so that a corpus of one file is some hundred inputs.
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

enum { MOST_BYTES = 1 << 20, CHANGES = 200 };
static unsigned long inputs;

static void run(const uint8_t *data, size_t size) {
  uint8_t *exact = malloc(size > 0 ? size : 1);  // whose end a sanitizer knows
  if (exact == NULL) abort();
  memcpy(exact, data, size);
  (void)LLVMFuzzerTestOneInput(exact, size);
  free(exact);
  inputs++;
}

static void replay_file(const char *path) {
  static uint8_t bytes[MOST_BYTES];
  FILE *in = fopen(path, "re");
  if (in == NULL) {
    perror(path);
    exit(1);
  }
  size_t size = fread(bytes, 1, sizeof bytes, in);
  (void)fclose(in);
  run(bytes, size);
  for (size_t i = 0; i < CHANGES && size > 0; i++) {
    size_t at = i * 2654435761u % size;
    uint8_t old = bytes[at];
    bytes[at] = (uint8_t)(i % 3 == 0 ? 0xFF : i % 3 == 1 ? 0 : old ^ 1u << i % 8);
    run(bytes, size);
    bytes[at] = old;
  }
  run(bytes, size / 2);
}

static void replay_folder(DIR *folder, const char *path) {
  const struct dirent *entry;
  while ((entry = readdir(folder)) != NULL) {
    char *name = NULL;
    if (entry->d_name[0] == '.') continue;
    if (asprintf(&name, "%s/%s", path, entry->d_name) < 0) abort();
    replay_file(name);
    free(name);
  }
}

int main(int argc, char **argv) {
  for (int i = 1; i < argc; i++) {
    DIR *folder = opendir(argv[i]);
    if (folder == NULL) {
      replay_file(argv[i]);
      continue;
    }
    replay_folder(folder, argv[i]);
    (void)closedir(folder);
  }
  (void)printf("%lu inputs\n", inputs);
  return inputs > 0 ? 0 : 1;
}
