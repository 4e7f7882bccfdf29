// SPDX-License-Identifier: MIT
// step [OPTIONS] -- PROGRAM ARGUMENTS...: the every-instruction oracle. Starts a .NET program,
// steps the thread that announces itself through each of its scenes, and compares the walk with the
// calls and returns that were executed, at every instruction. Exit code 0: no wrong walk, and no
// excuse too many (report.c); 1: not so; 2: it could not be done.
//   -q N  instructions of one visit to a scene     -j N  of one call into the JIT
//   -s N  one of N of the JIT's is walked at       -r N  what is chosen at random begins with this
//   -w N  so many wrong walks are printed whole    -x    ends at the first that is wrong
//   -p N  one of N walks is compared with a fault put in, which has to be found
//   -t    only: would each bound be noticed?
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "machine.h"
#include "step.h"

enum { WHOLE_EVERY = 1009 };

_Noreturn void oracle_die(const char *what, const char *why) {
  (void)fprintf(stderr, "step: %s%s%s\n", what, why[0] != '\0' ? ": " : "", why);
  exit(2);
}

void oracle_read_registers(struct oracle *oracle) {
  struct cs_remote_thread *thread = &oracle->thread;
  if (!cs_remote_registers(oracle->tracee.tid, &thread->regs, &thread->thread_pointer,
                           &thread->call))
    oracle_die("the thread's registers cannot be read", "");
}

static uint64_t reg(const struct oracle *oracle, unsigned r) {
  return oracle->thread.regs.r[r];
}

// Drops the cached bytes of generated code first: they may have been read before the code was
// written.
static struct insn next_instruction(struct oracle *oracle) {
  uint8_t bytes[INSN_MAX + 1];
  uint64_t ip = reg(oracle, CS_IP);
  size_t len = sizeof bytes;
  const struct cs_images *images = cs_remote_world(oracle->remote)->images;
  if (images == NULL || cs_images_find(images, ip) == NULL)
    cs_remote_invalidate_range(oracle->remote, ip, ip + len);
  while (len != 0 && !cs_remote_read(oracle->remote, ip, bytes, len)) len = len > 1 ? len / 2 : 0;
  return decode(bytes, len);
}

uint64_t oracle_stack_word(struct oracle *oracle, uint64_t address) {
  uint64_t word = 0;
  cs_remote_invalidate_range(oracle->remote, address, address + 8);
  if (!cs_remote_read(oracle->remote, address, &word, sizeof word))
    oracle_die("the thread's stack cannot be read", "");
  return word;
}

static void push(struct oracle *oracle, const struct entry *entry) {
  shadow_push(&oracle->shadow, entry->kind, entry->slot, entry->ip);
}

static void push_signal(struct oracle *oracle) {
  struct entry interrupted, trampoline;
  struct cs_error err;
  oracle->signals++;
  // The handler may run on the alternate stack, whose bounds are known only now.
  struct cs_regs regs = oracle->thread.regs;
  if (!cs_remote_thread(oracle->remote, oracle->tracee.tid, &oracle->thread, &err))
    oracle_die("the thread is gone", err.text);
  oracle->thread.regs = regs;
  if (oracle->thread.stack.alt_hi != 0) {
    oracle->shadow.alt_lo = oracle->thread.stack.alt_lo;
    oracle->shadow.alt_hi = oracle->thread.stack.alt_hi;
  }
  machine_signal(oracle, &interrupted, &trampoline);
  push(oracle, &interrupted);
  push(oracle, &trampoline);
}

static void check_stack_bounds(struct oracle *oracle) {
  struct cs_error err;
  uint64_t sp = reg(oracle, CS_SP);
  if (cs_stack_holds(&oracle->thread.stack, sp, 8)) return;
  if (!cs_remote_thread(oracle->remote, oracle->tracee.tid, &oracle->thread, &err))
    oracle_die("the thread is gone", err.text);
}

// The thread has switched from the alternate stack to its own, and not by rt_sigreturn: the runtime
// has built a frame there, with a return address that no call has pushed.
static bool leaves_alternate_stack(const struct oracle *oracle, uint64_t sp_before, uint64_t sp) {
  const struct cs_stack *stack = &oracle->thread.stack;
  bool was = sp_before >= stack->alt_lo && sp_before < stack->alt_hi;
  return was && sp >= stack->lo && sp < stack->hi;
}

