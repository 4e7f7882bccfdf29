// SPDX-License-Identifier: MIT
// Functions as the wire knows them: a record and an id for each piece of code (method start) in a
// sample, for each inlined method (FunctionID), and for each name of something that is not a
// method. Functions that return a bool return false if there is no room for a record. The agent's
// thread only. Not for handlers.
#pragma once

#include "clr_names/names.h"
#include "wire/wire.h"

struct cs_method_at {
  uint64_t start, function_id;
  bool collectible;
  uint32_t generation;  // of code; only counts if it is collectible
};

// ---- Code that has been named ----
// `key`: a method's start, or an inlined method's FunctionID. Returns false if it is not known, or
// if other code is in its place.
bool cs_function_find(uint64_t key, const struct cs_method_at *method, uint32_t *id);
// Makes room for one more entry. Returns false if there is no memory.
bool cs_function_reserve(void);
void cs_function_remember(uint64_t key, const struct cs_method_at *method, uint32_t id);
// Gets the id of a method that was inlined into `into`, which is alive. It does not matter whether
// it has code of its own.
bool cs_inlinee_to_wire(uint64_t function_id, const struct cs_method_at *into, uint32_t *id);

// Names a function (clr_names/names.h).
bool cs_function_name(FunctionID function, struct cs_method_name *out);

// ---- Records ----
uint32_t cs_function_new_id(void);  // unique, even if the record of an id did not fit
bool cs_function_put(uint32_t id, const struct cs_method_name *name);
// Sends a method that has no code on the stack.
bool cs_method_to_wire(const struct cs_method_name *name, uint32_t *id);
bool cs_event_name_to_wire(uint32_t name, uint32_t *id);  // state/event_names.h
// Get the ids of code that was unloaded before it could be named; of stubs, by their kind; and of
// code that is in no map but looks like a stub (*id 0: it does not).
bool cs_unloaded_to_wire(uint32_t *id);
bool cs_stub_to_wire(uint32_t stub_kind, uint32_t *id);
bool cs_unknown_to_wire(uint64_t ip, uint32_t *id);

void cs_function_ids_free(void);       // when the recording is over; the next one has its own ids
size_t cs_function_table_bytes(void);  // the size of the table of named code
