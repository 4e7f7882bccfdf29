// SPDX-License-Identifier: MIT
// A program that behaves like one with the agent in it: it finds the shared memory and writes
// records, good or bad ones, as its first argument says. The records are fixed, so that tests can
// require exact output. Invariant: `head` is moved over whole records only, except where the test
// is about that. One thread.
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "../support/wire_record.h"
#include "base/stop.h"

static struct cs_wire_header *header;
static uint8_t *ring;

static bool attach(void) {
  const char *path = getenv(CS_WIRE_ENV);
  int fd = path == NULL ? -1 : open(path, O_RDWR | O_CLOEXEC);
  struct stat st;
  if (fd < 0 || fstat(fd, &st) != 0) return false;
  if ((st.st_mode & 0777) != 0600) {
    (void)fprintf(stderr, "fake_agent: the shared memory has mode %o\n", st.st_mode & 0777);
    return false;
  }
  void *map = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  (void)close(fd);
  if (map == MAP_FAILED) return false;
  header = map;
  ring = (uint8_t *)map + CS_WIRE_HEADER_BYTES;
  if (header->magic != CS_WIRE_MAGIC || header->version != CS_WIRE_VERSION) return false;
  uint32_t nobody = 0;
  if (!cs_cas(&header->agent_pid, &nobody, (uint32_t)getpid())) return false;
  cs_store_release(&header->agent_state, (uint32_t)CS_WIRE_AGENT_RECORDING);
  return true;
}

static uint64_t now_ns(void) {
  struct timespec now;
  (void)clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void nap(void) {
  struct timespec ms = {0, 1000000};
  (void)nanosleep(&ms, NULL);
}

static void write_bytes(size_t size) {
  uint64_t head = header->head, at = head & (header->capacity - 1), left = header->capacity - at;
  size_t pad = size > left ? left : 0;
  // The fake agent waits for room, so that no test depends on how fast the command reads.
  while (head + pad + size - cs_load_acquire(&header->tail) > header->capacity) nap();
  if (pad > 0) {
    struct cs_wire_record r = {(uint32_t)pad, CS_WIRE_PAD, 0};
    memcpy(ring + at, &r, sizeof r);
    at = 0;
  }
  memcpy(ring + at, record, size);
  cs_store_release(&header->head, head + pad + size);
}

static void end_flagged(enum cs_wire_kind kind, uint16_t flags) {
  (void)complete(kind, flags);
  write_bytes(used);
}

static void end(enum cs_wire_kind kind) {
  end_flagged(kind, 0);
}

static void start(void) {
  struct cs_wire_start s = {1750000000000000000u, (uint32_t)getpid(), header->hz, header->modes, 4};
  begin();
  put(&s, sizeof s);
  put_text("10.0.12");
  end(CS_WIRE_START);
}

static void thread(uint32_t id, uint32_t tid, const char *name) {
  struct cs_wire_thread t = {id, tid};
  begin();
  put(&t, sizeof t);
  put_text(name);
  end(CS_WIRE_THREAD);
}

static void function(uint32_t id, uint32_t kind, const char *module, const char *space,
                     const char *type, const char *method) {
  struct cs_wire_function f = {id, kind, 0};
  begin();
  put(&f, sizeof f);
  put_text(module);
  put_text(space);
  put_text(type);
  put_text(method);
  put_text(strcmp(method, "Sum") == 0              ? "(int[], ref long)"
           : strcmp(method, "lambda_method2") == 0 ? "(Closure, object, HttpContext)"
                                                   : "");
  end(CS_WIRE_FUNCTION);
}

enum { OWN_IMAGE = 8 };

// The build ID of this program, from its loaded notes.
static int find_build_id(struct dl_phdr_info *info, size_t size, void *data) {
  struct cs_wire_image *image = data;
  (void)size;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
    if (ph->p_type != PT_NOTE) continue;
    for (uint64_t at = info->dlpi_addr + ph->p_vaddr, to = at + ph->p_memsz; at < to;) {
      const ElfW(Nhdr) *note = (const ElfW(Nhdr) *)(uintptr_t)at;
      uint64_t id = at + sizeof *note + ((note->n_namesz + 3u) & ~3u);
      if (note->n_type == NT_GNU_BUILD_ID && note->n_descsz <= sizeof image->build_id) {
        image->build_id_size = (uint16_t)note->n_descsz;
        memcpy(image->build_id, (const void *)(uintptr_t)id, note->n_descsz);
      }
      at = id + ((note->n_descsz + 3u) & ~3u);
    }
  }
  return 1;  // the program comes first
}

