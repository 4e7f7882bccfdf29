// SPDX-License-Identifier: MIT
// ARM64 unwind codes, version 0, as CoreCLR's JIT and crossgen write them: where they are, what
// each one means, and which of them apply at an instruction. Signal-safe: yes.
//
// .xdata is a head (the function's length; the number of epilogs and of words of codes), a word for
// each epilog (its first instruction and its first code), and the codes. The codes describe the
// prolog backwards, the last action first, and each stands for one instruction; an epilog is
// described by codes in the order of its instructions, and its ret by their end. A fragment (a part
// of a long function) has no prolog of its own; the codes of the function's prolog follow an end_c.
#include "unwind/codes.h"

enum { X19 = 19, ANY_FLOAT = 0 };

// Packed unwind data has no codes, but the sizes of the parts of a frame of the canonical form.
struct packed {
  unsigned floats, ints, homes, chain, frame;  // `frame` in words of 16 bytes
};
enum { CHAIN_NONE, CHAIN_LR_SAVED, CHAIN_SIGNED, CHAIN };

struct writer {
  uint8_t *out;
  unsigned count;
};
CS_ISLAND static void put(struct writer *w, unsigned value) {
  w->out[w->count++] = (uint8_t)value;
}
CS_ISLAND static void put2(struct writer *w, unsigned value) {
  put(w, value >> 8);
  put(w, value & 255);
}
CS_ISLAND static void put_alloc(struct writer *w, unsigned words) {
  if (words / 2 < 32)
    put(w, words / 2);
  else
    put2(w, 0xC000 | words / 2);
}

// Writes the code of a register or pair that is saved `at` words above sp. The first save, for
// which `at` is 0, moves sp by `area` words if that is not 0.
CS_ISLAND static void put_save(struct writer *w, unsigned plain, unsigned moving, unsigned index,
                               unsigned shift, unsigned at, unsigned area) {
  if (at == 0 && area != 0)
    put2(w, moving | index << shift | (area - 1));
  else
    put2(w, plain | index << 6 | at);
}

// The canonical prolog, the first instruction first: each is at most two bytes.
struct listed {
  uint8_t byte[2], count;
};
enum { LISTED = 24 };

CS_ISLAND static struct listed *add(struct listed *list, unsigned *n, struct writer *w) {
  struct listed *last = &list[(*n)++];
  last->count = (uint8_t)w->count;
  return last;
}

#define ADD(write)                       \
  do {                                   \
    struct writer w = {list[n].byte, 0}; \
    write;                               \
    (void)add(list, &n, &w);             \
  } while (0)

// Returns the number of instructions of the canonical prolog.
CS_ISLAND static unsigned list_prolog(const struct packed *p, struct listed list[LISTED]) {
  unsigned n = 0, at = 0, ints = p->ints + (p->chain == CHAIN_LR_SAVED);
  unsigned floats = p->floats != 0 ? p->floats + 1 : 0, area = ints + floats;
  if (area != 0) area = (area + p->homes * 8 + 1) & ~1u;
  unsigned first = area;  // what the next save still has to move sp by
  if (p->chain == CHAIN_SIGNED) ADD(put(&w, 0xFC));
  if (p->ints == 1 && p->chain == CHAIN_LR_SAVED) {  // no save of lr in a pair moves sp
    ADD(put_alloc(&w, area));
    first = 0;
  }
  for (unsigned i = 0; i + 1 < p->ints; i += 2, at += 2, first = 0)
    ADD(put_save(&w, 0xC800, 0xCC00, i, 6, at, first));
  if (p->ints % 2 != 0 && p->chain == CHAIN_LR_SAVED) {
    ADD(put2(&w, 0xD600 | (p->ints - 1) / 2 << 6 | at));
    at += 2;
  } else if (p->ints % 2 != 0 || p->chain == CHAIN_LR_SAVED) {
    unsigned index = p->ints % 2 != 0 ? p->ints - 1 : 11;
    ADD(put_save(&w, 0xD000, 0xD400, index, 5, at, first));
    at++;
    first = 0;
  }
  for (unsigned i = 0; i + 1 < floats; i += 2, at += 2, first = 0)
    ADD(put_save(&w, 0xD800, 0xDA00, i, 6, at, first));
  if (floats % 2 != 0) ADD(put_save(&w, 0xDC00, 0xDE00, floats - 1, 5, at, first));
  for (unsigned i = 0; i < (p->homes && area != 0 ? 4u : 0u); i++) ADD(put(&w, 0xE3));
  if (p->frame * 2 <= area) return n;
  unsigned locals = p->frame * 2 - area;
  if (p->chain < CHAIN_SIGNED) {
    ADD(put_alloc(&w, locals));
    return n;
  }
  if (locals <= 64) {
    ADD(put(&w, 0x80 | (locals - 1)));
  } else {
    ADD(put_alloc(&w, locals));
    ADD(put(&w, 0x40));
  }
  ADD(put(&w, 0xE1));
  return n;
}

