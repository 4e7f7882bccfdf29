// SPDX-License-Identifier: MIT
// The queue of profiles and the thread that sends them with libcurl. The command's own thread adds,
// another one sends; `lock` protects everything that they share, and is not held during a request.
// Invariant: every profile that was added is in the queue, being sent, arrived or lost, and counted
// as such. Signal-safe: no.
#include "push/push.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "push/push_target.h"
#include "util/say.h"

#define SECOND 1000000000ull
#define FIRST_PAUSE_NS (SECOND / 2)
#define LONGEST_PAUSE_NS (30 * SECOND)
#define LONGEST_RETRY_NS (3600 * SECOND)  // that a server may ask for
#define SIGNALS_MS 50                     // between two checks for a signal at the end
#define RESPONSE_BYTES 4096u              // more of a response is not kept

struct item {
  struct item *next;  // the next younger one
  struct cs_push_request request;
};

enum outcome { ARRIVED, AGAIN, REFUSED };

struct response {
  char bytes[RESPONSE_BYTES];
  size_t size;
};

struct result {  // of a request
  enum outcome outcome;
  uint64_t pause_ns;  // before the next request, as the server asks for it; 0: it does not
  char reason[512];   // of a failure
};

struct cs_push {
  struct cs_push_target target;
  pthread_mutex_t lock;
  pthread_cond_t change;
  pthread_t thread;
  bool running;  // the thread exists
  bool ending;   // nothing more will be added
  bool stop;     // what is left will not be sent
  int ended;     // eventfd: the thread has ended
  CURL *curl;    // the thread's own
  struct item *first, *last;
  size_t count, bytes;
  uint64_t arrived, arrived_bytes, lost;
  uint64_t rejected;     // by a server that accepted the request
  bool failing, losing;  // has been reported
  char reason[512];      // of the last failure
};

