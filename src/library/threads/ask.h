// SPDX-License-Identifier: MIT
// ask: the requester's side of a request (signal/request.h). Any thread; not for handlers, except
// where a function says so.
#pragma once

#include "base/error.h"
#include "signal/request.h"

enum cs_ask {
  CS_ASK_ANSWERED,   // DONE or HELD: request->answer and ->capture are filled in
  CS_ASK_GONE,       // no such thread
  CS_ASK_NO_ANSWER,  // not in time, or the signal could not be sent; `err` says why
};
// Returns the machine's number of processors, as it was when first asked for.
uint32_t cs_processors(void);
// Claims a slot, with memory for the deepest walk. Returns NULL if none was free in time.
struct cs_request *cs_request_claim(struct cs_error *err);
// The same without waiting. Async-signal-safe, as is the release of such a slot.
struct cs_request *cs_request_claim_now(void);
// Gives back a slot that is CLAIMED, DONE, HELD (the target then runs on) or EXPIRED. Returns false
// if it was EXPIRED: the target had run on by itself.
bool cs_request_release(struct cs_request *request);
// Fills in a claimed slot for a pinned thread, asks, and waits for the answer. First asks the
// thread to introduce itself if its stack's bounds are not known. After anything but
// CS_ASK_ANSWERED the slot is no longer the caller's.
enum cs_ask cs_request_ask(struct cs_request *request, struct cs_thread *thread, uint32_t flags,
                           struct cs_error *err);
// The same in steps, to ask several threads at once: fill in (and introduce), send the signal, wait
// for the answer.
enum cs_ask cs_request_introduce(struct cs_request *request, struct cs_thread *thread,
                                 uint32_t flags, struct cs_error *err);
enum cs_ask cs_request_post(struct cs_request *request, uint32_t flags, uint64_t *asked,
                            struct cs_error *err);
// Waits for the answer for `ms`, without giving the request up. Returns whether it has come.
bool cs_request_wait(struct cs_request *request, uint32_t ms);
// Looks whether the thread of a request that is not answered yet blocks the signal. `*blocked` is 0
// before the first look, and counts those in a row that found it so. Returns whether the request
// should be given up: after two of them, or one if the thread was found to block it before.
enum { CS_FIRST_LOOK_MS = 2, CS_LOOK_MS = 20 };  // when to look, after the signal and a look
bool cs_request_is_vain(const struct cs_request *request, unsigned *blocked);
// Sets `err` to why the thread has not answered.
enum cs_ask cs_request_explain(uint32_t tid, uint32_t ms, struct cs_error *err);
enum cs_ask cs_request_await(struct cs_request *request, uint64_t asked, uint32_t ms,
                             struct cs_error *err);

// For a thread whose walk nobody waits for yet. Claims the slot CS_REQUEST_SLOTS + `i`, with memory
// for a walk of some hundred frames, and asks the thread, which need not stay pinned after that.
// Returns NULL if it cannot be asked. The slot is the caller's until it is released, or cancelled,
// if it has not been waited for.
struct cs_request *cs_request_ask_ahead(uint32_t i, struct cs_thread *thread, bool plain,
                                        uint32_t module_deaths, uint64_t *asked);
void cs_request_cancel(struct cs_request *request, uint64_t asked);