// Writes the codes of the prolog and, unless it is a fragment, of the epilog, which neither stores
// homes nor sets fp.
CS_ISLAND static void expand(struct cs_unwind_codes *codes, uint32_t data) {
  enum { FRAGMENT = 2 };
  struct packed p = {.floats = data >> 13 & 7,
                     .ints = data >> 16 & 15,
                     .homes = data >> 20 & 1,
                     .chain = data >> 21 & 3,
                     .frame = data >> 23};
  struct listed list[LISTED];
  struct writer w = {codes->window, 0};
  unsigned n = list_prolog(&p, list);
  bool fragment = (data & CS_UNWIND_PACKED) == FRAGMENT, sets_fp = false;
  if (fragment) put(&w, 0xE5);
  for (unsigned pass = 0; pass < (fragment ? 1u : 2u); pass++) {
    if (pass == 1) codes->scopes = w.count;
    for (unsigned i = n; i-- != 0;) {
      bool home = list[i].count == 1 && list[i].byte[0] == 0xE3;
      sets_fp = list[i].count == 1 && list[i].byte[0] == 0xE1;
      if (pass == 1 && (home || sets_fp)) continue;
      for (unsigned k = 0; k < list[i].count; k++) put(&w, list[i].byte[k]);
    }
    put(&w, 0xE4);
  }
  codes->at_end = !fragment;
  codes->size = codes->window_size = w.count;
}

CS_ISLAND static enum cs_stop open_xdata(struct cs_unwind_codes *codes, uint64_t at) {
  uint32_t head, more;
  if (!cs_get_u32(&codes->reader, at, &head)) return CS_STOP_UNREADABLE;
  if (!cs_unwind_data_is_known(0, head)) return CS_STOP_UNWIND_VERSION;
  uint32_t words = head >> 27, scopes = head >> 22 & 31;
  at += 4;
  if (words == 0 && scopes == 0) {
    if (!cs_get_u32(&codes->reader, at, &more)) return CS_STOP_UNREADABLE;
    words = more >> 16 & 255;
    scopes = more & 0xFFFF;
    at += 4;
  }
  codes->length = head & 0x3FFFF;
  codes->at_end = (head >> 21 & 1) != 0;
  codes->scopes = scopes;
  codes->scopes_at = at;
  codes->address = at + (codes->at_end ? 0 : scopes * 4ull);
  codes->size = words * 4;
  return CS_STOP_NONE;
}

CS_ISLAND enum cs_stop cs_codes_open(struct cs_unwind_codes *codes, const struct cs_reader *reader,
                                     const struct cs_code *code) {
  uint32_t data = (uint32_t)(code->unwind_info - code->base);
  codes->reader = *reader;
  codes->window_at = codes->window_size = codes->scopes = 0;
  codes->address = codes->scopes_at = 0;
  if (cs_end_is_in_unwind_data(data)) return open_xdata(codes, code->unwind_info);
  if ((data & CS_UNWIND_PACKED) == CS_UNWIND_PACKED) return CS_STOP_BAD_UNWIND;
  codes->length = data >> 2 & 0x7FF;
  expand(codes, data);
  return CS_STOP_NONE;
}