static uint16_t image_flags;
static void image(uint32_t id, uint64_t from, uint64_t to, uint64_t bias, const char *path) {
  struct cs_wire_image i = {.id = id, .begin = from, .end = to, .bias = bias, .flags = image_flags};
  if (id == OWN_IMAGE) (void)dl_iterate_phdr(find_build_id, &i);
  begin();
  put(&i, sizeof i);
  put_text(path);
  end(CS_WIRE_IMAGE);
}

#define MANAGED(id, offset) ((uint64_t)(id) << 32 | (offset))
#define NATIVE(id, offset) ((uint64_t)1 << 62 | (uint64_t)(id) << 40 | (offset))
#define UNKNOWN(ip) ((uint64_t)2 << 62 | (ip))

static uint64_t weight = 2000000;
static int sampled_mode;  // 0: the first of those that are wanted
static struct cs_label sample_label;

static void sample(uint32_t thread_id, enum cs_stop stop, uint32_t held_ns, const uint64_t *frames,
                   uint32_t count) {
  static uint64_t time_ns;
  int mode = sampled_mode > 0 ? sampled_mode : __builtin_ctz(header->modes);
  struct cs_wire_sample s = {.time_ns = time_ns += 1000000,
                             .weight = weight,
                             .thread = thread_id,
                             .held_ns = held_ns,
                             .stop = (uint16_t)stop,
                             .mode = (uint16_t)mode,
                             .frame_count = count};
  begin();
  put(&s, sizeof s);
  put(frames, count * sizeof *frames);
  if (sample_label.endpoint != 0) put(&sample_label, sizeof sample_label);
  end_flagged(CS_WIRE_SAMPLE, sample_label.endpoint != 0 ? CS_WIRE_LABELLED : 0);
}
#define SAMPLE(thread_id, stop, held, ...)                       \
  sample(thread_id, stop, held, (const uint64_t[]){__VA_ARGS__}, \
         (uint32_t)(sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t)))

static void finish(uint64_t samples, uint64_t lost_ring, uint64_t lost_wire) {
  struct cs_wire_end e = {.samples = samples, .lost_ring = lost_ring, .lost_wire = lost_wire};
  header->lost_records = lost_wire;
  begin();
  put(&e, sizeof e);
  end(CS_WIRE_END);
  cs_store_release(&header->agent_state, (uint32_t)CS_WIRE_AGENT_DONE);
}

enum { MAIN = 1, WORK, SUM, EVIL, LCG, LATE };

static void describe(void) {
  start();
  thread(1, 100, "Main");
  thread(2, 101, "");
  function(MAIN, CS_WIRE_FN_METHOD, "/app/app.dll", "Shop", "Program", "Main");
  function(WORK, CS_WIRE_FN_METHOD, "app.dll", "Shop", "Cart<System.Int32>", "Work");
  function(SUM, CS_WIRE_FN_METHOD, "System.Linq.dll", "System.Linq", "Enumerable", "Sum");
  function(EVIL, CS_WIRE_FN_METHOD, "app.dll", "", "Odd</script>;\"\\\n", "<M>b__0");
  function(LCG, CS_WIRE_FN_DYNAMIC, "", "", "", "lambda_method1");
}

__attribute__((noinline, used)) static void fake_agent_marker(void) {
  nap();
}

// Stands for a call of libc in which a thread is blocked.
__attribute__((noinline, used)) static void epoll_fake(void) {
  nap();
}

// Stands for the call with which a thread of the pool spins.
__attribute__((noinline, used)) static void sched_yield_fake(void) {
  nap();
}

