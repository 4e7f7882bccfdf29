// SPDX-License-Identifier: MIT
// remote_walk PID [--commands]: prints the frames of every thread of another process, walked from
// outside (src/command/remote), as lines of JSON. Without --commands it stops all threads, walks
// them, and lets them go. With it, it reads commands from stdin, so that another program can
// inspect the same stopped process: "stop", "walk" (all stopped threads), "walk TID", "go", "quit".
// The output of each ends with a line {"done":"stop"} or {"error":"..."}.
//
// One line a thread:
// {"tid":1,"clr":"0x..","stack":["0x..","0x.."],"regs":{"rip":"0x..",...},"stop":"base",
//  "stop_ip":"0x..","frames":[
//     {"kind":"jit","ip":"0x..","sp":"0x..","start":"0x..","method":"0x..","flags":"exact"},...]}
// start: of the method (managed code) or 0; method: the MethodDesc (jitted code) or 0; flags: any
// of exact, signal, bridged, hijacked, funclet, collectible, separated by commas; a native frame
// has "image" as well. These are the exact walk's; the thread is walked by the handler's own loops,
// too (handlers_walk.h), and where those differ the line has "handler":"what differs". Exit code 0,
// 1: the process cannot be walked (stderr says why), 2: usage.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "handlers_walk.h"
#include "remote/remote.h"

enum { MOST_FRAMES = 65536 };
static struct handlers_walk *handlers;

static const char *const kind_names[] = {[CS_CODE_NONE] = "none",
                                         [CS_CODE_JIT] = "jit",
                                         [CS_CODE_R2R] = "r2r",
                                         [CS_CODE_NATIVE] = "native",
                                         [CS_CODE_STUB] = "stub"};

static void print_flags(const struct cs_frame *frame) {
  const struct {
    bool set;
    const char *name;
  } flags[] = {
      {(frame->flags & CS_FRAME_EXACT) != 0, "exact"},
      {(frame->flags & CS_FRAME_SIGNAL) != 0, "signal"},
      {(frame->flags & CS_FRAME_BRIDGED) != 0, "bridged"},
      {(frame->flags & CS_FRAME_HIJACKED) != 0, "hijacked"},
      {frame->code.funclet, "funclet"},
      {frame->code.collectible, "collectible"},
  };
  const char *comma = "";
  printf(",\"flags\":\"");
  for (size_t i = 0; i < CS_COUNT(flags); i++) {
    if (!flags[i].set) continue;
    printf("%s%s", comma, flags[i].name);
    comma = ",";
  }
  printf("\"");
}

static void print_string(const char *text) {
  (void)putchar('"');
  for (; *text != '\0'; text++) {
    if (*text == '"' || *text == '\\') (void)putchar('\\');
    if ((unsigned char)*text >= 0x20) (void)putchar(*text);
  }
  (void)putchar('"');
}

static void print_frame(const struct cs_frame *frame) {
  const struct cs_code *code = &frame->code;
  printf("{\"kind\":\"%s\",\"ip\":\"0x%" PRIx64 "\",\"sp\":\"0x%" PRIx64 "\"",
         kind_names[code->kind], frame->regs.r[CS_RIP], frame->regs.r[CS_RSP]);
  if (cs_code_is_managed(code))
    printf(",\"start\":\"0x%" PRIx64 "\",\"method\":\"0x%" PRIx64 "\"", code->method_start,
           code->function_id);
  if (code->kind == CS_CODE_NATIVE && code->image != NULL) {
    printf(",\"image\":");
    print_string(code->image->path);
  }
  print_flags(frame);
  printf("}");
}

static void print_registers(const struct cs_regs *regs) {
  static const char *const names[CS_REG_COUNT] = {"rax", "rcx", "rdx", "rbx", "rsp", "rbp",
                                                  "rsi", "rdi", "r8",  "r9",  "r10", "r11",
                                                  "r12", "r13", "r14", "r15", "rip"};
  printf(",\"regs\":{");
  for (int i = 0; i < CS_REG_COUNT; i++)
    printf("%s\"%s\":\"0x%" PRIx64 "\"", i != 0 ? "," : "", names[i], regs->r[i]);
  printf("}");
}

