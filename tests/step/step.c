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
#include <sys/syscall.h>
#include <unistd.h>

#include "decode.h"
#include "oracle.h"
#include "step.h"

enum { WHOLE_EVERY = 1009, UCONTEXT_GREGS = 40, GREG_RSP = 15, GREG_RIP = 16 };

static void die(const char *what, const char *why) {
  (void)fprintf(stderr, "step: %s%s%s\n", what, why[0] != '\0' ? ": " : "", why);
  exit(2);
}

static void read_registers(struct oracle *oracle) {
  struct cs_remote_thread *thread = &oracle->thread;
  if (!cs_remote_registers(oracle->tracee.tid, &thread->regs, &thread->thread_pointer,
                           &thread->call))
    die("the thread's registers cannot be read", "");
}

static uint64_t reg(const struct oracle *oracle, enum cs_reg r) {
  return oracle->thread.regs.r[r];
}

// Drops the cached bytes of generated code first: they may have been read before the code was
// written.
static struct insn next_instruction(struct oracle *oracle) {
  uint8_t bytes[INSN_MAX + 1];
  uint64_t ip = reg(oracle, CS_RIP);
  size_t len = sizeof bytes;
  const struct cs_images *images = cs_remote_world(oracle->remote)->images;
  if (images == NULL || cs_images_find(images, ip) == NULL)
    cs_remote_invalidate_range(oracle->remote, ip, ip + len);
  while (len != 0 && !cs_remote_read(oracle->remote, ip, bytes, len)) len = len > 1 ? len / 2 : 0;
  return decode(bytes, len);
}

// A word of the stack as it is now.
static uint64_t stack_word(struct oracle *oracle, uint64_t address) {
  uint64_t word = 0;
  cs_remote_invalidate_range(oracle->remote, address, address + 8);
  if (!cs_remote_read(oracle->remote, address, &word, sizeof word))
    die("the thread's stack cannot be read", "");
  return word;
}

// Whether the thread is at the first instruction of a signal handler. The return address is then
// the C library's trampoline: mov rax, 15; syscall.
static bool entered_handler(struct oracle *oracle, uint64_t sp_before) {
  static const uint8_t trampoline[] = {0x48, 0xC7, 0xC0, 0x0F, 0, 0, 0, 0x0F, 0x05};
  uint8_t bytes[sizeof trampoline];
  uint64_t sp = reg(oracle, CS_RSP);
  return sp != sp_before &&
         cs_remote_read(oracle->remote, stack_word(oracle, sp), bytes, sizeof bytes) &&
         memcmp(bytes, trampoline, sizeof bytes) == 0;
}

static void push_signal(struct oracle *oracle) {
  uint64_t sp = reg(oracle, CS_RSP), gregs = sp + 8 + UCONTEXT_GREGS;
  struct cs_error err;
  oracle->signals++;
  // The handler may run on the alternate stack, whose bounds are known only now.
  struct cs_regs regs = oracle->thread.regs;
  if (!cs_remote_thread(oracle->remote, oracle->tracee.tid, &oracle->thread, &err))
    die("the thread is gone", err.text);
  oracle->thread.regs = regs;
  if (oracle->thread.stack.alt_hi != 0) {
    oracle->shadow.alt_lo = oracle->thread.stack.alt_lo;
    oracle->shadow.alt_hi = oracle->thread.stack.alt_hi;
  }
  shadow_push(&oracle->shadow, ENTRY_INTERRUPTED, stack_word(oracle, gregs + GREG_RSP * 8) - 8,
              stack_word(oracle, gregs + GREG_RIP * 8));
  shadow_push(&oracle->shadow, ENTRY_TRAMPOLINE, sp, stack_word(oracle, sp));
}

