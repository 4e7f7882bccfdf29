// SPDX-License-Identifier: MIT
// Requests to symbol servers, one after the other. Invariants: what a server sends is untrusted, so
// it goes to a file in memory of bounded size, and neither gets a name nor is read as symbols
// unless it is a complete ELF file with the build id that was asked for; a server that fails, in
// whatever way, is not asked again; every wait ends, and Ctrl-C ends it within a tenth of a second.
// One thread. Signal-safe: no.
#include "symbols/fetch.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/path.h"
#include "base/prefix.h"
#include "base/print.h"
#include "net/curl.h"
#include "symbols/cache.h"
#include "util/map.h"
#include "util/say.h"

#define MB 1e6
#define MOST_BYTES (512ull << 20)  // of a file
#define MOST_BYTES_OF_ALL (2048ull << 20)
#define MOST_ASKED 256  // libraries; a recording may name any number
#define MOST_ID 64
#define CONNECT_MS 10000L
#define WHOLE_S 1800L           // for one file
#define LEAST_PER_SECOND 1000L  // bytes
#define PATIENCE_S 30           // with a server that sends less than that
#define POLL_MS 100
#define PROGRESS_NS 200000000ull
#define SYMSTORE_ID 40  // digits: shorter ids are filled with zeros

struct server {
  struct cs_symbols_server *is;
  CURLU *url;
  char *shown;  // for people, without secrets
};

struct cs_fetcher {
  struct server servers[CS_SYMBOLS_MOST];
  size_t count;
  const char *cache;
  CURL *curl;
  CURLM *multi;
  long patience_s;
  bool progress;  // standard error is a terminal
  bool stopped;   // nothing more is fetched
  bool unkept;    // a message has said that files cannot be kept
  unsigned asked;
  uint64_t bytes;
  unsigned none;  // libraries of which no server has symbols
  char none_text[256];
};

// A file that is asked for.
struct transfer {
  struct cs_fetcher *fetcher;
  struct server *from;
  const char *name;  // of the library
  int fd;
  uint64_t size, most;
  bool too_large;
  uint64_t shown_ns;
};

enum outcome { FOUND, NOT_FOUND, FAILED, STOPPED };

// ---- Servers ----

static bool open_server(struct server *server, struct cs_symbols_server *is, struct cs_error *err) {
  *server = (struct server){.is = is, .url = cs_curl.url()};
  if (server->url == NULL) return cs_error_set(err, "out of memory");
  CURLUcode code = cs_curl.url_set(server->url, CURLUPART_URL, is->url, CURLU_URLENCODE);
  if (code != CURLUE_OK)
    return cs_error_set(err, "--symbols: the URL of a server cannot be used: %s",
                        cs_curl.url_strerror(code));
  server->shown = cs_curl_shown(server->url);
  return server->shown != NULL || cs_error_set(err, "out of memory");
}

static long patience(void) {
  const char *text = getenv("DEBUGINFOD_TIMEOUT");
  char *end;
  long seconds = text != NULL ? strtol(text, &end, 10) : 0;
  return seconds > 0 && *end == '\0' && seconds <= 3600 ? seconds : PATIENCE_S;
}

struct cs_fetcher *cs_fetcher_new(struct cs_symbols_server *servers, size_t count,
                                  const char *cache, struct cs_error *err) {
  if (!cs_curl_load("--symbols with a server", err)) return NULL;
  struct cs_fetcher *f = cs_allocate(sizeof *f);
  f->cache = cache;
  f->patience_s = patience();
  f->progress = isatty(STDERR_FILENO) == 1;
  f->curl = cs_curl.easy_init();
  f->multi = cs_curl.multi_init();
  bool ok = (f->curl != NULL && f->multi != NULL) || cs_error_set(err, "out of memory");
  while (ok && f->count < count) {
    ok = open_server(&f->servers[f->count], &servers[f->count], err);
    f->count++;
  }
  if (ok) return f;
  cs_fetcher_free(f);
  return NULL;
}

