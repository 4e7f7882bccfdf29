#!/bin/bash
# SPDX-License-Identifier: MIT
# halted.sh BUILD SOURCE MATERIAL: time for which a whole program is stopped is in no sample of wall mode, neither of the
# threads that run nor of those that sleep, and is not taken for a lack of time; the summary names it.
BUILD=$1 SOURCE=$2 MATERIAL=$3
. "$SOURCE/tests/live/lib.sh"
build_app Record
cd "$WORK" || exit 1
start

# record: into r.clrsnap, r.md and summary, while `then` runs from when the recording has begun.
record() {
  rm -f r.clrsnap
  timeout -k 5 300 "$BUILD/bin/clrsnap" record --mode cpu,wall -d 6 -o r.clrsnap -o r.md "$PID" 2> summary &
  local recorder=$!
  until_true 60 test -s r.clrsnap || { cat summary; fail "no recording begins"; }
  "$@"
  wait $recorder || { cat summary; fail "record"; }
}
halt() {
  sleep 1
  local from to
  from=$(date +%s%N)
  kill -STOP "$PID"
  until_true 30 grep -q '^State:[[:space:]]*T' "/proc/$PID/status" || fail "the program does not stop"
  least=$(date +%s%N)
  sleep 1.5
  to=$(date +%s%N)
  least=$((to - least))
  kill -CONT "$PID"
  most=$(($(date +%s%N) - from))
}

record true
! grep 'the program was stopped' summary r.md || fail "a program that was not stopped is said to have been"
python3 "$SOURCE/tests/live/record/halted.py" r.clrsnap 0 0 || { cat summary; fail "without a stop"; }
record halt
python3 "$SOURCE/tests/live/record/halted.py" r.clrsnap "$least" "$most" || { cat summary; fail "the stop is in samples"; }
said="the program was stopped for [0-9.]* m\{0,1\}s (by a signal, a debugger or a cgroup's freezer): no sample stands for that"
grep -q "^clrsnap: $said$" summary && grep -q "^- wall: $said\.$" r.md || { cat summary r.md; fail "the stop is not named"; }
stop
pass "$(grep 'the program was stopped' summary)"
