// SPDX-License-Identifier: MIT
// A library that is built in several SHAPEs with the same layout to the byte: the calls are at the
// same places in all of them, but their frames differ in size, and one shape finds its frame by
// rsp, another by rbp. When one is loaded at another's former address, a rule kept for the first
// one misleads a walk of the second.
// SHAPE: 0 to 7.
#define TEXT(x) #x
#define STRING(x) TEXT(x)
#define OUTER (0x90 + 0x20 * SHAPE)  // bytes of the frames; more than 127, for a 32-bit operand
#define INNER (0x1c8 - 0x20 * SHAPE - (SHAPE % 2) * 8)  // the stack stays aligned

// Shape 3 has plug_3 and inner_3, so that a recording shows whose frame it is.
#define PLUG_NAME "plug_" STRING(SHAPE)
#define INNER_NAME "inner_" STRING(SHAPE)
#define PASTE(a, b) a##b
#define PASTED(a, b) PASTE(a, b)
#define EXPORTED __attribute__((visibility("default")))

// Calls inner, which calls the function.
EXPORTED void PASTED(plug_, SHAPE)(void (*function)(void *), void *arg);
EXPORTED void (*const plug_entry)(void (*function)(void *), void *arg) = PASTED(plug_, SHAPE);
// The distances of inner's and plug's CFAs from the sp at their calls.
EXPORTED const unsigned plug_frames[2] = {INNER + 8 + (SHAPE % 2) * 8, OUTER + 16};

__asm__(
    ".text\n"
    ".p2align 4\n"
    ".globl " PLUG_NAME "\n"
    ".type " PLUG_NAME ", @function\n"
    PLUG_NAME ":\n"
    ".cfi_startproc\n"
    "  push %rbx\n"
    "  .cfi_adjust_cfa_offset 8\n"
    "  .cfi_rel_offset %rbx, 0\n"
    "  sub $" STRING(OUTER) ", %rsp\n"
    "  .cfi_adjust_cfa_offset " STRING(OUTER) "\n"
    "  call " INNER_NAME "\n"
    "  add $" STRING(OUTER) ", %rsp\n"
    "  .cfi_adjust_cfa_offset -" STRING(OUTER) "\n"
    "  pop %rbx\n"
    "  .cfi_adjust_cfa_offset -8\n"
    "  .cfi_restore %rbx\n"
    "  ret\n"
    ".cfi_endproc\n"
    ".p2align 4\n"
    ".type " INNER_NAME ", @function\n"
    INNER_NAME ":\n"
    ".cfi_startproc\n"
#if SHAPE % 2
    "  push %rbp\n"
    "  .cfi_adjust_cfa_offset 8\n"
    "  .cfi_rel_offset %rbp, 0\n"
    "  mov %rsp, %rbp\n"
    "  .cfi_def_cfa_register %rbp\n"
    "  sub $" STRING(INNER) ", %rsp\n"
    "  mov %rdi, %rax\n"
    "  mov %rsi, %rdi\n"
    "  call *%rax\n"
    "  add $" STRING(INNER) ", %rsp\n"
    "  pop %rbp\n"
    "  .cfi_def_cfa %rsp, 8\n"
    "  .cfi_restore %rbp\n"
#else
    "  nopl (%rax)\n"
    "  nop\n"
    "  sub $" STRING(INNER) ", %rsp\n"
    "  .cfi_adjust_cfa_offset " STRING(INNER) "\n"
    "  mov %rdi, %rax\n"
    "  mov %rsi, %rdi\n"
    "  call *%rax\n"
    "  add $" STRING(INNER) ", %rsp\n"
    "  .cfi_adjust_cfa_offset -" STRING(INNER) "\n"
    "  nop\n"
#endif
    "  ret\n"
    ".cfi_endproc\n"
    ".size " PLUG_NAME ", " INNER_NAME " - " PLUG_NAME "\n"
    ".size " INNER_NAME ", . - " INNER_NAME "\n");