struct cs_push *cs_push_open(const struct cs_push_options *options, struct cs_error *err) {
  struct cs_push *push = calloc(1, sizeof *push);
  if (push == NULL) {
    (void)cs_error_set(err, "out of memory");
    return NULL;
  }
  pthread_condattr_t attributes;
  (void)pthread_mutex_init(&push->lock, NULL);
  (void)pthread_condattr_init(&attributes);
  (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  (void)pthread_cond_init(&push->change, &attributes);
  (void)pthread_condattr_destroy(&attributes);
  push->ended = eventfd(0, EFD_CLOEXEC);
  bool ok = push->ended >= 0 || cs_error_set(err, "no eventfd: %m");
  if (ok && cs_push_target_open(&push->target, options, err)) return push;
  cs_push_close(push);
  return NULL;
}

// ---- The queue; the lock is held ----

static void free_item(struct item *item) {
  free(item->request.body);
  cs_curl.free(item->request.url);
  free(item);
}

static struct item *take_first(struct cs_push *push) {
  struct item *item = push->first;
  push->first = item->next;
  if (push->first == NULL) push->last = NULL;
  push->count--;
  push->bytes -= item->request.size;
  return item;
}

static bool has_room(const struct cs_push *push, size_t bytes) {
  return push->count == 0 ||
         (push->count < CS_PUSH_MAX_PROFILES && push->bytes + bytes <= CS_PUSH_MAX_BYTES);
}

static void lose(struct cs_push *push, struct item *item) {
  free_item(item);
  push->lost++;
  if (push->losing) return;
  push->losing = true;
  cs_say("profiles for %s are being lost: %s", push->target.shown,
         push->reason[0] != '\0' ? push->reason : "it takes them too slowly");
}

static void add_last(struct cs_push *push, struct item *item) {
  while (!has_room(push, item->request.size)) lose(push, take_first(push));
  if (push->last != NULL)
    push->last->next = item;
  else
    push->first = item;
  push->last = item;
  push->count++;
  push->bytes += item->request.size;
}

// A profile that could not be sent is the oldest one, so it is lost if there is no room.
static void put_back(struct cs_push *push, struct item *item) {
  if (!has_room(push, item->request.size)) {
    lose(push, item);
    return;
  }
  item->next = push->first;
  push->first = item;
  if (push->last == NULL) push->last = item;
  push->count++;
  push->bytes += item->request.size;
}

// ---- One request ----

static size_t take_response(char *data, size_t one, size_t count, void *context) {
  struct response *response = context;
  size_t size = one * count, room = sizeof response->bytes - response->size;
  memcpy(response->bytes + response->size, data, size < room ? size : room);
  response->size += size < room ? size : room;
  return size;
}

// curl polls this during a request; nonzero ends the request.
static int is_stopped(void *context, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d) {
  struct cs_push *push = context;
  (void)a, (void)b, (void)c, (void)d;
  (void)pthread_mutex_lock(&push->lock);
  bool stop = push->stop;
  (void)pthread_mutex_unlock(&push->lock);
  return stop;
}

static void prepare(struct cs_push *push, const struct item *item, struct response *response) {
  CURL *curl = push->curl;
  long timeout = push->target.timeout_ms;
  cs_curl.easy_reset(curl);  // keeps the connection
  (void)cs_curl.easy_setopt(curl, CURLOPT_URL, item->request.url);
  (void)cs_curl.easy_setopt(curl, CURLOPT_HTTPHEADER, push->target.headers);
  (void)cs_curl.easy_setopt(curl, CURLOPT_USERAGENT, "clrsnap/" CLRSNAP_VERSION);
  (void)cs_curl.easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
  (void)cs_curl.easy_setopt(curl, CURLOPT_POST, 1L);
  (void)cs_curl.easy_setopt(curl, CURLOPT_POSTFIELDS, item->request.body);
  (void)cs_curl.easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)item->request.size);
  (void)cs_curl.easy_setopt(curl, CURLOPT_TIMEOUT_MS, timeout);
  (void)cs_curl.easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, timeout);
  (void)cs_curl.easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  if (push->target.certificates != NULL)
    (void)cs_curl.easy_setopt(curl, CURLOPT_CAINFO, push->target.certificates);
  (void)cs_curl.easy_setopt(curl, CURLOPT_WRITEFUNCTION, take_response);
  (void)cs_curl.easy_setopt(curl, CURLOPT_WRITEDATA, response);
  (void)cs_curl.easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
  (void)cs_curl.easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, is_stopped);
  (void)cs_curl.easy_setopt(curl, CURLOPT_XFERINFODATA, push);
}

// Returns whether the request may succeed later. OTLP lists these statuses and forbids a retry for
// all others; Pyroscope responds with 500 and 408 when it is overloaded.
static bool is_temporary(enum cs_push_kind kind, long status) {
  bool named = status == 429 || status == 502 || status == 503 || status == 504;
  return named || (kind == CS_PUSH_PYROSCOPE && (status == 408 || status == 500));
}

static bool is_temporary_failure(CURLcode code) {
  switch (code) {
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_URL_MALFORMAT:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_OUT_OF_MEMORY:
      return false;
    default:
      return true;
  }
}

static void note_rejected(struct cs_push *push, const struct response *response) {
  char message[256];
  int64_t rejected = cs_otlp_rejected(response->bytes, response->size, message, sizeof message);
  if (rejected <= 0) return;
  (void)pthread_mutex_lock(&push->lock);
  push->rejected += (uint64_t)rejected;
  bool first = push->rejected == (uint64_t)rejected;
  (void)pthread_mutex_unlock(&push->lock);
  if (first) cs_say("%s has rejected a profile: %s", push->target.shown, message);
}

// A proxy's page for logging in, for example, has status 200, too.
static bool is_web_page(const struct cs_push *push) {
  static const char page[] = "text/html";
  const char *type = NULL;
  (void)cs_curl.easy_getinfo(push->curl, CURLINFO_CONTENT_TYPE, &type);
  return type != NULL && strncasecmp(type, page, sizeof page - 1) == 0;
}

