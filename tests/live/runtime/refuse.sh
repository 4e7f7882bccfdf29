#!/bin/bash
# SPDX-License-Identifier: MIT
# refuse.sh BUILD SOURCE MATERIAL: on .NET 8, which is not supported yet, the program runs unharmed, and
# one line says so. Fetches the runtimes from NuGet once; skipped where NuGet cannot be reached.
BUILD=$1 SOURCE=$2 MATERIAL=$3
. "$SOURCE/tests/live/lib.sh"
get_runtimes
build_app Old

for v in 8.0.33; do
  run() { run_on "$v" "$APP"; }
  run > "$WORK/want" 2> "$WORK/stderr"
  [ $? = 7 ] || { cat "$WORK/stderr"; fail "$v: the program does not run by itself"; }
  text="this program runs on .NET $v, which is not supported yet"

  # The contract room's refusal, through a profiler that reports it and fails its Initialize.
  CLRSNAP_TEST_OUT=$WORK/out.$v CORECLR_ENABLE_PROFILING=1 CORECLR_PROFILER=$CLSID \
    CORECLR_PROFILER_PATH=$BUILD/lib/libtest_abi.so run > "$WORK/stdout" 2> "$WORK/stderr"
  [ $? = 7 ] || fail "$v: exit code with a profiler that refuses"
  grep -qF "refused: $text" "$WORK/out.$v" || { cat "$WORK/out.$v"; fail "$v: no refusal"; }
  pass "$v: the contract is refused"

  # The library itself: one line on stderr, the same in its log, and a program that does not notice.
  CLRSNAP_LOG=$WORK/log.$v CORECLR_ENABLE_PROFILING=1 CORECLR_PROFILER=$CLSID \
    CORECLR_PROFILER_PATH=$BUILD/lib/libclrsnap.so run > "$WORK/stdout" 2> "$WORK/stderr"
  [ $? = 7 ] || { cat "$WORK/stderr"; fail "$v: exit code under clrsnap"; }
  diff "$WORK/want" "$WORK/stdout" || fail "$v: the program's output has changed"
  [ "$(wc -l < "$WORK/stderr")" = 1 ] && grep -qF "clrsnap: $text" "$WORK/stderr" ||
    { cat "$WORK/stderr"; fail "$v: not one line with the reason"; }
  grep -qF "$text" "$WORK/log.$v" || fail "$v: the reason is not in the log"
  pass "$v: one line, and unharmed"
done