static void check_stack_bounds(struct oracle *oracle) {
  struct cs_error err;
  uint64_t sp = reg(oracle, CS_RSP);
  if (cs_stack_holds(&oracle->thread.stack, sp, 8)) return;
  if (!cs_remote_thread(oracle->remote, oracle->tracee.tid, &oracle->thread, &err))
    die("the thread is gone", err.text);
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

// A new thread may inherit the trap flag, and the process would be killed by its trap.
static bool makes_a_thread(const struct insn *insn, const struct cs_regs *regs) {
  uint64_t number = regs->r[CS_RAX];
  return insn->kind == INSN_SYSCALL &&
         (number == SYS_clone || number == SYS_clone3 || number == SYS_fork || number == SYS_vfork);
}

// Code that loads a stack pointer from memory and then jumps has restored a whole context. It has
// not called the code that it continues in, and no code will return to a return address at that
// very stack pointer. (On-stack replacement switches in this way from the old version's code to the
// start of the new one, with the address of the old call in place of the new code's own.)
static void restore_context(struct oracle *oracle, const struct insn *insn, uint64_t ip_before) {
  static uint64_t loaded;
  uint64_t sp = reg(oracle, CS_RSP), ip = reg(oracle, CS_RIP);
  if (insn->kind == INSN_LOAD_SP) {
    loaded = sp;
  } else if (sp != loaded) {
    loaded = 0;
  } else if (ip - ip_before > INSN_MAX) {
    shadow_settle(&oracle->shadow, sp + 1, ip);
    oracle->excuse[EXCUSE_RESTORED]++;
    loaded = 0;
  }
}

// Steps one instruction and applies it to the call stack. Returns false if the program has ended.
static bool step(struct oracle *oracle, const struct insn *insn) {
  static int signal;
  struct cs_regs before = oracle->thread.regs;
  int delivered = signal;
  enum tracee_event event = signal == 0 && makes_a_thread(insn, &before)
                                ? tracee_system_call(&oracle->tracee, &signal)
                                : tracee_step(&oracle->tracee, &signal);
  if (event == TRACEE_ENDED) return false;
  if (event == TRACEE_SIGNAL) return true;
  read_registers(oracle);
  uint64_t sp = reg(oracle, CS_RSP), ip = reg(oracle, CS_RIP), sp_before = before.r[CS_RSP];
  check_stack_bounds(oracle);
  if (delivered != 0 && entered_handler(oracle, sp_before)) {
    push_signal(oracle);
    return true;
  }
  if (insn->kind == INSN_POPF) tracee_clear_trap_flag(&oracle->tracee);
  if (insn->kind == INSN_CALL && sp == sp_before - 8) {
    shadow_push(&oracle->shadow, ENTRY_CALL, sp, before.r[CS_RIP] + insn->length);
    return true;
  }
  if (insn->kind == INSN_SYSCALL && before.r[CS_RAX] == 15) {
    shadow_sigreturn(&oracle->shadow);
  } else if (leaves_alternate_stack(oracle, sp_before, sp)) {
    shadow_push(&oracle->shadow, ENTRY_MADE, sp, stack_word(oracle, sp));
    oracle->excuse[EXCUSE_MADE]++;
  }
  if (insn->kind == INSN_RET && is_trip(oracle, sp, ip)) {
    shadow_trip(&oracle->shadow, sp);
    oracle->excuse[EXCUSE_TRIP]++;
  }
  shadow_settle(&oracle->shadow, sp, ip);
  restore_context(oracle, insn, before.r[CS_RIP]);
  oracle_went(oracle, ip, sp);
  return true;
}

static bool in_jit(const struct oracle *oracle) {
  const struct cs_images *images = cs_remote_world(oracle->remote)->images;
  const struct cs_image *image = cs_images_find(images, reg(oracle, CS_RIP));
  return image != NULL && strstr(image->path, "/libclrjit.so") != NULL;
}

// The rest of a call into the JIT runs at full speed.
static bool run_out_of_jit(struct oracle *oracle, uint64_t slot, uint64_t ip) {
  if (tracee_return(&oracle->tracee, slot, ip) != TRACEE_STEPPED) return false;
  read_registers(oracle);
  if (reg(oracle, CS_RIP) != ip) {
    char where[96];
    (void)snprintf(where, sizeof where, "to %#lx, sp %#lx: at %#lx, sp %#lx", (unsigned long)ip,
                   (unsigned long)slot + 8, (unsigned long)reg(oracle, CS_RIP),
                   (unsigned long)reg(oracle, CS_RSP));
    die("a call into the JIT did not return", where);
  }
  shadow_settle(&oracle->shadow, slot + 8, ip);
  oracle_went(oracle, ip, slot + 8);
  oracle->excuse[EXCUSE_UNSTEPPED]++;
  cs_remote_invalidate(oracle->remote);
  return true;
}

struct jit_call {  // the outermost call into libclrjit that is under way
  uint64_t slot, ip;
  uint64_t steps;
};

static struct scene *find_scene(struct oracle *oracle) {
  cs_remote_invalidate(oracle->remote);
  char name[SCENE_NAME];
  uint64_t at = reg(oracle, CS_RDI);
  unsigned i = 0;
  for (; i < sizeof name - 1; i++)
    if (!cs_remote_read(oracle->remote, at + i, &name[i], 1) || name[i] == '\0') break;
  name[i] = '\0';
  for (unsigned n = 0; n < oracle->scenes; n++)
    if (strcmp(oracle->scene[n].name, name) == 0) return &oracle->scene[n];
  if (oracle->scenes == MAX_SCENES) die("too many scenes", "");
  struct scene *scene = &oracle->scene[oracle->scenes++];
  memcpy(scene->name, name, sizeof name);
  return scene;
}

// Follows a call into the JIT. Returns false if the program has ended.
static bool mind_jit(struct oracle *oracle, struct jit_call *call) {
  if (call->slot == 0) {
    if (!in_jit(oracle)) return true;
    const struct entry *top = &oracle->shadow.entry[oracle->shadow.count - 1];
    *call = (struct jit_call){top->slot, top->ip, 0};
  } else if (reg(oracle, CS_RSP) > call->slot) {
    call->slot = 0;
    return true;
  }
  if (++call->steps <= oracle->options.per_jit) return true;
  uint64_t slot = call->slot;
  call->slot = 0;
  return run_out_of_jit(oracle, slot, call->ip);
}

// Steps from a scene's mark to its end. Returns false if the program has ended.
static bool run_scene(struct oracle *oracle) {
  struct jit_call jit = {0, 0, 0};
  struct scene *scene = find_scene(oracle);
  struct cs_error err;
  uint64_t last_ip = 0, last_sp = 0, here = 0;
  if (!oracle_begin(oracle, &err)) die(scene->name, err.text);
  for (;;) {
    struct insn insn = next_instruction(oracle);
    if (insn.kind == INSN_INT3 && reg(oracle, CS_RAX) == STEP_MARK_END) {
      oracle_end(oracle);
      return true;
    }
    // A repeated string instruction stops after each repetition; all of them are one instruction.
    bool again = reg(oracle, CS_RIP) == last_ip && reg(oracle, CS_RSP) == last_sp;
    last_ip = reg(oracle, CS_RIP);
    last_sp = reg(oracle, CS_RSP);
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
    if (!step(oracle, &insn) || !mind_jit(oracle, &jit)) return false;
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
        die("usage: step [-q PER_SCENE] [-j PER_JIT] [-s SAMPLE] [-r SEED] [-w SHOW] [-p BAIT] "
            "[-x] "
            "-- PROGRAM, or step -t",
            "");
    }
  }
  if (optind == argc || o->sample == 0) die("there is no program to step", "");
  oracle->random = o->seed * 0x9E3779B97F4A7C15u | 1;
}

int main(int argc, char **argv) {
  static struct oracle oracle;
  struct cs_error err;
  handlers_walk_make_room(argv);
  parse(&oracle, argc, argv);
  if (!tracee_start(&oracle.tracee, argv + optind, &err))
    die("the program does not start", err.text);
  oracle.remote = cs_remote_open(oracle.tracee.pid, &err);
  if (oracle.remote == NULL) die("the program cannot be walked", err.text);
  oracle.handlers = handlers_walk_new(oracle.remote);
  if (oracle.handlers == NULL) die("out of memory", "");
  while (tracee_run_to_mark(&oracle.tracee) == TRACEE_STEPPED) {
    read_registers(&oracle);
    if (reg(&oracle, CS_RAX) == STEP_MARK_BEGIN && !run_scene(&oracle)) break;
  }
  int code = tracee_wait(&oracle.tracee);
  bool ok = report(&oracle);
  if (code != 0) printf("the program ended with %d\n", code);
  handlers_walk_free(oracle.handlers);
  cs_remote_close(oracle.remote);
  return ok && code == 0 ? 0 : 1;
}
