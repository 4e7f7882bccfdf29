#!/bin/bash
# SPDX-License-Identifier: MIT
# async.sh BUILD SOURCE MATERIAL WHAT [VERSION]: `clrsnap async` finds exactly the operations that tests/apps/Suspended has suspended,
# with their lines, and the program ends as it does without. WHAT: release (also the text, the filter and the refusals),
# gc (compacting collections all the time), debug (state machines are classes), server (a heap for each processor),
# segments (a collector without regions), many (a hundred thousand operations more, and a limit that is too short).
BUILD=$1 SOURCE=$2 MATERIAL=$3 WHAT=$4
. "$SOURCE/tests/live/lib.sh"
CLRSNAP=$BUILD/bin/clrsnap
app=Suspended many=0 args=() settings=()
case $WHAT in
  gc) args=(gc) ;;
  debug) app=SuspendedDebug ;;
  server) settings=(DOTNET_gcServer=1 DOTNET_GCHeapCount=4) ;;
  segments) settings=(DOTNET_GCName=libclrgc.so) ;;
  many) many=100000 args=(many $many) ;;
esac
if [ $# = 5 ]; then on_older ${app}Old "$5"; else build_app $app && target=(dotnet "$APP"); fi

# refused CODE TEXT ARGS...: the command exits with CODE and prints TEXT in one line.
refused() {
  local code=$1 text=$2 rc=0
  shift 2
  "$CLRSNAP" async "$@" > "$WORK/out" 2> "$WORK/err" || rc=$?
  [ $rc = "$code" ] && grep -qF -- "$text" "$WORK/err" || { cat "$WORK/err"; fail "$*: $rc, not: $text"; }
  [ "$(wc -l < "$WORK/err")" = 1 ] && [ ! -s "$WORK/out" ] || fail "$*: more than one line"
}
if [ "$WHAT" = release ]; then
  refused 2 "async takes one process, by its number or name"
  refused 2 "no .NET process is called 'x'; 'clrsnap ps' lists them" x
  refused 1 "there is no process 2147483647" 2147483647
  refused 1 "there is no CoreCLR in process $$" $$
  # Stopping the threads takes longer than that.
  refused 2 "--stop-limit" --stop-limit 0.001 $$
fi

mkfifo "$WORK/in"
# start_app: starts the program as `pid`; it ends when descriptor 3 is closed.
start_app() {
  : > "$WORK/said"
  env "${settings[@]}" timeout -k 5 300 "${target[@]}" "${args[@]}" < "$WORK/in" > "$WORK/said" 2> "$WORK/err" &
  launcher=$!
  exec 3> "$WORK/in"
  for _ in $(seq 600); do grep -q ready "$WORK/said" && break; sleep 0.1; done
  pid=$(pgrep -P $launcher) && grep -q ready "$WORK/said" || { cat "$WORK/err"; fail "the program does not come to wait"; }
}
start_app

# The last operations may be on their way to their await for a moment.
agrees() {
  local tries=$1
  for _ in $(seq "$tries"); do
    "$CLRSNAP" async --json "$pid" > "$WORK/json" 2> "$WORK/err" || { cat "$WORK/err"; fail "async ended with $?"; }
    python3 "$SOURCE/tests/live/async/async.py" "$WORK/json" "$SOURCE/tests/apps/Suspended/Program.cs" $many 2> "$WORK/wrong" && return
    sleep 0.1
  done
  cat "$WORK/wrong"
  fail "$WHAT: the operations are not those of the program"
}
if [ "$WHAT" = segments ]; then
  # Such a collector describes its heap in its own way, or clrsnap says that it does not know it.
  grep -q libclrgc.so "/proc/$pid/maps" || skip "the runtime has no libclrgc.so"
fi
agrees 100
# From now on, every scan must be right.
for _ in 1 2 3 4 5; do agrees 1; done
pass "$WHAT: chains, counts and lines"

if [ "$WHAT" = release ]; then
  "$CLRSNAP" async "$pid" > "$WORK/text" || fail "text"
  grep -q '^ *300 x Shop.Checkout (Program.cs:[0-9]*) > Shop.Cart (Program.cs:[0-9]*) > Shop.Send (Program.cs:[0-9]*) > TaskCompletionSource$' "$WORK/text" ||
    { cat "$WORK/text"; fail "the line of the widest operation"; }
  grep -Eq 'the program was stopped for [0-9.]+ ms while [0-9,]+ objects' "$WORK/text" || fail "the stop is not shown"
  grep -q '^1,076 suspended async methods in 434 operations$' "$WORK/text" || fail "the sum"
  "$CLRSNAP" async --filter Delay "$pid" > "$WORK/text" || fail "--filter"
  [ "$(grep -c ' x ' "$WORK/text")" = 4 ] && grep -q "50 x Shop.Sleep" "$WORK/text" && grep -q "1 x Shop.Any" "$WORK/text" ||
    { cat "$WORK/text"; fail "--filter"; }
  "$CLRSNAP" async --filter Nonsense "$pid" | grep -q "No operation has 'Nonsense' in it" || fail "--filter without a match"
  pass "text and filter"
  # Ended in the middle, it leaves a program that runs.
  for wait in 0.001 0.005 0.01 0.02 0.03; do timeout -s INT $wait "$CLRSNAP" async "$pid" > "$WORK/text" 2>&1; done
  agrees 1
  pass "interrupted"
fi
if [ "$WHAT" = many ]; then
  "$CLRSNAP" async --stop-limit 0.01 "$pid" > "$WORK/text" || fail "--stop-limit"
  grep -q "Not all of the heap was read: --stop-limit was reached" "$WORK/text" || { cat "$WORK/text"; fail "a short limit is not said"; }
  pass "a limit that is too short"
fi
kill -0 "$pid" || fail "the program has died"
exec 3>&-
wait $launcher || { cat "$WORK/err"; fail "the program ended with $?"; }
grep -q done "$WORK/said" || fail "the program has not come to its end"
if [ "$WHAT" = release ]; then refused 1 "there is no process $pid" "$pid"; fi
if [ "$WHAT" = debug ]; then
  # Killed while it is scanned: a scan is complete, or one sentence says why not.
  start_app
  (sleep 0.2 && kill -9 "$pid") &
  while kill -0 "$pid" 2> /dev/null; do
    rc=0
    "$CLRSNAP" async --json "$pid" > "$WORK/json" 2> "$WORK/err" || rc=$?
    if [ $rc = 0 ]; then
      grep -q '"complete":true' "$WORK/json" || fail "a program that was killed: not all was scanned, and that is not said"
    else
      grep -Eq "process $pid( has ended|$)" "$WORK/err" && [ "$(wc -l < "$WORK/err")" = 1 ] && [ ! -s "$WORK/json" ] ||
        { cat "$WORK/err"; fail "a program that was killed: $rc"; }
    fi
  done
  exec 3>&-
  wait $launcher 2> /dev/null
  pass "killed meanwhile"
fi
pass "$WHAT: the program has not noticed"
