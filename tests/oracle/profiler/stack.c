// SPDX-License-Identifier: MIT
// Collecting a stack, printing it, comparing two of them. A comparison never stops at the first
// difference: it re-synchronises on the next frame that both have, so that one missing frame is one
// difference and not the whole rest of the stack. Threads: a struct tally has a lock; a struct
// stack belongs to one thread. Signal-safe: no.
#include "stack.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

void stack_clear(struct stack *stack) {
  stack->hr = S_OK;
  stack->count = stack->dropped = stack->abort_after = 0;
}

static const size_t register_offset[STACK_REGS] = MACHINE_REGISTER_OFFSETS;

void stack_context(const struct stack_frame *frame, MACHINE_CONTEXT *context) {
  memset(context, 0, sizeof(*context));
  context->ContextFlags = MACHINE_CONTEXT_FLAGS;
  for (int r = 0; r < STACK_REGS; r++)
    memcpy((BYTE *)context + register_offset[r], &frame->reg[r], sizeof(frame->reg[r]));
}

HRESULT stack_collect(FunctionID id, UINT_PTR ip, COR_PRF_FRAME_INFO info, ULONG32 context_size,
                      BYTE context[], void *client) {
  (void)info;
  struct stack *stack = client;
  if (stack->count == STACK_MAX) {
    stack->dropped++;
    return S_OK;
  }
  struct stack_frame *frame = &stack->frames[stack->count++];
  *frame =
      (struct stack_frame){.id = id, .ip = ip, .context_size = context != NULL ? context_size : 0};
  if (context != NULL && context_size >= sizeof(MACHINE_CONTEXT)) {
    for (int r = 0; r < STACK_REGS; r++)
      memcpy(&frame->reg[r], context + register_offset[r], sizeof(frame->reg[r]));
    memcpy(&frame->context_flags, context + offsetof(MACHINE_CONTEXT, ContextFlags),
           sizeof(frame->context_flags));
  }
  return stack->abort_after != 0 && stack->count == stack->abort_after ? S_FALSE : S_OK;
}

void stack_by_clr(struct stack *stack, ThreadID thread, ULONG32 flags) {
  stack_clear(stack);
  stack->hr = oracle_info->lpVtbl->DoStackSnapshot(oracle_info, thread, stack_collect, flags, stack,
                                                   NULL, 0);
}

const char *stack_hresult(HRESULT hr) {
  static const struct {
    HRESULT hr;
    const char *name;
  } names[] = {
      {S_OK, "S_OK"},
      {S_FALSE, "S_FALSE"},
      {E_FAIL, "E_FAIL"},
      {E_NOTIMPL, "E_NOTIMPL"},
      {E_INVALIDARG, "E_INVALIDARG"},
      {E_UNEXPECTED, "E_UNEXPECTED"},
      {CORPROF_E_STACKSNAPSHOT_INVALID_TGT_THREAD, "INVALID_TGT_THREAD"},
      {CORPROF_E_STACKSNAPSHOT_UNMANAGED_CTX, "UNMANAGED_CTX"},
      {CORPROF_E_STACKSNAPSHOT_UNSAFE, "UNSAFE"},
      {CORPROF_E_STACKSNAPSHOT_ABORTED, "ABORTED"},
      {CORPROF_E_ASYNCHRONOUS_UNSAFE, "ASYNCHRONOUS_UNSAFE"},
      {CORPROF_E_RUNTIME_UNINITIALIZED, "RUNTIME_UNINITIALIZED"},
      {CORPROF_E_SUSPENSION_IN_PROGRESS, "SUSPENSION_IN_PROGRESS"},
      {CORPROF_E_INCONSISTENT_WITH_FLAGS, "INCONSISTENT_WITH_FLAGS"},
  };
  for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
    if (names[i].hr == hr) return names[i].name;
  static _Thread_local char text[16];
  snprintf(text, sizeof(text), "%#x", (unsigned)hr);
  return text;
}

