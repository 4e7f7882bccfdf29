#!/bin/bash
# SPDX-License-Identifier: MIT
# dynamic.sh BUILD SOURCE MATERIAL MODE: a program whose frames are code that can die makes nearly as much
# progress per CPU time while it is recorded as it does alone.
BUILD=$1 SOURCE=$2 MATERIAL=$3 MODE=$4
. "$SOURCE/tests/live/lib.sh"
build_app Dynamic
clrsnap=$BUILD/bin/clrsnap

# mark: the progress of the program's thread, and its CPU time.
mark() {
  echo >&"${PROGRAM[1]}"
  read -r -u "${PROGRAM[0]}" done_ cpu_
}
# measure KIND DEPTH [OPTION...]: RATIO becomes the hundredths of what the program does alone that it does while it is
# recorded, in the same CPU time.
measure() {
  local kind=$1 depth=$2 rc=0
  shift 2
  coproc PROGRAM { exec dotnet "$APP" "$kind" "$depth" 2> "$WORK/err"; }
  local pid=$PROGRAM_PID out=${PROGRAM[0]} in=${PROGRAM[1]}
  mark
  sleep 0.5
  mark
  local done0=$done_ cpu0=$cpu_
  sleep 1.5
  mark
  local done1=$done_ cpu1=$cpu_
  timeout 300 "$clrsnap" record --mode "$MODE" -d 4 "$@" --format collapsed -o "$WORK/stacks" "$pid" \
    > "$WORK/said" 2>&1 &
  local command=$!
  sleep 1.5
  mark
  local done2=$done_ cpu2=$cpu_
  sleep 1.5
  mark
  local done3=$done_ cpu3=$cpu_
  wait $command || { cat "$WORK/said"; fail "$kind $depth: the recording failed"; }
  eval "exec $in>&-"
  wait "$pid" || rc=$?
  eval "exec $out<&-" 2> /dev/null
  [ $rc = 42 ] || { cat "$WORK/err"; fail "$kind $depth: the program ended with $rc"; }
  RATIO=$(awk -v a=$((done1 - done0)) -v ac=$((cpu1 - cpu0)) -v b=$((done3 - done2)) -v bc=$((cpu3 - cpu2)) \
    'BEGIN { printf "%d", (a > 0 && bc > 0) ? 100 * (b / bc) / (a / ac) : -1 }')
}
# at_least SHARE KIND DEPTH [OPTION...]: the recorded program does at least SHARE hundredths of what it does alone. What
# else runs on the machine may take the caches from it in one of the two halves, but not three times in a row.
at_least() {
  local share=$1
  shift
  for _ in 1 2 3; do
    measure "$@"
    [ "$RATIO" -lt "$share" ] || break
    echo "$* $MODE: $RATIO %"
  done
  [ "$RATIO" -ge "$share" ] ||
    { cat "$WORK/said"; fail "$*, $MODE: recorded it does $RATIO % of what it does alone"; }
  pass "$*, $MODE: $RATIO % of what it does alone"
}

# Walks take 10 % at most; a signal also costs time outside of the handler and in the caches.
for kind in method native collectible expression; do at_least 65 $kind 200 -F 1000; done
at_least 65 regex 26 -F 1000
# Ten thousand signals a second cost the kernel a third of a processor, and on a busy virtual machine two thirds.
at_least 20 method 50 -F 10000
at_least 65 methods 1000 -F 1000
at_least 65 method 1000 -F 10000
[ "$MODE" != wall ] || grep -q 'samples\? w[a-z]* put off .* thread .worker. took up to' "$WORK/said" ||
  { cat "$WORK/said"; fail "the summary does not say that samples were put off"; }
# The stacks are complete, or, where the limit is too small, cut with that reason.
deepest() { awk -F';' '/Program.Work/ && NF > n { n = NF } END { print n + 0 }' "$WORK/stacks"; }
[ "$(deepest)" -gt 1000 ] || fail "the deepest stack has $(deepest) frames"
at_least 65 methods 1000 -F 1000 --walk-limit 1
grep -q 'cut .* time' "$WORK/said" || { cat "$WORK/said"; fail "no walk was cut"; }
pass "the walks' limit"
