// SPDX-License-Identifier: MIT
// Slots for labels, one for each thread that has ever had a label, and the functions that the
// startup hook (src/agent/labels) looks up by name. They are exported for that purpose, but are not
// part of the library's interface.
//
// Invariants: a slot's memory is never freed, because the hook keeps its address for as long as its
// thread lives, whatever becomes of recordings. A slot belongs to its thread until the thread has
// ended, and holds its tid; a reader ignores a slot that holds another tid. Threads: any that runs
// managed code; the agent's. Signal-safe: no.
#include "state/label_slots.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/log.h"
#include "signal/label.h"
#include "state/event_names.h"
#include "threads/registry.h"

enum { SLOTS = 65536 };  // 4 MiB of address space; a page is used by 64 threads

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;  // for all changes to the next four, and
                                                          // for the end of a recording
static struct cs_label_slot *slots;
static uint32_t used;  // [0, used) have been given to a thread
static pthread_key_t key;
static bool key_works;
static uint32_t recording;  // the number of the last one that wanted labels. Its starting thread
static uint32_t has_hook;   // atomic. 1: the hook has called in this recording

enum { STATUSES = 1 << 15 };         // 256 KiB; of a request that has ended, for some time
static uint64_t statuses[STATUSES];  // atomic: number << 16 | HTTP status

// Declared here, because only managed code calls them.
__attribute__((visibility("default"))) const uint32_t *clrsnap_labels_wanted(void);
__attribute__((visibility("default"))) struct cs_label_slot *clrsnap_label_slot(void);
__attribute__((visibility("default"))) uint32_t clrsnap_label_name(uint32_t, const char *);
__attribute__((visibility("default"))) void clrsnap_label_status(uint32_t, uint32_t, uint32_t);

void cs_labels_begin(void) {
  cs_store_release(&has_hook, 0u);
  if (++recording == 0) recording = 1;
  cs_store_release(&cs_signal.labels, recording);
}

// The lock waits for a name that is being registered, because the names are freed afterwards.
void cs_labels_end(void) {
  (void)pthread_mutex_lock(&lock);
  cs_store_release(&cs_signal.labels, 0u);
  (void)pthread_mutex_unlock(&lock);
}

bool cs_labels_have_hook(void) {
  return cs_load_acquire(&has_hook) != 0;
}

static struct cs_label_slot *find(uint32_t tid) {
  uint32_t count = __atomic_load_n(&used, __ATOMIC_SEQ_CST);
  for (uint32_t i = 0; i < count; i++)
    if (__atomic_load_n(&slots[i].tid, __ATOMIC_SEQ_CST) == tid) return &slots[i];
  return NULL;
}

// The entry has its tid already, and a slot gets its tid before its thread looks for the entry, so
// at least one of the two finds the other.
void cs_label_slot_link(struct cs_thread *thread) {
  struct cs_label_slot *slot = find(cs_load_acquire(&thread->tid));
  if (slot != NULL) cs_store_release(&thread->label, slot);
}

// The thread is ending, and no managed code runs on it any more. If a library calls managed code
// there once more, the thread becomes a new managed thread, which asks for a slot again.
static void give_back(void *slot) {
  __atomic_store_n(&((struct cs_label_slot *)slot)->tid, 0u, __ATOMIC_SEQ_CST);
}

static bool prepare(void) {
  if (slots != NULL) return key_works;
  void *at = mmap(NULL, SLOTS * sizeof *slots, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) return false;
  key_works = pthread_key_create(&key, give_back) == 0;
  slots = at;
  return key_works;
}

static struct cs_label_slot *take(uint32_t tid) {
  uint32_t i = 0;
  while (i < used && cs_load_acquire(&slots[i].tid) != 0) i++;
  if (i == SLOTS || pthread_setspecific(key, &slots[i]) != 0) return NULL;
  // No thread writes to the slot, and its contents are its last owner's.
  cs_store_release(&slots[i].sequence, (slots[i].sequence | 1) + 1);
  cs_store_release(&slots[i].recording, 0u);
  __atomic_store_n(&slots[i].tid, tid, __ATOMIC_SEQ_CST);
  if (i == used) __atomic_store_n(&used, used + 1, __ATOMIC_SEQ_CST);
  return &slots[i];
}

// Returns the word that has the number of the recording that wants labels, or 0 if none does.
// Always valid.
const uint32_t *clrsnap_labels_wanted(void) {
  if (cs_load_acquire(&cs_signal.labels) != 0) cs_store_release(&has_hook, 1u);
  return &cs_signal.labels;
}

// Returns the calling thread's slot, which it keeps until it ends, or NULL if none is left.
struct cs_label_slot *clrsnap_label_slot(void) {
  uint32_t tid = (uint32_t)syscall(SYS_gettid);
  (void)pthread_mutex_lock(&lock);
  struct cs_label_slot *slot = NULL;
  if (prepare()) {
    slot = pthread_getspecific(key);
    if (slot == NULL) slot = take(tid);
  }
  (void)pthread_mutex_unlock(&lock);
  if (slot == NULL) {
    cs_log_important("samples of some threads have no labels: all slots are taken");
    return NULL;
  }
  struct cs_thread *thread = cs_registry_self();
  if (thread != NULL) cs_store_release(&thread->label, slot);
  return slot;
}

// Returns the number of an endpoint's name in the recording `in`, or 0 if that has ended, or there
// is no memory.
uint32_t clrsnap_label_name(uint32_t in, const char *name) {
  uint32_t number = 0;
  (void)pthread_mutex_lock(&lock);
  if (in != 0 && cs_load_acquire(&cs_signal.labels) == in) number = cs_event_name_of(name);
  (void)pthread_mutex_unlock(&lock);
  return number;
}

// ---- Statuses of requests ----

// Notes the status with which a request has ended, in the recording `in`. Its number is unique, but
// a later request may take its place in the table.
void clrsnap_label_status(uint32_t in, uint32_t request, uint32_t status) {
  if (in == 0 || cs_load_acquire(&cs_signal.labels) != in || status > UINT16_MAX) return;
  cs_store_release(&statuses[request % STATUSES], (uint64_t)request << 16 | status);
}

uint32_t cs_label_status_of(uint32_t request) {
  uint64_t word = cs_load_acquire(&statuses[request % STATUSES]);
  return word >> 16 == request ? (uint32_t)(word & UINT16_MAX) : 0;
}
