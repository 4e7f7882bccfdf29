// SPDX-License-Identifier: MIT
// A push's URL, headers and resource, and how a profile becomes a request. Invariant: a user's
// mistakes are found here, before the program starts; no password is ever shown. One thread.
// Signal-safe: no.
#include "push/push_target.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/prefix.h"
#include "formats/writers.h"
#include "profile/expansion.h"
#include "push/push.h"
#include "util/gzip.h"

#define DEFAULT_TIMEOUT_MS 10000  // OTEL_EXPORTER_OTLP_TIMEOUT's own default

static const struct kind {
  const char *scheme, *path;  // the prefix of "http"; the default path
  const char *content_type;
} kinds[] = {
    [CS_PUSH_OTLP] = {"otlp+", "/v1development/profiles", "application/x-protobuf"},
    [CS_PUSH_PYROSCOPE] = {"pyroscope+", "/ingest", "application/octet-stream"},
};

// ---- The URL ----

static bool bad_url(const char *text, const char *why, struct cs_error *err) {
  return cs_error_set(err,
                      "--push takes otlp+http://HOST:4318 or pyroscope+http://HOST:4040 (or "
                      "https), not '%s'%s%s",
                      text, why[0] != '\0' ? ": " : "", why);
}

static const char *find_kind(const char *url, enum cs_push_kind *kind) {
  for (size_t i = 0; i < CS_COUNT(kinds); i++) {
    size_t len = strlen(kinds[i].scheme);
    const char *rest = url + len;
    if (strncmp(url, kinds[i].scheme, len) != 0) continue;
    if (!cs_has_prefix(rest, "http://") && !cs_has_prefix(rest, "https://")) continue;
    *kind = (enum cs_push_kind)i;
    return rest;
  }
  return NULL;
}

static bool query_names_application(CURLU *url) {
  char *query = NULL;
  if (cs_curl.url_get(url, CURLUPART_QUERY, &query, 0) != CURLUE_OK) return false;
  bool named = cs_has_prefix(query, "name=") || strstr(query, "&name=") != NULL;
  cs_curl.free(query);
  return named;
}

static bool open_url(struct cs_push_target *t, const char *text, struct cs_error *err) {
  char *path = NULL;
  const char *rest = find_kind(text, &t->kind);
  if (rest == NULL) return bad_url(text, "", err);
  t->url = cs_curl.url();
  if (t->url == NULL) return cs_error_set(err, "out of memory");
  CURLUcode code = cs_curl.url_set(t->url, CURLUPART_URL, rest, CURLU_URLENCODE);
  if (code != CURLUE_OK) return bad_url(text, cs_curl.url_strerror(code), err);
  if (cs_curl.url_get(t->url, CURLUPART_PATH, &path, 0) == CURLUE_OK && strcmp(path, "/") == 0)
    code = cs_curl.url_set(t->url, CURLUPART_PATH, kinds[t->kind].path, 0);
  cs_curl.free(path);
  t->named = query_names_application(t->url);
  t->shown = cs_curl_shown(t->url);
  return (code == CURLUE_OK && t->shown != NULL) || cs_error_set(err, "out of memory");
}

// ---- Headers and resource ----

static bool add_header(struct cs_push_target *t, const char *line, struct cs_error *err) {
  struct curl_slist *longer = cs_curl.slist_append(t->headers, line);
  if (longer == NULL) return cs_error_set(err, "out of memory");
  t->headers = longer;
  return true;
}

static bool check_header(const char *line, struct cs_error *err) {
  const char *colon = strchr(line, ':');
  return (colon != NULL && colon != line && strpbrk(line, "\r\n") == NULL) ||
         cs_error_set(err, "--push-header takes 'NAME: VALUE'");  // not shown: it may be secret
}

bool cs_push_check(const struct cs_push_options *options, struct cs_error *err) {
  enum cs_push_kind kind;
  for (size_t i = 0; i < options->header_count; i++)
    if (!check_header(options->headers[i], err)) return false;
  return options->url == NULL || find_kind(options->url, &kind) != NULL ||
         bad_url(options->url, "", err);
}

static bool add_header_pair(struct cs_push_target *t, const char *variable, const char *key,
                            const char *value, struct cs_error *err) {
  char *line = NULL;
  if (key[0] == '\0' || strpbrk(key, "\r\n:") != NULL || strpbrk(value, "\r\n") != NULL)
    return cs_error_set(err, "%s has no NAME=VALUE that can be a header", variable);
  if (asprintf(&line, "%s: %s", key, value) < 0) return cs_error_set(err, "out of memory");
  bool added = add_header(t, line, err);
  free(line);
  return added;
}