void cs_fetcher_free(struct cs_fetcher *f) {
  if (f == NULL) return;
  for (size_t i = 0; i < f->count; i++) {
    cs_curl.url_cleanup(f->servers[i].url);
    cs_curl.free(f->servers[i].shown);
  }
  if (f->curl != NULL) cs_curl.easy_cleanup(f->curl);
  if (f->multi != NULL) (void)cs_curl.multi_cleanup(f->multi);
  free(f);
}

// The URL of a debug file, to be freed with cs_curl.free. Returns NULL if memory has run out.
static char *url_of(const struct server *server, const char *id) {
  static const char zeros[SYMSTORE_ID + 1] = "0000000000000000000000000000000000000000";
  size_t len = strlen(id), fill = len < SYMSTORE_ID ? SYMSTORE_ID - len : 0;
  char *base = NULL, *path = NULL, *text = NULL;
  CURLU *url = cs_curl.url_dup(server->url);
  bool ok = url != NULL && cs_curl.url_get(url, CURLUPART_PATH, &base, 0) == CURLUE_OK;
  size_t end = ok ? strlen(base) : 0;
  while (end > 0 && base[end - 1] == '/') end--;
  if (ok && server->is->layout == CS_SYMBOLS_DEBUGINFOD)
    ok = asprintf(&path, "%.*s/buildid/%s/debuginfo", (int)end, base, id) >= 0;
  else if (ok)
    ok = asprintf(&path, "%.*s/_.debug/elf-buildid-sym-%s%.*s/_.debug", (int)end, base, id,
                  (int)fill, zeros) >= 0;
  ok = ok && cs_curl.url_set(url, CURLUPART_PATH, path, 0) == CURLUE_OK &&
       cs_curl.url_get(url, CURLUPART_URL, &text, 0) == CURLUE_OK;
  if (base != NULL) cs_curl.free(base);
  free(path);
  cs_curl.url_cleanup(url);
  return ok ? text : NULL;
}

// ---- One request ----

static size_t take(char *data, size_t one, size_t count, void *context) {
  struct transfer *t = context;
  size_t size = one * count, done = 0;
  t->too_large = size > t->most - t->size;
  while (!t->too_large && done < size) {
    ssize_t put = pwrite(t->fd, data + done, size - done, (off_t)t->size);
    if (put <= 0) return 0;
    done += (size_t)put;
    t->size += (size_t)put;
  }
  return done;
}

static void prepare(const struct cs_fetcher *f, struct transfer *t, const char *url) {
  CURL *curl = f->curl;
  bool secure = cs_has_prefix(url, "https:");
  cs_curl.easy_reset(curl);  // keeps the connection
  (void)cs_curl.easy_setopt(curl, CURLOPT_URL, url);
  (void)cs_curl.easy_setopt(curl, CURLOPT_USERAGENT, "clrsnap/" CLRSNAP_VERSION);
  (void)cs_curl.easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
  (void)cs_curl.easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 1L);
  (void)cs_curl.easy_setopt(curl, CURLOPT_MAXREDIRS, 5L);
  (void)cs_curl.easy_setopt(curl, CURLOPT_REDIR_PROTOCOLS_STR, secure ? "https" : "http,https");
  (void)cs_curl.easy_setopt(curl, CURLOPT_FAILONERROR, 1L);
  (void)cs_curl.easy_setopt(curl, CURLOPT_ACCEPT_ENCODING, "");  // all that this libcurl has
  (void)cs_curl.easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_MS);
  (void)cs_curl.easy_setopt(curl, CURLOPT_TIMEOUT, WHOLE_S);
  (void)cs_curl.easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, LEAST_PER_SECOND);
  (void)cs_curl.easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, f->patience_s);
  (void)cs_curl.easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
#if LIBCURL_VERSION_NUM >= 0x075700  // looking up a name may take longer than the user waits
  (void)cs_curl.easy_setopt(curl, CURLOPT_QUICK_EXIT, 1L);
#endif
  if (cs_curl_certificates() != NULL)
    (void)cs_curl.easy_setopt(curl, CURLOPT_CAINFO, cs_curl_certificates());
  (void)cs_curl.easy_setopt(curl, CURLOPT_WRITEFUNCTION, take);
  (void)cs_curl.easy_setopt(curl, CURLOPT_WRITEDATA, t);
}

