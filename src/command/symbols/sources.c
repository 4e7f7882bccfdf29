// SPDX-License-Identifier: MIT
// What the values of --symbols mean. Invariant: no server is asked that the user has not named.
// One thread. Signal-safe: no.
#include "symbols/sources.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/prefix.h"
#include "symbols/cache.h"
#include "symbols/fetch.h"

#define MICROSOFT "https://msdl.microsoft.com/download/symbols"
#define DEBUGINFOD "debuginfod"

static bool is_url(const char *text) {
  return cs_has_prefix(text, "http://") || cs_has_prefix(text, "https://");
}

// Takes ownership of `path`. Returns NULL if there is no such directory.
static bool add_folder(struct cs_symbol_sources *s, char *path, struct cs_error *err) {
  if (path == NULL) return true;
  if (s->folder_count == CS_SYMBOLS_MOST) {
    free(path);
    return cs_error_set(err, "--symbols takes %d directories at most", CS_SYMBOLS_MOST);
  }
  s->folders[s->folder_count++] = path;
  return true;
}

static bool add_server(struct cs_symbol_sources *s, enum cs_symbols_layout layout, const char *url,
                       size_t len, struct cs_error *err) {
  if (s->server_count == CS_SYMBOLS_MOST)
    return cs_error_set(err, "--symbols takes %d servers at most", CS_SYMBOLS_MOST);
  char *copy = strndup(url, len);
  if (copy == NULL) return cs_error_set(err, "out of memory");
  s->servers[s->server_count++] = (struct cs_symbols_server){.layout = layout, .url = copy};
  if (s->cache != NULL) return true;
  s->cache = cs_symbol_cache_path();
  return s->cache == NULL || add_folder(s, strdup(s->cache), err);
}

// DEBUGINFOD_URLS has URLs between spaces, and words for debuginfod's own client ("ima:enforcing").
static bool add_debuginfod(struct cs_symbol_sources *s, struct cs_error *err) {
  const char *urls = getenv("DEBUGINFOD_URLS");
  size_t before = s->server_count;
  if (!add_folder(s, cs_debuginfod_cache_path(), err)) return false;
  for (const char *at = urls; at != NULL && *at != '\0'; at += strcspn(at, " ")) {
    at += strspn(at, " ");
    if (is_url(at) && !add_server(s, CS_SYMBOLS_DEBUGINFOD, at, strcspn(at, " "), err))
      return false;
  }
  return s->server_count > before ||
         cs_error_set(err,
                      "--symbols debuginfod takes its servers from DEBUGINFOD_URLS, which names no "
                      "http:// or https:// URL");
}

bool cs_symbol_sources_add(struct cs_symbol_sources *s, const char *value, struct cs_error *err) {
  static const char prefix[] = DEBUGINFOD "+";
  struct stat is;
  if (strcmp(value, DEBUGINFOD) == 0) return add_debuginfod(s, err);
  if (strcmp(value, "microsoft") == 0)
    return add_server(s, CS_SYMBOLS_SYMSTORE, MICROSOFT, strlen(MICROSOFT), err);
  if (is_url(value)) return add_server(s, CS_SYMBOLS_SYMSTORE, value, strlen(value), err);
  if (cs_has_prefix(value, prefix) && is_url(value + strlen(prefix)))
    return add_server(s, CS_SYMBOLS_DEBUGINFOD, value + strlen(prefix),
                      strlen(value + strlen(prefix)), err);
  char *path = realpath(value, NULL);
  if (path != NULL && stat(path, &is) == 0 && S_ISDIR(is.st_mode)) return add_folder(s, path, err);
  free(path);
  return cs_error_set(err,
                      "--symbols takes a directory, the URL of a symbol server, debuginfod, "
                      "debuginfod+URL or microsoft, and '%s' is none of these",
                      value);
}

bool cs_symbol_sources_open(struct cs_symbol_sources *s, struct cs_error *err) {
  if (s->server_count == 0 || s->fetcher != NULL) return true;
  s->fetcher = cs_fetcher_new(s->servers, s->server_count, s->cache, err);
  return s->fetcher != NULL;
}

static int fetch(void *context, const uint8_t *id, size_t id_size, const char *path) {
  return cs_fetch(context, id, id_size, path);
}

struct cs_elf_places cs_symbol_sources_places(struct cs_symbol_sources *s, bool may_fetch) {
  return (struct cs_elf_places){
      .folders = (const char *const *)s->folders,
      .folder_count = s->folder_count,
      .fetch = may_fetch && s->fetcher != NULL ? fetch : NULL,
      .context = s->fetcher,
  };
}

void cs_symbol_sources_report(struct cs_symbol_sources *s) {
  if (s->fetcher != NULL) cs_fetcher_report(s->fetcher);
}

void cs_symbol_sources_close(struct cs_symbol_sources *s) {
  cs_fetcher_free(s->fetcher);
  for (size_t i = 0; i < s->folder_count; i++) free(s->folders[i]);
  for (size_t i = 0; i < s->server_count; i++) free(s->servers[i].url);
  free(s->cache);
  memset(s, 0, sizeof *s);
}
