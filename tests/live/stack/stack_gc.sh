#!/bin/bash
# SPDX-License-Identifier: MIT
# stack_gc.sh BUILD SOURCE MATERIAL KIND: `clrsnap stack`, again and again, of a program that collects all the time: which thread
# collects, which one suspends the runtime and why, and which ones wait for the end. Each statement must fit the thread's stack and what that
# thread of the program can do at all. KIND: workstation, background (concurrent collections), server.
BUILD=$1 SOURCE=$2 MATERIAL=$3 KIND=$4
. "$SOURCE/tests/live/lib.sh"
CLRSNAP=$BUILD/bin/clrsnap
build_app Collects
arguments=()
case $KIND in
  workstation) export DOTNET_gcServer=0 DOTNET_gcConcurrent=0 ;;
  background) export DOTNET_gcServer=0 DOTNET_gcConcurrent=1; arguments=(background) ;;
  server) export DOTNET_gcServer=1 DOTNET_GCHeapCount=2 DOTNET_gcConcurrent=0 ;;
esac
timeout 300 dotnet "$APP" "$WORK/end" "${arguments[@]}" > "$WORK/said" 2>&1 &
launcher=$!
for _ in $(seq 300); do grep -q ready "$WORK/said" && break; sleep 0.1; done
pid=$(pgrep -P $launcher) && grep -q ready "$WORK/said" || { cat "$WORK/said"; fail "the program that collects"; }
taken=0
# snapshots PHASE COUNT: takes COUNT more snapshots.
snapshots() {
  for _ in $(seq "$2"); do
    taken=$((taken + 1))
    timeout 300 "$CLRSNAP" stack --json "$pid" > "$WORK/snapshot.$1.$taken" || fail "stack"
  done
}
# check PHASE: returns 3 if nothing is wrong, but too little of what should be seen was seen.
check() {
  python3 - "$KIND" "$1" "$WORK/snapshot.$1".* << 'PYTHON'
import collections, json, sys
kind, phase, seen = sys.argv[1], sys.argv[2], collections.Counter()
for path in sys.argv[3:]:
    threads = [t for t in json.load(open(path))["threads"] if t["frames"]]
    suspends = [t for t in threads if t.get("suspends")]
    assert len(suspends) <= 1, [t["name"] for t in suspends]
    for t in threads:
        name, frames, waits = t["name"], t["frames"], t.get("waits_for")
        managed = [f["name"] for f in frames if f["kind"] in ("jit", "r2r")]
        why = (name, t, [f["name"] for f in frames])
        seen[(name, t.get("in"), waits, t.get("suspends_for"))] += 1
        if t.get("in") == "managed code": assert frames[0]["kind"] in ("jit", "r2r"), why
        if t.get("in") == "native code": assert frames[0]["kind"] == "native", why
        if waits: assert t["state"].startswith("waiting"), why
        if t.get("suspends_for") == "collection":
            seen["suspends"] += 1
            assert t["in"] in ("gc", "background gc"), why
            assert name in (".NET BGC", ".NET Server GC") or "System.GC.Collect" in managed or name in ("Allocator", "dotnet"), why
        if waits == "a collection to end":
            seen["waits"] += 1
            assert not t["cooperative"] and t["managed"] and t is not suspends, why
            assert suspends and suspends[0]["suspends_for"] == "collection", why
            assert frames[0]["kind"] == "native" and any(f.get("module", "").endswith("libcoreclr.so") for f in frames), why
        # No statement may be made that is impossible for a thread.
        if name == "Sleeper": assert waits in (None, "time to pass") and t["in"] == "native code", why
        if name == "Worker": assert t.get("in") != "gc" and waits in (None, "a collection to end"), why
        if t.get("in") == "gc": assert name in ("Collector", "Allocator", "dotnet", ".NET Server GC"), why
        if t.get("in") == "background gc": assert name == ".NET BGC", why
        if name == ".NET Server GC" and waits: seen[waits] += 1
        if name == ".NET Server GC": assert not t["managed"] and t.get("in") in ("gc", "native code"), why
        if t.get("in") == "background gc": seen["background"] += 1
        if phase == "after":
            assert t.get("suspends_for", "other") == "other" and t.get("in") not in ("gc", "background gc") and waits != "a collection to end", why
            if name in (".NET Server GC", ".NET BGC"): assert waits == "work", why
for what, count in sorted(seen.items(), key=str): print(f"{count:4} {what}")
if phase == "collecting":
    enough = seen["suspends"] >= 5 and seen["waits"] >= 5
    enough &= kind != "background" or seen["background"] >= 5
    enough &= kind != "server" or seen["the other threads of the collector"] >= 1
    sys.exit(0 if enough else 3)
PYTHON
}
# A snapshot finds a suspension by chance: one in ten where collections are mostly in the background.
for _ in 1 2 3 4 5; do
  snapshots collecting 40
  rc=0
  check collecting || rc=$?
  [ $rc = 3 ] || break