// Returns the byte at an index, or -1.
CS_ISLAND static int byte_at(struct cs_unwind_codes *codes, uint32_t at) {
  if (at >= codes->size) return -1;
  if (at - codes->window_at >= codes->window_size) {
    uint32_t size = codes->size - at;
    if (size > sizeof codes->window) size = sizeof codes->window;
    codes->window_size = 0;
    if (!cs_get(&codes->reader, codes->address + at, codes->window, size)) return -1;
    codes->window_at = at;
    codes->window_size = size;
  }
  return codes->window[at - codes->window_at];
}

CS_ISLAND static void set_save(struct cs_unwind_code *c, unsigned reg, unsigned count,
                               unsigned words, bool moves) {
  c->op = CS_OP_SAVE;
  c->reg = (uint8_t)reg;
  c->count = (uint8_t)count;
  c->off = moves ? 0 : words * 8;
  c->push = moves ? words * 8 : 0;
}

// The codes of two bytes, 0xC0 to 0xDF.
CS_ISLAND static void decode_pair(struct cs_unwind_code *c, unsigned code) {
  unsigned z = code & 63, x = code >> 6 & 15;
  switch (code >> 10) {
    case 0x30:
    case 0x31:
      c->op = CS_OP_ALLOC;
      c->off = (code & 0x7FF) * 16;
      return;
    case 0x32:
      set_save(c, X19 + x, 2, z, false);
      return;
    case 0x33:
      set_save(c, X19 + x, 2, z + 1, true);
      return;
    case 0x34:
      set_save(c, X19 + x, 1, z, false);
      return;
    case 0x35:
      if (code >> 9 == 0x6A) {
        set_save(c, X19 + (code >> 5 & 15), 1, (code & 31) + 1, true);
      } else {
        set_save(c, X19 + 2 * (x & 7), 1, z, false);
        c->with_lr = true;
      }
      return;
    case 0x36:
      set_save(c, ANY_FLOAT, 2, (code >> 9 & 1) != 0 ? z + 1 : z, (code >> 9 & 1) != 0);
      break;
    default:
      set_save(c, ANY_FLOAT, 1, (code >> 9 & 1) != 0 ? (code & 31) + 1 : z, (code >> 9 & 1) != 0);
      break;
  }
  c->op = CS_OP_FLOATS;
}

// save_any_reg: 0pxrrrrr ffoooooo: pair, moves sp, register, kind of register, offset.
CS_ISLAND static void decode_any(struct cs_unwind_code *c, unsigned code) {
  bool pair = (code >> 14 & 1) != 0, moves = (code >> 13 & 1) != 0;
  unsigned kind = code >> 6 & 3, words = (code & 63) + (moves ? 1 : 0);
  if (moves || pair || kind == 2) words *= 2;
  set_save(c, code >> 8 & 31, pair ? 2 : 1, words, moves);
  if (kind != 0) c->op = CS_OP_FLOATS;
  if (kind == 3 || code >> 15 != 0) c->op = CS_OP_BAD;
}

CS_ISLAND static void decode_long(struct cs_unwind_codes *codes, uint32_t at, unsigned code,
                                  struct cs_unwind_code *c) {
  switch (code) {
    case 0xE0:
      c->op = CS_OP_ALLOC;
      c->bytes = 4;
      c->off = ((uint32_t)byte_at(codes, at + 1) << 16 | (uint32_t)byte_at(codes, at + 2) << 8 |
                (uint32_t)byte_at(codes, at + 3)) *
               16;
      return;
    case 0xE1:
      c->op = CS_OP_SET_FP;
      return;
    case 0xE2:
      c->op = CS_OP_SET_FP;
      c->bytes = 2;
      c->off = (uint32_t)byte_at(codes, at + 1) * 8;
      return;
    case 0xE4:
      c->op = CS_OP_END;
      return;
    case 0xE5:
      c->op = CS_OP_END_C;
      return;
    case 0xE6:
      c->op = CS_OP_NEXT;
      return;
    case 0xE7:
      c->bytes = 3;
      decode_any(c, (unsigned)byte_at(codes, at + 1) << 8 | (unsigned)byte_at(codes, at + 2));
      return;
    default:
      // nop, the signing of lr, and what later versions may add, which says its own length
      c->op = code == 0xE3 || code >= 0xF8 ? CS_OP_NOP : CS_OP_BAD;
      if (code >= 0xF8 && code <= 0xFB) c->bytes = (uint8_t)(2 + (code & 3));
      return;
  }
}

