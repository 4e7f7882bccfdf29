#!/bin/bash
# SPDX-License-Identifier: MIT
# lines.sh BUILD SOURCE MATERIAL tiered|optimized|embedded|replaced|edited: compares sampled lines with the truth. tests/apps/Lines has methods whose hot
# line is marked in the source; of all samples with such a method on the stack, 95 of 100 must be on that line.
BUILD=$1 SOURCE=$2 MATERIAL=$3 WHAT=$4
. "$SOURCE/tests/live/lib.sh"
by_perf

# The truth, from the sources: "FILE:LINE PATTERN" for each marker.
sed -s -nE '/\/\/ hot: /{F;=;p}' "$SOURCE"/tests/apps/Lines/*.cs | paste - - - |
  sed -E 's#^.*/([^/\t]*)\t([0-9]*)\t.*// hot: (([^ ]*:[0-9]+) )?(.*)$#\4 \1:\2 \5#; s/^([^ ]+) [^ ]+ /\1 /; s/^ //' > "$WORK/truth"
[ "$(wc -l < "$WORK/truth")" -ge 13 ] || fail "the sources have $(wc -l < "$WORK/truth") markers"

# check NAME: looks every method of the truth up in the recording $WORK/NAME.json, and counts the samples: weights contain time
# that was taken from the machine. Returns 3 if there are too few to say.
check() {
  PYTHONPATH=$SOURCE/tests/tools python3 - "$WORK/truth" "$WORK/$1.json" << 'PYTHON'
import collections
import json
import re
import sys

import jsontree

truth = dict(reversed(line.split()) for line in open(sys.argv[1]))
pattern = {method: re.compile(re.escape(method).replace(r"\.\*", ".*") + "( |$)") for method in truth}
every, right, wrong, samples, cut = collections.Counter(), collections.Counter(), collections.Counter(), 0, 0
for frames, n, _ in jsontree.stacks(json.load(open(sys.argv[2]))["modes"][0]):
    samples += n
    cut += n * any(frame.startswith("[cut: ") for frame in frames)
    for method in truth:
        place = next((frame for frame in reversed(frames) if pattern[method].match(frame)), None)  # the youngest of its frames
        if n == 0 or place is None:
            continue
        every[method] += n
        if f" ({truth[method]})" in place:
            right[method] += n
        else:
            wrong[method, place] += n
few, bad = [], []
for method in truth:
    print(f"{method:40} {truth[method]:22} {right[method]:5} of {every[method]:5}", [(p, n) for (m, p), n in wrong.items() if m == method])
    (few if every[method] < 100 else bad).extend([method] if every[method] < 20 or right[method] < 0.95 * every[method] else [])
print(f"{cut} of {samples} walks are cut")
assert not bad and cut <= max(1, 0.005 * samples), bad
sys.exit(3 if few else 0)
PYTHON
}