done
[ $rc = 0 ] || fail "$KIND, collecting"
# A recording has the same: a thread that ran managed code waits for the collection, above the method that it ran; each
# collection is the way to the safe point and the work.
recorded() {
  local try
  for try in 1 2 3; do
    record_waits && break
    [ $try != 3 ] || { cat "$WORK/wall.folded"; fail "the worker does not wait for GC"; }
  done
  parts_of_pauses
}
# Returns whether the worker mostly waits for collections. Where other programs take the processors, it waits for those.
record_waits() {
  timeout 300 "$CLRSNAP" record --mode wall,gc -d 2 -o "$WORK/gc.clrsnap" "$pid" > "$WORK/record.out" 2>&1 ||
    { cat "$WORK/record.out"; fail "record"; }
  for mode in wall gc; do
    "$CLRSNAP" report --mode $mode --format collapsed -o - "$WORK/gc.clrsnap" > "$WORK/$mode.folded" 2> /dev/null || fail "report"
  done
  ! grep 'lambda#4.*\[waits for' "$WORK/wall.folded" || fail "the sleeper waits for GC"
  # The second lambda is the worker, the fourth the sleeper. A sample may find the worker on its way to the wait.
  awk '/Program.Main.lambda#2;/ { all += $NF } /Program.Main.lambda#2;\[waits for GC\] / { waits += $NF }
    END { exit !(waits > all / 2) }' "$WORK/wall.folded"
}
# Both parts of a pause have the stack of the thread that has asked for the collection. Where other programs take the
# processor from the walks, some are put off, and have no stack.
parts_of_pauses() {
  grep -q 'System.GC.Collect.*;\[GC gen 2, induced, blocking\] ' "$WORK/gc.folded" &&
    grep -q 'System.GC.Collect.*;\[way to the safe point: GC gen 2, induced, blocking\] ' "$WORK/gc.folded" ||
    { cat "$WORK/gc.folded"; fail "the parts of a pause"; }
  awk '/\[GC gen 2, induced, blocking\] / && !/put-off/ { all += $NF } /System.GC.Collect.*;\[GC gen 2, induced, blocking\] / { asked += $NF }
    END { print "asked for", asked, "of", all; exit !(asked > all * 0.5) }' "$WORK/gc.folded" ||
    { cat "$WORK/gc.folded"; fail "pauses with the stack of another thread"; }
}
# Under Server GC a thread of the collector's own makes the pause.
by_the_server() {
  timeout 300 "$CLRSNAP" record --mode gc -d 1 -o "$WORK/gc.folded" "$pid" > "$WORK/record.out" 2>&1 ||
    { cat "$WORK/record.out"; fail "record"; }
  parts_of_pauses
}
# Where the way to the safe point is long, most of the pause is the way (nine tenths on a quiet machine), and the thread
# that held it up stands in memset. What is left of the way is time in which no thread held it up, or none was seen to:
# where other programs leave no processor to look with, a recording may see none.
stubborn() {
  local line place
  line=$(grep -n 'while (stubborn) Native.memset' "$SOURCE/tests/apps/Collects/Program.cs" | cut -d: -f1)
  place="Program.Main.lambda#2 (Program.cs:$line)"
  for _ in $(seq 10); do
    timeout 300 "$CLRSNAP" record --lines --mode gc -o "$WORK/way.folded" -o "$WORK/way.md" -- dotnet "$APP" "$WORK/never" stubborn > "$WORK/record.out" 2>&1 ||
      { cat "$WORK/record.out"; fail "record"; }
    # The parts add up to the pauses: what samples of the thread account for is not counted twice.
    awk '/gc: [0-9]+ pauses, / { all = $(NF - 1) * ($NF == "s" ? 1e9 : 1e6) } NR != FNR { sum += $NF }
      END { print "parts", sum, "of", all; exit !(all > 0 && sum > all * 0.98 && sum < all * 1.02) }' "$WORK/record.out" "$WORK/way.folded" ||
      { cat "$WORK/record.out" "$WORK/way.folded"; fail "the parts of the pauses do not add up"; }
    awk '/;\[way to the safe point: GC gen 2/ { way += $NF } /;\[GC gen 2/ { work += $NF }
      /;\[holds up GC/ { way += $NF; held += $NF } /;Program.Main.lambda#2 .*;.*memset.*;\[holds up GC/ { memset += $NF }
      END { print "way", way, "held up", held, "in memset", memset, "work", work
            exit !(work > 0 && way > work && memset > way / 5 && memset > held * 0.5) }' "$WORK/way.folded" || continue
    grep -q ' % of the pauses was the way to the safe point: a thread ran' "$WORK/way.md" &&
      grep -qF "Longest in \`$place\`: " "$WORK/way.md" || { cat "$WORK/way.md"; fail "the finding"; }
    grep -qF "held up by $place: " "$WORK/record.out" || { cat "$WORK/record.out"; fail "the summary"; }
    return
  done
  cat "$WORK/way.folded"
  fail "the way to the safe point"
}
[ "$KIND" != workstation ] || { recorded && stubborn; }
[ "$KIND" != server ] || by_the_server
touch "$WORK/end"
for _ in $(seq 300); do grep -q ended "$WORK/said" && break; sleep 0.1; done
grep -q ended "$WORK/said" || fail "the program still collects"
sleep 0.5
snapshots after 10
check after || fail "$KIND, after"
kill "$pid"
wait $launcher 2> /dev/null
pass "$KIND"