static bool is_interrupted(void) {
  static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
  sigset_t waiting;
  if (sigpending(&waiting) != 0) return false;
  for (size_t i = 0; i < CS_COUNT(signals); i++)
    if (sigismember(&waiting, signals[i]) == 1) return true;
  return false;
}

// A line that overwrites itself, and is removed before anything else is printed.
static void show_progress(struct transfer *t) {
  uint64_t now = cs_clock_now_ns();
  if (!t->fetcher->progress || now - t->shown_ns < PROGRESS_NS) return;
  t->shown_ns = now;
  cs_print(stderr, "\r\033[Kclrsnap: fetching the symbols of %.80s, %.1f MB; Ctrl-C ends that",
           t->name, (double)t->size / MB);
  (void)fflush(stderr);
}

static void clear_progress(const struct transfer *t) {
  if (t->shown_ns == 0) return;
  cs_print(stderr, "\r\033[K");
  (void)fflush(stderr);
}

// Returns the transfer's result. Its fetcher is stopped if a signal has ended it.
static CURLcode perform(struct transfer *t) {
  struct cs_fetcher *f = t->fetcher;
  CURLcode code = CURLE_ABORTED_BY_CALLBACK;
  int running = 1, left;
  if (cs_curl.multi_add_handle(f->multi, f->curl) != CURLM_OK) return CURLE_OUT_OF_MEMORY;
  while (running > 0 && !f->stopped) {
    f->stopped = is_interrupted();
    if (f->stopped || cs_curl.multi_perform(f->multi, &running) != CURLM_OK) break;
    show_progress(t);
    if (running > 0) (void)cs_curl.multi_poll(f->multi, NULL, 0, POLL_MS, NULL);
  }
  const CURLMsg *message = cs_curl.multi_info_read(f->multi, &left);
  if (message != NULL && message->msg == CURLMSG_DONE) code = message->data.result;
  (void)cs_curl.multi_remove_handle(f->multi, f->curl);
  clear_progress(t);
  return code;
}

__attribute__((format(printf, 2, 3))) static enum outcome fail(const struct transfer *t,
                                                               const char *format, ...) {
  char why[256];
  va_list args;
  va_start(args, format);
  (void)vsnprintf(why, sizeof why, format, args);
  va_end(args);
  t->from->is->failed = true;
  cs_say("no symbols of %s from %s, which is not asked again: %s", t->name, t->from->shown, why);
  return FAILED;
}

static enum outcome evaluate(struct transfer *t, CURLcode code) {
  long status = 0;
  (void)cs_curl.easy_getinfo(t->fetcher->curl, CURLINFO_RESPONSE_CODE, &status);
  if (t->fetcher->stopped) return STOPPED;
  if (status == 404 || status == 410) return NOT_FOUND;
  if (t->too_large) return fail(t, "it sends more than %.0f MB", (double)t->most / MB);
  if (code == CURLE_HTTP_RETURNED_ERROR || (code == CURLE_OK && status != 200))
    return fail(t, "HTTP status %ld", status);
  if (code != CURLE_OK) return fail(t, "%s", cs_curl.easy_strerror(code));
  return FOUND;
}

static uint64_t room(const struct cs_fetcher *f) {
  struct rlimit limit;
  uint64_t most = MOST_BYTES_OF_ALL - f->bytes;
  if (most > MOST_BYTES) most = MOST_BYTES;
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < most) most = limit.rlim_cur;
  return most;
}

static enum outcome ask(struct transfer *t, const char *url) {
  t->fd = memfd_create("clrsnap-symbols", MFD_CLOEXEC);
  if (t->fd < 0) return fail(t, "out of memory");
  t->most = room(t->fetcher);
  prepare(t->fetcher, t, url);
  enum outcome outcome = evaluate(t, perform(t));
  t->fetcher->bytes += t->size;
  if (outcome == FOUND) return FOUND;
  (void)close(t->fd);
  t->fd = -1;
  return outcome;
}

