#!/bin/bash
# SPDX-License-Identifier: MIT
# attach_asleep.sh BUILD SOURCE MATERIAL: a recording by attach stops the runtime once for larger signal stacks. Threads
# that sleep in foreign code at that moment must not notice: no call returns early or with EINTR. (When all threads
# get the signal, Usleep, Nanosleep, Poll, EpollWait, Recv and DeepSleep are interrupted, once each. A thread that waits for a
# processor throughout the look cannot be distinguished from a running one, so two are allowed.)
BUILD=$1 SOURCE=$2 MATERIAL=$3
. "$SOURCE/tests/live/lib.sh"
build_app Proofs
for mode in cpu wall; do
  CLRSNAP_LOG=$WORK/log dotnet "$APP" asleep alone > "$WORK/out" 2>&1 &
  PID=$!
  # Eleven sleepers beside the runtime's own threads; they sleep for more than two seconds.
  for _ in $(seq 300); do
    [ "$(grep -lsx '.NET TP Gate\|.NET Finalizer\|dotnet' /proc/$PID/task/*/comm | wc -l)" -gt 0 ] &&
      [ "$(ls /proc/$PID/task | wc -l)" -ge 17 ] && break
    sleep 0.02
  done
  sleep 0.3
  timeout 30 "$BUILD/bin/clrsnap" record -d 0.7 --mode $mode --format collapsed -o "$WORK/stacks" $PID > "$WORK/said" 2>&1 ||
    { cat "$WORK/said"; fail "$mode: the recording"; }
  wait $PID || [ $? = 42 ] || fail "$mode: the program"
  grep -q "the runtime was stopped .* larger signal stacks" "$WORK/said" || { cat "$WORK/said"; fail "$mode: no stop"; }
  grep "was stopped within" "$WORK/log"
  cat "$WORK/out"
  [ "$(grep -c '^waited' "$WORK/out")" = 11 ] || fail "$mode: not all sleepers have told"
  early=$(awk '/^waited/ { n += $4 + $5 } END { print n }' "$WORK/out")
  [ "$early" -le 2 ] || fail "$mode: calls were interrupted, or early: $early"
  rm "$WORK/log"
  pass "$mode: $(sed -n 's/^clrsnap: \(the runtime was.*\)/\1/p' "$WORK/said")"
done