// The program's own image, so that a symbol can be found whatever else is installed. Returns where
// it begins.
static uint64_t put_own_image(uint32_t id) {
  char exe[512], line[1024];
  ssize_t len = readlink("/proc/self/exe", exe, sizeof exe - 1);
  FILE *maps = fopen("/proc/self/maps", "r");
  if (len <= 0 || maps == NULL) abort();
  exe[len] = '\0';
  do {  // the first mapping of the program is its file's beginning
    if (fgets(line, sizeof line, maps) == NULL) abort();
  } while (strstr(line, exe) == NULL);
  (void)fclose(maps);
  uint64_t from = strtoull(line, NULL, 16);
  image(id, from, from + (1u << 20), from, exe);  // a PIE: its first page is at virtual address 0
  return from;
}

static void own_image(uint32_t id) {
  uint64_t from = put_own_image(id);
  // The second one stands for a call that does not return: it is named by the byte before.
  uint64_t offset = (uintptr_t)&fake_agent_marker - from;
  SAMPLE(2, CS_STOP_BASE, 1000, NATIVE(id, offset), NATIVE(id, offset + 1), MANAGED(MAIN, 9));
}

static void golden(void) {
  describe();
  image(7, 0x10000, 0x20000, 0, "/no/such/libcoreclr.so");
  for (int i = 0; i < 3; i++) {
    SAMPLE(1, CS_STOP_BASE, 1000, MANAGED(SUM, 4), MANAGED(WORK, 1), MANAGED(MAIN, 2));
  }
  // Another offset and another thread, but the same stack.
  SAMPLE(2, CS_STOP_BASE, 2000, MANAGED(SUM, 8), MANAGED(WORK, 5), MANAGED(MAIN, 6));
  // Recursion remains; adjacent native frames without symbols are folded.
  SAMPLE(1, CS_STOP_BASE, 3000, NATIVE(7, 1), NATIVE(7, 99), MANAGED(WORK, 0), MANAGED(WORK, 0),
         MANAGED(MAIN, 0));
  SAMPLE(1, CS_STOP_BASE, 4000, MANAGED(EVIL, 0), MANAGED(MAIN, 0));
  SAMPLE(1, CS_STOP_BASE, 5000, MANAGED(LCG, 0), MANAGED(MAIN, 0));
  // The name of this method comes later.
  SAMPLE(1, CS_STOP_BASE, 6000, MANAGED(LATE, 0), MANAGED(MAIN, 0));
  function(LATE, CS_WIRE_FN_METHOD, "app.dll", "Shop", "Late", "Comer");
  SAMPLE(2, CS_STOP_UNKNOWN_CODE, 7000, MANAGED(SUM, 0), UNKNOWN(0x1234));
  SAMPLE(2, CS_STOP_DEPTH, 8000, MANAGED(WORK, 0), MANAGED(WORK, 0));
  own_image(OWN_IMAGE);
}

// Objects are allocated in a recording that has more modes than one: how many there are more.
static uint64_t allocate(uint32_t count, uint32_t where) {
  if (header->modes == CS_WIRE_MODE_BIT(__builtin_ctz(header->modes)) ||
      (header->modes & CS_WIRE_MODE_BIT(CS_WIRE_MODE_ALLOC)) == 0)
    return 0;
  sampled_mode = CS_WIRE_MODE_ALLOC;
  weight = 102400;
  for (uint32_t i = 0; i < count; i++)
    SAMPLE(1, CS_STOP_BASE, 1000, MANAGED(where, 1), MANAGED(MAIN, 2));
  return count;
}

// Unequal weights, and in each mode other frames under the same numbers, so that anything named,
// counted or drawn by another mode's numbers is wrong. Of cpu's samples, 1 in 10 is in LCG, with 61
// % of the time.
static void uneven(void) {
  static const uint64_t leaves[][2] = {
      {SUM, WORK}, {LATE, EVIL}, {LCG, MAIN}, {WORK, LCG}, {EVIL, SUM}};
  uint32_t wanted = header->modes, rotation = 0;
  describe();
  function(LATE, CS_WIRE_FN_METHOD, "app.dll", "Shop", "Late", "Comer");
  for (; wanted != 0; wanted &= wanted - 1, rotation++) {
    sampled_mode = __builtin_ctz(wanted);
    for (uint32_t i = 0; i < 40; i++) {
      uint32_t at = (i % 10 == 9 ? 2 : i % 10 < 6 ? 0 : i % 10 < 8 ? 1 : 3) + rotation;
      const uint64_t *pair = leaves[at % CS_COUNT(leaves)];
      weight = i % 10 == 9 ? 14000000 : 1000000;
      SAMPLE(1 + i % 2, CS_STOP_BASE, 1000, MANAGED(pair[0], 1), MANAGED(pair[1], 2),
             MANAGED(MAIN, 3));
    }
  }
}

