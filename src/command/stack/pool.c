// SPDX-License-Identifier: MIT
// Reads the objects of the portable thread pool of .NET 10, which programs on Linux have:
// PortableThreadPool.ThreadPoolInstance counts threads and completed items; ThreadPool.s_workQueue
// has the global queues, and WorkStealingQueueList.s_queues that of each worker. Invariant: every
// object is of the class that it is read as, and a number that cannot be is not a result. One
// thread. Signal-safe: no.
#include "stack/pool.h"

#include <sched.h>

#define THREADING "System.Threading"
#define CONCURRENT "System.Collections.Concurrent"
enum { MAX_SEGMENTS = 1 << 20, MAX_NODES = 1 << 20 };

// ---- Queues ----

static bool get_object(struct cs_heap *heap, uint64_t object, const char *field, uint64_t *out) {
  return cs_heap_get(heap, object, field, CS_HEAP_OBJECT, out);
}

static bool get_end(struct cs_heap *heap, uint64_t ends, const char *field, int32_t *out) {
  uint64_t at;
  return cs_heap_struct_field(heap, ends, CONCURRENT, "PaddedHeadAndTail", field, CS_HEAP_I4,
                              &at) &&
         cs_heap_read(heap, at, out, sizeof *out);
}

// Positions only grow. When a segment has been replaced, its tail is moved by twice its length, so
// that nothing can be added any more.
static bool add_segment(struct cs_heap *heap, uint64_t segment, uint64_t *sum) {
  uint64_t ends, slots, at;
  int32_t head, tail;
  uint32_t length;
  bool frozen;
  if (!cs_heap_is(heap, segment, CONCURRENT, "ConcurrentQueueSegment`1") ||
      !cs_heap_field(heap, segment, "_headAndTail", CS_HEAP_VALUE, &ends) ||
      !get_end(heap, ends, "Head", &head) || !get_end(heap, ends, "Tail", &tail) ||
      !cs_heap_get(heap, segment, "_frozenForEnqueues", CS_HEAP_BOOLEAN, &frozen) ||
      !get_object(heap, segment, "_slots", &slots) || !cs_heap_array(heap, slots, &at, &length))
    return false;
  int64_t count = (int32_t)((uint32_t)tail - (uint32_t)head - (frozen ? 2 * length : 0));
  if (count > (int64_t)length) return false;
  *sum += count > 0 ? (uint64_t)count : 0;
  return true;
}

// A queue that this machine or program does not use does not exist.
static bool add_queue(struct cs_heap *heap, uint64_t queue, uint64_t *sum) {
  uint64_t segment;
  if (queue == 0) return true;
  if (!cs_heap_is(heap, queue, CONCURRENT, "ConcurrentQueue`1") ||
      !get_object(heap, queue, "_head", &segment))
    return false;
  for (int i = 0; segment != 0; i++)
    if (i == MAX_SEGMENTS || !add_segment(heap, segment, sum) ||
        !get_object(heap, segment, "_nextSegment", &segment))
      return false;
  return true;
}

static bool add_field(struct cs_heap *heap, uint64_t object, const char *field, uint64_t *sum) {
  uint64_t queue;
  return get_object(heap, object, field, &queue) && add_queue(heap, queue, sum);
}

// Machines with more than 32 processors have several global queues.
static bool add_assignable(struct cs_heap *heap, uint64_t work, uint64_t *sum) {
  uint64_t array, at, queue;
  uint32_t count;
  if (!get_object(heap, work, "_assignableWorkItemQueues", &array)) return false;
  if (array == 0) return true;
  if (!cs_heap_array(heap, array, &at, &count)) return false;
  for (uint32_t i = 0; i < count; i++)
    if (!cs_heap_read(heap, at + 8ull * i, &queue, sizeof queue) || !add_queue(heap, queue, sum))
      return false;
  return true;
}

static bool add_local(struct cs_heap *heap, uint64_t *sum) {
  uint64_t array, at, queue;
  int32_t head, tail;
  uint32_t count;
  enum cs_heap_static found = cs_heap_static(
      heap, THREADING, "ThreadPoolWorkQueue+WorkStealingQueueList", "s_queues", &array);
  if (found != CS_HEAP_FOUND) return found == CS_HEAP_UNUSED;
  if (!cs_heap_array(heap, array, &at, &count)) return false;
  for (uint32_t i = 0; i < count; i++) {
    if (!cs_heap_read(heap, at + 8ull * i, &queue, sizeof queue) ||
        !cs_heap_is(heap, queue, THREADING, "ThreadPoolWorkQueue+WorkStealingQueue") ||
        !cs_heap_get(heap, queue, "m_headIndex", CS_HEAP_I4, &head) ||
        !cs_heap_get(heap, queue, "m_tailIndex", CS_HEAP_I4, &tail))
      return false;
    *sum += tail > head ? (uint64_t)(tail - head) : 0;
  }
  return true;
}

