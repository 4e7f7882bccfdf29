# SPDX-License-Identifier: MIT
# Prints a C file of COUNT functions (chain.h) that differ in what a compiler makes of them: values
# that live across the call (0 to 6: callee-saved registers and then stack), local arrays, and for
# about one in twelve an alloca, so that its frame hangs on rbp. The same MODULE gives the same file.
# awk -v module=0 -v count=750 -f generate.awk
function random(n) { state = (state * 1103515245 + 12345) % 2147483648; return int(state / 65536) % n }
BEGIN {
  state = 17 + module * 7919
  print "#include \"chain.h\""
  for (i = 0; i < count; i++) {
    live = random(7); array = random(4) * 24; variable = random(12) == 0
    printf "static __attribute__((noinline)) long f%d(struct chain *chain, long value) {\n", i
    for (k = 0; k < live; k++) printf "  long x%d = chain->seed[%d] * %d + value;\n", k, random(8), 3 + random(90)
    if (array) printf "  volatile long local[%d]; local[0] = value; local[%d] = %d;\n", array, array - 1, i
    if (variable) printf "  volatile char *more = alloca((unsigned long)(value & 63) + 16); more[0] = (char)value;\n"
    print "  const struct chain_step *step = chain->step++;"
    print "  long result;"
    printf "  switch (step[-1].site) {\n"
    printf "    case 0: result = step->function(chain, value + %d) + %d; break;\n", random(9), 1 + i
    printf "    case 1: result = step->function(chain, value ^ %d) * %d; break;\n", random(99), 3 + i
    printf "    default: result = step->function(chain, value - %d) ^ %d; break;\n", random(9), 7 + i
    print "  }"
    if (array) print "  result += local[0];"
    if (variable) print "  result += more[0];"
    for (k = 0; k < live; k++) printf "  result ^= x%d;\n", k
    print "  chain->seed[0] = result; return result;\n}"
  }
  print "static chain_function *const functions[] = {"
  for (i = 0; i < count; i++) printf "f%d,%s", i, i % 12 == 11 ? "\n" : " "
  printf "};\n__attribute__((visibility(\"default\"))) const struct chain_module chain_module = {%d, functions};\n", count
}
