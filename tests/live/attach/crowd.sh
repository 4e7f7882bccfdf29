#!/bin/bash
# SPDX-License-Identifier: MIT
# crowd.sh BUILD SOURCE MATERIAL: attaches to a program of 2,000 threads, within a bounded time.
# Each thread is in the recording, with its time, and so is the only one that runs.
BUILD=$1 SOURCE=$2 MATERIAL=$3
. "$SOURCE/tests/live/lib.sh"
build_app Proofs
clrsnap=$BUILD/bin/clrsnap
bad() { cat "$WORK/said" "$WORK/err"; fail "$*"; }

# begin COUNT: starts the program with COUNT threads, as PID.
begin() {
  rm -f "$WORK/stdin" "$WORK/out"
  mkfifo "$WORK/stdin"
  timeout -k 5 300 dotnet "$APP" crowd "$1" < "$WORK/stdin" > "$WORK/out" 2> "$WORK/err" &
  CHILD=$!
  exec 3> "$WORK/stdin"
  for _ in $(seq 2000); do
    grep -qs there "$WORK/out" && break
    sleep 0.05
  done
  PID=$(pgrep -P $CHILD) || fail "the program does not start"
}
end() {
  exec 3>&-
  wait $CHILD || bad "the program ends with $?"
}
record() {
  local began=$EPOCHREALTIME
  timeout 300 "$clrsnap" record -F 100 "$@" "$PID" > "$WORK/said" 2>&1 ||
    sampled_nothing "$WORK/said" || bad "record $*"  # in 0.2 s, on a busy machine
  TOOK=$(awk -v from="$began" -v to="$EPOCHREALTIME" 'BEGIN { printf "%d", (to - from) * 1000 }')
}

# Code that is quadratic in the number of threads takes a hundred times as long. Other load on the machine may make
# one of the two slow, but not three times in a row.
for try in 1 2 3; do
  begin 20
  record --mode wall -d 0.2 -o "$WORK/x.folded"
  few=$TOOK
  end
  begin 2000
  record --mode wall -d 0.2 -o "$WORK/x.folded"
  [ "$TOOK" -gt $((few * 12)) ] || break
  [ $try != 3 ] || bad "attached for $TOOK ms, to 20 threads for $few ms"
  end
done

# A loaded machine may have no time for more than one scan of them within 2 s.
for seconds in 2 8 20; do
  record --mode cpu,wall -d $seconds -o "$WORK/all.json" --format json
  "$SOURCE/tests/live/attach/crowd.py" "$WORK/all.json" 2000 && break
  [ $seconds != 20 ] || bad "what was recorded is not what was there"
done
end
pass "2,000 threads: $TOOK ms with $seconds s of recording; the first time $few ms for 20 threads"
