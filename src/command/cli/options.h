// SPDX-License-Identifier: MIT
// The options of `clrsnap record` and `top`, and those that several verbs have.
#pragma once

#include "cli/command.h"
#include "session/view.h"
#include "top/top.h"
#include "util/spelling.h"
#include "wire/consumer.h"

// Which program the agent runs in, and what it is asked for: `record` and `top`.
struct cs_agent_options {
  struct cs_consumer_opts ask;
  char **program;  // argv of the program to start, NULL-terminated; NULL: there is `pid`
  pid_t pid;       // of a process that is already running
};

struct cs_record_options {
  struct cs_agent_options agent;
  struct cs_view view;
  double seconds;      // 0: until the program ends
  bool async;          // async mode, too
  bool holders;        // lock mode turns on holders mode
  bool one_mode;       // it does not, because an output shows one mode
  bool children;       // the processes that it starts are recorded, too
  uint64_t window_ns;  // what is pushed at a time; 0: the whole, at the end
};

struct cs_top_options {
  struct cs_agent_options agent;
  enum cs_wire_mode mode;
  double interval_s, window_s;
  uint32_t count;  // tables; 0: until the program ends
  uint32_t rows;   // of a table that is not a screen
  bool json, text, no_counters;
  struct cs_top_view view;
};

// ---- options.c ----

// What of a recording is shown and how, and where it is sent: of a struct cs_view.
extern const struct cs_option cs_view_options[], cs_push_options[];
bool cs_set_output(const struct cs_option *option, void *view, const char *value,
                   struct cs_error *err);
bool cs_set_format(const struct cs_option *option, void *view, const char *value,
                   struct cs_error *err);
bool cs_set_modes(const struct cs_option *option, void *modes, const char *value,
                  struct cs_error *err);  // "cpu,alloc": uint32_t of CS_WIRE_MODE_BITs
// The same of a view, where cpu mode has the name of the event that it counts, too: "page-faults".
bool cs_set_shown_modes(const struct cs_option *option, void *view, const char *value,
                        struct cs_error *err);

// The words that a mode, or what `record --event` counts, may have been meant to be.
void cs_offer_modes(struct cs_spelling *spelling);
void cs_offer_events(struct cs_spelling *spelling);

#define CS_DEFAULT_BUFFER (16ull << 20)  // of shared memory, in bytes
// Of a struct cs_agent_options.
extern const struct cs_option cs_agent_options[];
// At 100 threads, 499 Hz and 60 frames per stack, 16 MiB last for 0.6 s; the ring is emptied every
// 20 ms. 2048 frames are 16 KiB per sample; a deeper stack is cut at its root and shown as cut.
#define CS_AGENT_DEFAULTS                                                                        \
  .capacity = CS_DEFAULT_BUFFER, .modes = CS_WIRE_MODE_BIT(CS_WIRE_MODE_CPU), .max_depth = 2048, \
  .async_callers = true
// Takes the program or the process from the operands, and checks that what is asked of the agent
// fits together.
bool cs_check_agent_options(struct cs_agent_options *o, int count, char **operands,
                            struct cs_error *err);