void stack_print(FILE *out, const struct stack *stack, uint32_t first, uint32_t limit) {
  fprintf(out, "      %s, %u frames\n", stack_hresult(stack->hr), stack->count);
  for (uint32_t i = first; i < stack->count && i - first < limit; i++) {
    const struct stack_frame *f = &stack->frames[i];
    fprintf(out, "      %3u %#14lx %s\n", i, (unsigned long)f->ip, oracle_function_name(f->id));
  }
  if (stack->count > first + limit)
    fprintf(out, "      ... %u more\n", stack->count - first - limit);
}

// ---- Tally ----
enum { KIND_MAX = 256, EXAMPLE_FRAMES = 400 };
struct kind {
  char text[256];
  uint64_t count;
  uint32_t at;  // frame of the example where the difference is
  struct stack *truth, *ours;
};
struct tally {
  pthread_mutex_t lock;
  uint64_t compared, equal, frames;
  uint64_t overflow;
  uint32_t kinds;
  struct kind kind[KIND_MAX];
};

struct tally *tally_new(void) {
  struct tally *tally = calloc(1, sizeof(*tally));
  if (tally == NULL) abort();
  pthread_mutex_init(&tally->lock, NULL);
  return tally;
}

static struct stack *keep(const struct stack *stack) {
  struct stack *copy = malloc(sizeof(*copy));
  if (copy == NULL) abort();
  *copy = *stack;
  // Names are read now: at the end some of these methods have been unloaded.
  for (uint32_t i = 0; i < stack->count; i++) oracle_function_name(stack->frames[i].id);
  return copy;
}

static void count_kind(struct tally *tally, const char *where, const char *what, uint32_t at,
                       const struct stack *truth, const struct stack *ours) {
  char text[256];
  snprintf(text, sizeof(text), "%s: %s", where, what);
  for (uint32_t i = 0; i < tally->kinds; i++) {
    if (strcmp(tally->kind[i].text, text) == 0) {
      tally->kind[i].count++;
      return;
    }
  }
  if (tally->kinds == KIND_MAX) {
    tally->overflow++;
    return;
  }
  struct kind *kind = &tally->kind[tally->kinds++];
  memcpy(kind->text, text, sizeof(text));
  kind->count = 1;
  kind->at = at;
  kind->truth = keep(truth);
  kind->ours = keep(ours);
}

static bool same_frame(const struct stack_frame *a, const struct stack_frame *b) {
  return a->id == b->id && a->ip == b->ip;
}

// The number of frames after (i, j) at which the two stacks meet again: the smallest sum of skips.
// Returns false if they never do.
static bool resync(const struct stack *a, const struct stack *b, uint32_t i, uint32_t j,
                   uint32_t *skip_a, uint32_t *skip_b) {
  for (uint32_t sum = 1; sum < 64; sum++) {
    for (uint32_t x = 0; x <= sum; x++) {
      uint32_t y = sum - x;
      if (i + x < a->count && j + y < b->count &&
          same_frame(&a->frames[i + x], &b->frames[j + y])) {
        *skip_a = x;
        *skip_b = y;
        return true;
      }
    }
  }
  return false;
}

static const char *place(const struct stack *s, uint32_t i) {
  return i == 0 ? "at the leaf" : i + 1 >= s->count ? "at the base" : "in the middle";
}

struct comparison {
  struct tally *tally;
  const char *where;
  const struct stack *truth, *ours;
  bool equal;
};

static void differ(struct comparison *c, const char *what, uint32_t at) {
  c->equal = false;
  count_kind(c->tally, c->where, what, at, c->truth, c->ours);
}