// The same, and exceptions that no walked one stands for.
static void unwalked(void) {
  enum { TYPE = 30 };
  uneven();
  thread(UINT32_MAX, 0, CS_WIRE_UNWALKED);
  function(TYPE, CS_WIRE_FN_TYPE, "", "", "Shop.SoldOutException", "");
  sampled_mode = CS_WIRE_MODE_EXCEPTION;
  weight = 30000000;
  SAMPLE(UINT32_MAX, CS_STOP_BASE, 1, MANAGED(TYPE, 0));
  struct cs_wire_events events = {CS_WIRE_MODE_EXCEPTION, 0, 122000000, 122000000, 40};
  begin();
  put(&events, sizeof events);
  end(CS_WIRE_EVENTS);
}

// A server: requests in the pool, under the framework's plumbing, and a thread that waits for
// events of sockets. 17 samples are work: 8 in Sum, 4 and 2 in Work behind other middleware, 3 in
// Main.
enum { START = 20, WORKER, DISPATCH, KESTREL, HOSTS, ROUTES, SOCKETS };
#define POOL \
  MANAGED(KESTREL, 1), MANAGED(DISPATCH, 1), MANAGED(WORKER, 1), MANAGED(START, 1), NATIVE(7, 1)
static void served(void) {
  static const char core[] = "System.Private.CoreLib.dll";
  describe();
  thread(3, 103, ".NET Sockets");
  function(START, CS_WIRE_FN_METHOD, core, "System.Threading", "Thread", "StartCallback");
  function(WORKER, CS_WIRE_FN_METHOD, core, "System.Threading", "PortableThreadPool.WorkerThread",
           "WorkerThreadStart");
  function(DISPATCH, CS_WIRE_FN_METHOD, core, "System.Threading", "ThreadPoolWorkQueue",
           "Dispatch");
  function(KESTREL, CS_WIRE_FN_METHOD, "Microsoft.AspNetCore.Server.Kestrel.Core.dll",
           "Microsoft.AspNetCore.Server.Kestrel.Core.Internal.Http", "HttpProtocol",
           "ProcessRequests");
  function(HOSTS, CS_WIRE_FN_METHOD, "Microsoft.AspNetCore.HostFiltering.dll",
           "Microsoft.AspNetCore.HostFiltering", "HostFilteringMiddleware", "Invoke");
  function(ROUTES, CS_WIRE_FN_METHOD, "Microsoft.AspNetCore.Routing.dll",
           "Microsoft.AspNetCore.Routing", "EndpointRoutingMiddleware", "Invoke");
  function(SOCKETS, CS_WIRE_FN_METHOD, "System.Net.Sockets.dll", "System.Net.Sockets",
           "SocketAsyncEngine", "EventLoop");
  image(7, 0x10000, 0x20000, 0, "/no/such/libcoreclr.so");
  uint64_t wait = (uintptr_t)&epoll_fake - put_own_image(OWN_IMAGE);
  for (int i = 0; i < 8; i++)
    SAMPLE(2, CS_STOP_BASE, 1000, MANAGED(SUM, 1), MANAGED(WORK, 1), MANAGED(HOSTS, 1), POOL);
  for (int i = 0; i < 4; i++)
    SAMPLE(2, CS_STOP_BASE, 1000, MANAGED(WORK, 1), MANAGED(ROUTES, 1), MANAGED(HOSTS, 1), POOL);
  for (int i = 0; i < 2; i++)
    SAMPLE(2, CS_STOP_BASE, 1000, MANAGED(WORK, 1), MANAGED(ROUTES, 1), POOL);
  for (int i = 0; i < 3; i++) SAMPLE(1, CS_STOP_BASE, 1000, MANAGED(MAIN, 1), NATIVE(7, 1));
  for (int i = 0; i < 20; i++)
    SAMPLE(3, CS_STOP_BASE, 1000, NATIVE(OWN_IMAGE, wait), MANAGED(SOCKETS, 1), MANAGED(START, 1),
           NATIVE(7, 1));
}