static void print_difference(const struct cs_remote_thread *thread,
                             const struct exact_walk *exact) {
  struct cs_error err = {.text = ""};
  handlers_walk_forget_copy(handlers);
  if (handlers_walk_copy(handlers, thread, 0, 0, &err) &&
      handlers_walk_agrees(handlers, thread, exact, &err))
    return;
  printf(",\"handler\":");
  print_string(err.text);
}

static bool walk_thread(struct cs_remote *remote, int tid, struct cs_error *err) {
  static struct cs_frame frames[MOST_FRAMES];
  struct cs_remote_thread thread;
  struct cs_walk walk;
  unsigned count = 0;
  if (!cs_remote_thread(remote, tid, &thread, err)) return false;
  printf("{\"tid\":%d,\"clr\":\"0x%" PRIx64 "\",\"stack\":[\"0x%" PRIx64 "\",\"0x%" PRIx64 "\"]",
         tid, thread.clr_thread, thread.stack.lo, thread.stack.hi);
  print_registers(&thread.regs);
  printf(",\"frames\":[");
  cs_remote_walk_begin(remote, &thread, &walk);
  for (; count < MOST_FRAMES && cs_walk_next(&walk, &frames[count]); count++) {
    printf("%s", count != 0 ? "," : "");
    print_frame(&frames[count]);
  }
  printf("],\"stop\":\"%s\",\"stop_ip\":\"0x%" PRIx64 "\"", cs_stop_token(walk.stop), walk.stop_ip);
  struct exact_walk exact = {frames, count, false, walk.stop, walk.stop_ip};
  print_difference(&thread, &exact);
  printf("}\n");
  return true;
}

static bool walk_all(struct cs_remote *remote, struct cs_error *err) {
  const int *tids;
  unsigned count = cs_remote_threads(remote, &tids);
  if (count == 0) return cs_error_set(err, "no thread is stopped");
  cs_remote_refresh_images(remote);
  for (unsigned i = 0; i < count; i++)
    if (!walk_thread(remote, tids[i], err)) return false;
  return true;
}

static bool run_command(struct cs_remote *remote, const char *command, struct cs_error *err) {
  if (strcmp(command, "stop") == 0) return cs_remote_stop(remote, err);
  if (strcmp(command, "walk") == 0) return walk_all(remote, err);
  if (strncmp(command, "walk ", 5) == 0) return walk_thread(remote, atoi(command + 5), err);
  if (strcmp(command, "go") != 0) return cs_error_set(err, "unknown command: %s", command);
  cs_remote_resume(remote);
  return true;
}

static void run_commands(struct cs_remote *remote) {
  char line[64];
  while (fgets(line, sizeof line, stdin) != NULL) {
    struct cs_error err = {.text = ""};
    line[strcspn(line, "\n")] = '\0';
    if (strcmp(line, "quit") == 0) break;
    bool ok = run_command(remote, line, &err);
    printf(ok ? "{\"done\":" : "{\"error\":");
    print_string(ok ? line : err.text);
    printf("}\n");
    (void)fflush(stdout);
  }
}

int main(int argc, char **argv) {
  struct cs_error err = {.text = ""};
  bool commands = argc == 3 && strcmp(argv[2], "--commands") == 0;
  if ((argc != 2 && !commands) || atoi(argv[1]) <= 0) {
    (void)fprintf(stderr, "usage: remote_walk PID [--commands]\n");
    return 2;
  }
  handlers_walk_make_room(argv);
  struct cs_remote *remote = cs_remote_open(atoi(argv[1]), &err);
  bool ok = remote != NULL;
  if (ok && (handlers = handlers_walk_new(remote)) == NULL)
    ok = cs_error_set(&err, "out of memory");
  if (ok && commands)
    run_commands(remote);
  else if (ok)
    ok = cs_remote_stop(remote, &err) && walk_all(remote, &err);
  if (!ok) (void)fprintf(stderr, "remote_walk: %s\n", err.text);
  handlers_walk_free(handlers);
  cs_remote_close(remote);
  return ok ? 0 : 1;
}
