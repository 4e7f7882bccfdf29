#!/bin/bash
# SPDX-License-Identifier: MIT
# awaits.sh BUILD SOURCE MATERIAL WHAT [VERSION]: the async callers of resumed methods, compared with tests/apps/Awaits, which
# reports the awaiting methods of each of its leaves (awaits.py judges). No sample may have a wrong one.
#   chains  two chains that end in the same methods, at once; formats; --async-callers off
#   kinds   every kind of continuation, in wall mode: threads that run and threads that sleep
#   debug   the same with a Debug build, where state machines are classes, and boxes share their code
#   gc      the chains during compacting collections in a loop
#   edges   pairs of chains through each kind of waiting, during such collections; edges-wall: in wall mode;
#           edges-debug: with a Debug build, without collections; edges-events: while the program listens to the events
#           of tasks, which changes their structure
#   runtime chains in which the runtime suspends methods itself (runtime-async): none may be left out of a chain
#   pid     the chains, recorded by attach
BUILD=$1 SOURCE=$2 MATERIAL=$3 WHAT=$4
. "$SOURCE/tests/live/lib.sh"
NAME=Awaits
[[ $WHAT != *debug ]] || NAME=AwaitsDebug
[ "$WHAT" != runtime ] || NAME=RuntimeAsync
if [ $# = 5 ]; then on_older ${NAME}Old "$5"; else build_app $NAME && target=(dotnet "$APP"); fi
cd "$WORK" || exit 1
CLRSNAP=$BUILD/bin/clrsnap
by_perf

# record OPTIONS... -- PROGRAM'S ARGUMENTS...: records into out.json and out.collapsed; `truth` has the program's output.
record() {
  local options=()
  while [ "$1" != -- ]; do options+=("$1"); shift; done
  shift
  [[ " ${options[*]} " == *" --mode "* ]] || options+=("${PERF[@]}")  # an engine belongs to cpu mode
  timeout 300 "$CLRSNAP" record -F 999 "${options[@]}" -o out.json -o out.collapsed -- "${target[@]}" "$@" > truth 2> err ||
    { cat err; fail "the recording ended with $?"; }
}
# judge SHARE LEAST [warm]
judge() { python3 "$SOURCE/tests/live/async/awaits.py" truth out.json "$@" || { head -3 err; fail "$WHAT"; }; }

case $WHAT in
  chains)
    record -o out.clrsnap -o out.txt -- chains 60
    judge 90 50
    # The stack as it was has the same samples, a dispatcher, and no async callers.
    "$CLRSNAP" report --async-callers off -o off.collapsed out.clrsnap 2> err || { cat err; fail "report"; }
    ! grep -qF '[awaits]' off.collapsed || fail "--async-callers off shows who awaits"
    grep -q 'ThreadPoolWorkQueue.*;Deep.Work;Leaf' off.collapsed || fail "--async-callers off has no dispatcher"
    sum() { awk '{ n += $NF } END { printf "%.0f\n", n }' "$1"; }
    [ "$(sum off.collapsed)" = "$(sum out.collapsed)" ] || fail "samples are lost with the awaiters"
    "$CLRSNAP" report --raw-names -o raw.collapsed out.clrsnap 2> err || { cat err; fail "report"; }
    ! grep -qF '[awaits]' raw.collapsed || fail "--raw-names shows who awaits"
    # The page and the text tree show them as well.
    grep -qF 'Deep.Middle [awaits]' out.txt || fail "the tree does not have it"
    python3 - << 'PY' || fail "the page's data does not have it"
import json
mode = json.load(open("out.json"))["modes"][0]
flat = mode["frames"]
kinds = {mode["strings"][flat[i]]: mode["kinds"][flat[i + 2]][0] for i in range(0, len(flat), 3)}
assert kinds["Deep.Middle [awaits]"] == "awaits" and kinds["Deep.Work"] == "user", kinds
PY
    record --async-callers off -o not.clrsnap -- chains 4
    "$CLRSNAP" report -o not.collapsed not.clrsnap 2> err || { cat err; fail "report"; }
    ! grep -qF '[awaits]' not.collapsed || fail "record --async-callers off has recorded who awaits"
    ;;
  kinds | debug)
    record --mode wall -- kinds 40
    judge 90 0
    ;;
  gc)
    record -- chains 60 gc
    judge 80 50
    ;;
  edges)
    record -- edges 8 gc
    judge 70 50
    ;;
  edges-wall)
    record --mode wall -- edges 8 gc
    judge 40 50
    ;;
  edges-events)
    record -- edges 8 events
    judge 60 50
    ;;
  runtime)
    export DOTNET_RuntimeAsync=1
    record -- 4
    judge 20 100
    # Of the runtime's own, the method that was resumed is there, below what has resumed it.
    "$CLRSNAP" record -F 999 --raw-names -o raw.collapsed -- "${target[@]}" 2 > /dev/null 2> err || { cat err; fail "raw"; }
    grep -qE 'ThunkTaskCore\.MoveNext[^;]*;[^;]*AsyncResume_Inner[^;]*;Runtime\.Inner;Leaf\.Runtime' raw.collapsed ||
      { head -3 raw.collapsed; fail "a method that the runtime has resumed has another stack"; }
    # From outside: what the runtime suspends itself is not a step, and said to be.
    "${target[@]}" 0 wait > told 2> /dev/null &
    CHILD=$!
    for _ in $(seq 200); do grep -qs hangs told && break; sleep 0.1; done
    "$CLRSNAP" async $CHILD > async.out || { cat async.out; fail "async"; }
    kill -9 $CHILD
    wait $CHILD 2> /dev/null
    grep -qE 'Hang\.Outer .*> \[runtime-async methods\] > Hang\.Inner .*> TaskCompletionSource' async.out ||
      { cat async.out; fail "async shows another chain"; }
    ;;
  edges-debug)
    record -- edges 8
    judge 80 50
    ;;
  pid)
    "${target[@]}" chains 400 > truth 2> /dev/null &
    CHILD=$!
    for _ in $(seq 100); do grep -q Blue truth && break; sleep 0.1; done
    sleep 1
    timeout 300 "$CLRSNAP" record "${PERF[@]}" -F 999 -d 6 -o out.json $CHILD > /dev/null 2> err || { cat err; fail "attach"; }
    kill -9 $CHILD
    wait $CHILD 2> /dev/null
    judge 80 50 warm
    ;;
esac
pass "$WHAT"