// The engine, and the CPU time of the threads that it sampled.
static void send_engine(enum cs_wire_engine_kind engine, uint64_t cpu_ns) {
  begin();
  put(&(struct cs_wire_engine){.cpu_ns = cpu_ns, .used = engine}, sizeof(struct cs_wire_engine));
  put_text("");
  put_text("");
  end(CS_WIRE_ENGINE);
}

// The compiler itself, and libcoreclr as it is called by the compiler through another library:
// three samples, one of which took 140 ms, in three seconds of CPU time.
static void compiles(void) {
  describe();
  image_flags = CS_WIRE_IMAGE_RUNTIME;
  image(7, 0x10000, 0x20000, 0, "/no/such/libcoreclr.so");
  image_flags = 0;
  image(9, 0x30000, 0x40000, 0, "/no/such/libclrjit.so");
  image(10, 0x50000, 0x60000, 0, "/no/such/libc.so.6");
  weight = 1000000000;
  SAMPLE(1, CS_STOP_BASE, 1000, NATIVE(9, 1), MANAGED(MAIN, 1));
  SAMPLE(1, CS_STOP_BASE, 1000, NATIVE(9, 1), MANAGED(MAIN, 1));
  SAMPLE(1, CS_STOP_BASE, 140000000, NATIVE(7, 1), NATIVE(10, 1), NATIVE(9, 1), MANAGED(MAIN, 1));
  send_engine(CS_WIRE_ENGINE_PERF, 3000000000);
}

// Types by the runtime's names for them.
static void types(void) {
  static const char *const names[] = {"System.Byte[]", "System.String",
                                      "System.Collections.Generic.List`1[System.Int32][,]",
                                      "System.Int32Converter", "[holds System.Object]"};
  describe();
  for (uint32_t i = 0; i < CS_COUNT(names); i++) {
    function(50 + i, CS_WIRE_FN_TYPE, "", "", names[i], "");
    SAMPLE(1, CS_STOP_BASE, 1000, MANAGED(50 + i, 0), MANAGED(MAIN, 1));
  }
}

// Two threads of the pool wait for work: for 4 ms one sleeps, for 6 ms the other one spins. Main
// runs for 2 ms.
static void spins(void) {
  describe();
  function(WORKER, CS_WIRE_FN_METHOD, "System.Private.CoreLib.dll", "System.Threading",
           "PortableThreadPool.WorkerThread", "WorkerThreadStart");
  uint64_t from = put_own_image(OWN_IMAGE), yield = (uintptr_t)&sched_yield_fake - from,
           wait = (uintptr_t)&epoll_fake - from;
  for (int i = 0; i < 2; i++)
    SAMPLE(1, CS_STOP_BASE, 0, NATIVE(OWN_IMAGE, wait), MANAGED(WORKER, 1));
  for (int i = 0; i < 3; i++)
    SAMPLE(2, CS_STOP_BASE, 1000, NATIVE(OWN_IMAGE, yield), MANAGED(WORKER, 1));
  SAMPLE(1, CS_STOP_BASE, 1000, MANAGED(MAIN, 1));
}