CS_ISLAND bool cs_codes_read(struct cs_unwind_codes *codes, uint32_t at, struct cs_unwind_code *c) {
  int first = byte_at(codes, at);
  if (first < 0) return false;
  unsigned code = (unsigned)first;
  *c = (struct cs_unwind_code){.bytes = 1, .instruction = true};
  if (code < 0x20) {
    c->op = CS_OP_ALLOC;
    c->off = code * 16;
  } else if (code < 0x40) {
    set_save(c, X19, 2, code & 31, true);
  } else if (code < 0x80) {
    set_save(c, CS_FP, 2, code & 63, false);
  } else if (code < 0xC0) {
    set_save(c, CS_FP, 2, (code & 63) + 1, true);
  } else if (code < 0xE0) {
    c->bytes = 2;
    decode_pair(c, code << 8 | (unsigned)(byte_at(codes, at + 1) & 255));
  } else {
    decode_long(codes, at, code, c);
  }
  c->instruction = c->op != CS_OP_END && c->op != CS_OP_END_C;
  return at + c->bytes <= codes->size && byte_at(codes, at + c->bytes - 1u) >= 0;
}

// Counts the instructions that the codes from `at` on stand for.
CS_ISLAND static enum cs_stop count(struct cs_unwind_codes *codes, uint32_t at, uint32_t *n) {
  struct cs_unwind_code c;
  *n = 0;
  for (;; at += c.bytes) {
    if (!cs_codes_read(codes, at, &c) || c.op == CS_OP_BAD) return CS_STOP_BAD_UNWIND;
    if (!c.instruction) return CS_STOP_NONE;
    ++*n;
  }
}

CS_ISLAND static enum cs_stop skip(struct cs_unwind_codes *codes, uint32_t n, uint32_t *at) {
  struct cs_unwind_code c;
  for (; n != 0; n--, *at += c.bytes) {
    if (!cs_codes_read(codes, *at, &c)) return CS_STOP_BAD_UNWIND;
    if (!c.instruction) break;
  }
  return CS_STOP_NONE;
}

// If the instruction at `executed` is one of the epilog that begins at `begin`, skips the codes of
// those before it. The epilog's last instruction, which leaves, has no code.
CS_ISLAND static enum cs_stop enter(struct cs_unwind_codes *codes, uint32_t begin, uint32_t first,
                                    uint32_t executed, uint32_t *at, bool *within) {
  uint32_t n;
  enum cs_stop stop = count(codes, first, &n);
  *within = stop == CS_STOP_NONE && executed >= begin && executed - begin <= n;
  if (!*within) return stop;
  *at = first;
  return skip(codes, executed - begin, at);
}

CS_ISLAND static enum cs_stop find_epilog(struct cs_unwind_codes *codes, uint32_t executed,
                                          uint32_t *at) {
  uint32_t n, scope;
  bool within;
  if (codes->at_end) {
    enum cs_stop stop = count(codes, codes->scopes, &n);
    if (stop != CS_STOP_NONE || n >= codes->length) return stop;
    return enter(codes, codes->length - n - 1, codes->scopes, executed, at, &within);
  }
  // In the order of their instructions.
  for (uint32_t i = 0; i < codes->scopes; i++) {
    if (!cs_get_u32(&codes->reader, codes->scopes_at + i * 4ull, &scope)) return CS_STOP_UNREADABLE;
    if (executed < (scope & 0x3FFFF)) break;
    enum cs_stop stop = enter(codes, scope & 0x3FFFF, scope >> 22, executed, at, &within);
    if (stop != CS_STOP_NONE || within) return stop;
  }
  return CS_STOP_NONE;
}

CS_ISLAND enum cs_stop cs_codes_start(struct cs_unwind_codes *codes, uint32_t executed, bool exact,
                                      uint32_t *at) {
  uint32_t prolog;
  enum cs_stop stop = count(codes, 0, &prolog);
  *at = 0;
  if (stop != CS_STOP_NONE) return stop;
  if (executed < prolog) return skip(codes, prolog - executed, at);
  return exact ? find_epilog(codes, executed, at) : CS_STOP_NONE;
}