# record NAME ENVIRONMENT DLL. A null reference at a method's first instruction must not cut the walk.
record() {
  local ms rc
  for ms in 800 3000 9000; do
    env $2 "$BUILD/bin/clrsnap" record "${PERF[@]}" --lines --native off -F 999 -o "$WORK/$1.json" -- dotnet "$3" $ms > /dev/null 2> "$WORK/$1.err"
    [ $? = 42 ] || { cat "$WORK/$1.err"; fail "$1: the recording ended otherwise"; }
    rc=0
    check "$1" || rc=$?
    [ $rc = 3 ] || break
  done
  [ $rc = 0 ] || { cat "$WORK/$1.err"; fail "$1: lines are wrong, or walks are cut (above)"; }
  pass "$1: all methods are on their hot lines"
}
# The program's file and its PDB are replaced by another build, whose methods have the same tokens, before and during the
# recording. No line of the new build may be shown, and the summary says why there is none. The id of the module's PDB
# is read from memory: if only the module's file is replaced, all lines are there and right.
replaced() {
  build_app Lines
  cp -r "$(dirname "$APP")" "$WORK/app"
  # The PDB that the compiler has left is moved away, because clrsnap would find and use it.
  sed -i 's#/obj/Lines/#/obj/Nines/#' "$WORK/app/Lines.dll" && cp "$WORK/app/Lines.dll" "$WORK/original.dll"
  ! cmp -s "$APP" "$WORK/original.dll" || fail "the PDB's path is not in the module"
  other="$MATERIAL/apps/Collects/Collects" && (build_app Collects) || fail "the other build"
  swap() {
    cp "$other.pdb" "$WORK/app/Lines.pdb"
    cp "$other.dll" "$WORK/app/new" && mv "$WORK/app/new" "$WORK/app/Lines.dll"  # in place it would die of it
  }
  restore() { rm "$WORK"/app/Lines.*; cp "$(dirname "$APP")"/Lines.* "$WORK/app/"; cp "$WORK/original.dll" "$WORK/app/Lines.dll"; }
  # told HOW: there is no line of the program's module, none of the other build's sources, and a reason.
  told() {
    grep -q 'Lines\.Program\.\|Lin\.' "$WORK/$1.txt" || { head -5 "$WORK/$1.txt"; fail "$1: the program is not in the recording"; }
    ! grep -qE '\((Program|Mapped)\.cs:[0-9]+\)' "$WORK/$1.txt" || { cat "$WORK/$1.err"; fail "$1: lines of another build"; }
    grep -q 'Lines.dll (its PDB is of another build' "$WORK/$1.err" || { cat "$WORK/$1.err"; fail "$1: not said"; }
  }
  # attached NAME: records the program's code, longer if the first recording has nothing of it.
  attached() {
    local seconds
    for seconds in 1.5 6 24; do
      timeout 300 "$BUILD/bin/clrsnap" record -d $seconds --lines --native off --format collapsed -o "$WORK/$1.txt" "$PID" > "$WORK/$1.err" 2>&1 &&
        grep -q 'Lines\.Program\.\|Lin\.' "$WORK/$1.txt" && return
    done
    cat "$WORK/$1.err"
    fail "$1: nothing of the program"
  }
  for how in none before; do
    restore
    timeout 300 dotnet "$WORK/app/Lines.dll" 60000 > /dev/null 2>&1 &
    CHILD=$!
    find_program Lines.dll
    [ $how = none ] || swap
    attached $how
    kill "$PID"
    wait $CHILD 2> /dev/null
    if [ $how != none ]; then told $how; continue; fi
    grep -qE '\(Program\.cs:[0-9]+\)' "$WORK/none.txt" || { cat "$WORK/none.err"; fail "no lines though nothing was replaced"; }
  done
  restore
  timeout 300 dotnet "$WORK/app/Lines.dll" 60000 > /dev/null 2>&1 &
  CHILD=$!
  find_program Lines.dll
  cp "$other.dll" "$WORK/app/new" && mv "$WORK/app/new" "$WORK/app/Lines.dll"
  attached module
  kill "$PID"
  wait $CHILD 2> /dev/null
  grep -qE '\(Program\.cs:[0-9]+\)' "$WORK/module.txt" || { cat "$WORK/module.err"; fail "no lines though the PDB is there"; }
  restore
  timeout 300 "$BUILD/bin/clrsnap" record --lines --native off -o "$WORK/during.collapsed" -o "$WORK/during.clrsnap" -- \
    dotnet "$WORK/app/Lines.dll" 60000 > "$WORK/during.err" 2>&1 &
  local recorder=$!
  started() { CHILD=$(pgrep -P $recorder); }
  until_true 30 started || fail "the command does not start"
  find_program Lines.dll
  sleep 1
  swap
  kill -INT "$CHILD"
  wait $recorder
  mv "$WORK/during.collapsed" "$WORK/during.txt" || { cat "$WORK/during.err"; fail "during"; }
  told during
  timeout 300 "$BUILD/bin/clrsnap" report --native off --format collapsed -o "$WORK/report.txt" "$WORK/during.clrsnap" 2> "$WORK/report.err"
  cmp "$WORK/during.txt" "$WORK/report.txt" || fail "report says otherwise"
}
# A method that is edited while the program runs keeps the lines of its old code, and has none for its new one.
edited() {
  build_app HotReload
  mkdir "$WORK/lib"
  DOTNET_MODIFIABLE_ASSEMBLIES=debug "$BUILD/bin/clrsnap" record "${PERF[@]}" --lines --native off -F 999 -o "$WORK/edited.json" -- \
    dotnet "$APP" "$WORK/lib" 700 > "$WORK/edited.out" 2> "$WORK/edited.err" || { cat "$WORK/edited.err"; fail "exit code $?"; }
  grep -q '^edited$' "$WORK/edited.out" || fail "nothing was edited"
  PYTHONPATH=$SOURCE/tests/tools python3 - "$WORK/edited.json" << 'PYTHON' || { cat "$WORK/edited.err"; fail "lines of a method that was edited"; }
import collections
import json
import re
import sys

import jsontree

sums = collections.Counter()
for frames, samples, _ in jsontree.stacks(json.load(open(sys.argv[1]))["modes"][0]):
    for method, place in re.findall(r"Shop\.(\w+)(?: \(Shop\.cs:(\d+)\))?", ";".join(frames)):
        sums[method, int(place or 0)] += samples
print(dict(sums))
whole = {name: sum(v for (m, _), v in sums.items() if m == name) for name in ("Edited", "Untouched")}
without = {name: sums[name, 0] / whole[name] for name in whole}
# In code for a debugger, a loop's jump back is hidden in the PDB, and so without a line.
assert without["Untouched"] < 0.2 < without["Edited"] < 0.85, without
assert {place for name, place in sums if name == "Edited" and place} <= {7, 8, 9}, sums
PYTHON
  grep -q 'no IL map of .*: they were edited (hot reload)' "$WORK/edited.err" || { cat "$WORK/edited.err"; fail "not said"; }
}
case $WHAT in
  edited) edited && pass "$WHAT: no line of the old code for the new one" ;;
  replaced) replaced && pass "$WHAT: no lines of another build" ;;
  tiered) build_app Lines && record tiered "DOTNET_TieredPGO=1" "$APP" ;;
  optimized) build_app Lines && record optimized "DOTNET_TieredCompilation=0" "$APP" ;;
  embedded) build_app LinesEmbedded && record embedded "DOTNET_TieredPGO=1" "$APP" ;;
  *) fail "there is no test '$WHAT'" ;;
esac
