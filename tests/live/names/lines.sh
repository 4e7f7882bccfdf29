#!/bin/bash
# SPDX-License-Identifier: MIT
# lines.sh BUILD SOURCE MATERIAL tiered|optimized|embedded|replaced|edited: compares sampled lines with the truth. tests/apps/Lines has methods whose hot
# line is marked in the source; of all samples with such a method on the stack, 95 of 100 must be on that line.
BUILD=$1 SOURCE=$2 MATERIAL=$3 WHAT=$4
. "$SOURCE/tests/live/lib.sh"

# The truth, from the sources: "FILE:LINE PATTERN" for each marker.
sed -s -nE '/\/\/ hot: /{F;=;p}' "$SOURCE"/tests/apps/Lines/*.cs | paste - - - |
  sed -E 's#^.*/([^/\t]*)\t([0-9]*)\t.*// hot: (([^ ]*:[0-9]+) )?(.*)$#\4 \1:\2 \5#; s/^([^ ]+) [^ ]+ /\1 /; s/^ //' > "$WORK/truth"
[ "$(wc -l < "$WORK/truth")" -ge 13 ] || fail "the sources have $(wc -l < "$WORK/truth") markers"

# check NAME: looks every method of the truth up in the recording $WORK/NAME.txt.
check() {
  awk -v name="$1" '
    FNR == NR { line[$2] = $1; pattern[$2] = $2; gsub(/[.$]/, "[&]", pattern[$2])
      gsub(/\[\.\]\*/, ".*", pattern[$2]); next }
    { weight = $NF / 1e6; sub(/ [0-9]+$/, ""); n = split($0, frames, ";")
      for (method in pattern) {
        place = ""
        for (i = n; i > 0 && place == ""; i--)  # the youngest of its frames
          if (frames[i] ~ "^" pattern[method] "( |$)") place = frames[i]
        if (place == "") continue
        all[method] += weight
        if (index(place, " (" line[method] ")")) right[method] += weight
        else { sub(/^[^(]* ?/, "", place); wrong[method] = wrong[method] " " place "=" weight } } }
    END { for (method in pattern) {
        printf "%s %-40s %-22s %5d of %5d%s\n", name, method, line[method], right[method], all[method], wrong[method]
        if (all[method] < 20 || right[method] < 0.95 * all[method]) bad = 1 }
      exit bad }' "$WORK/truth" "$WORK/$1.txt" || { cat "$WORK/$1.err"; fail "$1: lines are wrong (above)"; }
}

# record NAME ENVIRONMENT DLL. A null reference at a method's first instruction must not cut the walk.
record() {
  env $2 "$BUILD/bin/clrsnap" record --lines --native off -F 999 --format collapsed -o "$WORK/$1.txt" -- \
    dotnet "$3" 800 > /dev/null 2> "$WORK/$1.err"
  [ $? = 42 ] || { cat "$WORK/$1.err"; fail "$1: the recording ended otherwise"; }
  check "$1"
  awk '{ all += $NF; if (/\[cut: /) cut += $NF } END { exit !(cut <= 0.005 * all) }' "$WORK/$1.txt" ||
    { cat "$WORK/$1.err"; fail "$1: more than 5 of 1000 walks are cut"; }
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
  for how in none before; do
    restore
    timeout 300 dotnet "$WORK/app/Lines.dll" 60000 > /dev/null 2>&1 &
    CHILD=$!
    find_program Lines.dll
    [ $how = none ] || swap
    timeout 300 "$BUILD/bin/clrsnap" record -d 1.5 --lines --native off --format collapsed -o "$WORK/$how.txt" "$PID" > "$WORK/$how.err" 2>&1 ||
      { cat "$WORK/$how.err"; fail "$how"; }
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
  timeout 300 "$BUILD/bin/clrsnap" record -d 1.5 --lines --native off --format collapsed -o "$WORK/module.txt" "$PID" > "$WORK/module.err" 2>&1 ||
    { cat "$WORK/module.err"; fail "only the module"; }
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
  DOTNET_MODIFIABLE_ASSEMBLIES=debug "$BUILD/bin/clrsnap" record --lines --native off -F 999 --format collapsed -o "$WORK/edited.txt" -- \
    dotnet "$APP" "$WORK/lib" 700 > "$WORK/edited.out" 2> "$WORK/edited.err" || { cat "$WORK/edited.err"; fail "exit code $?"; }
  grep -q '^edited$' "$WORK/edited.out" || fail "nothing was edited"
  python3 - "$WORK/edited.txt" << 'PYTHON' || { cat "$WORK/edited.err"; fail "lines of a method that was edited"; }
import collections
import re
import sys

sums = collections.Counter()
for line in open(sys.argv[1]):
    stack, _, amount = line.rpartition(" ")
    for method, place in re.findall(r"Shop\.(\w+)(?: \(Shop\.cs:(\d+)\))?", stack):
        sums[method, int(place or 0)] += int(amount)
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
