#!/bin/bash
# SPDX-License-Identifier: MIT
# locks.sh BUILD SOURCE MATERIAL: which locks threads wait for and who holds them, by `clrsnap stack`, of a program
# whose threads are named after what they do (tests/apps/Locks), and no deadlock where there is none.
BUILD=$1 SOURCE=$2 MATERIAL=$3
. "$SOURCE/tests/live/lib.sh"
CLRSNAP=$BUILD/bin/clrsnap
build_app Locks

launch_app
python3 "$SOURCE/tests/live/stack/locks.py" self-test || fail "the oracle does not see faults"
# The last threads to start may not wait for their locks yet.
for _ in $(seq 100); do
  "$CLRSNAP" stack --json "$PID" > "$WORK/json" || fail "stack --json"
  python3 "$SOURCE/tests/live/stack/locks.py" check "$WORK/json" "$SOURCE/tests/apps/Locks/Program.cs" 2> "$WORK/wrong" && break
  sleep 0.1
done
[ ! -s "$WORK/wrong" ] || { cat "$WORK/wrong"; fail "the locks are others"; }
"$CLRSNAP" stack "$PID" > "$WORK/text" || fail "stack"
a='a System.[A-Za-z.<>,]* (0x[0-9a-f]*)'
for line in \
  "^deadlock: \"two monitors 0\" (tid [0-9]*) waits for $a held by \"two monitors 1\" (tid [0-9]*), which waits for $a held by \"two monitors 0\"\$" \
  "^deadlock, until a wait reaches its time limit: \"a while 0\" " \
  '^  waits for a System.Int32\[\] (0x[0-9a-f]*), held by "owner of a vector" (tid [0-9]*), which is in Known.HoldHere (Program.cs:[0-9]*)$' \
  '^  waits for a System.Object (0x[0-9a-f]*), held by a thread that has ended$' \
  '^  waits for a pulse of a System.Object$'; do
  grep -q "$line" "$WORK/text" || { grep -A1 "^deadlock\|^Thread" "$WORK/text"; fail "the text has no line $line"; }
done
initializes() { "$CLRSNAP" stack "$PID" | grep -q '^Thread [0-9]* "needs a class": waiting in futex for a class to be initialized$'; }
until_true 30 initializes || { grep '^Thread' "$WORK/text"; fail "no thread waits for a class"; }
[ "$(sed -n 3p "$WORK/text" | cut -c1-8)" = deadlock ] || fail "deadlocks are not said first"
kill "$PID"
wait $LAUNCHER 2> /dev/null
pass "locks, owners and deadlocks"

launch_app contend
waits=0
for _ in $(seq 200); do
  "$CLRSNAP" stack --native off --managed --json "$PID" > "$WORK/json" || fail "stack --json"
  ! grep -q '"deadlocks"' "$WORK/json" || { cat "$WORK/json"; fail "a deadlock where there is none"; }
  ! grep -q '"owner":"thread"' "$WORK/json" || waits=$((waits + 1))
done
kill "$PID"
wait $LAUNCHER 2> /dev/null
[ $waits -ge 50 ] || fail "only $waits of 200 snapshots found a thread that waits for a lock"
pass "no deadlock in 200 snapshots, $waits of which found owners"
