// SPDX-License-Identifier: MIT
// Matches a stack against a pattern of names, by backtracking. Threads: any. Signal-safe: no.
#include "pattern.h"

#include <stdlib.h>
#include <string.h>

enum { TOKENS = 32 };
struct token {
  char name[96];
  uint32_t min, max;
};

static uint32_t parse(const char *pattern, struct token tokens[TOKENS]) {
  uint32_t count = 0;
  while (*pattern != '\0' && count < TOKENS) {
    size_t length = strcspn(pattern, ";");
    struct token *t = &tokens[count++];
    *t = (struct token){.min = 1, .max = 1};
    snprintf(t->name, sizeof(t->name), "%.*s", (int)length, pattern);
    size_t end = strlen(t->name);
    char *brace = strchr(t->name, '{');
    if (brace != NULL) {
      t->min = t->max = (uint32_t)strtoul(brace + 1, NULL, 10);
      *brace = '\0';
    } else if (strcmp(t->name, "~") == 0) {
      t->min = 0, t->max = UINT32_MAX;
    } else if (t->name[end - 1] == '*' || t->name[end - 1] == '?') {
      t->min = 0, t->max = t->name[end - 1] == '?' ? 1 : UINT32_MAX;
      t->name[end - 1] = '\0';
    }
    pattern += length;
    if (*pattern == ';') pattern++;
  }
  return count;
}

static bool frame_is(const struct stack_frame *frame, const struct token *token) {
  if (strcmp(token->name, "[native]") == 0) return frame->id == 0;
  bool ours = frame->id != 0 && oracle_function_is_ours(frame->id);
  if (strcmp(token->name, "~") == 0) return !ours;
  return ours && strncmp(oracle_function_name(frame->id) + strlen("Proofs."), token->name,
                         strlen(token->name)) == 0;
}

static bool match(const struct token *token, uint32_t tokens, const struct stack_frame *frame,
                  uint32_t frames) {
  if (tokens == 0) return frames == 0;
  uint32_t n = 0;
  while (n < frames && n < token->max && frame_is(&frame[n], token)) n++;
  if (n < token->min) return false;
  for (;; n--) {  // the longest first
    if (match(token + 1, tokens - 1, frame + n, frames - n)) return true;
    if (n == token->min) return false;
  }
}

bool pattern_match(const char *pattern, const struct stack *stack, bool *exact_leaf) {
  struct token tokens[TOKENS + 1] = {{.name = "~", .min = 0, .max = UINT32_MAX}};
  uint32_t count = parse(pattern, tokens + 1);
  *exact_leaf = stack->count != 0 && frame_is(&stack->frames[0], &tokens[1]);
  return match(tokens, count + 1, stack->frames, stack->count);
}