// ---- One library ----

static void keep(struct cs_fetcher *f, const char *id, int fd) {
  struct cs_error err = {"neither XDG_CACHE_HOME nor HOME is set"};
  if (f->cache != NULL && cs_symbol_cache_keep(f->cache, id, fd, &err)) return;
  if (!f->unkept) cs_say("fetched symbols are not kept for the next time: %s", err.text);
  f->unkept = true;
}

static int check(const struct transfer *t, const char *id, const uint8_t *bytes, size_t size) {
  if (!cs_elf_is(t->fd, bytes, size)) {
    (void)fail(t, "what it sends is not a complete ELF file with the library's build id");
    (void)close(t->fd);
    return -1;
  }
  bool small = t->size < 1000000;
  cs_say("fetched the symbols of %s (%.1f %s) from %s", t->name,
         (double)t->size / (small ? 1e3 : MB), small ? "kB" : "MB", t->from->shown);
  keep(t->fetcher, id, t->fd);
  return t->fd;
}

static int ask_all(struct cs_fetcher *f, const char *name, const char *id, const uint8_t *bytes,
                   size_t size) {
  bool asked = false, none = true;
  for (size_t i = 0; i < f->count && !f->stopped; i++) {
    struct transfer t = {.fetcher = f, .from = &f->servers[i], .name = name};
    if (t.from->is->failed) continue;
    asked = true;
    char *url = url_of(t.from, id);
    enum outcome outcome = url != NULL ? ask(&t, url) : fail(&t, "out of memory");
    cs_curl.free(url);
    int fd = outcome == FOUND ? check(&t, id, bytes, size) : -1;
    if (fd >= 0) return fd;
    none = none && outcome == NOT_FOUND;
  }
  if (f->stopped) cs_say("interrupted: no more symbols are fetched");
  if (f->stopped || !asked || !none) return -1;
  size_t used = strlen(f->none_text);
  if (used + strlen(name) + 32 < sizeof f->none_text)
    (void)snprintf(f->none_text + used, sizeof f->none_text - used, "%s%s", used > 0 ? ", " : "",
                   name);
  else
    f->none++;
  return -1;
}

// Signals wait until the request has been ended in good order.
static void block(sigset_t *before) {
  sigset_t set;
  (void)sigemptyset(&set);
  (void)sigaddset(&set, SIGINT);
  (void)sigaddset(&set, SIGTERM);
  (void)sigaddset(&set, SIGHUP);
  (void)sigaddset(&set, SIGQUIT);
  (void)sigprocmask(SIG_BLOCK, &set, before);
}

int cs_fetch(struct cs_fetcher *f, const uint8_t *id, size_t id_size, const char *path) {
  char text[2 * MOST_ID + 1];
  sigset_t before;
  struct sigaction ignore = {.sa_handler = SIG_IGN}, pipe;  // a server may close the connection
  if (f->stopped || id_size > MOST_ID || path[0] != '/') return -1;
  if (f->asked++ == MOST_ASKED || f->bytes >= MOST_BYTES_OF_ALL) {
    cs_say("no more symbols are fetched: there were %u libraries with %.0f MB", f->asked - 1,
           (double)f->bytes / MB);
    f->stopped = true;
    return -1;
  }
  for (size_t i = 0; i < id_size; i++) (void)snprintf(text + 2 * i, 3, "%02x", id[i]);
  block(&before);
  (void)sigaction(SIGPIPE, &ignore, &pipe);
  int fd = ask_all(f, cs_file_of(path), text, id, id_size);
  (void)sigaction(SIGPIPE, &pipe, NULL);
  (void)sigprocmask(SIG_SETMASK, &before, NULL);
  return fd;
}

void cs_fetcher_report(struct cs_fetcher *f) {
  if (f->none_text[0] == '\0') return;
  char more[32] = "";
  if (f->none > 0) (void)snprintf(more, sizeof more, " and %u more", f->none);
  cs_say("no server has symbols of %s%s", f->none_text, more);
  f->none_text[0] = '\0';
}