// Requests of two routes, each request a trace of its own: five of GET /cart/{id}, the third of
// which lasts longest, whose delegate stands below Kestrel's frames or below others, and one of
// POST /order, whose delegate is not on the stack. Two samples belong to none.
enum { DELEGATE = 30, GET_CART, POST_ORDER };
static void requests(void) {
  describe();
  function(DISPATCH, CS_WIRE_FN_METHOD, "System.Private.CoreLib.dll", "System.Threading",
           "ThreadPoolWorkQueue", "Dispatch");
  function(KESTREL, CS_WIRE_FN_METHOD, "Microsoft.AspNetCore.Server.Kestrel.Core.dll",
           "Microsoft.AspNetCore.Server.Kestrel.Core.Internal.Http", "HttpProtocol",
           "ProcessRequests");
  function(DELEGATE, CS_WIRE_FN_DYNAMIC, "", "", "", "lambda_method2");
  function(GET_CART, CS_WIRE_FN_TYPE, "", "", "GET /cart/{id}", "");
  function(POST_ORDER, CS_WIRE_FN_TYPE, "", "", "POST /order", "");
  for (uint32_t i = 0; i < 5; i++) {
    sample_label = (struct cs_label){.trace = {(uint8_t)(i + 1)}, .endpoint = GET_CART};
    for (uint32_t n = 0; n < (i == 2 ? 6 : 2); n++) {
      if (n == 0)
        SAMPLE(1, CS_STOP_BASE, 1000, MANAGED(WORK, 1), MANAGED(DELEGATE, 1), MANAGED(KESTREL, 1),
               MANAGED(DISPATCH, 1));
      else
        SAMPLE(2, CS_STOP_BASE, 1000, MANAGED(SUM, 1), MANAGED(WORK, 1), MANAGED(DELEGATE, 1),
               MANAGED(DISPATCH, 1));
    }
  }
  sample_label = (struct cs_label){.trace = {9}, .endpoint = POST_ORDER};
  for (uint32_t n = 0; n < 4; n++)
    SAMPLE(2, CS_STOP_BASE, 1000, MANAGED(SUM, 1), MANAGED(DISPATCH, 1));
  sample_label = (struct cs_label){.endpoint = 0};
  SAMPLE(1, CS_STOP_BASE, 1000, MANAGED(SUM, 1), MANAGED(DISPATCH, 1));
  SAMPLE(1, CS_STOP_BASE, 1000, MANAGED(MAIN, 1));
}

// For comparison with golden: of 22 samples 12 are in Sum and 10 in Main itself.
static void later(void) {
  describe();
  for (int i = 0; i < 22; i++) {
    if (i < 12)
      SAMPLE(1, CS_STOP_BASE, 1000, MANAGED(SUM, 4), MANAGED(WORK, 1), MANAGED(MAIN, 2));
    else
      SAMPLE(2, CS_STOP_BASE, 1000, MANAGED(MAIN, 2));
  }
}

// Each of these must cost no more than itself, but for the last ones, whose framing is wrong.
// Names that a terminal would obey: C0, C1 as a byte and in UTF-8, other directions, line ends.
#define HOSTILE        \
  "\x1b]0;owned\a\x9b" \
  "31m\xC2\x9b"        \
  "2J\xE2\x80\xAE"     \
  "\xE2\x81\xA6"       \
  "\xE2\x80\xA8\r\n\x7F</script>"
static void hostile(void) {
  start();
  thread(1, 100, "t" HOSTILE);
  function(MAIN, CS_WIRE_FN_METHOD, "/app/m" HOSTILE ".dll", "n" HOSTILE, "c" HOSTILE, "f" HOSTILE);
  image(7, 0x10000, 0x20000, 0, "/no/such/i" HOSTILE ".so");
  for (int i = 0; i < 4; i++) SAMPLE(1, CS_STOP_BASE, 1000, NATIVE(7, 1), MANAGED(MAIN, 0));
  finish(4, 0, 0);
}

static void malformed(void) {
  describe();
  SAMPLE(1, CS_STOP_BASE, 1000, MANAGED(MAIN, 0));
  begin();
  end(CS_WIRE_SAMPLE);  // no payload
  begin();
  put(&(struct cs_wire_sample){.thread = 1, .stop = CS_STOP_BASE, .frame_count = 0xFFFFFFFF},
      sizeof(struct cs_wire_sample));
  end(CS_WIRE_SAMPLE);  // more frames than there are
  SAMPLE(1, (enum cs_stop)999, 1000, MANAGED(MAIN, 0));
  begin();
  put(&(struct cs_wire_function){99, CS_WIRE_FN_METHOD, 0}, sizeof(struct cs_wire_function));
  put("\xFF\xFFno", 4);  // a text of 65535 bytes
  end(CS_WIRE_FUNCTION);
  begin();
  end((enum cs_wire_kind)77);  // a kind of the future: passed over, not an error
  SAMPLE(1, CS_STOP_BASE, 1000, MANAGED(MAIN, 0));
  SAMPLE(1, CS_STOP_BASE, 1000, MANAGED(12345, 0), MANAGED(MAIN, 0));  // nobody has named it
  SAMPLE(55, CS_STOP_BASE, 1000, MANAGED(MAIN, 0));                    // nobody has named it
  while (cs_load_acquire(&header->tail) != header->head) nap();
  struct cs_wire_record wild = {0xFFFFFFF8u, CS_WIRE_SAMPLE, 0};
  memcpy(record, &wild, sizeof wild);
  write_bytes(64);
  while (cs_load_acquire(&header->tail) != header->head) nap();
  SAMPLE(1, CS_STOP_BASE, 1000, MANAGED(MAIN, 0));
}

