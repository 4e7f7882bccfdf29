// SPDX-License-Identifier: MIT
// The oracle's tables. One thread.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "bounds.h"
#include "oracle.h"

static const char *const group_names[GROUP_COUNT] = {
    "jitted code",  "jitted funclets",        "ReadyToRun code", "stubs of the runtime",
    "PLT entries",  "libcoreclr.so",          "libclrjit.so",    "libc",
    "other native", "code in no known place",
};

void describe(const struct oracle *oracle, uint64_t ip, char *text, size_t size) {
  static const char *const kinds[] = {"nothing", "jit", "r2r", "stub", "native"};
  struct cs_code code;
  if (cs_codemap_find(cs_remote_world(oracle->remote), ip, &code) != CS_STOP_NONE) {
    (void)snprintf(text, size, "unreadable");
  } else if (code.kind == CS_CODE_NATIVE) {
    const char *slash = strrchr(code.image->path, '/');
    (void)snprintf(text, size, "%s+0x%" PRIx64, slash != NULL ? slash + 1 : code.image->path,
                   ip - code.image->bias);
  } else {
    (void)snprintf(text, size, "%s %" PRIx64 "+0x%" PRIx64, kinds[code.kind], code.begin,
                   ip - code.begin);
  }
}

static void print_tally(const char *name, const struct tally *tally) {
  if (tally->walked == 0) return;
  printf("  %-36s %10" PRIu64 " %8" PRIu64 " %8" PRIu64 "\n", name, tally->walked, tally->cut,
         tally->wrong);
}

static const char *const excuse_names[EXCUSE_COUNT] = {
    [EXCUSE_ELSEWHERE] = "walks that say where the thread goes on",
    [EXCUSE_STALE] = "walks cut until all was read anew",
    [EXCUSE_STALE_WRONG] = "walks wrong until all was read anew",
    [EXCUSE_OPEN] = "ends before the thread got there",
    [EXCUSE_TRIP] = "returns to the trip wire",
    [EXCUSE_BUILT] = "... with a frame that is built by then",
    [EXCUSE_MADE] = "frames made by the runtime",
    [EXCUSE_RESTORED] = "contexts that were loaded",
    [EXCUSE_UNSTEPPED] = "calls into the JIT not stepped to the end",
    [EXCUSE_EXCLUSIVE] = "exclusive stores run to, and not stepped to",
};

static uint64_t bound_of(uint64_t walks, uint64_t per_million, uint64_t besides) {
  return walks * per_million / 1000000 + besides;
}

static const char *const bait_names[BAIT_COUNT] = {
    [BAIT_SKIPPED] = "a frame is missing",
    [BAIT_CALLER] = "the leaf's caller is missing",
    [BAIT_RETURNED] = "... and was returned to",
    [BAIT_IP] = "another ip",
    [BAIT_SP] = "another sp",
    [BAIT_EXACT] = "exact or not",
    [BAIT_BRIDGED] = "missing, as said",
    [BAIT_CUT] = "cut",
    [BAIT_BASE] = "the base too early",
    [BAIT_REGISTER] = "a callee-saved register",
    [BAIT_WORD] = "the handler's: another ip",
    [BAIT_KIND] = "the handler's: another kind of code",
    [BAIT_LENGTH] = "the handler's: a frame less",
    [BAIT_BUILT] = "another frame is built",
};

static struct tally sum(const struct oracle *oracle) {
  struct tally all = {0, 0, 0};
  for (unsigned i = 0; i < GROUP_COUNT; i++) {
    all.walked += oracle->group[i].walked;
    all.cut += oracle->group[i].cut;
    all.wrong += oracle->group[i].wrong;
  }
  return all;
}

// Returns NULL if all is well, else what is wrong.
static const char *judge(const struct oracle *oracle) {
  struct tally all = sum(oracle);
  if (all.walked == 0) return "nothing was walked";
  if (all.wrong != 0) return "walks are wrong";
  if (all.cut > bound_of(all.walked, CUT_PER_MILLION, CUT_BESIDES)) return "walks are cut";
  for (unsigned i = 0; i < EXCUSE_COUNT; i++)
    if (oracle->excuse[i] > bound_of(all.walked, bounds[i].per_million, bounds[i].besides))
      return excuse_names[i];
  for (unsigned i = 0; i < BAIT_COUNT; i++)
    if (oracle->bait[i].found != oracle->bait[i].put) return "a fault that was put in";
  return NULL;
}

