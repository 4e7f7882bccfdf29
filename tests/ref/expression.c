// SPDX-License-Identifier: MIT
// A stack machine that executes one operation after the other. Invariant: neither the program's end
// nor the stack's is passed, and an unknown operation is refused.
#include "ref/expression.h"

#include <string.h>

enum { STACK = 64 };
struct machine {
  const struct expression *e;
  struct cfi_bytes in;
  const uint8_t *begin;
  uint64_t stack[STACK];
  unsigned depth;
  bool bad;
};

uint64_t cfi_fixed(struct cfi_bytes *in, unsigned size) {
  uint64_t value = 0;
  if ((size_t)(in->end - in->at) < size) {
    in->at = in->end;
    return 0;
  }
  memcpy(&value, in->at, size);
  in->at += size;
  return value;
}

uint64_t cfi_uleb(struct cfi_bytes *in) {
  uint64_t value = 0, byte = 0x80;
  for (unsigned shift = 0; (byte & 0x80) != 0 && in->at < in->end; shift += 7) {
    byte = cfi_fixed(in, 1);
    if (shift < 64) value |= (byte & 0x7f) << shift;
  }
  return value;
}

int64_t cfi_sleb(struct cfi_bytes *in) {
  uint64_t value = 0, byte = 0x80;
  unsigned shift = 0;
  for (; (byte & 0x80) != 0 && in->at < in->end; shift += 7) {
    byte = cfi_fixed(in, 1);
    if (shift < 64) value |= (byte & 0x7f) << shift;
  }
  if ((byte & 0x40) != 0 && shift < 64) value |= UINT64_MAX << shift;
  return (int64_t)value;
}

static void push(struct machine *m, uint64_t value) {
  if (m->depth == STACK)
    m->bad = true;
  else
    m->stack[m->depth++] = value;
}
static uint64_t pop(struct machine *m) {
  if (m->depth == 0) m->bad = true;
  return m->depth == 0 ? 0 : m->stack[--m->depth];
}
static void pick(struct machine *m, uint64_t index) {
  if (index >= m->depth)
    m->bad = true;
  else
    push(m, m->stack[m->depth - 1 - index]);
}
static void push_register(struct machine *m, uint64_t reg) {
  int64_t offset = cfi_sleb(&m->in);
  if (reg >= CFI_REGISTERS)
    m->bad = true;
  else
    push(m, m->e->registers[reg] + (uint64_t)offset);
}

// Replaces two values by one; the value below the top is the left operand.
static bool binary(struct machine *m, unsigned op) {
  if (!((op >= 0x1a && op <= 0x1e) || op == 0x21 || op == 0x22 || (op >= 0x24 && op <= 0x27) ||
        (op >= 0x29 && op <= 0x2e)))
    return false;
  uint64_t right = pop(m), left = pop(m), v = 0;
  int64_t a = (int64_t)left, b = (int64_t)right;
  if ((op == 0x1b || op == 0x1d) && right == 0) m->bad = true;
  if (m->bad) return true;
  if (op == 0x1a) v = left & right;
  if (op == 0x1b) v = b == -1 ? 0 - left : (uint64_t)(a / b);
  if (op == 0x1c) v = left - right;
  if (op == 0x1d) v = left % right;
  if (op == 0x1e) v = left * right;
  if (op == 0x21) v = left | right;
  if (op == 0x22) v = left + right;
  if (op == 0x24) v = right < 64 ? left << right : 0;
  if (op == 0x25) v = right < 64 ? left >> right : 0;
  if (op == 0x26) v = (uint64_t)(a >> (right < 64 ? right : 63));
  if (op == 0x27) v = left ^ right;
  if (op == 0x29) v = a == b;
  if (op == 0x2a) v = a >= b;
  if (op == 0x2b) v = a > b;
  if (op == 0x2c) v = a <= b;
  if (op == 0x2d) v = a < b;
  if (op == 0x2e) v = a != b;
  push(m, v);
  return true;
}

