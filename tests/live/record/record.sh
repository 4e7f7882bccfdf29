#!/bin/bash
# SPDX-License-Identifier: MIT
# record.sh BUILD SOURCE MATERIAL WHAT: the agent in a running program, seen from the other end of the
# wire. record_check checks every record against the format; this script checks the contents.
BUILD=$1 SOURCE=$2 MATERIAL=$3 WHAT=$4
. "$SOURCE/tests/live/lib.sh"
export CLRSNAP_LOG=$WORK/log

show() { sort -k2 -rn "$WORK/out" | head -60; cat "$WORK/stderr"; grep -v ' functions, ' "$WORK/log"; }
bad() { show; fail "$*"; }
# record MODE HZ STOP_AFTER_MS COMMAND...: `out` has record_check's lines, `rc` the program's exit code.
record() {
  rm -f "$WORK/log"
  timeout 300 "$BUILD/bin/record_check" "$BUILD/lib/libclrsnap.so" "$@" > "$WORK/out" 2> "$WORK/stderr" ||
    bad "record_check $*"
  rc=$(total exit)
  [ -s "$WORK/stderr" ] && bad "something on stderr"
}
total() { sed -n "s/^total .*\b$1 \([0-9]*\).*/\1/p" "$WORK/out"; }
# sum KIND PATTERN: adds up the samples of all matching lines of a kind.
sum() { grep -E "^$1 [0-9]+ ($2)" "$WORK/out" | awk '{ n += $2 } END { print n + 0 }'; }
need() { [ "$1" -ge "$2" ] || bad "$3: $1, less than $2"; }
# Walks that are complete, in tenths of a per cent.
# Sleepers whose registers are not known yet are bounded by record_check.
complete() {
  need $(($(sum stop base) + $(sum stop asleep))) $(($(total records) * $1 / 1000 - 3)) "complete walks"
}
# ended [attached]: a program that clrsnap has started is never stopped.
ended() {
  [ "$(total ends)" = 1 ] && [ "$(total starts)" = 1 ] || bad "not one start and one end"
  grep -q '^state 2 ' "$WORK/out" || bad "the agent's state at the end"
  [ $# -gt 0 ] || [ "$(total suspensions)" = 0 ] || bad "the runtime was stopped"
}

# record_until LEAST KIND PATTERN WHAT MS...: records the program for each time in turn, until so many samples match.
# On a machine where 45 others want a processor, it uses a tenth of a second of CPU time in 3 s.
record_until() {
  local least=$1 kind=$2 pattern=$3 what=$4 ms
  for ms in "${@:5}"; do
    record cpu 500 0 dotnet "$APP" "$what" "$ms"
    [ "$rc" = 42 ] || bad "$what: exit code $rc"
    ended
    [ "$(sum "$kind" "$pattern")" -lt "$least" ] || break
  done
}

cpu() {
  record_until 60 method 'Rec\.Program\.BurnHot\(\)' names 3000 15000 60000
  need "$(total records)" 50 "samples"
  complete 980
  grep -qE '^thread [0-9]+ [0-9]+ [0-9]+ Hot worker$' "$WORK/out" || bad "no thread Hot worker"
  grep -qE '^thread [0-9]+ [0-9]+ [0-9]+ Generisch-Ü$' "$WORK/out" || bad "no thread Generisch-Ü"
  hot=$(sum method 'Rec\.Program\.BurnHot\(\)')
  need "$hot" 20 "samples of the hot thread"
  need "$(sum leaf 'Rec\.Program\.Hot\(\)')" $((hot * 8 / 10)) "samples in the hot method"
  need "$(sum method 'Rec\.Box<T>\.Churn<double>\(T, double\[\], ref int\)')" 1 "shared generic code"
  need "$(sum method 'Rec\.Box<Pair>\.Churn<U>\(Pair, U\[\], ref int\)')" 1 "exact generic code"
  need "$(sum method 'Rec\.Box<long>\.Inner\.Spin\(long, int\)')" 1 "a nested type's method"
  need "$(sum method 'System\.Threading\.Thread\.StartCallback\(\)')" "$hot" "framework frames"
  need "$(sum image '.*/libcoreclr\.so')" "$hot" "native frames"
  [ "$(sum method '\[unloaded code\]')" = 0 ] || bad "names were lost"
  pass "cpu: $(total records) samples, $hot of the hot thread"
}

wall() {
  record wall 200 0 dotnet "$APP" names 2000
  [ "$rc" = 42 ] || bad "exit code $rc"
  ended
  complete 980
  # A sleeping thread has as much time as a burning one: its weight is wall-clock time.
  slept=$(sed -n 's/^thread [0-9]* [0-9]* \([0-9]*\) Sleeper$/\1/p' "$WORK/out")
  hot=$(sed -n 's/^thread [0-9]* [0-9]* \([0-9]*\) Hot worker$/\1/p' "$WORK/out")
  # Of the program's 2 s, as far as they are recorded: on a busy machine the first scan comes late.
  need "${slept:-0}" 500 "ms of the sleeper"
  need "${hot:-0}" $((slept / 2)) "ms of the burner"
  need "$(sum method 'Rec\.Program\.Sleep\(\)')" 20 "samples of the sleeping method"
  # Sleeping threads are not woken: all samples of one, except some at its ends, are taken without a signal.
  sleeping=$(total asleep)
  need "$sleeping" "$(($(sum method 'Rec\.Program\.Sleep\(\)') * 9 / 10))" "samples without a signal"
  pass "wall: $(total records) samples, sleeper ${slept} ms, burner ${hot} ms"
}

# 20 waits of 100 ms of each kind, with a sample every 5 ms: the program counts those that returned
# early or were interrupted, and how often it lost its processor.
asleep() {
  build_app Proofs
  record wall 200 0 dotnet "$APP" asleep alone
  [ "$rc" = 0 ] || bad "exit code $rc"
  ended
  complete 995
  [ "$(grep -c '^waited ' "$WORK/out")" = 11 ] || bad "not 11 kinds of waits"
  grep '^waited ' "$WORK/out" | while read -r _ name calls interrupted early switches; do
    # A thread whose time is over, and that waits for a processor inside of its call, is no sleeper. Signals would interrupt all calls.
    [ "$interrupted" -le 2 ] && [ "$early" -le "$interrupted" ] || bad "$name: of $calls waits $interrupted interrupted, $early early"
    [ "$switches" -le $((calls * 4)) ] || bad "$name: off the processor $switches times in $calls waits"
    need "$(sum method "Proofs\.Asleep\.$name\(\)")" 10 "samples of $name"
  done || exit 1
  need "$(total asleep)" $(($(total records) * 9 / 10)) "samples without a signal"
  need "$(total repeated)" $(($(total asleep) / 2)) "samples without a walk"
  pass "asleep: $(total asleep) of $(total records) samples without a signal, $(total repeated) of them without a walk"
}

# Exceptions, null references, allocation with collections, threads that live for milliseconds.
rough() {
  for mode in cpu wall; do
    record $mode 2000 0 dotnet "$APP" rough 4000
    [ "$rc" = 42 ] || bad "$mode: exit code $rc"
    ended
    complete 980
    need "$(sum method 'Rec\.Program\.Fail\(int\)')" 5 "samples of the thrower"
    need "$(grep -cE '^thread [0-9]+ [0-9]+ [0-9]+ Brief$' "$WORK/out")" 1 "short-lived threads"
    pass "rough $mode: $(total records) samples, $(grep -c '^thread' "$WORK/out") threads"
  done
  DOTNET_gcServer=1 DOTNET_GCHeapCount=2 record cpu 2000 0 dotnet "$APP" rough 4000
  [ "$rc" = 42 ] || bad "server gc: exit code $rc"
  ended
  need "$(grep -cE '^thread [0-9]+ [1-9][0-9]* [0-9]+ \.NET Server GC' "$WORK/out")" 1 "native threads"
  complete 950
  pass "native threads: $(grep -E '^thread .*Server GC' "$WORK/out" | awk '{ n += $3 } END { print n }') samples"
}

dying() {
  record cpu 1000 0 dotnet "$APP" dying 4000
  [ "$rc" = 42 ] || bad "exit code $rc"
  ended
  complete 980
  named=$(sum method '\[dynamic\] Emitted[0-6]\(int\)')
  lost=$(sum method '\[unloaded code\]')
  need "$named" 10 "samples of dynamic methods with a name"
  need "$named" "$lost" "dynamic methods with a name, against those without"
  pass "dying code: $named samples named, $lost of unloaded code"
  build_app Unload
  record cpu 1000 0 dotnet "$APP" 4
  [ "$rc" = 0 ] || bad "Unload: exit code $rc"
  ended
  complete 980
  pass "collectible assemblies: $(total records) samples"
}

ends() {
  record_until 5 leaf 'Rec\.Program\.Hot\(\)' exit 1000 4000 16000
  need "$(sum leaf 'Rec\.Program\.Hot\(\)')" 5 "samples before Environment.Exit"
  pass "Environment.Exit"

  # On a busy machine the thread may not have begun by then.
  local stop last
  for stop in 1500 6000 20000; do
    record cpu 500 $stop dotnet "$APP" hot $((stop + 2500))
    [ "$rc" = 42 ] || bad "stop: exit code $rc"
    last=$(sed -n 's/^thread [0-9]* [0-9]* \([0-9]*\) Hot worker$/\1/p' "$WORK/out")
    [ -z "$last" ] || break
  done
  ended
  [ "${last:-99999}" -lt $((stop + 1500)) ] || bad "sampled on after the stop: $last ms"
  pass "the command stops it, the program runs on"

  record cpu 500 0 bash -c "dotnet '$APP' hot 120000 & until grep -qs recording, '$WORK/log'; do sleep 0.1; done
    while read -r -a stat < /proc/\$!/stat && [ \$((stat[13] + stat[14])) -lt 80 ]; do sleep 0.1; done # ticks of CPU time
    sleep 0.5; kill -KILL \$!; wait \$! 2> /dev/null; exit 9"
  [ "$rc" = 9 ] || bad "kill: exit code $rc"
  [ "$(total ends)" = 0 ] && [ "$(total starts)" = 1 ] || bad "kill: not one start, or an end"
  need "$(sum leaf 'Rec\.Program\.Hot\(\)')" 5 "samples before SIGKILL"
  pass "SIGKILL: $(total records) samples are there"

  record cpu 500 0 bash -c "dotnet '$APP' hot 1000; first=\$?; dotnet '$APP' hot 500 && exit 1; exit \$first"
  [ "$rc" = 42 ] || bad "two programs: exit code $rc"
  ended
  grep -qE "another process is being recorded" "$WORK/log" || bad "the second one says nothing in its log"
  pass "of two programs the first is recorded"
}

# The name of the shared memory comes as client data; existing threads are found.
attached() {
  export BUILD APP CLSID RECORD_CHECK_PID=$WORK/pid RECORD_CHECK_INVITATION=$WORK/invitation
  record cpu 500 0 bash -c 'env -u CORECLR_ENABLE_PROFILING -u CLRSNAP_SHM dotnet "$APP" names 8000 &
    echo $! > "$RECORD_CHECK_PID"
    for _ in $(seq 30); do # until its diagnostics server is there
      sleep 0.2
      "$BUILD/bin/attach" $! "$BUILD/lib/libclrsnap.so" "$CLSID" 10000 "@$RECORD_CHECK_INVITATION" 2> /dev/null && break
    done
    wait $!'
  [ "$rc" = 42 ] || bad "exit code $rc"
  ended attached
  [ "$(total suspensions)" = 0 ] || bad "the runtime was stopped"
  complete 950
  grep -qE '^thread [0-9]+ [0-9]+ [0-9]+ Hot worker$' "$WORK/out" || bad "no thread Hot worker"
  need "$(sum leaf 'Rec\.Program\.Hot\(\)')" 20 "samples in the hot method"
  pass "attached: $(total records) samples"
}

refused() {
  get_runtimes
  build_app Old
  export -f run_on
  export SOURCE MATERIAL
  rm -f "$WORK/log"
  "$BUILD/bin/record_check" "$BUILD/lib/libclrsnap.so" cpu 500 0 bash -c "run_on 8.0.33 '$APP'" \
    > "$WORK/out" 2> "$WORK/stderr" || bad "record_check"
  [ "$(total exit)" = 7 ] || bad "exit code $(total exit)"
  grep -q '^state 3 .*\.NET 8\.0\.33' "$WORK/out" || bad "the command is not told why"
  [ "$(wc -l < "$WORK/stderr")" = 1 ] || bad "not one line on stderr"
  pass "a refusal reaches the command"
}

[ "$WHAT" = refused ] || build_app Record
"$WHAT"
