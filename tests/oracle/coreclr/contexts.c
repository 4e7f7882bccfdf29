// SPDX-License-Identifier: MIT
// The comparison of CONTEXTs. CoreCLR carries one CONTEXT down the stack. At an InlinedCallFrame (a
// P/Invoke or a QCall under way) it sets rip, rsp and rbp from the Frame, and leaves rbx and r12 to
// r15 as they were in the code from which the walk has come: nothing (0) when the walk starts at
// the Frame, the native caller of the managed code above it, or code that the walk has passed
// without a callback. The method's callers have their own registers again, because a method with
// such a Frame saves all of them in its prolog. The Frame's sp is that of the method's prolog; a
// later stackalloc lowers the true sp. So only these six registers may differ, and only in the one
// frame that owns the Frame; the values that CoreCLR reports there are known, and asserted. truth.c
// proves, by the registers at the callee's first instruction, that the library's values are the
// true ones. Threads: callbacks run on any managed thread. Signal-safe: no.
#include "contexts.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unwind.h>

static const char *const register_name[STACK_REGS] = MACHINE_REGISTER_NAMES;

// ---- The runtime's chain of Frames ----
static struct { uint64_t thread_frame, tracker, next, call_sp, return_address; } offset;
static uint64_t inlined_call;  // what an InlinedCallFrame has in its first word

// The offset of "Type.Field" in the descriptor's JSON text.
static uint64_t find_offset(const char *json, const char *type, const char *field) {
  char key[64];
  snprintf(key, sizeof(key), "\"%s\":{", type);
  const char *begin = strstr(json, key), *end = begin != NULL ? strchr(begin, '}') : NULL;
  snprintf(key, sizeof(key), "\"%s\":", field);
  const char *at = begin != NULL ? strstr(begin, key) : NULL;
  if (at == NULL || end == NULL || at > end) {
    oracle_fail("the descriptor has no %s.%s", type, field);
    return 0;
  }
  at += strlen(key);
  return strtoull(*at == '[' ? at + 1 : at, NULL, 10);
}

// The runtime's own descriptor; or the text of ORACLE_DESCRIPTION, for a runtime whose Frames are
// identified by addresses in g_dacTable.
static char *read_descriptor(void *runtime) {
  enum { JSON_SIZE = 12, JSON = 16, MOST = 1 << 16 };  // offsets, on both sides of magic and flags
  const char *file = getenv("ORACLE_DESCRIPTION"), *text;
  const uint8_t *descriptor = dlsym(runtime, "DotNetRuntimeContractDescriptor");
  uint32_t size;
  if (file == NULL) {
    if (descriptor == NULL) return NULL;
    memcpy(&size, descriptor + JSON_SIZE, sizeof(size));
    memcpy(&text, descriptor + JSON, sizeof(text));
    return strndup(text, size);
  }
  FILE *in = fopen(file, "r");
  char *json = calloc(1, MOST);
  if (in == NULL || json == NULL || fread(json, 1, MOST - 1, in) == 0) return NULL;
  fclose(in);
  return json;
}

static uint64_t find_inlined_call(void *runtime, const char *json) {
  enum { INLINED_CALL = 1 };
  static const char key[] = "\"InlinedCallFrameIdentifier\":[[";
  const char *at = strstr(json, key);
  const uint64_t *table = dlsym(runtime, "g_dacTable");
  if (at == NULL) return INLINED_CALL;
  return table != NULL ? table[strtoull(at + sizeof(key) - 1, NULL, 10)] : 0;
}

void contexts_start(void) {
  Dl_info info;
  void *runtime = NULL;
  if (dladdr((void *)oracle_info->lpVtbl->DoStackSnapshot, &info) != 0)
    runtime = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  if (runtime == NULL) runtime = dlopen(NULL, RTLD_LAZY);  // it is the program
  char *json = runtime != NULL ? read_descriptor(runtime) : NULL;
  ORACLE_CHECK(json != NULL, "libcoreclr has no data contract descriptor");
  if (json == NULL) return;
  inlined_call = find_inlined_call(runtime, json);
  offset.thread_frame = find_offset(json, "Thread", "Frame");
  offset.tracker = find_offset(json, "Thread", "ExceptionTracker");
  offset.next = find_offset(json, "Frame", "Next");
  offset.call_sp = find_offset(json, "InlinedCallFrame", "CallSiteSP");
  offset.return_address = find_offset(json, "InlinedCallFrame", "CallerReturnAddress");
  free(json);
}

static uint64_t word_at(uint64_t address) {
  uint64_t value;
  memcpy(&value, (const void *)(uintptr_t)address, sizeof(value));
  return value;
}

