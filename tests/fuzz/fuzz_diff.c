// SPDX-License-Identifier: MIT
// Two recordings, compared and written in every way that `clrsnap diff` offers. The first two bytes
// are the length of the first recording.
#include <string.h>

#include "formats/writers.h"
#include "fuzz.h"
#include "naming/naming.h"
#include "profile/diff.h"
#include "recorded.h"

static struct cs_recording before, after;

static void compare(enum cs_wire_mode mode, uint32_t random) {
  struct cs_profile sides[2];
  struct cs_resolve_opts opts = fuzz_options(random, &before);
  struct cs_diff diff;
  FILE *out = fuzz_stream();
  uint64_t bytes = before.bytes + after.bytes;
  opts.lines = false;
  (void)cs_resolve(&before, CS_WIRE_MODE_BIT(mode), &opts, &sides[0]);
  (void)cs_resolve(&after, CS_WIRE_MODE_BIT(mode), &opts, &sides[1]);
  cs_diff_make(&diff, &sides[0], &sides[1], (enum cs_normalize)(random >> 8 & 3) % 3,
               (random >> 10 & 1) != 0);
  struct cs_profile_set set = {&diff.profile, 1};
  (void)cs_write_diff_text(&diff, random % 50, out);
  fuzz_check_stream(out, bytes);
  if (!cs_expands_beyond(&diff.profile, CS_EXPAND_STACKS, fuzz_expansion_limit(bytes)))
    (void)cs_write_diff_collapsed(&diff, out);
  fuzz_check_stream(out, bytes);
  (void)cs_write_json(&set, out);
  fuzz_check_stream(out, bytes);
  if (random % 32 == 0) (void)cs_write_html(&set, out);
  fuzz_check_stream(out, bytes);
  cs_diff_free(&diff);
  cs_profile_free(&sides[0]);
  cs_profile_free(&sides[1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  uint16_t first;
  if (size < sizeof first) return 0;
  memcpy(&first, data, sizeof first);
  data += sizeof first;
  size -= sizeof first;
  size_t cut = size > 0 ? first % (size + 1) : 0;
  cs_recording_init(&before);
  cs_recording_init(&after);
  if (fuzz_read_recording(data, cut, &before) &&
      fuzz_read_recording(data + cut, size - cut, &after)) {
    cs_name_frames(&before);
    cs_name_frames(&after);
    uint32_t both = before.meta.modes & after.meta.modes;
    for (unsigned mode = 0; mode < CS_WIRE_MODES; mode++)
      if ((both & CS_WIRE_MODE_BIT(mode)) != 0)
        compare((enum cs_wire_mode)mode, fuzz_random(data, size));
  }
  cs_recording_free(&before);
  cs_recording_free(&after);
  return 0;
}