static void evaluate_status(struct cs_push *push, const struct response *response,
                            struct result *out) {
  long status = 0;
  curl_off_t retry_after = 0;
  (void)cs_curl.easy_getinfo(push->curl, CURLINFO_RESPONSE_CODE, &status);
  if (status >= 200 && status < 300 && is_web_page(push)) {
    (void)snprintf(out->reason, sizeof out->reason,
                   "HTTP status %ld with a web page, which is not a profile server's response",
                   status);
    out->outcome = REFUSED;
    return;
  }
  if (status >= 200 && status < 300) {
    if (push->target.kind == CS_PUSH_OTLP) note_rejected(push, response);
    out->outcome = ARRIVED;
    return;
  }
  // The beginning of the body, as far as it is printable.
  size_t words = 0;
  while (words < response->size && words < 200 && response->bytes[words] >= ' ' &&
         response->bytes[words] < 127)
    words++;
  (void)snprintf(out->reason, sizeof out->reason, "HTTP status %ld%s%.*s", status,
                 words > 0 ? ", " : "", (int)words, response->bytes);
  (void)cs_curl.easy_getinfo(push->curl, CURLINFO_RETRY_AFTER, &retry_after);
  if (retry_after > 0)
    out->pause_ns = (uint64_t)retry_after < LONGEST_RETRY_NS / SECOND
                        ? (uint64_t)retry_after * SECOND
                        : LONGEST_RETRY_NS;
  out->outcome = is_temporary(push->target.kind, status) ? AGAIN : REFUSED;
}

static void send_item(struct cs_push *push, const struct item *item, struct result *out) {
  struct response response = {.size = 0};
  prepare(push, item, &response);
  CURLcode code = cs_curl.easy_perform(push->curl);
  if (code == CURLE_OK) {
    evaluate_status(push, &response, out);
    return;
  }
  (void)snprintf(out->reason, sizeof out->reason, "%s", cs_curl.easy_strerror(code));
  out->outcome = is_temporary_failure(code) ? AGAIN : REFUSED;
}

// ---- The thread ----

// The pause doubles each time, and is random so that not all clients of a server come back at once.
static uint64_t pause_for(const struct result *result, uint64_t backoff) {
  if (result->pause_ns != 0) return result->pause_ns;
  return backoff / 2 + cs_hash_word(cs_clock_now_ns(), 32) % (backoff / 2);
}

static void wait_before_retry(struct cs_push *push, uint64_t pause_ns) {
  struct timespec until = cs_timespec_of(cs_clock_now_ns() + pause_ns);
  while (!push->stop && pthread_cond_timedwait(&push->change, &push->lock, &until) != ETIMEDOUT) {
  }
}

static void report_failure(struct cs_push *push) {
  if (push->failing) return;
  push->failing = true;
  cs_say("a push to %s has failed and will be repeated: %s", push->target.shown, push->reason);
}

static void report_success(struct cs_push *push) {
  if (push->failing || push->losing) cs_say("pushes to %s arrive again", push->target.shown);
  push->failing = push->losing = false;
  push->reason[0] = '\0';
}

// The lock is held on entry and on return, but not during the request.
static void send_first(struct cs_push *push, struct result *result) {
  struct item *item = take_first(push);
  item->next = NULL;
  (void)pthread_mutex_unlock(&push->lock);
  *result = (struct result){.outcome = REFUSED};
  send_item(push, item, result);
  (void)pthread_mutex_lock(&push->lock);
  if (result->outcome != ARRIVED) memcpy(push->reason, result->reason, sizeof push->reason);
  if (result->outcome == ARRIVED) {
    push->arrived++;
    push->arrived_bytes += item->request.size;
    report_success(push);
    free_item(item);
  } else if (result->outcome == AGAIN) {
    report_failure(push);
    put_back(push, item);
  } else {
    lose(push, item);
  }
}