static const char *keep(struct cs_push_target *t, const char *text) {
  char *copy = strdup(text);
  if (copy != NULL) t->texts[t->text_count++] = copy;
  return copy;
}

// The first value of a key counts.
static bool add_attribute(struct cs_push_target *t, const char *variable, const char *key,
                          const char *value, struct cs_error *err) {
  if (key[0] == '\0') return cs_error_set(err, "%s has no NAME=VALUE", variable);
  for (size_t i = 0; i < t->attribute_count; i++)
    if (strcmp(t->attributes[i].key, key) == 0) return true;
  if (t->attribute_count == CS_PUSH_MAX_ATTRIBUTES)
    return cs_error_set(err, "%s: there can be %d attributes at most", variable,
                        CS_PUSH_MAX_ATTRIBUTES);
  struct cs_attribute *a = &t->attributes[t->attribute_count++];
  a->key = keep(t, key);
  a->value = keep(t, value);
  return (a->key != NULL && a->value != NULL) || cs_error_set(err, "out of memory");
}

typedef bool take_pair(struct cs_push_target *t, const char *variable, const char *key,
                       const char *value, struct cs_error *err);

static char *trim(char *text) {
  text += strspn(text, " \t");
  for (size_t len = strlen(text); len > 0 && strchr(" \t", text[len - 1]) != NULL;)
    text[--len] = '\0';
  return text;
}

// "key=value,key=value" with percent-encoded values, as in OpenTelemetry's variables.
static bool take_variable(struct cs_push_target *t, const char *variable, take_pair *take,
                          struct cs_error *err) {
  const char *value = getenv(variable);
  char *copy = value != NULL ? strdup(value) : NULL, *rest = copy, *pair;
  bool ok = true;
  while (ok && rest != NULL && (pair = strsep(&rest, ",")) != NULL) {
    char *text = pair, *key = trim(strsep(&text, "="));
    if (text == NULL && key[0] == '\0') continue;
    char *plain = text != NULL ? cs_curl.easy_unescape(NULL, trim(text), 0, NULL) : NULL;
    ok = plain != NULL ? take(t, variable, key, plain, err)
                       : cs_error_set(err, "%s takes NAME=VALUE,NAME=VALUE", variable);
    cs_curl.free(plain);
  }
  free(copy);
  return ok;
}

static bool add_headers(struct cs_push_target *t, const struct cs_push_options *options,
                        struct cs_error *err) {
  char type[64];
  (void)snprintf(type, sizeof type, "Content-Type: %s", kinds[t->kind].content_type);
  // No "Expect: 100-continue", which costs a second with a server that ignores it.
  if (!add_header(t, type, err) || !add_header(t, "Expect:", err)) return false;
  if (t->kind == CS_PUSH_OTLP) {
    if (!add_header(t, "Content-Encoding: gzip", err) ||
        !take_variable(t, "OTEL_EXPORTER_OTLP_HEADERS", add_header_pair, err))
      return false;
  }
  if (!take_variable(t, "CLRSNAP_PUSH_HEADERS", add_header_pair, err)) return false;
  for (size_t i = 0; i < options->header_count; i++)
    if (!add_header(t, options->headers[i], err)) return false;
  return true;
}

static bool add_attributes(struct cs_push_target *t, const struct cs_push_options *options,
                           struct cs_error *err) {
  char host[256] = "";
  const char *service = options->service != NULL ? options->service : getenv("OTEL_SERVICE_NAME");
  if (service != NULL && service[0] != '\0' &&
      !add_attribute(t, "--service", "service.name", service, err))
    return false;
  if (!take_variable(t, "OTEL_RESOURCE_ATTRIBUTES", add_attribute, err)) return false;
  // A recording file does not say on which machine it was made.
  if (!options->live || gethostname(host, sizeof host - 1) != 0) return true;
  return add_attribute(t, "host.name", "host.name", host, err);
}

static void find_certificates(struct cs_push_target *t) {
  t->certificates = getenv("OTEL_EXPORTER_OTLP_CERTIFICATE");
  if (t->certificates == NULL || t->certificates[0] == '\0')
    t->certificates = cs_curl_certificates();
}

static bool read_timeout(struct cs_push_target *t, struct cs_error *err) {
  const char *text = getenv("OTEL_EXPORTER_OTLP_TIMEOUT");
  char *end;
  t->timeout_ms = DEFAULT_TIMEOUT_MS;
  if (text == NULL || text[0] == '\0') return true;
  t->timeout_ms = strtol(text, &end, 10);
  return (*end == '\0' && t->timeout_ms > 0 && t->timeout_ms <= 3600000) ||
         cs_error_set(err, "OTEL_EXPORTER_OTLP_TIMEOUT takes milliseconds, not '%s'", text);
}

