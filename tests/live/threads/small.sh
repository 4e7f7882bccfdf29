#!/bin/bash
# SPDX-License-Identifier: MIT
# small.sh BUILD SOURCE MATERIAL ENGINE|attach: a library's threads whose stacks have no room for a signal survive
# a recording in CPU mode; those with large stacks are sampled, and the summary says what is left out.
BUILD=$1 SOURCE=$2 MATERIAL=$3 WHAT=$4
. "$SOURCE/tests/live/lib.sh"
build_app Record
preload=LD_PRELOAD=$BUILD/lib/libtest_small.so
bad() { cat "$WORK/said"; fail "$*"; }
check() {
  [ "$2" = 0 ] || bad "$1: it ended with $2"
  grep -q '^clrsnap: 3 threads were not sampled while running: a stack below 64 KiB' "$WORK/said" ||
    bad "$1: not said that 3 threads were left out"
  if grep -q '^clrsnap: .* native threads* w.* not sampled' "$WORK/said"; then bad "$1: stacks are unknown"; fi
  for thread in large_busy large_sleeps; do
    grep -q ";$thread;" "$WORK/stacks" || bad "$1: no samples of $thread"
  done
  if grep -q ';small_stack;' "$WORK/stacks"; then bad "$1: samples of a thread with a small stack"; fi
  pass "$1"
}
launch() {
  local rc=0
  timeout -k 5 300 "$BUILD/bin/clrsnap" record "${@:2}" -F 999 --format collapsed -o "$WORK/stacks" -- \
    env "$preload" ${1:+SMALL_OWN=1} dotnet "$APP" hot 3000 > "$WORK/said" 2>&1 || rc=$?
  [ $rc != 42 ] || rc=0  # the program's own
  check "launched, $*" $rc
}
attach() {
  local rc=0 command=0
  start "$preload" ${1:+SMALL_OWN=1}
  timeout 300 "$BUILD/bin/clrsnap" record "${@:2}" -F 999 -d 2 --format collapsed -o "$WORK/stacks" "$PID" \
    > "$WORK/said" 2>&1 || command=$?
  [ -d "/proc/$PID" ] || rc=139
  stop
  [ $command = 0 ] || bad "attached: the command ended with $command"
  check "attached, $*" $rc
}
if [ "$WHAT" = attach ]; then
  for own in '' own; do attach "$own"; attach "$own" --engine clock; done
else
  launch '' --engine "$WHAT"
  launch own --engine "$WHAT"
fi