bool contexts_is_inlined_call(uint64_t sp, uint64_t ip) {
  ThreadID thread = 0;
  if (FAILED(oracle_info->lpVtbl->GetCurrentThreadID(oracle_info, &thread)) || thread == 0)
    return false;
  for (uint64_t at = word_at(thread + offset.thread_frame); at != 0 && at != ~0ull;
       at = word_at(at + offset.next)) {
    if (word_at(at) == inlined_call && word_at(at + offset.call_sp) == sp)
      return word_at(at + offset.return_address) == ip;
  }
  return false;
}

bool contexts_has_exception(ThreadID thread) {
  return word_at(thread + offset.tracker) != 0;
}

// ---- libgcc's unwinder, as a second opinion on the first managed frame ----
struct second_opinion {
  uint64_t sp;  // of the frame that is looked for
  uint64_t reg[STACK_REGS];
  bool found;
};

static _Unwind_Reason_Code look_for(struct _Unwind_Context *context, void *data) {
  static const int dwarf[STACK_REGS] = MACHINE_REGISTER_DWARF;
  struct second_opinion *opinion = data;
  // The CFA that led here is this frame's sp. Its ip may differ from the Frame's.
  if (_Unwind_GetCFA(context) != opinion->sp) return _URC_NO_REASON;
  for (int r = 0; r < STACK_REGS; r++)
    opinion->reg[r] = r == STACK_PC || r == STACK_SP ? 0 : _Unwind_GetGR(context, dwarf[r]);
  opinion->found = true;
  return _URC_END_OF_STACK;
}

// ---- Kinds ----
enum kind {
  EQUAL,
  NOTHING_BEFORE,  // CoreCLR's are 0: its walk starts at this frame
  NATIVE_BEFORE,   // CoreCLR's are those of the native run above
  SP_BEFORE,       // so is its sp: the Frame's, from before the method allocated on its stack
  UNTOLD_BEFORE,   // CoreCLR's are those of frames that it has passed without telling
  UNEXPLAINED,
  KINDS
};
static const char *const kind_text[KINDS] = {
    [EQUAL] = "equal",
    [NOTHING_BEFORE] = "owner of an InlinedCallFrame, first frame: CoreCLR's are 0",
    [SP_BEFORE] =
        "owner of an InlinedCallFrame, after stackalloc: CoreCLR's sp is the one before it",
    [NATIVE_BEFORE] = "owner of an InlinedCallFrame: CoreCLR's are the native frame's above",
    [UNTOLD_BEFORE] =
        "owner of an InlinedCallFrame: CoreCLR's are of a frame that it does not tell",
    [UNEXPLAINED] = "not explained",
};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t frames, of_kind[KINDS], differ[STACK_REGS], opinions, sizes, flags;
static uint64_t put, found;   // registers that were changed to test that the comparison finds it
static uint64_t fault_flags;  // frames whose ContextFlags are a hardware fault's

static bool is_left_alone(int reg) {
  return reg != STACK_SP && reg != STACK_FP && reg != STACK_PC;
}

// Whether all registers of `frame` that CoreCLR leaves alone are those of the frame before it.
static bool all_are(const struct stack_frame *frame, const struct stack_frame *before) {
  for (int r = 0; r < STACK_REGS; r++)
    if (is_left_alone(r) && frame->reg[r] != (before != NULL ? before->reg[r] : 0)) return false;
  return true;
}

// A call has pushed its return address just below the caller's sp.
static bool is_at_call(const struct stack_frame *frame) {
  return word_at(frame->reg[STACK_SP] - 8) == frame->reg[STACK_PC];
}

static enum kind kind_of(const struct stack *truth, const struct stack_frame *b, uint32_t i) {
  const struct stack_frame *a = &truth->frames[i];
  bool equal = true, sp_is_older = a->reg[STACK_SP] > b->reg[STACK_SP];
  for (int r = 0; r < STACK_REGS; r++) {
    if (a->reg[r] == b->reg[r] || (r == STACK_SP && sp_is_older)) continue;
    if (!is_left_alone(r)) return UNEXPLAINED;
    equal = false;
  }
  if (equal && !sp_is_older) return EQUAL;
  if (!contexts_is_inlined_call(a->reg[STACK_SP], a->reg[STACK_PC])) return UNEXPLAINED;
  bool left_over =
      i == 0 ? all_are(a, NULL) : truth->frames[i - 1].id == 0 && all_are(a, &truth->frames[i - 1]);
  if (sp_is_older) {
    bool shown = !MACHINE_PUSHES_RETURN_ADDRESS || (is_at_call(b) && !is_at_call(a));
    return left_over && shown ? SP_BEFORE : UNEXPLAINED;
  }
  if (i == 0 && left_over) return NOTHING_BEFORE;
  if (left_over) return NATIVE_BEFORE;
  // These registers are also stale: the frame reported before this one is not the one from which
  // the walk came.
  return i == 0 || truth->frames[i - 1].id == 0 ? UNTOLD_BEFORE : UNEXPLAINED;
}