static void many(uint32_t stacks) {
  describe();
  thread(3, 103, ".NET TP Worker");  // of one name, as the pool's threads are
  thread(4, 104, ".NET TP Worker");
  for (uint32_t i = 0; i < 1000; i++) {
    char name[32];
    (void)snprintf(name, sizeof name, "Method%u", i);
    function(100 + i, CS_WIRE_FN_METHOD, i % 3 ? "app.dll" : "System.Text.Json.dll", "Shop.Deep",
             "Layer", name);
  }
  uint32_t random = 1;
  for (uint32_t i = 0; i < stacks; i++) {
    uint64_t frames[40];
    uint32_t digits = i;
    frames[39] = MANAGED(MAIN, 0);
    for (uint32_t d = 39; d-- > 0;) {
      random = random * 1664525u + 1013904223u;
      // The first five levels spell `i` in base 10, so every stack is different.
      frames[d] = MANAGED(100 + (d >= 33 ? digits % 10 + (d - 33) * 20 : random >> 24), 0);
      if (d >= 33) digits /= 10;
    }
    sample(i % 4 + 1, CS_STOP_BASE, 1000 + i % 5000, frames, 40);
  }
}

// Becomes another program as soon as the command has taken what there is, and leaves in a file how
// long that has taken since it began to record, in ms.
static void become(uint64_t since_ns, char **program) {
  golden();
  while (cs_load_acquire(&header->tail) != header->head) nap();
  FILE *out = fopen("recorded_ms", "w");
  if (out == NULL) abort();
  (void)fprintf(out, "%.0f\n", (double)(now_ns() - since_ns) / 1e6);
  (void)fclose(out);
  (void)execvp(program[0], program);
}

static void until_stopped(void) {
  describe();
  uint64_t samples = 0;
  while (!cs_load_acquire(&header->stop)) {
    SAMPLE(1, CS_STOP_BASE, 1000, MANAGED(WORK, 0), MANAGED(MAIN, 0));
    samples++;
    nap();
  }
  finish(samples, 0, 0);
}

// A thread that sleeps throughout: its stack comes once, and after that only that it still sleeps.
// A second thread runs.
static void asleep(void) {
  uint64_t samples = 2, time_ns = 0;
  describe();
  SAMPLE(2, CS_STOP_BASE, 0, MANAGED(LCG, 0), MANAGED(SUM, 0), MANAGED(MAIN, 0));
  SAMPLE(1, CS_STOP_BASE, 1000, MANAGED(WORK, 0), MANAGED(MAIN, 0));
  for (; !cs_load_acquire(&header->stop); samples += 2) {
    struct cs_wire_repeat again = {time_ns += 1000000, weight, 2, 0};
    begin();
    put(&again, sizeof again);
    end(CS_WIRE_REPEAT);
    SAMPLE(1, CS_STOP_BASE, 1000, MANAGED(WORK, 0), MANAGED(MAIN, 0));
    nap();
  }
  finish(samples, 0, 0);
}

