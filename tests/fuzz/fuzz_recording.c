// SPDX-License-Identifier: MIT
// A recording file, read and written in every format, as `clrsnap report` does.
#include <stdlib.h>

#include "formats/otlp.h"
#include "formats/writers.h"
#include "fuzz.h"
#include "naming/naming.h"
#include "profile/traces.h"
#include "recorded.h"
#include "session/summary.h"

static bool is_written(const struct cs_format *format, const struct cs_profile_set *set,
                       uint32_t modes, uint64_t bytes, uint32_t random) {
  if (format->write == NULL || (format->write == cs_write_html && random % 32 != 0)) return false;
  if (format->several == CS_MODES_ONE_TIMED && (modes & CS_WIRE_TIMED_MODES) == CS_WIRE_TIMED_MODES)
    return false;
  for (size_t i = 0; i < set->count; i++)
    if (cs_expands_beyond(&set->profiles[i], format->expansion, fuzz_expansion_limit(bytes)))
      return false;
  return true;
}

static void write_set(const struct cs_profile_set *set, bool whole, uint32_t modes, uint64_t bytes,
                      uint32_t random) {
  size_t count;
  const struct cs_format *formats = cs_formats(&count);
  FILE *out = fuzz_stream();
  for (size_t i = 0; i < count; i++) {
    if ((formats[i].several == CS_MODES_ONE) == whole) continue;
    if (!is_written(&formats[i], set, modes, bytes, random)) continue;
    bool written = formats[i].write(set, out);
    if (!written && formats[i].write == cs_write_markdown) abort();  // a page that is too long
    fuzz_check_stream(out, bytes);
  }
}

static void write_all(struct cs_recording *rec, uint32_t random) {
  struct cs_profile profiles[CS_WIRE_MODES];
  struct cs_resolve_opts opts = fuzz_options(random, rec);
  FILE *out = fuzz_stream();
  cs_name_frames(rec);
  struct cs_profile_set all = {profiles, cs_resolve(rec, rec->meta.modes, &opts, profiles)};
  for (size_t i = 0; i < all.count; i++) {
    struct cs_profile *p = &profiles[i];
    if (random & 32) cs_group_by_trace(p);
    cs_write_top(p, 10, "", out);
    write_set(&(struct cs_profile_set){p, 1}, false, rec->meta.modes, rec->bytes, random);
  }
  if (all.count > 0) {
    cs_print_summary(&all, out);
    write_set(&all, true, rec->meta.modes, rec->bytes, random);
  }
  for (size_t i = 0; i < all.count; i++) cs_profile_free(&profiles[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static struct cs_recording rec;
  cs_recording_init(&rec);
  rec.keep_samples = true;
  if (fuzz_read_recording(data, size, &rec)) write_all(&rec, fuzz_random(data, size));
  cs_recording_free(&rec);
  return 0;
}