// Where the native frames above this one lead up to the callback, libgcc provides the registers.
static bool second_opinion_agrees(const struct stack_frame *frame) {
  struct second_opinion opinion = {.sp = frame->reg[STACK_SP]};
  (void)_Unwind_Backtrace(look_for, &opinion);
  if (!opinion.found) return false;
  for (int r = 0; r < STACK_REGS; r++)
    if (is_left_alone(r) && opinion.reg[r] != frame->reg[r]) return false;
  opinions++;
  return true;
}

static void count(const char *where, const struct stack *truth, const struct stack *ours,
                  uint32_t i, enum kind kind) {
  const struct stack_frame *a = &truth->frames[i], *b = &ours->frames[i];
  if (of_kind[kind]++ >= 10 || kind != UNEXPLAINED) return;
  printf("  %s, frame %u, %s:", where, i, oracle_function_name(a->id));
  for (int r = 0; r < STACK_REGS; r++)
    if (a->reg[r] != b->reg[r])
      printf(" %s CoreCLR %#lx ours %#lx", register_name[r], (unsigned long)a->reg[r],
             (unsigned long)b->reg[r]);
  printf(" flags %#x %#x\n", a->context_flags, b->context_flags);
}

// Changes one of the library's registers. Of a frame with an InlinedCallFrame, CoreCLR knows only
// rip, rsp and rbp.
static void try_fault(const struct stack *truth, const struct stack_frame *ours, uint32_t i) {
  struct stack_frame changed = *ours;
  int r = (int)(frames / 64 % STACK_REGS);
  if (is_left_alone(r) && contexts_is_inlined_call(ours->reg[STACK_SP], ours->reg[STACK_PC]))
    r = frames / 64 % 2 != 0 ? STACK_PC : STACK_FP;
  changed.reg[r] += 8;
  put++;
  found += kind_of(truth, &changed, i) == UNEXPLAINED;
}

void contexts_compare(const char *where, const struct stack *truth, const struct stack *ours) {
  pthread_mutex_lock(&lock);
  for (uint32_t i = 0; i < truth->count && i < ours->count; i++) {
    const struct stack_frame *a = &truth->frames[i], *b = &ours->frames[i];
    frames++;
    enum kind kind = kind_of(truth, b, i);
    if (kind == EQUAL && frames % 64 == 0) try_fault(truth, b, i);
    bool asks = kind == NOTHING_BEFORE || (kind == SP_BEFORE && !MACHINE_PUSHES_RETURN_ADDRESS);
    if (asks && !second_opinion_agrees(b)) kind = UNEXPLAINED;
    if (a->context_size != b->context_size) sizes++, kind = UNEXPLAINED;
    if (a->context_flags != b->context_flags) flags++, kind = UNEXPLAINED;
    if (a->context_flags != 0) fault_flags++;
    for (int r = 0; r < STACK_REGS; r++) differ[r] += a->reg[r] != b->reg[r];
    count(where, truth, ours, i, kind);
  }
  pthread_mutex_unlock(&lock);
}

// The bound is twice the share seen in 40 million frames, or the number seen in a short run,
// whichever is larger.
static const uint64_t per_million[KINDS] = {[NOTHING_BEFORE] = 4000,
                                            [NATIVE_BEFORE] = MACHINE_NATIVE_BEFORE,
                                            [SP_BEFORE] = 200,
                                            [UNTOLD_BEFORE] = 800};

uint64_t contexts_report(void) {
  printf("contexts: %lu frames, %lu of another size, %lu of other flags (%lu with a fault's)\n",
         (unsigned long)frames, (unsigned long)sizes, (unsigned long)flags,
         (unsigned long)fault_flags);
  for (int k = 0; k < KINDS; k++)
    if (per_million[k] == 0)
      printf("  %10lu %s\n", (unsigned long)of_kind[k], kind_text[k]);
    else
      oracle_excuse(kind_text[k], of_kind[k], frames, per_million[k], 100);
  if (frames != 0) oracle_faults("another register", put, found);
  printf("  registers that differ:");
  for (int r = 0; r < STACK_REGS; r++)
    printf(" %s %lu", register_name[r], (unsigned long)differ[r]);
  printf("; libgcc's unwinder says as we do in %lu frames\n", (unsigned long)opinions);
  return of_kind[UNEXPLAINED];
}
