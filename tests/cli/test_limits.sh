#!/bin/bash
# SPDX-License-Identifier: MIT
# The command with too little address space, too few descriptors or too small files: it ends with a message and not by a
# signal, and each file that is there is whole.
. "$(dirname "$0")/lib.sh"
run 0 "$CLRSNAP" record -o golden.clrsnap -o golden.json -o golden.collapsed -- "$FAKE" golden
MiB=1048576

# limited LIMIT COMMAND...: the command works or says why not; its outputs are l.json, l.html, l.collapsed and
# l.clrsnap.
worked=0 refused=0
limited() {
  local got=0
  rm -f l.*
  prlimit "--$1" "${@:2}" >out 2>err </dev/null || got=$?
  if [ $got -ge 128 ]; then
    fail "$*: ended with $got: $(tail -3 err)"
  elif [ $got = 0 ]; then
    worked=$((worked + 1))
  else
    refused=$((refused + 1))
    grep -q '^clrsnap: [a-zA-Z]' err || fail "$*: ends with $got and no sentence: $(cat out err)"
  fi
  [ $got != 0 ] || [ -s l.json ] || fail "$*: no file, and no word: $(cat err)"
  [ ! -e l.json ] || cmp -s l.json golden.json || fail "$*: l.json is not whole: $(cat err)"
  [ ! -e l.collapsed ] || cmp -s l.collapsed golden.collapsed || fail "$*: l.collapsed is not whole"
  [ ! -e l.html ] || tail -c 20 l.html | grep -q '</html>' || fail "$*: l.html is not whole"
  [ -z "$(find . -name '.clrsnap*')" ] || fail "$*: $(find . -name '.clrsnap*') stays"
}
report=("$CLRSNAP" report -o l.json -o l.html -o l.collapsed golden.clrsnap)
# Beginning with the smallest limit with which the command starts.
if prlimit --as=$((1024 * MiB)) "$CLRSNAP" version >/dev/null 2>&1; then
  least=4
  { until prlimit --as=$((least * MiB)) "$CLRSNAP" version; do least=$((least + 1)); done; } >/dev/null 2>&1
  for more in 0 1 2 3 4 6 8 12 16 24 32 48 64 128 512; do
    limited "as=$(((least + more) * MiB))" "${report[@]}"
    [ $more -lt 512 ] || [ $refused -lt $((worked + refused)) ] || fail "it never works"
  done
  # The program has the same limit, and its exit code is kept.
  for more in 0 4 8 16 24 32 48 64; do
    got=0
    rm -f l.clrsnap
    prlimit --as=$(((least + more) * MiB)) "$CLRSNAP" record --buffer 16 -o l.clrsnap -- "$FAKE" golden 3 >out 2>err || got=$?
    { [ $got = 3 ] || [ $got = 1 ] || [ $got = 99 ]; } || fail "record with $((least + more)) MiB: $got: $(tail -3 err)"
    { [ -e l.clrsnap ] || grep -q '^clrsnap: ' err; } || fail "record with $((least + more)) MiB: no file, and no word"
    [ ! -e l.clrsnap ] || grep -q '^clrsnap: the program has [0-9]* MiB of address space (ulimit -v)' err || fail "the limit is not said"
    [ ! -e l.clrsnap ] || "$CLRSNAP" report -o - l.clrsnap >out 2>err || fail "what is left cannot be read: $(cat err)"
  done
fi
prlimit --data=$((512 * MiB)) "$CLRSNAP" record --buffer 16 -o l.clrsnap -- "$FAKE" golden 3 >out 2>err || [ $? = 3 ] || fail "record with a limit of private memory: $(cat err)"
grep -q '^clrsnap: the program has 512 MiB of private memory (ulimit -d), of which the recording takes up to [0-9]*:' err || fail "the limit is not said: $(cat err)"
few=3 # and some may already be open, inherited from the caller of the test
{ until prlimit --nofile=$few "$CLRSNAP" version; do few=$((few + 1)); done; } >/dev/null 2>&1
for more in 0 1 2 3 4 6 12 60; do limited "nofile=$((few + more))" "${report[@]}"; done
for size in 100 4096 65536 100000000; do limited "fsize=$size" "${report[@]}"; done
for kib in 64 128 256 511 512 1024; do
  before=$refused
  limited "stack=$((kib * 1024))" "${report[@]}"
  { [ $kib -ge 512 ] && [ $refused = $before ]; } || grep -q "^clrsnap: the stack of this command may only grow to $kib KiB" err || fail "a stack of $kib KiB: $(cat err)"
done
{ [ $worked -gt 2 ] && [ $refused -gt 2 ]; } || fail "$worked worked, $refused refused: nothing is tried"
for more in 0 1 2 4 6 8 12; do
  got=0 files=$((few + more))
  rm -f l.clrsnap
  prlimit --nofile=$files "$CLRSNAP" record -o l.clrsnap -- "$FAKE" golden 3 >out 2>err || got=$?
  { [ $got = 3 ] || [ $got = 1 ] || [ $got = 99 ] || [ $got = 126 ]; } || fail "record with $files files: $got: $(tail -3 err)"
  { [ -e l.clrsnap ] || grep -q '^clrsnap: ' err; } || fail "record with $files files: no file, and no word"
done
done_testing
