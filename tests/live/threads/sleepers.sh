#!/bin/bash
# SPDX-License-Identifier: MIT
# sleepers.sh BUILD SOURCE MATERIAL: in wall mode, threads that sleep where /proc does not show enough registers for a
# walk to the stack's base count as waiting, and are not woken again and again: native threads below code whose
# callers are found by rbp, and the thread of an EventPipe session. After an attach such threads have no larger signal
# stacks, so they are sent no signal, and their stacks are cut.
BUILD=$1 SOURCE=$2 MATERIAL=$3
. "$SOURCE/tests/live/lib.sh"
build_app Callers
export LD_LIBRARY_PATH=$BUILD/lib
mkfifo "$WORK/pipe"

# await_ready PATTERN...: PID is the process whose command line has the pattern, and which has printed "ready".
await_ready() {
  for _ in $(seq 600); do grep -qs ready "$WORK/said" && break; sleep 0.1; done
  PID=$(pgrep -f "^dotnet $APP asleep $WORK/pipe") && grep -q ready "$WORK/said" ||
    { cat "$WORK/said"; fail "the program does not start"; }
  "$SOURCE/tests/live/threads/sleepers.py" session "$PID" > "$WORK/session" 2>&1 &
  session=$!
  for _ in $(seq 400); do grep -qsx open "$WORK/session" && break; sleep 0.05; done
  grep -qsx open "$WORK/session" || { cat "$WORK/session"; fail "there is no EventPipe session"; }
}
# check NAME STACKS
check() {
  kill $session 2> /dev/null
  "$SOURCE/tests/live/threads/sleepers.py" check "$WORK/x.clrsnap" "$WORK/said" "$2" > "$WORK/found" ||
    { cat "$WORK/summary" "$WORK/session" "$WORK/found"; fail "$1: threads that sleep are not taken for such"; }
  echo "$1:"
  cat "$WORK/found"
}

timeout 150 "$BUILD/bin/clrsnap" record --mode wall -F 100 -o "$WORK/x.clrsnap" -- dotnet "$APP" asleep "$WORK/pipe" \
  > "$WORK/said" 2> "$WORK/summary" &
CHILD=$!
await_ready
sleep 12
echo > "$WORK/pipe"
wait $CHILD
[ $? = 42 ] || { cat "$WORK/said" "$WORK/summary"; fail "the recorded program has not ended as it should"; }
check "from the program's start" whole

rm "$WORK/said" "$WORK/session"
timeout 150 dotnet "$APP" asleep "$WORK/pipe" > "$WORK/said" 2>&1 &
CHILD=$!
await_ready
timeout 60 "$BUILD/bin/clrsnap" record --mode wall -F 100 -d 14 -o "$WORK/x.clrsnap" "$PID" > "$WORK/summary" 2>&1 ||
  { cat "$WORK/summary"; fail "the recording"; }
echo > "$WORK/pipe"
wait $CHILD
[ $? = 42 ] || { cat "$WORK/said"; fail "the program has not ended as it should"; }
check "attached" cut
pass "threads that sleep count as waiting, and are left alone"