// A number that follows the operation, with the size and sign of the operation.
static bool constant(struct machine *m, unsigned op) {
  switch (op) {
    case 0x03:  // addr
    case 0x0e:
    case 0x0f:
      push(m, cfi_fixed(&m->in, 8));
      return true;
    case 0x08:
      push(m, cfi_fixed(&m->in, 1));
      return true;
    case 0x09:
      push(m, (uint64_t)(int8_t)cfi_fixed(&m->in, 1));
      return true;
    case 0x0a:
      push(m, cfi_fixed(&m->in, 2));
      return true;
    case 0x0b:
      push(m, (uint64_t)(int16_t)cfi_fixed(&m->in, 2));
      return true;
    case 0x0c:
      push(m, cfi_fixed(&m->in, 4));
      return true;
    case 0x0d:
      push(m, (uint64_t)(int32_t)cfi_fixed(&m->in, 4));
      return true;
    case 0x10:
      push(m, cfi_uleb(&m->in));
      return true;
    case 0x11:
      push(m, (uint64_t)cfi_sleb(&m->in));
      return true;
    default:
      return false;
  }
}

static void dereference(struct machine *m, unsigned size) {
  uint64_t word = 0, address = pop(m);
  if (m->bad || size == 0 || size > 8 || !m->e->read(address, &word)) {
    m->bad = true;
    return;
  }
  push(m, size == 8 ? word : word & ((1ull << (size * 8)) - 1));
}

static void jump(struct machine *m, bool taken) {
  int64_t by = (int16_t)cfi_fixed(&m->in, 2);
  int64_t to = m->in.at - m->begin + by;
  // A backward branch could loop forever, and never occurs.
  if (by < 0 || to > m->in.end - m->begin)
    m->bad = true;
  else if (taken)
    m->in.at = m->begin + to;
}

static void rearrange(struct machine *m, unsigned op) {
  uint64_t a, b, c;
  switch (op) {
    case 0x12:  // dup
      pick(m, 0);
      break;
    case 0x13:  // drop
      (void)pop(m);
      break;
    case 0x14:  // over
      pick(m, 1);
      break;
    case 0x15:
      pick(m, cfi_fixed(&m->in, 1));
      break;
    case 0x16:  // swap
      a = pop(m), b = pop(m);
      push(m, a), push(m, b);
      break;
    case 0x17:  // rot: the top becomes the third
      a = pop(m), b = pop(m), c = pop(m);
      push(m, a), push(m, c), push(m, b);
      break;
    case 0x19:  // abs
      a = pop(m);
      push(m, (int64_t)a < 0 ? 0 - a : a);
      break;
    case 0x1f:  // neg
      push(m, 0 - pop(m));
      break;
    case 0x20:  // not
      push(m, ~pop(m));
      break;
    case 0x23:  // plus_uconst
      a = pop(m);
      push(m, a + cfi_uleb(&m->in));
      break;
    case 0x28:  // bra
      jump(m, pop(m) != 0);
      break;
    case 0x2f:  // skip
      jump(m, true);
      break;
    case 0x96:  // nop
      break;
    default:
      m->bad = true;
  }
}

bool expression_value(const struct expression *e, struct cfi_bytes program, const uint64_t *first,
                      uint64_t *value) {
  struct machine m = {.e = e, .in = program, .begin = program.at};
  if (first != NULL) push(&m, *first);
  while (m.in.at < m.in.end && !m.bad) {
    unsigned op = (unsigned)cfi_fixed(&m.in, 1);
    if (op >= 0x30 && op <= 0x4f)
      push(&m, op - 0x30);
    else if (op >= 0x70 && op <= 0x8f)
      push_register(&m, op - 0x70);
    else if (op == 0x92)
      push_register(&m, cfi_uleb(&m.in));
    else if (op == 0x06)
      dereference(&m, 8);
    else if (op == 0x94)
      dereference(&m, (unsigned)cfi_fixed(&m.in, 1));
    else if (!constant(&m, op) && !binary(&m, op))
      rearrange(&m, op);
  }
  *value = pop(&m);
  return !m.bad;
}