static void *run(void *context) {
  struct cs_push *push = context;
  uint64_t backoff = FIRST_PAUSE_NS;
  struct result result;
  (void)pthread_mutex_lock(&push->lock);
  while (!push->stop) {
    if (push->count == 0 && push->ending) break;
    if (push->count == 0) {
      (void)pthread_cond_wait(&push->change, &push->lock);
      continue;
    }
    send_first(push, &result);
    if (result.outcome != AGAIN) {
      backoff = FIRST_PAUSE_NS;
      continue;
    }
    wait_before_retry(push, pause_for(&result, backoff));
    if (backoff < LONGEST_PAUSE_NS) backoff *= 2;
  }
  (void)pthread_mutex_unlock(&push->lock);
  (void)eventfd_write(push->ended, 1);
  return NULL;
}

// ---- The command's own thread ----

// The thread is started for the first profile: by then the program has been launched, and the
// session has blocked its signals.
static bool ensure_thread(struct cs_push *push) {
  if (push->running) return true;
  push->curl = push->curl != NULL ? push->curl : cs_curl.easy_init();
  push->running = push->curl != NULL && pthread_create(&push->thread, NULL, run, push) == 0;
  return push->running;
}

void cs_push_add(struct cs_push *push, const struct cs_profile *profile) {
  struct cs_error err = {"cannot start a thread to send it"};
  struct item *item = calloc(1, sizeof *item);
  bool good = item != NULL && cs_push_target_request(&push->target, profile, &item->request, &err);
  good = good && ensure_thread(push);
  (void)pthread_mutex_lock(&push->lock);
  if (good) {
    add_last(push, item);
    (void)pthread_cond_signal(&push->change);
  } else {
    (void)snprintf(push->reason, sizeof push->reason, "%s", err.text);
    if (item != NULL) lose(push, item);
  }
  (void)pthread_mutex_unlock(&push->lock);
}

// The session blocks signals. Pending ones are only looked at here: the session may still forward
// them to the program.
static bool is_interrupted(void) {
  sigset_t waiting;
  return sigpending(&waiting) == 0 &&
         (sigismember(&waiting, SIGINT) == 1 || sigismember(&waiting, SIGTERM) == 1);
}

// Returns whether the thread has ended by itself.
static bool wait_for_end(const struct cs_push *push) {
  struct pollfd fd = {.fd = push->ended, .events = POLLIN};
  // As in OpenTelemetry, the timeout of an export covers all of its retries.
  uint64_t until = cs_clock_now_ns() + (uint64_t)push->target.timeout_ms * 1000000u;
  while (cs_clock_now_ns() < until && !is_interrupted())
    if (poll(&fd, 1, SIGNALS_MS) == 1) return true;
  return false;
}

static void stop_thread(struct cs_push *push) {
  (void)pthread_mutex_lock(&push->lock);
  push->stop = true;
  (void)pthread_cond_signal(&push->change);
  (void)pthread_mutex_unlock(&push->lock);
}

static void end_thread(struct cs_push *push) {
  if (!push->running) return;
  (void)pthread_mutex_lock(&push->lock);
  push->ending = true;
  (void)pthread_cond_signal(&push->change);
  (void)pthread_mutex_unlock(&push->lock);
  if (!wait_for_end(push)) stop_thread(push);
  (void)pthread_join(push->thread, NULL);
  push->running = false;
}

bool cs_push_finish(struct cs_push *push) {
  end_thread(push);
  while (push->count > 0) lose(push, take_first(push));
  cs_say("pushed %" PRIu64 " %s (%.1f kB) to %s; lost %" PRIu64 ", rejected %" PRIu64,
         push->arrived, cs_plural(push->arrived, "profile", "profiles"),
         (double)push->arrived_bytes / 1000.0, push->target.shown, push->lost, push->rejected);
  return push->lost == 0 && push->rejected == 0;
}

void cs_push_close(struct cs_push *push) {
  if (push == NULL) return;
  if (push->running) {
    stop_thread(push);
    end_thread(push);
  }
  while (push->count > 0) free_item(take_first(push));
  if (push->curl != NULL) cs_curl.easy_cleanup(push->curl);
  cs_push_target_close(&push->target);
  (void)pthread_cond_destroy(&push->change);
  (void)pthread_mutex_destroy(&push->lock);
  if (push->ended >= 0) (void)close(push->ended);
  free(push);
}