bool cs_push_target_open(struct cs_push_target *t, const struct cs_push_options *options,
                         struct cs_error *err) {
  memset(t, 0, sizeof *t);
  if (!cs_curl_load("--push", err)) return false;
  find_certificates(t);
  return open_url(t, options->url, err) && add_headers(t, options, err) &&
         add_attributes(t, options, err) && read_timeout(t, err);
}

void cs_push_target_close(struct cs_push_target *t) {
  if (cs_curl.free == NULL) return;  // not loaded, so nothing was opened
  cs_curl.url_cleanup(t->url);
  cs_curl.slist_free_all(t->headers);
  cs_curl.free(t->shown);
  for (size_t i = 0; i < t->text_count; i++) free(t->texts[i]);
  memset(t, 0, sizeof *t);
}

// ---- A request ----

static bool put_compressed(const struct cs_push_target *t, const struct cs_profile *p, FILE *out) {
  struct cs_resource resource = {(struct cs_attribute *)(uintptr_t)t->attributes,
                                 t->attribute_count};
  char *plain = NULL;
  size_t size = 0;
  FILE *memory = open_memstream(&plain, &size);
  if (memory == NULL) return false;
  bool ok = cs_write_otlp_request(p, &resource, memory);
  ok = fclose(memory) == 0 && ok && cs_write_gzip((const uint8_t *)plain, size, out);
  free(plain);
  return ok;
}

static bool make_body(const struct cs_push_target *t, const struct cs_profile *p,
                      struct cs_push_request *out) {
  const struct cs_profile_set set = {p, 1};
  FILE *body = open_memstream(&out->body, &out->size);
  if (body == NULL) return false;
  bool ok = t->kind == CS_PUSH_OTLP ? put_compressed(t, p, body) : cs_write_pprof(&set, body);
  return fclose(body) == 0 && ok;
}

static bool append(CURLU *url, const char *key, const char *value) {
  char *pair = NULL;
  if (asprintf(&pair, "%s=%s", key, value) < 0) return false;
  // The first '=' stays; any other character that could be misread is encoded.
  CURLUcode code = cs_curl.url_set(url, CURLUPART_QUERY, pair, CURLU_APPENDQUERY | CURLU_URLENCODE);
  free(pair);
  return code == CURLUE_OK;
}

static bool append_number(CURLU *url, const char *key, uint64_t value) {
  char text[24];
  (void)snprintf(text, sizeof text, "%" PRIu64, value);
  return append(url, key, text);
}

static const char *service_name(const struct cs_push_target *t, const struct cs_profile *p,
                                char *room, size_t cap) {
  for (size_t i = 0; i < t->attribute_count; i++)
    if (strcmp(t->attributes[i].key, "service.name") == 0) return t->attributes[i].value;
  cs_service_name(p->facts.program, room, cap);
  return room;
}

// The parameters of Pyroscope's URL: the application, the time, and the format.
static bool describe(const struct cs_push_target *t, const struct cs_profile *p, CURLU *url) {
  const struct cs_facts *f = &p->facts;
  char room[256];
  uint64_t from = f->start_ns / 1000000000u;
  uint64_t until = (f->start_ns + f->duration_ns + 999999999u) / 1000000000u;
  return (t->named || append(url, "name", service_name(t, p, room, sizeof room))) &&
         append_number(url, "from", from) && append_number(url, "until", until) &&
         append(url, "format", "pprof") && append(url, "spyName", "clrsnap") &&
         append_number(url, "sampleRate", f->hz);
}

bool cs_push_target_request(const struct cs_push_target *t, const struct cs_profile *p,
                            struct cs_push_request *out, struct cs_error *err) {
  memset(out, 0, sizeof *out);
  if (cs_expands_beyond(p, CS_EXPAND_STACKS, cs_expansion_limit(0)))
    return cs_error_set(err, "a profile's stacks are too large to be pushed");
  CURLU *url = cs_curl.url_dup(t->url);
  bool ok = url != NULL && (t->kind != CS_PUSH_PYROSCOPE || describe(t, p, url)) &&
            cs_curl.url_get(url, CURLUPART_URL, &out->url, 0) == CURLUE_OK && make_body(t, p, out);
  cs_curl.url_cleanup(url);
  if (ok) return true;
  free(out->body);
  cs_curl.free(out->url);
  return cs_error_set(err, "out of memory for a profile to push");
}
