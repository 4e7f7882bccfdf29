#!/bin/bash
# SPDX-License-Identifier: MIT
# async_scans.sh BUILD SOURCE MATERIAL [VERSION]: record --mode wall --async of tests/apps/Suspended, whose suspended operations are known and do
# not change: each chain has its number of operations times the time that the scans stand for. The command may be killed
# at any moment, and so may its process that scans: the program runs on, and ends as it does without.
BUILD=$1 SOURCE=$2 MATERIAL=$3
. "$SOURCE/tests/live/lib.sh"
CLRSNAP=$BUILD/bin/clrsnap
if [ $# = 4 ]; then on_older SuspendedOld "$4"; else build_app Suspended && target=(dotnet "$APP"); fi
cd "$WORK" || exit 1

# refused TEXT ARGS...
refused() {
  local text=$1 rc=0
  shift
  "$CLRSNAP" record "$@" > out 2> err || rc=$?
  [ $rc = 2 ] && grep -qF -- "$text" err || { cat err; fail "$*: $rc, not: $text"; }
}
refused "async mode goes with wall mode" --async -- true
refused "async mode goes with wall mode" --mode async -- true
refused "not with --children" --mode wall --async --children -- true
refused "--budget does not cover the scans" --mode wall --async --budget 1% -- true

mkfifo in
timeout -k 5 300 "${target[@]}" < in > said 2> app.err &
launcher=$!
exec 3> in
for _ in $(seq 600); do grep -q ready said && break; sleep 0.1; done
pid=$(pgrep -P $launcher) && grep -q ready said || { cat app.err; fail "the program does not come to wait"; }

# The last operations may be on their way to their await for a moment.
for _ in $(seq 300); do
  "$CLRSNAP" async --json "$pid" > json 2> err || { cat err; fail "async ended with $?"; }
  python3 "$SOURCE/tests/live/async/async.py" json "$SOURCE/tests/apps/Suspended/Program.cs" 0 2> wrong && break
  sleep 0.1
done
[ ! -s wrong ] || { cat wrong; fail "the operations are not those of the program"; }

# stands: no thread of the program is stopped by a tracer.
stands() {
  for _ in $(seq 100); do
    grep -q "^State:.[tT]" /proc/"$pid"/task/*/status 2> /dev/null || return
    sleep 0.1
  done
  fail "$1: the program stands still"
}

# Until there were five scans, however slow the machine is.
for duration in 4 20 60; do
  timeout 300 "$CLRSNAP" record --mode wall --async --lines -F 20 -d $duration -o r.clrsnap "$pid" 2> err || { cat err; fail "record"; }
  scans=$(sed -nE 's/.*async mode: ([0-9]+) scans? for .*/\1/p' err)
  [ "${scans:-0}" -ge 5 ] && break
done
[ "${scans:-0}" -ge 5 ] || { cat err; fail "$scans scans in $duration s"; }
"$CLRSNAP" report --mode async --format collapsed -o chains.txt r.clrsnap 2> report.err || { cat report.err; fail "report"; }
grep -q "$scans scans for suspended operations, 434 operations on average; the program was stopped for" report.err ||
  { cat report.err; fail "the summary of the file"; }
python3 - "$SOURCE/tests/apps/Suspended/Program.cs" chains.txt << 'END' || { cat err chains.txt; fail "chains"; }
import re, sys
line = {}
for number, text in enumerate(open(sys.argv[1], encoding="utf-8"), 1):
    if mark := re.search(r"// at: (\w+)$", text):
        line[mark[1]] = number
at = lambda method, mark=None: f"{method} (Program.cs:{line[mark or method.split('.')[1]]})"
found = {}
for text in open(sys.argv[2], encoding="utf-8"):
    chain, weight = text.rstrip("\n").rsplit(" ", 1)
    found[chain] = int(weight)
source = "TaskCompletionSource"
# Operations of each chain; one that awaits several things is divided among them.
expected = {
    f"{at('Shop.Checkout')};{at('Shop.Cart')};{at('Shop.Send')};{source}": 300,
    f"{at('Shop.Sleep')};Task.Delay": 50,
    f"{at('Shop.Enter')};SemaphoreSlim.WaitAsync": 20,
    f"{at('Custom.Secret', 'Secret')};Opaque<T> (what this awaiter waits for is not known)": 6,
    f"Shop.Unseen;{source}": 4,
    f"{at('Nested.Outer')};Task.WhenAll;{at('Nested.Branch')};Task.WhenAll;{at('Nested.Leaf')};{source}": 1,
    f"{at('Shop.Any')};Task.WhenAny;{source}": 2 / 3,
    f"{at('Shop.Any')};Task.WhenAny;Task.Delay": 1 / 3,
}
one = found[next(iter(expected))] / 300
wrong = [f"{chain}: {found.get(chain, 0) / one:.4f}, not {count:.4f}" for chain, count in expected.items()
         if abs(found.get(chain, 0) / one - count) > 1e-6 * count]
if abs(sum(found.values()) / one - 434) > 1e-3:
    wrong.append(f"{sum(found.values()) / one:.4f} operations, not 434")
if wrong:
    sys.exit("\n".join(wrong))
END
pass "shares: $scans scans"

# The command has children for moments while it attaches, and then two: the first scans the operations, the other one
# the thread pool.
find_observer() {
  for _ in $(seq 900); do [ "$(pgrep -c -P $command)" = 2 ] && break; sleep 0.1; done
  observer=$(pgrep -o -P $command) || { cat err; fail "nothing scans"; }
}

# The command is killed at any moment of a scan.
for _ in 1 2 3 4; do
  "$CLRSNAP" record --mode wall --async -F 20 -o killed.clrsnap "$pid" > /dev/null 2> err &
  command=$!
  find_observer
  sleep "0.$((RANDOM % 9 + 1))"
  kill -9 $command
  wait $command 2> /dev/null
  for _ in $(seq 900); do [ -e "/proc/$observer" ] || break; sleep 0.1; done
  [ ! -e "/proc/$observer" ] || fail "the observing process outlives the command"
  stands "the command was killed"
done
pass "the command was killed"

# The process that scans is killed: the recording goes on, and says so.
"$CLRSNAP" record --mode wall --async -F 20 -o without.clrsnap "$pid" > /dev/null 2> err &
command=$!
find_observer
kill -9 "$observer"
for _ in $(seq 900); do [ -e "/proc/$observer" ] || break; sleep 0.1; done
kill -INT $command
wait $command || { cat err; fail "the recording has failed without its scans"; }
grep -q "the observing process was killed; it was given up" err || { cat err; fail "not said"; }
stands "the observing process was killed"
pass "the observing process was killed"

exec 3>&-
wait $launcher || { cat app.err; fail "the program ended with $?"; }
grep -q done said || fail "the program has not come to its end"

# A program that the command starts: its end is not taken for a scan's.
echo > nothing
timeout 300 "$CLRSNAP" record --mode wall --async -F 20 -o started.clrsnap -- "${target[@]}" < nothing > said 2> err || { cat err; fail "a started program"; }
grep -q done said && grep -q "async mode: " err || { cat err; fail "a started program"; }
pass "a started program"