static bool read_queues(struct cs_heap *heap, struct cs_pool *pool) {
  uint64_t work;
  enum cs_heap_static found = cs_heap_static(heap, THREADING, "ThreadPool", "s_workQueue", &work);
  if (found != CS_HEAP_FOUND) return found == CS_HEAP_UNUSED;
  if (!cs_heap_is(heap, work, THREADING, "ThreadPoolWorkQueue") || !add_local(heap, &pool->local))
    return false;
  pool->queued = pool->local;
  return add_field(heap, work, "workItems", &pool->queued) &&
         add_field(heap, work, "highPriorityWorkItems", &pool->queued) &&
         add_field(heap, work, "lowPriorityWorkItems", &pool->queued) &&
         add_assignable(heap, work, &pool->queued);
}

// ---- Workers ----

// The numbers of threads that process items, that exist, and that there should be, of 16 bits each.
static bool read_counts(struct cs_heap *heap, uint64_t instance, struct cs_pool *pool) {
  static const char shared[] = "PortableThreadPool+CacheLineSeparated";
  static const char threads[] = "PortableThreadPool+ThreadCounts";
  uint64_t at, counts, data;
  int16_t min, max;
  if (!cs_heap_field(heap, instance, "_separated", CS_HEAP_VALUE, &at) ||
      !cs_heap_struct_field(heap, at, THREADING, shared, "counts", CS_HEAP_VALUE, &counts) ||
      !cs_heap_struct_field(heap, counts, THREADING, threads, "_data", CS_HEAP_U8, &at) ||
      !cs_heap_read(heap, at, &data, sizeof data) ||
      !cs_heap_get(heap, instance, "_minThreads", CS_HEAP_I2, &min) ||
      !cs_heap_get(heap, instance, "_maxThreads", CS_HEAP_I2, &max))
    return false;
  uint32_t busy = data & 0xFFFF, goal = data >> 32 & 0xFFFF;
  pool->workers = data >> 16 & 0xFFFF;
  pool->busy = busy;
  pool->min = (uint32_t)min;
  pool->max = (uint32_t)max;
  return min > 0 && max >= min && busy <= pool->workers && goal > 0 && data >> 48 == 0;
}

// Each thread counts in an object of its own, and those that have ended in one number.
static bool read_completed(struct cs_heap *heap, uint64_t instance, struct cs_pool *pool) {
  uint64_t counter, node, first;
  int64_t ended;
  uint32_t count;
  if (!get_object(heap, instance, "_completionCounter", &counter) ||
      !cs_heap_is(heap, counter, THREADING, "ThreadInt64PersistentCounter") ||
      !cs_heap_get(heap, counter, "_overflowCount", CS_HEAP_I8, &ended) || ended < 0 ||
      !get_object(heap, counter, "_nodes", &first))
    return false;
  pool->completed = (uint64_t)ended;
  node = first;
  for (int i = 0; node != 0; i++) {
    if (i == MAX_NODES ||
        !cs_heap_is(heap, node, THREADING, "ThreadInt64PersistentCounter+ThreadLocalNode") ||
        !cs_heap_get(heap, node, "_count", CS_HEAP_U4, &count) ||
        !get_object(heap, node, "_next", &node))
      return false;
    pool->completed += count;
    if (node == first) break;
  }
  return true;
}

void cs_pool_read(struct cs_heap *heap, struct cs_pool *pool) {
  uint64_t instance;
  *pool = (struct cs_pool){.why = "its objects are not as those of .NET 10"};
  enum cs_heap_static found =
      cs_heap_static(heap, THREADING, "PortableThreadPool", "ThreadPoolInstance", &instance);
  if (found == CS_HEAP_UNUSED) pool->state = CS_POOL_UNUSED;
  if (found == CS_HEAP_FOUND && cs_heap_is(heap, instance, THREADING, "PortableThreadPool") &&
      read_counts(heap, instance, pool) && read_completed(heap, instance, pool) &&
      read_queues(heap, pool))
    pool->state = CS_POOL_KNOWN;
}

// ---- Starvation ----

bool cs_pool_is_late(const struct cs_pool *first, const struct cs_pool *later) {
  return first->state == CS_POOL_KNOWN && later->state == CS_POOL_KNOWN && later->queued > 0 &&
         later->completed >= first->completed &&
         later->completed - first->completed < first->queued;
}

static uint32_t processors_of(int pid) {
  cpu_set_t set;
  return sched_getaffinity(pid, sizeof set, &set) == 0 ? (uint32_t)CPU_COUNT(&set) : 0;
}

bool cs_pool_is_blocked(int pid, uint32_t waiting, uint32_t running) {
  return waiting > 0 && waiting >= running && running < processors_of(pid);
}
