// SPDX-License-Identifier: MIT
// function: which method a frame is of (its FunctionID), and code that dies. Not for handlers,
// except where a function says so.
#pragma once

#include "signal/request.h"

// Compares what is read of methods in the runtime's memory with what the CLR says of them; only if
// they agree is it used. Calls the CLR; after cs_eh_init. Returns false if there is no method yet;
// try again.
bool cs_function_check(void);
bool cs_function_checked(void);  // with whatever result
// Fill in a managed record's function, and return whether it is resolved now. The first reads the
// cache and the runtime's memory: no call, no allocation, no wait; async-signal-safe. The second
// asks the CLR if need be: not while a thread is held.
bool cs_function_read(struct cs_record *record);
// Has the processor fetch what cs_function_read will read. Async-signal-safe.
void cs_function_look_ahead(const struct cs_record *record);
bool cs_function_resolve(struct cs_record *record);
// The same for all managed records of a capture. What cannot be read stays unresolved. Returns
// false if something could not be resolved, for example because its module is being unloaded.
void cs_capture_read_functions(struct cs_capture *capture);
bool cs_capture_resolve(struct cs_capture *capture);
void cs_functions_forget(void);

// Between the two, cs_library_code_died waits, for a second at most: what the CLR enumerates after
// the first call stays loaded until the second. Not in callbacks about unloading.
void cs_unloading_hold(void);
void cs_unloading_release(void);
// The number of modules whose unloading has begun: for cs_capture.module_deaths. Async-signal-safe.
uint32_t cs_module_deaths(void);
// Code is about to die: waits for walks under way, and begins a new generation. `module`: of a
// whole module, whose methods' FunctionIDs are forgotten, too. A dynamic method's need not be:
// whatever comes to live at its address is a dynamic method again.
void cs_library_code_died(bool module);
// From now on cs_library_code_died is called for all code that dies (`reported`), or no more.
// Before a recording's first walk; after its last one.
void cs_library_deaths_are_reported(bool reported);
