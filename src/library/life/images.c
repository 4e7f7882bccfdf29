// SPDX-License-Identifier: MIT
// The table of native images, and the cached rules of call sites that go with it. Not for handlers.
//
// Invariant: no walk uses a rule of an image that has been unloaded. A walk reads the dynamic
// loader's counters once, at its beginning: what is on the thread's stack stays loaded until the
// walk ends. If the counters are those of the table, the table is valid. The cached rules
// (unwind/sites.h) have counters of their own, which are set only when all walks by older tables
// have ended and the rules of unloaded images have been removed. Otherwise the walk neither uses
// nor adds rules, and uses an image only if its build id is in memory where the table says. So it
// does not matter how late the table is refreshed (docs/signal-safety.md, "Libraries that come and
// go").
#include "life/images.h"

#include <pthread.h>

#include "base/grow.h"
#include "images/images.h"
#include "life/epoch.h"
#include "life/small_stacks.h"
#include "native/native.h"
#include "signal/signal.h"
#include "unwind/sites.h"

enum { BRIEF_NS = 10000000 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct cs_native *native;
static struct cs_sites sites;    // 0.8 MiB, of which 0.5 are touched at once
static bool stale;               // there are rules of unloaded images; under the lock
static bool unretired;           // there are older tables still; under the lock
static bool left;                // the last refresh has left images; atomic
static bool found_unknown_code;  // set by walks in handlers, cleared by the next refresh

bool cs_library_images_init(void) {
  if (native == NULL) native = cs_native_new(0);
  if (native == NULL) return false;
  cs_sites_forget(&sites);
  cs_library.world.sites = &sites;
  cs_library.world.loader = cs_native_loader(native);
  return true;
}

// The next walks find the cache as it was at the process's start.
void cs_library_images_rest(void) {
  pthread_mutex_lock(&lock);
  cs_pages_zero(&sites, sizeof sites);
  pthread_mutex_unlock(&lock);
}

static void publish(const struct cs_images *before, const struct cs_images *now) {
  if (!cs_images_all_stay(before, now)) {
    stale = true;
    cs_store_release(&sites.loaded, CS_LOADER_UNSETTLED);
  }
  cs_store_release(&cs_library.world.images, now);
  unretired = true;
}

static bool refresh(uint64_t limit_ns) {
  pthread_mutex_lock(&lock);
  const struct cs_images *before = cs_library.world.images;
  const struct cs_images *now = cs_native_refresh_in(native, limit_ns);
  cs_store_release(&left, cs_native_has_left(native));
  if (now != NULL) cs_small_stacks_look_at(now);
  if (now != NULL && now != before) publish(before, now);
  // If walks do not end in time, the next call tries again.
  if (unretired && cs_epoch_wait()) {
    if (stale) cs_sites_forget(&sites);
    cs_native_retire(native, now);
    stale = false;
    unretired = cs_native_has_older(native);
  }
  if (now != NULL && !stale) cs_store_release(&sites.loaded, now->loaded);
  pthread_mutex_unlock(&lock);
  return now != before;
}

bool cs_library_refresh_images(void) {
  return refresh(CS_NATIVE_NO_LIMIT);
}

bool cs_library_refresh_images_briefly(void) {
  return refresh(BRIEF_NS);
}

bool cs_library_images_are_left(void) {
  return cs_load_acquire(&left);
}

uint32_t cs_library_images_sequence(void) {
  pthread_mutex_lock(&lock);
  const struct cs_images *now = cs_library.world.images;
  uint32_t sequence = now != NULL ? now->sequence : 0;
  pthread_mutex_unlock(&lock);
  return sequence;
}

void cs_library_images_keep(uint32_t sequence) {
  pthread_mutex_lock(&lock);
  cs_native_keep(native, sequence);
  pthread_mutex_unlock(&lock);
}

const struct cs_images *cs_library_images_of(uint64_t loaded, uint32_t sequence, bool *exact) {
  pthread_mutex_lock(&lock);
  const struct cs_images *images = cs_native_table(native, loaded, sequence, exact);
  pthread_mutex_unlock(&lock);
  return images;
}

bool cs_library_images_are_old(void) {
  const struct cs_loader *loader = cs_library.world.loader;
  uint32_t parity = cs_epoch_enter(&cs_signal.epoch);
  const struct cs_images *images = cs_load_acquire(&cs_library.world.images);
  uint64_t loaded = images != NULL ? cs_load_acquire(&images->loaded) : CS_LOADER_UNSETTLED;
  cs_epoch_leave(&cs_signal.epoch, parity);
  uint64_t now = loader != NULL ? cs_loader_now(loader) : CS_LOADER_UNSETTLED;
  return now != CS_LOADER_UNSETTLED && now != loaded;
}

void cs_library_note_unknown_code(void) {
  cs_store_release(&found_unknown_code, true);
}

void cs_library_refresh_after_handlers(void) {
  if (!cs_load_acquire(&found_unknown_code) || !cs_load_acquire(&cs_library.running)) return;
  cs_store_release(&found_unknown_code, false);
  (void)cs_library_refresh_images();
}
