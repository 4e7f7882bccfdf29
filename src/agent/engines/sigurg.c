// SPDX-License-Identifier: MIT
// Takes and releases SIGURG. The agent's thread; any thread may take it, once per recording.
// Signal-safe: no.
#include "engines/sigurg.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "signal/handler.h"
#include "threads/own_signal.h"

static struct {
  struct sigaction before;
  bool taken;  // atomic
} urg;

static bool is_ours(const struct sigaction *now) {
  return (now->sa_flags & SA_SIGINFO) != 0 && now->sa_sigaction == cs_urg_handler;
}

static bool is_unused(const struct sigaction *now) {
  return (now->sa_flags & SA_SIGINFO) == 0 &&
         (now->sa_handler == SIG_DFL || now->sa_handler == SIG_IGN);
}

bool cs_sigurg_take(struct cs_error *why) {
  struct sigaction now,
      ours = {.sa_sigaction = cs_urg_handler, .sa_flags = SA_SIGINFO | SA_RESTART};
  if (cs_sigurg_is_taken()) return true;
  if (sigaction(SIGURG, NULL, &now) != 0 || !(is_unused(&now) || is_ours(&now)))
    return cs_error_set(why, "the program uses SIGURG itself, which its samples would come with");
  cs_block_all_but_faults(&ours.sa_mask);
  if (is_unused(&now)) urg.before = now;
  if (sigaction(SIGURG, &ours, NULL) != 0)
    return cs_error_set(why, "no handler for SIGURG: %s", strerror(errno));
  cs_store_release(&urg.taken, true);
  return true;
}

// A signal that is still on its way is then ignored, unless the program installs a handler at this
// very moment.
void cs_sigurg_release(void) {
  struct sigaction now;
  if (cs_sigurg_is_taken() && sigaction(SIGURG, NULL, &now) == 0 && is_ours(&now))
    (void)sigaction(SIGURG, &urg.before, NULL);
  cs_store_release(&urg.taken, false);
}

bool cs_sigurg_is_lost(void) {
  struct sigaction now;
  return sigaction(SIGURG, NULL, &now) == 0 && !is_ours(&now);
}

bool cs_sigurg_is_taken(void) {
  return cs_load_acquire(&urg.taken);
}
