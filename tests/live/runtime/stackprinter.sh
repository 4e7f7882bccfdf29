#!/bin/bash
# SPDX-License-Identifier: MIT
# stackprinter.sh BUILD SOURCE MATERIAL: the example profiler under a program whose first thread waits in Main.
BUILD=$1 SOURCE=$2 MATERIAL=$3
. "$SOURCE/tests/live/lib.sh"
build_app Abi

CORECLR_ENABLE_PROFILING=1 CORECLR_PROFILER=$CLSID \
  CORECLR_PROFILER_PATH=$BUILD/lib/libstackprinter.so STACKPRINTER_MS=20 \
  dotnet "$APP" until "$WORK/until" > "$WORK/stdout" 2> "$WORK/stderr" &
pid=$!
for ((i = 0; i < 600; i++)); do
  # Main is seen at work first, from its first instructions on; it sleeps soon after.
  grep -q 'System.Threading.Thread.Sleep$' "$WORK/stdout" && break
  kill -0 $pid 2> /dev/null || break
  sleep 0.1
done
touch "$WORK/until"
wait $pid
rc=$?
[ $rc = 42 ] || { tail -30 "$WORK/stdout" "$WORK/stderr"; fail "the program's exit code is $rc, not 42"; }
grep -q 'Abi.Program.Main$' "$WORK/stdout" || { tail -30 "$WORK/stdout"; fail "Main was never seen"; }
grep -q 'System.Threading.Thread.Sleep$' "$WORK/stdout" || fail "Main was never seen to sleep"
# Before Main and after it the thread has no managed frames, which is no failure of the walk.
grep '^  0x' "$WORK/stdout" | grep -v 'has no managed frames' | sort | uniq -c | grep . && fail "a snapshot failed"
pass "$(grep -c '^stack of' "$WORK/stdout") stacks"