// Returns whether a return has gone elsewhere than to its call, to an address that, according to
// the runtime, the runtime itself has put there.
static bool is_trip(struct oracle *oracle, uint64_t sp, uint64_t ip) {
  const struct cs_layout *layout = &cs_remote_world(oracle->remote)->layout;
  const struct entry *top = &oracle->shadow.entry[oracle->shadow.count - 1];
  uint64_t thread = oracle->thread.clr_thread, slot, address;
  if (oracle->shadow.count == 0 || top->kind != ENTRY_CALL || top->slot + 8 != sp ||
      top->ip == ip || thread == 0 || layout->hijack.hijack_slot == 0)
    return false;
  cs_remote_invalidate(oracle->remote);
  return cs_remote_read(oracle->remote, thread + layout->hijack.hijack_slot, &slot, 8) &&
         cs_remote_read(oracle->remote, thread + layout->hijack.hijack_return_address, &address,
                        8) &&
         slot == top->slot && address == top->ip;
}

// Code that loads a whole new stack pointer and then jumps has restored a whole context. It has
// not called the code that it continues in, and no code will return to a return address at that
// very stack pointer. (On-stack replacement switches in this way from the old version's code to the
// start of the new one, with the address of the old call in place of the new code's own.) `made`:
// the runtime has built a caller for that code.
static void restore_context(struct oracle *oracle, const struct insn *insn, uint64_t ip_before,
                            bool made) {
  uint64_t *loaded = &oracle->loaded_sp;
  uint64_t sp = reg(oracle, CS_SP), ip = reg(oracle, CS_IP);
  if (insn->kind == INSN_LOAD_SP && !made) {
    *loaded = sp;
  } else if (sp != *loaded || made) {
    *loaded = 0;
  } else if (machine_jumped(insn, ip_before, ip)) {
    shadow_leave(&oracle->shadow, sp);
    oracle->excuse[EXCUSE_RESTORED]++;
    *loaded = 0;
  }
}

// Steps one instruction and applies it to the call stack. Returns false if the program has ended.
static bool step(struct oracle *oracle, const struct insn *insn) {
  static int signal;
  struct cs_regs before = oracle->thread.regs;
  int delivered = signal;
  enum tracee_event event = machine_step(oracle, insn, &signal);
  if (event == TRACEE_ENDED) return false;
  if (event == TRACEE_SIGNAL) return true;
  oracle_read_registers(oracle);
  uint64_t sp = reg(oracle, CS_SP), ip = reg(oracle, CS_IP), sp_before = before.r[CS_SP];
  check_stack_bounds(oracle);
  if (delivered != 0 && machine_entered_handler(oracle, sp_before)) {
    push_signal(oracle);
    return true;
  }
  struct entry entry;
  if (machine_called(insn, &before, &oracle->thread.regs, &entry)) {
    push(oracle, &entry);
    oracle->loaded_sp = 0;
    return true;
  }
  bool made = leaves_alternate_stack(oracle, sp_before, sp);
  if (insn->kind == INSN_SYSCALL && before.r[NUMBER_REG] == SYS_SIGRETURN) {
    shadow_sigreturn(&oracle->shadow);
    made = false;
  } else if (made) {
    entry = machine_made(oracle);
    push(oracle, &entry);
    oracle_built(oracle, &entry);
    oracle->excuse[EXCUSE_MADE]++;
  }
  if (insn->kind == INSN_RET && is_trip(oracle, sp, ip)) {
    shadow_trip(&oracle->shadow, sp);
    oracle->excuse[EXCUSE_TRIP]++;
  }
  shadow_settle(&oracle->shadow, sp, ip);
  restore_context(oracle, insn, before.r[CS_IP], made);
  oracle_went(oracle, ip, sp);
  return true;
}

static struct scene *find_scene(struct oracle *oracle) {
  cs_remote_invalidate(oracle->remote);
  char name[SCENE_NAME];
  uint64_t at = reg(oracle, NAME_REG);
  unsigned i = 0;
  for (; i < sizeof name - 1; i++)
    if (!cs_remote_read(oracle->remote, at + i, &name[i], 1) || name[i] == '\0') break;
  name[i] = '\0';
  for (unsigned n = 0; n < oracle->scenes; n++)
    if (strcmp(oracle->scene[n].name, name) == 0) return &oracle->scene[n];
  if (oracle->scenes == MAX_SCENES) oracle_die("too many scenes", "");
  struct scene *scene = &oracle->scene[oracle->scenes++];
  memcpy(scene->name, name, sizeof name);
  return scene;
}

