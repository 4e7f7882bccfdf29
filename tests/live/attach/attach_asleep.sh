#!/bin/bash
# SPDX-License-Identifier: MIT
# attach_asleep.sh BUILD SOURCE MATERIAL: after an attach threads take larger signal stacks, by the runtime's own signal,
# or, where that is not blocked in the handler of faults (fault_mask.c), in one stop of the runtime. Threads
# that sleep in foreign code at that moment must not notice: no call returns early or with EINTR. (When all threads
# get the signal, Usleep, Nanosleep, Poll, EpollWait, Recv and DeepSleep are interrupted, once each. A thread that waits for a
# processor throughout the checks cannot be distinguished from a running one, so two are allowed.)
BUILD=$1 SOURCE=$2 MATERIAL=$3
. "$SOURCE/tests/live/lib.sh"
build_app Proofs

# attempt MODE STOP: STOP is 0 or 1, whether the runtime is to be stopped. Fails if more than two calls noticed.
attempt() {
  local mode=$1 stop=$2 preload=
  [ "$stop" = 0 ] || preload=$BUILD/lib/libtest_fault_mask.so
  LD_PRELOAD=$preload CLRSNAP_LOG=$WORK/log dotnet "$APP" asleep alone > "$WORK/out" 2>&1 &
  PID=$!
  # Eleven sleepers beside the runtime's own threads; they sleep for more than six seconds.
  for _ in $(seq 300); do
    [ "$(grep -lsx '.NET TP Gate\|.NET Finalizer\|dotnet' /proc/$PID/task/*/comm | wc -l)" -gt 0 ] &&
      [ "$(ls /proc/$PID/task | wc -l)" -ge 17 ] && break
    sleep 0.02
  done
  sleep 0.3
  record_process --mode "$mode" -d 0.7 --format collapsed -o "$WORK/stacks" $PID
  wait $PID || [ $? = 42 ] || fail "$mode: the program"
  if [ "$stop" = 1 ]; then
    grep -q "the runtime was stopped .* larger signal stacks" "$WORK/said" || { cat "$WORK/said"; fail "$mode: no stop"; }
    grep "was stopped within" "$WORK/log"
  else
    grep -q "the runtime was stopped 0 times" "$WORK/said" || { cat "$WORK/said"; fail "$mode: a stop"; }
    # In so short a recording a busy machine may not have come to it.
    grep "[1-9][0-9]* threads have larger signal stacks now" "$WORK/log" || { cat "$WORK/log"; early="no larger stacks"; rm "$WORK/log"; return 1; }
  fi
  cat "$WORK/out"
  [ "$(grep -c '^waited' "$WORK/out")" = 11 ] || fail "$mode: not all sleepers have told"
  early=$(awk '/^waited/ { n += $4 + $5 } END { print n }' "$WORK/out")
  rm "$WORK/log"
  [ "$early" -le 2 ] || return 1
  pass "$mode: $(sed -n 's/^clrsnap: \(the runtime was.*\)/\1/p' "$WORK/said")"
}
# Those that a busy machine has woken at the same moment all wait for a processor.
attach() { attempt "$@" || attempt "$@" || attempt "$@" || fail "$1: calls were interrupted, or early, or there are no larger stacks: $early"; }
attach cpu 0
attach wall 0
attach cpu 1
