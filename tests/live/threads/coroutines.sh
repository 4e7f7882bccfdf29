#!/bin/bash
# SPDX-License-Identifier: MIT
# coroutines.sh BUILD SOURCE MATERIAL: a program whose threads compute on coroutines' stacks of 8 KiB survives
# recordings from its start and by attach. A signal takes little of such a stack, and a walk that begins on one ends there
# with a reason, without frames that may belong to another stack.
BUILD=$1 SOURCE=$2 MATERIAL=$3
. "$SOURCE/tests/live/lib.sh"
build_app Coroutines
export LD_LIBRARY_PATH=$BUILD/lib
bad() { cat "$WORK/said" "$WORK/out" 2> /dev/null; fail "$*"; }

# check NAME RC: the program's exit code and stacks. The limit is the machine's signal frame and 2 KiB, of which the program itself uses some.
# A stop of the runtime, which the first recording by attach makes, may have its own signal arrive there late, whose handler
# has a CONTEXT (3.2 KiB) on the stack.
check() {
  [ "$2" = 42 ] || bad "$1: the program ended with $2"
  local frame used
  frame=$(LD_SHOW_AUXV=1 /bin/true | sed -n 's/^AT_MINSIGSTKSZ: *//p')
  used=$(sed -n 's/^used \([0-9]*\) wrong 0$/\1/p' "$WORK/out")
  local most=$((${frame:-3632} + 2048))
  [ "$1" != attached ] || most=$((most + 3232))
  [ "$used" -gt 0 ] && [ "$used" -le $most ] || bad "$1: $used bytes of a small stack were used"
  if grep -E 'coroutine_work|OnCoroutine' "$WORK/stacks"; then bad "$1: frames on a coroutine's stack"; fi
  grep -q 'Program.Plain' "$WORK/stacks" || bad "$1: no samples of the thread that has no coroutines"
  [ "$1" = wall ] || grep -q 'clrsnap: .*cut [0-9]* bad-sp' "$WORK/said" || bad "$1: no walk has begun on a coroutine's stack"
  pass "$1: $used bytes"
}

for what in perf clock wall; do
  rc=0
  options=(--engine "$what")
  [ $what != wall ] || options=(--mode wall)
  timeout -k 5 300 "$BUILD/bin/clrsnap" record "${options[@]}" -F 999 --format collapsed -o "$WORK/stacks" -- \
    dotnet "$APP" 3 > "$WORK/out" 2> "$WORK/said" || rc=$?
  check $what $rc
done

# Where other programs have the processors, three seconds may be too few for a walk on such a stack.
rc=0
timeout -k 5 300 dotnet "$APP" 100 "$WORK/over" > "$WORK/out" 2>&1 &
child=$!
for _ in $(seq 400); do grep -qs ready "$WORK/out" && break; sleep 0.05; done
for _ in 1 2 3 4 5; do
  timeout 300 "$BUILD/bin/clrsnap" record -F 999 -d 3 --format collapsed -o "$WORK/stacks" "$(pgrep -P $child)" \
    > "$WORK/said" 2>&1 || bad "attached: the recording ended with $?"
  grep -q 'cut [0-9]* bad-sp' "$WORK/said" && break
done
touch "$WORK/over"
wait $child || rc=$?
check attached $rc