int main(int argc, char **argv) {
  const char *what = argc > 1 ? argv[1] : "golden";
  int code = argc > 2 ? atoi(argv[2]) : 0;
  if (strcmp(what, "absent") == 0) return code;
  uint64_t began_ns = now_ns();
  if (!attach()) {
    (void)fprintf(stderr, "fake_agent: no usable %s\n", CS_WIRE_ENV);
    return 99;
  }
  if (strcmp(what, "golden") == 0) {
    golden();
    finish(11 + allocate(10, WORK), 0, 0);
  } else if (strcmp(what, "later") == 0) {
    later();
    finish(22 + allocate(10, WORK) + allocate(30, SUM), 0, 0);
  } else if (strcmp(what, "uneven") == 0 || strcmp(what, "uneven-lingers") == 0) {
    uneven();
    while (strcmp(what, "uneven") != 0 && !cs_load_acquire(&header->stop)) nap();
    finish(40 * (uint64_t)__builtin_popcount(header->modes), 0, 0);
  } else if (strcmp(what, "unwalked") == 0) {
    unwalked();
    finish(40 * (uint64_t)__builtin_popcount(header->modes) + 1, 0, 0);
  } else if (strcmp(what, "served") == 0) {
    served();
    finish(37, 0, 0);
  } else if (strcmp(what, "compiles") == 0) {
    compiles();
    finish(3, 0, 0);
  } else if (strcmp(what, "types") == 0) {
    types();
    finish(5, 0, 0);
  } else if (strcmp(what, "spins") == 0) {
    spins();
    finish(6, 0, 0);
  } else if (strcmp(what, "requests") == 0) {
    requests();
    finish(20, 0, 0);
  } else if (strcmp(what, "lost") == 0) {
    describe();
    SAMPLE(1, CS_STOP_BASE, 1000, MANAGED(MAIN, 0));
    begin();
    put(&(struct cs_wire_put_off){1, 3, 250000, 2, 1}, sizeof(struct cs_wire_put_off));
    end(CS_WIRE_PUT_OFF);
    finish(1, 5, 7);
  } else if (strcmp(what, "empty") == 0) {
    describe();
    finish(0, 0, 0);
  } else if (strcmp(what, "clocked") == 0) {  // one sample, by the clock engine
    describe();
    SAMPLE(1, CS_STOP_BASE, 1000, MANAGED(MAIN, 0));
    send_engine(CS_WIRE_ENGINE_CLOCK, 2000000);
    finish(0, 0, 0);
  } else if (strcmp(what, "kernel") == 0) {  // one sample of three is in the kernel
    describe();
    for (int i = 0; i < 2; i++) SAMPLE(1, CS_STOP_BASE, 1000, MANAGED(MAIN, 0));
    SAMPLE(1, CS_STOP_BASE, 1000, CS_WIRE_FRAME_IN_KERNEL | 0xffff81000000, MANAGED(MAIN, 0));
    finish(3, 0, 0);
  } else if (strcmp(what, "missed") == 0) {  // CPU time, of which no sample was taken
    describe();
    send_engine(CS_WIRE_ENGINE_CLOCK, 310000000);
    finish(0, 0, 0);
  } else if (strcmp(what, "starved") == 0) {  // no processor for the agent, for long
    describe();
    begin();
    put(
        &(struct cs_wire_times){
            .process_ns = 700000000, .waited_ns = 1400000000, .lasted_ns = 1600000000},
        sizeof(struct cs_wire_times));
    end(CS_WIRE_TIMES);
    finish(0, 0, 0);
  } else if (strcmp(what, "hostile") == 0) {
    hostile();
  } else if (strcmp(what, "hostile-refusal") == 0) {
    (void)snprintf(header->message, sizeof header->message, "no" HOSTILE);
    cs_store_release(&header->agent_state, (uint32_t)CS_WIRE_AGENT_REFUSED);
  } else if (strcmp(what, "malformed") == 0) {
    malformed();
    finish(5, 0, 0);
  } else if (strcmp(what, "killed") == 0) {
    golden();
    begin();  // what is not committed does not count
    (void)kill(getpid(), SIGKILL);
  } else if (strcmp(what, "exec") == 0) {
    become(began_ns, argv + 2);
  } else if (strcmp(what, "early") == 0) {  // it ends before it records
    cs_store_release(&header->agent_state, (uint32_t)CS_WIRE_AGENT_NONE);
  } else if (strcmp(what, "refuse") == 0) {
    (void)snprintf(header->message, sizeof header->message, "this is .NET 8, which is for later");
    cs_store_release(&header->agent_state, (uint32_t)CS_WIRE_AGENT_REFUSED);
  } else if (strcmp(what, "many") == 0) {
    many((uint32_t)code);
    finish((uint64_t)code, 0, 0);
    return 0;
  } else if (strcmp(what, "asleep") == 0) {
    asleep();
  } else if (strcmp(what, "until-stopped") == 0) {
    until_stopped();
    (void)printf("after the recording\n");
  } else {
    return 98;
  }
  return code;
}
