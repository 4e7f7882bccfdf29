#!/bin/bash
# SPDX-License-Identifier: MIT
# holders.sh BUILD SOURCE MATERIAL [VERSION]: lock mode says who holds a System.Threading.Lock when a wait for it begins, also that
# nobody does (tests/apps/Locks hand-over), and turns on holders mode, which knows the type of a monitor's object also during
# collections (Locks collected). VERSION: on that older runtime.
BUILD=$1 SOURCE=$2 MATERIAL=$3
. "$SOURCE/tests/live/lib.sh"
CLRSNAP=$BUILD/bin/clrsnap
if [ $# = 4 ]; then on_older LocksOld "$4"; else build_app Locks && target=(dotnet "$APP"); fi
cd "$WORK" || exit 1
rounds=60

record() { timeout 100 "$CLRSNAP" record --event-rate 1000000 "$@" -- "${target[@]}" hand-over $rounds > out 2> err || { cat err; fail "record $*"; }; }
# leaves METHOD STACKS: what the stacks through METHOD end in, and how much that is in milliseconds.
leaves() {
  awk -F';' -v m="$1" 'index($0, m) { n = $NF; sub(/.* /, "", n); sub(/ [0-9]+$/, "", $NF); sum[$NF] += n }
    END { for (l in sum) printf "%s %d\n", l, sum[l] / 1e6 }' "$2"
}

record --mode lock --lines -o r.clrsnap -o page.html -o page.md -o page.txt
[ "$(cat out)" = $rounds ] || { cat out; fail "the program"; }
cp err summary
"$CLRSNAP" report --mode lock -o lock.collapsed r.clrsnap 2> report.err || { cat report.err; fail "report"; }
leaves HandOver.WaitForOwner lock.collapsed > owned
# The class is looked up when the first wait begins.
grep -q '^\[System.Threading.Lock held by owner\] ' owned && ! grep -v '^\[\(System.Threading.Lock \)\?held by owner\] ' owned ||
  { cat owned; fail "lock mode: the owner is another"; }
# All threads are known: where the runtime names none, nobody had the lock.
for turn in 1 2 3 4 5; do
  leaves HandOver.PassOn lock.collapsed > passed
  ! grep -v '^\[\(System.Threading.Lock \)\?held by \(passes on\|nobody when the wait began\)\] ' passed || fail "lock mode: an owner is wrong or not known"
  ! grep -q 'nobody when the wait began' passed || break
  record --mode lock --holders off -o lock.collapsed
done
grep -q 'nobody when the wait began' passed || { cat passed; fail "in $turn recordings no lock is free when a wait for it begins"; }

"$CLRSNAP" report --mode holders -o holders.collapsed r.clrsnap 2> report.err || { cat report.err; fail "lock mode does not bring holders mode"; }
line=$(grep -n 'Thread.Sleep(20); // the owner has it' "$SOURCE/tests/apps/Locks/Program.cs") || fail "no line is marked"
leaves "HandOver.WhileOwned (Program.cs:${line%%:*})" holders.collapsed > held
grep -q '^\[holds System.Threading.Lock\] ' held || { cat holders.collapsed; fail "holders mode does not have the owner's line"; }
# Where processors are short, threads also wait for one that passes the lock on, and has no processor.
for file in summary page.md page.txt; do
  grep -qE 'HandOver\.(WhileOwned|PassOn)' $file && grep -qE '[0-9] (ms|s)\b' $file || { cat $file; fail "$file does not say who held the lock, and for how long"; }
done
! grep -A3 '^## holders' page.md | grep -q 'every one was recorded' || { cat page.md; fail "observations at random times are called all that happened"; }
grep -q 'for lock, Monitor and Lock only' summary && grep -q 'estimated from observations' summary || { cat summary; fail "the summary does not say what is not covered"; }

# What was not walked has its times, too, not that of the recording's end.
"$CLRSNAP" report --mode holders -o r.trace.json r.clrsnap 2> report.err || { cat report.err; fail "report"; }
python3 - r.trace.json << 'PYTHON' || fail "what was not walked has no times"
import json, sys
events = [e for e in json.load(open(sys.argv[1]))["traceEvents"] if e.get("cat") == "holders"]
times = sorted(e["ts"] for e in events if e["ph"] == "e" and e["name"].startswith(("[nobody held", "[the holder was not walked")))
whole = max(e["ts"] for e in events)
assert len(times) > 5 and times[0] < whole / 2 < times[-1], (len(events), times[:3], times[-3:], whole)
PYTHON

# Beside collections all the time, a scan finds what is held. A suspension that begins within a scan takes that away.
# A thread that has no processor within a scan makes that likely.
for _ in {1..8}; do
  timeout 200 "$CLRSNAP" record --event-rate 1000000 --mode lock -o c.clrsnap -- "${target[@]}" collected 40 > out 2> err || { cat err; fail "record collected"; }
  [ "$(cat out)" = 40 ] || { cat out; fail "the program"; }
  "$CLRSNAP" report --mode holders -o collected.collapsed c.clrsnap 2> report.err || { cat report.err; fail "report"; }
  leaves Collected.HoldGuard collected.collapsed > guarded
  known=$(awk '{ all += $NF } $0 ~ /^\[holds Guard\] / { known = $NF } END { print (known > 0 && known >= 0.9 * all) }' guarded)
  [ "$known" = 0 ] || break
done
[ "$known" = 1 ] || { cat guarded; fail "holders mode does not know what is held beside collections"; }
"$CLRSNAP" report --mode lock -o waited.collapsed c.clrsnap 2> report.err || { cat report.err; fail "report"; }
leaves Collected.WaitForGuard waited.collapsed | grep -q '^\[Guard held by owner\] ' || { leaves Collected.WaitForGuard waited.collapsed; fail "lock mode does not know what is waited for beside collections"; }

# Without it, by a word or because the output shows one mode.
record --mode lock --holders off -o off.clrsnap
! "$CLRSNAP" report --mode holders -o - off.clrsnap > report.out 2> report.err || fail "--holders off records holders mode"
grep -q 'the recording has no holders mode; it has: lock' report.err || { cat report.err; fail "--holders off"; }
record --mode lock -o one.collapsed
grep -q '^clrsnap: lock mode is recorded without holders mode: an output shows one mode at a time$' err || { cat err; fail "one mode"; }
grep -q 'held by owner\] ' one.collapsed || { cat one.collapsed; fail "one mode"; }
# A wait for a System.Threading.Lock that TryEnter gives up, and one that Thread.Interrupt ends, are over then, although the runtime
# has no event for that. Scans are up to 0.2 s apart on a busy machine.
timeout 100 "$CLRSNAP" record -d 4 --event-rate 1000000 --mode lock,wait -o g.clrsnap -- "${target[@]}" gives-up > out 2> err || { cat err; fail "record gives-up"; }
for mode in holders wait; do
  "$CLRSNAP" report --mode $mode -o $mode.collapsed g.clrsnap 2> report.err || { cat report.err; fail "report gives-up"; }
done
# How long its tries took is what the program prints, in ms.
awk -v tried="$(cat out)" '{ n += $NF } END { exit !(n < 2000e6 + tried * 1e6) }' holders.collapsed || { cat out holders.collapsed; fail "a lock that was given up is waited for"; }
leaves GivesUp.Stay wait.collapsed | awk '$NF > 1000 { found = 1 } END { exit !found }' || { cat wait.collapsed; fail "a wait that has not ended is missing"; }
! grep GivesUp.Nap wait.collapsed || fail "a wait that was interrupted has not ended"
pass "$(tail -1 owned); $(head -1 held); in turn $turn: $(tr '\n' ';' < passed)"
