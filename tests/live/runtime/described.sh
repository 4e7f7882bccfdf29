#!/bin/bash
# SPDX-License-Identifier: MIT
# described.sh BUILD SOURCE MATERIAL VERSION: a runtime that is read by a description of ours: a recording from the
# start and by attach, and stacks from outside. Skipped where NuGet cannot be reached.
BUILD=$1 SOURCE=$2 MATERIAL=$3 VERSION=$4
. "$SOURCE/tests/live/lib.sh"
on_older Old "$VERSION"
clrsnap=$BUILD/bin/clrsnap
cd "$WORK" || exit 1

# The output and the exit code are the program's own.
record() {
  timeout 120 "$clrsnap" record "$@" -- "${target[@]}" > out 2> err
  [ $? = 7 ] || { cat err; fail "record $*: the exit code is not the program's"; }
  grep -qx 'sum 20295' out || { cat out; fail "record $*: the program's output has changed"; }
}
# The limit of a walk's CPU time may be met on a busy machine, and a library that was loaded just before be unknown.
for _ in 1 2 3; do
  CLRSNAP_LOG=$WORK/log record -F 999 -o cpu.txt
  grep '^clrsnap:   cut ' err | grep -qv ' time: ' || break
done
grep -q 'recorded: ' log || { cat log; fail "no log"; }
! grep 'functions with wrong unwind data' log || fail "not all of them are known here"
grep -q "samples\? in .*(cpu, 999 Hz, .NET $VERSION)" err || { cat err; fail "nothing was recorded"; }
! grep '^clrsnap:   cut ' err | grep -v ' time: ' || { cat err; fail "walks were cut"; }
for _ in 1 2 3 4 5; do  # the program ends soon
  record --mode wall -F 499 -o wall.txt
  ! grep -q 'Program\.' wall.txt || break
done
grep -q 'Program\.' wall.txt || { cat wall.txt; fail "no method of the program in wall mode"; }
pass "$VERSION: recorded from the start"

mkfifo go
"${target[@]}" wait < go > out 2> err &
pid=$!
exec 3> go
for _ in $(seq 100); do
  "$clrsnap" stack $pid > stacks 2> stack.err && grep -q 'System.Console.ReadLine' stacks && break
  sleep 0.1
done
grep -q "^\.NET $VERSION," stacks || { cat stacks stack.err; fail "no stacks"; }
grep -A1 'System.Console.ReadLine' stacks | grep -q 'Program.Main' || { cat stacks; fail "another stack"; }
timeout 60 "$clrsnap" record --mode wall -d 1 -o attach.txt $pid 2> attach.err || { cat attach.err; fail "the attach"; }
grep -q 'Program.Main' attach.txt || { cat attach.txt attach.err; fail "no samples after the attach"; }
echo >&3
exec 3>&-
wait $pid
[ $? = 7 ] || fail "the program was harmed by the attach"
pass "$VERSION: stacks from outside, and an attach"
