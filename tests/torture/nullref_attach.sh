#!/bin/bash
# SPDX-License-Identifier: MIT
# nullref_attach.sh BUILD MATERIAL [ROUNDS [THREADS]]: programs that do nothing but null references, on
# many threads, are recorded by attach. Each thread's first signal is the dangerous one, when it has no larger
# alternate stack yet, so each round is a fresh program. (With our own signal at any moment six of ten
# such programs with 150 threads were killed in CPU mode.) None may die, and the threads must be sampled: in 0.3 s the
# recorder may not even get a processor, so every third recording is longer.
BUILD=$1 APP=$2/apps/Proofs/Proofs.dll ROUNDS=${3:-3} THREADS=${4:-150}
fail() { echo "FAIL: $*"; [ -f "$WORK/said" ] && cat "$WORK/said"; exit 1; }
command -v dotnet > /dev/null || { echo "skipped: there is no dotnet command"; exit 77; }
WORK=$(mktemp -d) || exit 1
PID=
trap '[ -z "$PID" ] || kill -9 "$PID" 2> /dev/null; rm -rf "$WORK"' EXIT

# used: CPU time of the program, in hundredths of a second.
used() { sed 's/.*) //' "/proc/$PID/stat" 2> /dev/null | awk '{ print $12 + $13 }'; }

# round MODE SECONDS: a program, recorded, and alive afterwards.
round() {
  CLRSNAP_LOG=$WORK/log dotnet "$APP" torture 300 "$THREADS" > "$WORK/out" 2>&1 &
  PID=$!
  for _ in $(seq 500); do
    [ "$(ls "/proc/$PID/task" 2> /dev/null | wc -l)" -gt "$THREADS" ] && [ "$(used)" -gt 40 ] && break
    sleep 0.02
  done
  timeout -k 5 300 "$BUILD/bin/clrsnap" record -d "$2" -F 1000 --mode "$1" --format collapsed --native off \
    -o "$WORK/stacks" "$PID" > "$WORK/said" 2>&1 || grep -q "^clrsnap: nothing was sampled" "$WORK/said" || fail "$1: the recording"
  sleep 0.1
  kill -9 "$PID" 2> /dev/null || fail "$1: the program is dead"
  wait "$PID" 2> /dev/null
  [ $? = 137 ] || fail "$1: the program has died by itself"
  PID=
  grep -q "the runtime was stopped 0 times$" "$WORK/said" || fail "$1: the runtime was stopped"
  grep -q "Proofs.Torture" "$WORK/stacks" && sampled=$((sampled + 1))
  grep "stopped" "$WORK/said"
}

sampled=0
for i in $(seq "$ROUNDS"); do
  if [ $((i % 3)) = 0 ]; then round wall 3; else round cpu 0.3; fi
done
grep "larger signal stacks now" "$WORK/log"
[ "$sampled" -gt 0 ] || fail "in no program a thread is sampled"
echo "$ROUNDS programs with $THREADS threads were recorded by attach, and none has died"