// Steps from a scene's mark to its end. Returns false if the program has ended.
static bool run_scene(struct oracle *oracle) {
  struct jit_call jit = {0, 0, 0};
  struct scene *scene = find_scene(oracle);
  struct cs_error err;
  uint64_t last_ip = 0, last_sp = 0, here = 0;
  if (!oracle_begin(oracle, &err)) oracle_die(scene->name, err.text);
  for (;;) {
    struct insn insn = next_instruction(oracle);
    if (insn.kind == INSN_TRAP && reg(oracle, MARK_REG) == STEP_MARK_END) {
      oracle_end(oracle);
      return true;
    }
    // A repeated string instruction stops after each repetition; all of them are one instruction.
    bool again = reg(oracle, CS_IP) == last_ip && reg(oracle, CS_SP) == last_sp;
    last_ip = reg(oracle, CS_IP);
    last_sp = reg(oracle, CS_SP);
    if (!again) {
      if (++here > oracle->options.per_scene) {
        oracle_end(oracle);
        return tracee_run_to_mark(&oracle->tracee) == TRACEE_STEPPED;
      }
      scene->executed++;
      bool sampled = jit.slot == 0 || oracle_random(oracle) % oracle->options.sample == 0;
      bool whole = scene->executed % WHOLE_EVERY == 0;
      if (whole || sampled) oracle_check(oracle, scene, whole);
    }
    if (!step(oracle, &insn) || !machine_mind_jit(oracle, &jit)) return false;
  }
}

static void parse(struct oracle *oracle, int argc, char **argv) {
  struct options *o = &oracle->options;
  *o = (struct options){
      .per_scene = UINT64_MAX, .per_jit = 20000, .sample = 1, .seed = 1, .show = 5};
  for (int c; (c = getopt(argc, argv, "+q:j:s:r:w:p:xt")) != -1;) {
    uint64_t value = optarg != NULL ? strtoull(optarg, NULL, 10) : 0;
    switch (c) {
      case 'q':
        o->per_scene = value;
        break;
      case 'j':
        o->per_jit = value;
        break;
      case 's':
        o->sample = (unsigned)value;
        break;
      case 'r':
        o->seed = value;
        break;
      case 'p':
        o->bait = (unsigned)value;
        break;
      case 'x':
        o->first = true;
        break;
      case 't':
        exit(report_self_test() ? 0 : 1);
      case 'w':
        o->show = (unsigned)value;
        break;
      default:
        oracle_die(
            "usage: step [-q PER_SCENE] [-j PER_JIT] [-s SAMPLE] [-r SEED] [-w SHOW] [-p BAIT] "
            "[-x] "
            "-- PROGRAM, or step -t",
            "");
    }
  }
  if (optind == argc || o->sample == 0) oracle_die("there is no program to step", "");
  oracle->random = o->seed * 0x9E3779B97F4A7C15u | 1;
}

int main(int argc, char **argv) {
  static struct oracle oracle;
  struct cs_error err;
  handlers_walk_make_room(argv);
  parse(&oracle, argc, argv);
  if (!tracee_start(&oracle.tracee, argv + optind, &err))
    oracle_die("the program does not start", err.text);
  oracle.remote = cs_remote_open(oracle.tracee.pid, &err);
  if (oracle.remote == NULL) oracle_die("the program cannot be walked", err.text);
  oracle.handlers = handlers_walk_new(oracle.remote);
  if (oracle.handlers == NULL) oracle_die("out of memory", "");
  while (tracee_run_to_mark(&oracle.tracee) == TRACEE_STEPPED) {
    oracle_read_registers(&oracle);
    if (reg(&oracle, MARK_REG) == STEP_MARK_BEGIN && !run_scene(&oracle)) break;
  }
  int code = tracee_wait(&oracle.tracee);
  bool ok = report(&oracle);
  if (code != 0) printf("the program ended with %d\n", code);
  handlers_walk_free(oracle.handlers);
  cs_remote_close(oracle.remote);
  return ok && code == 0 ? 0 : 1;
}
