// SPDX-License-Identifier: MIT
// The tables of an OTLP request, which hold everything that repeats: samples are indices into them.
// Invariant: entry 0 of every table is the zero value and means none; real entries begin at 1.
// Private to the writer (otlp.c). One thread.
#pragma once

#include "otlp.pb-c.h"
#include "profile/functions.h"
#include "profile/locations.h"
#include "profile/merge.h"
#include "util/arena.h"

enum {
  CS_OTLP_THREAD_ATTRIBUTES = 2,
  CS_OTLP_REQUEST_ATTRIBUTES = 3,
};

struct cs_otlp_dictionary {
  Otlp__ProfilesDictionary message;
  struct cs_arena *arena;
  const struct cs_profile *p;
  struct cs_functions functions;
  struct cs_locations places;
  struct cs_strings strings;
  Otlp__Mapping *mappings;
  struct cs_map mapping_ids;  // module's string id -> place in the table
  Otlp__Function *function_messages;
  struct cs_map function_ids;  // name and file -> place in the table
  int32_t *function_of;        // of each of `functions`: its index
  int32_t *link_of;            // of each label: its index; 0: it is not needed
  Otlp__KeyValueAndUnit *attributes;
  Otlp__AnyValue *attribute_values;
  struct cs_map attribute_ids;   // index by key and value
  struct cs_map text_values;     // attributes whose values are texts, by index
  int32_t *thread_attributes;    // two for each thread: its name (0: it has none) and its number
  int32_t *request_attributes;   // three for each label: method, route, status; 0: unknown
  struct cs_strings stack_pool;  // stacks as their locations' indices: a stack's id is its place
  int32_t *path;                 // of the stack at hand
  size_t path_capacity;
  char **texts;
};

// Fills the tables with the merged profile's frames, threads and labels. `threads` has the thread
// of each node. `arena` holds the messages and must outlive the dictionary.
void cs_otlp_dictionary_open(struct cs_otlp_dictionary *d, const struct cs_merged *merged,
                             const uint32_t *threads, struct cs_arena *arena);
int32_t cs_otlp_word(struct cs_otlp_dictionary *d, const char *text);
// Returns the index of a node's stack, which threads share.
int32_t cs_otlp_stack(struct cs_otlp_dictionary *d, uint32_t node);
int32_t cs_otlp_link(const struct cs_otlp_dictionary *d, uint32_t label);
// Sets *attributes to a thread's attributes and returns their number.
size_t cs_otlp_thread(const struct cs_otlp_dictionary *d, uint32_t thread, int32_t **attributes);
// Puts those of a label's request into `attributes`, and returns their number.
size_t cs_otlp_request(const struct cs_otlp_dictionary *d, uint32_t label,
                       int32_t attributes[CS_OTLP_REQUEST_ATTRIBUTES]);
// Completes the message. No entries are added after it.
void cs_otlp_dictionary_close(struct cs_otlp_dictionary *d);
void cs_otlp_dictionary_free(struct cs_otlp_dictionary *d);

void cs_otlp_set_text(Otlp__AnyValue *value, const char *text);
void cs_otlp_set_number(Otlp__AnyValue *value, int64_t number);
