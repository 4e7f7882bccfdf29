// SPDX-License-Identifier: MIT
// The oracle's tables. One thread.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

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

bool report(const struct oracle *oracle) {
  struct tally all = {0, 0, 0};
  printf("\n  %-36s %10s %8s %8s\n", "scene", "walks", "cut", "wrong");
  for (unsigned i = 0; i < oracle->scenes; i++)
    print_tally(oracle->scene[i].name, &oracle->scene[i].tally);
  printf("\n  %-36s %10s %8s %8s\n", "the instruction is in", "walks", "cut", "wrong");
  for (unsigned i = 0; i < GROUP_COUNT; i++) {
    print_tally(group_names[i], &oracle->group[i]);
    all.walked += oracle->group[i].walked;
    all.cut += oracle->group[i].cut;
    all.wrong += oracle->group[i].wrong;
  }
  print_tally("all", &all);
  for (unsigned i = 0; i < CS_STOP_COUNT; i++)
    if (oracle->stops[i] != 0)
      printf("  cut: %10" PRIu64 " %s\n", oracle->stops[i], cs_stop_token((enum cs_stop)i));
  printf("  signals taken %" PRIu64 ", return addresses replaced %" PRIu64
         ", resumptions after an exception %" PRIu64 ", walks repeated for stale pages %" PRIu64
         "\n",
         oracle->signals, oracle->trips, oracle->resumptions, oracle->stale);
  for (unsigned i = 0; i < oracle->findings; i++) {
    const struct finding *f = &oracle->finding[i];
    printf("  %s %8" PRIu64 " at %s (%s)\n", f->verdict == VERDICT_WRONG ? "WRONG" : "cut  ",
           f->count, f->where,
           f->verdict == VERDICT_WRONG ? "other than the calls" : cs_stop_token(f->stop));
  }
  if (oracle->hidden != 0)
    printf("  compared with a call stack that lacks a call: %" PRIu64 ", found wrong: %" PRIu64
           "\n",
           oracle->hidden, oracle->hidden_found);
  return all.walked != 0 && oracle->hidden_found == oracle->hidden && all.wrong == 0 &&
         all.cut * 10000 <= all.walked;
}