// `x` frames of the truth stand where `y` frames of ours are.
static void differ_gap(struct comparison *c, uint32_t i, uint32_t x, uint32_t j, uint32_t y) {
  char what[200];
  if (x == 1 && y == 1) {
    const struct stack_frame *a = &c->truth->frames[i], *b = &c->ours->frames[j];
    if (a->id == b->id)
      snprintf(what, sizeof(what), "%s ip differs %s",
               a->id == 0 ? "native run's" : "managed frame's", place(c->truth, i));
    else
      snprintf(what, sizeof(what), "%s instead of %s %s",
               b->id == 0 ? "native run" : "another function",
               a->id == 0 ? "native run" : "a function", place(c->truth, i));
    differ(c, what, i);
    return;
  }
  for (uint32_t k = 0; k < x; k++) {
    snprintf(what, sizeof(what), "%s missing %s",
             c->truth->frames[i + k].id == 0 ? "native run" : "managed frame",
             place(c->truth, i + k));
    differ(c, what, i + k);
  }
  for (uint32_t k = 0; k < y; k++) {
    snprintf(what, sizeof(what), "%s too many %s",
             c->ours->frames[j + k].id == 0 ? "native run" : "managed frame",
             place(c->ours, j + k));
    differ(c, what, i);
  }
}

static void compare_frames(struct comparison *c) {
  uint32_t i = 0, j = 0;
  while (i < c->truth->count || j < c->ours->count) {
    if (i < c->truth->count && j < c->ours->count &&
        same_frame(&c->truth->frames[i], &c->ours->frames[j])) {
      i++, j++;
      continue;
    }
    uint32_t x, y;
    if (!resync(c->truth, c->ours, i, j, &x, &y)) x = c->truth->count - i, y = c->ours->count - j;
    differ_gap(c, i, x, j, y);
    i += x, j += y;
  }
}

bool tally_compare(struct tally *tally, const char *where, const struct stack *truth,
                   const struct stack *ours) {
  struct comparison c = {tally, where, truth, ours, true};
  pthread_mutex_lock(&tally->lock);
  tally->compared++;
  tally->frames += truth->count;
  if (truth->hr != ours->hr) {
    char what[100];
    snprintf(what, sizeof(what), "HRESULT %s instead of %s", stack_hresult(ours->hr),
             stack_hresult(truth->hr));
    differ(&c, what, 0);
  } else {
    compare_frames(&c);
  }
  if (c.equal) tally->equal++;
  pthread_mutex_unlock(&tally->lock);
  return c.equal;
}

uint64_t tally_compared(const struct tally *tally) {
  return tally->compared;
}

static const struct tally_allowed *find_allowed(const struct kind *kind,
                                                const struct tally_allowed *allowed, size_t count) {
  const char *colon = strstr(kind->text, ": ");
  for (size_t i = 0; i < count; i++) {
    if (strncmp(kind->text, allowed[i].where, strlen(allowed[i].where)) == 0 &&
        strncmp(colon + 2, allowed[i].kind, strlen(allowed[i].kind)) == 0)
      return &allowed[i];
  }
  return NULL;
}

static void print_example(const struct kind *kind) {
  uint32_t first = kind->at > 4 ? kind->at - 4 : 0;
  printf("    truth, from frame %u:\n", first);
  stack_print(stdout, kind->truth, first, 24);
  printf("    ours:\n");
  stack_print(stdout, kind->ours, first, 24);
}

uint32_t tally_report(struct tally *tally, const struct tally_allowed *allowed, size_t count) {
  uint32_t unexplained = 0;
  printf("%lu stacks compared (%lu frames), %lu equal\n", (unsigned long)tally->compared,
         (unsigned long)tally->frames, (unsigned long)tally->equal);
  for (uint32_t i = 0; i < tally->kinds; i++) {
    const struct kind *kind = &tally->kind[i];
    const struct tally_allowed *reason = find_allowed(kind, allowed, count);
    printf("  %8lu x %s%s%s\n", (unsigned long)kind->count, kind->text,
           reason != NULL ? "  -- known: " : "", reason != NULL ? reason->reason : "");
    if (reason != NULL) continue;
    unexplained++;
    print_example(kind);
  }
  if (tally->overflow != 0)
    printf("  %lu differences of further kinds\n", (unsigned long)tally->overflow);
  return unexplained + (tally->overflow != 0);
}
