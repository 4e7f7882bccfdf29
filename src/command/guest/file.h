// SPDX-License-Identifier: MIT
// Checks another profiler before anything is started: a mistake gives a message here, not a program
// that silently runs without its profiler.
#pragma once

#include "base/error.h"
#include "clrsnap/cortypes.h"

// The absolute path of a library that can be a CLR profiler; the caller frees it. Returns NULL,
// with the reason in *err.
char *cs_profiler_file(const char *path, struct cs_error *err);

enum { CS_CLSID_TEXT = 39 };  // {XXXXXXXX-XXXX-XXXX-XXXX-XXXXXXXXXXXX} and its NUL
// Parses a class ID with or without braces; `text` gets the form that the runtime takes.
bool cs_clsid_parse(const char *from, CLSID *clsid, char text[CS_CLSID_TEXT], struct cs_error *err);