static void print_excuses(const struct oracle *oracle, uint64_t walks) {
  printf("\n  %-44s %10s %10s\n", "excused", "times", "at most");
  for (unsigned i = 0; i < EXCUSE_COUNT; i++)
    printf("  %-44s %10" PRIu64 " %10" PRIu64 "\n", excuse_names[i], oracle->excuse[i],
           bound_of(walks, bounds[i].per_million, bounds[i].besides));
}

static void print_baits(const struct oracle *oracle) {
  if (oracle->options.bait == 0) return;
  printf("\n  %-44s %10s %10s\n", "faults put in", "times", "found");
  for (unsigned i = 0; i < BAIT_COUNT; i++)
    printf("  %-44s %10" PRIu64 " %10" PRIu64 "\n", bait_names[i], oracle->bait[i].put,
           oracle->bait[i].found);
}

bool report(const struct oracle *oracle) {
  struct tally all = sum(oracle);
  const struct handlers_walk_counts *h = handlers_walk_counts(oracle->handlers);
  printf("\n  %-36s %10s %8s %8s\n", "scene", "walks", "cut", "wrong");
  for (unsigned i = 0; i < oracle->scenes; i++)
    print_tally(oracle->scene[i].name, &oracle->scene[i].tally);
  printf("\n  %-36s %10s %8s %8s\n", "the instruction is in", "walks", "cut", "wrong");
  for (unsigned i = 0; i < GROUP_COUNT; i++) print_tally(group_names[i], &oracle->group[i]);
  print_tally("all", &all);
  printf("  the handler's own walks beside them: %" PRIu64 " with an empty cache, %" PRIu64
         " with the kept one, %" PRIu64 " records, %" PRIu64 " plain, %" PRIu64
         " as of a sleeper; %" PRIu64 " frames\n",
         h->cold, h->warm, h->full, h->plain, h->asleep, h->frames);
  for (unsigned i = 0; i < CS_STOP_COUNT; i++)
    if (oracle->stops[i] != 0)
      printf("  cut: %10" PRIu64 " %s\n", oracle->stops[i], cs_stop_token((enum cs_stop)i));
  printf("  signals taken %" PRIu64 ", threads that went on where the walk had said %" PRIu64
         ", walks over a replaced return address %" PRIu64 "\n",
         oracle->signals, oracle->resumptions, oracle->hijacked);
  for (unsigned i = 0; i < oracle->findings; i++) {
    const struct finding *f = &oracle->finding[i];
    printf("  %s %8" PRIu64 " at %s (%s)\n", f->verdict == VERDICT_WRONG ? "WRONG" : "cut  ",
           f->count, f->where, f->why);
  }
  print_excuses(oracle, all.walked);
  print_baits(oracle);
  const char *wrong = judge(oracle);
  if (wrong != NULL) printf("FAIL: %s\n", wrong);
  return wrong == NULL;
}

// A run that is exactly at its bounds, and for each judged number a run that exceeds it.
bool report_self_test(void) {
  static struct oracle oracle;
  enum { WALKS = 3000000 };
  unsigned failed = 0;
  struct tally *tally = &oracle.group[GROUP_JIT];
  failed += judge(&oracle) == NULL;
  *tally = (struct tally){WALKS, bound_of(WALKS, CUT_PER_MILLION, CUT_BESIDES), 0};
  for (unsigned i = 0; i < EXCUSE_COUNT; i++)
    oracle.excuse[i] = bound_of(WALKS, bounds[i].per_million, bounds[i].besides);
  for (unsigned i = 0; i < BAIT_COUNT; i++) oracle.bait[i] = (struct bait_tally){1, 1};
  failed += judge(&oracle) != NULL;
  uint64_t *one_more[] = {&tally->cut, &tally->wrong};
  for (unsigned i = 0; i < CS_COUNT(one_more); i++) {
    ++*one_more[i];
    failed += judge(&oracle) == NULL;
    --*one_more[i];
  }
  for (unsigned i = 0; i < EXCUSE_COUNT; i++) {
    oracle.excuse[i]++;
    failed += judge(&oracle) == NULL;
    oracle.excuse[i]--;
  }
  for (unsigned i = 0; i < BAIT_COUNT; i++) {
    oracle.bait[i].put++;
    failed += judge(&oracle) == NULL;
    oracle.bait[i].put--;
  }
  printf("bounds that are not held: %u\n", failed);
  return failed == 0;
}
