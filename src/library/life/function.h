// SPDX-License-Identifier: MIT
// function: which method a frame belongs to (its FunctionID), and code that dies. Not for handlers,
// except where a function says so.
#pragma once

#include "signal/request.h"

// Compares what is read of methods in the runtime's memory with what the CLR reports of them; the
// memory is used only if they agree. Calls the CLR. Called after cs_eh_init. Returns false if there
// is no method yet; try again.
bool cs_function_check(void);
bool cs_function_checked(void);  // whatever the result
// Fill in a managed record's function, and return whether it is resolved now. The first reads the
// cache and the runtime's memory: no call, no allocation, no wait; async-signal-safe. The second
// asks the CLR if necessary, so it must not be called while a thread is held.
bool cs_function_read(struct cs_record *record);
// Has the processor fetch what cs_function_read will read. Async-signal-safe.
void cs_function_look_ahead(const struct cs_record *record);
bool cs_function_resolve(struct cs_record *record);
// The same for all managed records of a capture. What cannot be read stays unresolved. Returns
// false if something could not be resolved, for example because its module is being unloaded.
void cs_capture_read_functions(struct cs_capture *capture);
bool cs_capture_resolve(struct cs_capture *capture);
void cs_functions_forget(void);
// The same when nothing looks anything up, and their memory is given back.
void cs_functions_rest(void);

// Between these two calls, cs_library_code_died waits, for a second at most, so that what the CLR
// enumerates stays loaded. Not to be called in callbacks about unloading.
void cs_unloading_hold(void);
void cs_unloading_release(void);
// Returns the number of modules whose unloading has begun: for cs_capture.module_deaths.
// Async-signal-safe.
uint32_t cs_module_deaths(void);
// Called when code is about to die: waits for walks under way, and begins a new generation.
// `module`: it is the code of a module, whose methods' FunctionIDs are forgotten, too. A dynamic
// method's need not be: any later method at its address is a dynamic method again.
void cs_library_code_died(bool module);
// Says whether, from now on, cs_library_code_died is called for all code that dies. Called with
// true before a recording's first walk, and with false after its last one.
void cs_library_deaths_are_reported(bool reported);
