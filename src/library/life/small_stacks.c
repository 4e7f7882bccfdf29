// SPDX-License-Identifier: MIT
// The table of images (images.h) has every library, but takes milliseconds to make, and is soon out
// of date where libraries come and go all the time. So the loader's own list is read as well, of
// which only the end is new. Invariant: what `examined` counts has been examined. Signal-safe: no.
#include "life/small_stacks.h"

#include <link.h>
#include <pthread.h>
#include <stdio.h>

#include "base/libc.h"
#include "base/log.h"
#include "base/path.h"
#include "life/library.h"
#include "native/go.h"
#include "signal/signal.h"

// The loader's list at some moment.
struct list {
  uint64_t loads, unloads;  // ever, in all namespaces
  uint32_t count;           // of libraries in the namespace of this one
};

struct scan {
  struct list list;
  uint32_t skip;  // libraries at the head of the list that were examined before
  uint32_t place;
  struct cs_process_memory memory;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct list examined;  // under the lock
static uint64_t safe_with;    // atomic: cs_loader_now when all libraries had been examined,
static uint64_t tabled_with;  // and of the last table of images that was examined
static bool found;            // atomic: the reason is being written, or has been
static char reason[256];      // written before cs_signal.small_stacks is

static void find(const char *path) {
  bool no = false;
  if (!cs_cas(&found, &no, true)) return;
  (void)snprintf(reason, sizeof reason,
                 "%.39s is a Go library, on whose stacks of 2 KiB a signal kills the program: no "
                 "thread is sent any. Threads that run are not recorded; those that sleep "
                 "(--mode wall) and allocations, locks, exceptions and collections are",
                 cs_file_of(path));
  cs_store_release(&cs_signal.small_stacks, 1u);
  cs_log_important("%s", reason);
}

void cs_small_stacks_look_at(const struct cs_images *images) {
  for (uint32_t i = 0; i < images->count; i++)
    if (images->image[i].small_stacks) find(images->image[i].path);
  cs_store_release(&tabled_with, images->loaded);
}

const char *cs_small_stacks_reason(void) {
  return reason;
}

// ---- The loader's list, under its lock ----

static int count(struct dl_phdr_info *info, size_t size, void *arg) {
  (void)size;
  struct list *list = arg;
  list->loads = info->dlpi_adds;
  list->unloads = info->dlpi_subs;
  list->count++;
  bool changed =
      list->loads != examined.loads || list->unloads != examined.unloads || examined.count == 0;
  return changed ? 0 : 1;
}

static int examine(struct dl_phdr_info *info, size_t size, void *arg) {
  (void)size;
  struct scan *scan = arg;
  if (info->dlpi_adds != scan->list.loads || info->dlpi_subs != scan->list.unloads) return 1;
  if (scan->place++ < scan->skip) return 0;
  struct cs_go_search go = {&scan->memory, info->dlpi_addr, 0};
  for (int i = 0; i < info->dlpi_phnum; i++)
    if (cs_go_is_in(&go, &info->dlpi_phdr[i])) {
      find(info->dlpi_name);
      break;
    }
  return 0;
}

// ---- With our own lock held ----

// Finds where the new libraries begin: they are at the end of the list. Returns false if another
// namespace (dlmopen) has changed, too.
static bool find_new(struct scan *scan) {
  const struct list *now = &scan->list;
  uint64_t loads = now->loads - examined.loads, unloads = now->unloads - examined.unloads;
  if (cs_libc_is_musl()) {  // counts calls of dlopen, never unloads, and has one namespace
    scan->skip = examined.count;
    return true;
  }
  scan->skip = loads < now->count ? now->count - (uint32_t)loads : 0;
  return examined.count + loads - unloads == now->count;
}

// Examines the new libraries. Returns false if not all of them could be examined. `loaded`:
// cs_loader_now before.
static bool examine_new(uint64_t loaded) {
  struct scan scan = {.place = 0};
  if (dl_iterate_phdr(count, &scan.list) != 0) return true;
  if (!find_new(&scan)) {
    // The table has the libraries of all namespaces.
    if (loaded == CS_LOADER_UNSETTLED || loaded != cs_load_acquire(&tabled_with)) return false;
    examined = scan.list;
    return true;
  }
  cs_process_memory_init(&scan.memory, 0);
  bool changed = dl_iterate_phdr(examine, &scan) != 0;
  cs_process_memory_close(&scan.memory);
  if (changed) return false;
  examined = scan.list;
  return true;
}

bool cs_signals_are_safe(void) {
  if (cs_load_acquire(&cs_signal.small_stacks) != 0) return false;
  const struct cs_loader *loader = cs_library.world.loader;
  uint64_t now = loader != NULL ? cs_loader_now(loader) : CS_LOADER_UNSETTLED;
  if (now != CS_LOADER_UNSETTLED && now == cs_load_acquire(&safe_with)) return true;
  pthread_mutex_lock(&lock);
  bool all = examine_new(now);
  if (all) cs_store_release(&safe_with, now);
  pthread_mutex_unlock(&lock);
  return all && cs_load_acquire(&cs_signal.small_stacks) == 0;
}
