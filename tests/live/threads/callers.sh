#!/bin/bash
# SPDX-License-Identifier: MIT
# callers.sh BUILD SOURCE MATERIAL: native threads that call managed code, and come and go in thousands. Each sample
# must belong to its thread, not to an earlier one with the same stack, number or registry entry.
BUILD=$1 SOURCE=$2 MATERIAL=$3
. "$SOURCE/tests/live/lib.sh"
build_app Callers
export LD_LIBRARY_PATH=$BUILD/lib

# Some have small stacks: an attach leaves them alone.
for mode in cpu wall; do
  rc=0
  timeout -k 5 300 dotnet "$APP" small 20 > "$WORK/out" 2>&1 &
  child=$!
  for _ in $(seq 400); do grep -qs ready "$WORK/out" && break; sleep 0.05; done
  record_process --mode $mode -F 999 -d 2 --format collapsed -o "$WORK/stacks" "$(pgrep -P $child)"
  wait $child || rc=$?
  [ $rc = 42 ] || { cat "$WORK/said" "$WORK/out"; fail "$mode: the program ended with $rc"; }
  grep -q '^clrsnap: 4 threads were not sampled while running: a stack below 64 KiB' "$WORK/said" ||
    { cat "$WORK/said"; fail "$mode: not said that 4 threads were left out"; }
done

by_perf
timeout 300 "$BUILD/bin/clrsnap" record --mode cpu,wall,alloc,lock,exception "${PERF[@]}" -o "$WORK/x.clrsnap" -- \
  dotnet "$APP" 6000 12 > "$WORK/said" 2>&1 || { cat "$WORK/said"; fail "the recording ends with $?"; }
grep -q 'threads 6000 failed 0' "$WORK/said" || { cat "$WORK/said"; fail "not all threads have run"; }
"$SOURCE/tests/live/threads/callers.py" "$WORK/x.clrsnap" 30 > "$WORK/found" || { cat "$WORK/said" "$WORK/found"; fail "samples are on threads that they are not of"; }
pass "$(tail -1 "$WORK/found")"
