// SPDX-License-Identifier: MIT
// Generic arguments of another process's methods. One thread.
#pragma once

#include "codemap/method.h"
#include "objects/modules.h"

struct cs_heap_generics;

// `modules` must live longer.
struct cs_heap_generics *cs_heap_generics_new(struct cs_heap_modules *modules);
void cs_heap_generics_free(struct cs_heap_generics *generics);

// Reads the generic arguments of a method and of its class; the process must be stopped. Returns
// what cs_heap_generics_method takes, or 0 if there are none, or they cannot be read.
uint32_t cs_heap_generics_read(struct cs_heap_generics *generics, uint64_t function,
                               const struct cs_method *method);

// The method's name from the metadata of its module, with the arguments that `read` stands for:
// "Box<int>"; code that is shared between reference types has the parameter's name. The process may
// run. Returns false if the metadata is unreadable or does not have the method.
bool cs_heap_generics_method(struct cs_heap_generics *generics, uint32_t module, uint32_t token,
                             uint32_t read, struct cs_method_text *out);
