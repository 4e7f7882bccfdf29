#!/bin/bash
# SPDX-License-Identifier: MIT
# attach_beside.sh BUILD SOURCE MATERIAL: `clrsnap record PID` of a program that has a profiler already, which
# continues to work, and of a program in a container, with its own process numbers and its own /dev/shm.
BUILD=$1 SOURCE=$2 MATERIAL=$3
. "$SOURCE/tests/live/lib.sh"
build_app Record
clrsnap=$BUILD/bin/clrsnap
command -v python3 > /dev/null || skip "there is no python3"

# A runtime that is only mapped as data does not make a .NET program.
coreclr=$(dirname "$(readlink -f "$(command -v dotnet)")")/shared/Microsoft.NETCore.App/10.*/libcoreclr.so
python3 - $coreclr << 'X' &
import mmap, sys, time
file = open(sys.argv[1])
held = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
time.sleep(600)
X
reader=$!
trap 'kill $reader 2> /dev/null; rm -rf "$WORK"' EXIT
# Returns 1 if the program has come to its end.
record() {
  local rc=0 seconds
  for seconds in 1.5 6 24; do # beside the other one, on a busy machine
    rc=0
    timeout 300 "$clrsnap" record -d $seconds -o "$WORK/stacks.folded" "$1" > "$WORK/said" 2>&1 || rc=$?
    kill -0 "$1" 2> /dev/null || return 1
    [ $rc = 0 ] && grep -qF Rec.Program.Hot "$WORK/stacks.folded" && break
    [ $rc = 0 ] || sampled_nothing "$WORK/said" || break
  done
  [ $rc = 0 ] || { cat "$WORK/said" "$WORK/err"; fail "$2: exit code $rc"; }
  grep -qF Rec.Program.Hot "$WORK/stacks.folded" || { cat "$WORK/said"; fail "$2: nothing was seen"; }
  grep -qE 'without a name|unloaded code' "$WORK/stacks.folded" && fail "$2: frames without names"
  pass "$2"
}

works_on() { [ "$(grep -c '^stack of' "$WORK/out")" -gt "$1" ]; }
# beside MS: beside another profiler, of a program that runs for so long. The example is linked with the same library,
# which then has two users; one of them comes and goes. Returns 1 if the program has ended before everything was done.
beside() {
  CORECLR_ENABLE_PROFILING=1 CORECLR_PROFILER='{12345678-9ABC-DEF0-1234-56789ABCDEF0}' \
    CORECLR_PROFILER_PATH=$BUILD/lib/libstackprinter.so STACKPRINTER_MS=20 \
    dotnet "$APP" names "$1" > "$WORK/out" 2> "$WORK/err" &
  PID=$!
  local i before
  until_true 60 works_on 10 || fail "the other profiler does not work"
  for i in 1 2 3; do record $PID "beside another profiler, $i" || return; done
  before=$(grep -c '^stack of' "$WORK/out")
  until_true 30 works_on "$before" || ! kill -0 $PID 2> /dev/null || fail "the other profiler has stopped working"
  kill -0 $PID 2> /dev/null
}
for life in 16000 60000 240000; do beside $life && break; done
rc=0
wait $PID || rc=$?
[ $rc = 42 ] || { cat "$WORK/err"; fail "the program ends with $rc, not 42"; }
grep '^  0x' "$WORK/out" | grep -v 'has no managed frames' | sort | uniq -c | grep . && fail "a snapshot failed"
grep -q libcoreclr.so "/proc/$reader/maps" || fail "the reader does not read"
"$clrsnap" ps --json | grep -q "\"pid\":$reader," && fail "who reads libcoreclr.so is taken for a .NET program"
kill $reader
pass "the other profiler works on"

unshare --pid --mount --fork --mount-proc true 2> "$WORK/unshare" || exit 0
unshare --pid --mount --fork --kill-child --mount-proc \
  sh -c "mount -t tmpfs -o size=64m none /dev/shm && exec dotnet '$APP' names 60000" > "$WORK/out" 2> "$WORK/err" &
CHILD=$!
find_program
record "$PID" "in a container" || fail "the program has ended"
[ -z "$(ls -A "/proc/$PID/root/dev/shm")" ] || fail "a file is left in the container"
# The agent notices a killed command although the command's number is meaningless there.
timeout 300 "$clrsnap" record -o "$WORK/killed.clrsnap" "$PID" > "$WORK/said" 2>&1 &
recorder=$!
until_true 30 recorded_now "$PID" || { cat "$WORK/said"; fail "the second recording does not begin"; }
kill -9 "$(pgrep -P $recorder)"
wait $recorder 2> /dev/null
alone() { ! recorded_now "$PID"; }
until_true 30 alone || fail "the agent has not noticed that the command was killed"
kill -0 "$PID" || fail "the program has ended"
kill -9 "$PID"
wait $CHILD 2> /dev/null
pass "in a container, a killed command"
