#!/bin/bash
# SPDX-License-Identifier: MIT
# inlined.sh BUILD SOURCE MATERIAL calls|osr|caller|attach|events: inlined methods, compared with the truth. In
# tests/apps/Inlined three of them take 60, 30 and 10 % of the time of one method, two levels deep, generic,
# and in another assembly; their hot lines are marked in the source.
BUILD=$1 SOURCE=$2 MATERIAL=$3 WHAT=$4
. "$SOURCE/tests/live/lib.sh"
build_app Inlined
cd "$WORK" || exit 1
unset DOTNET_RichDebugInfo
by_perf

# "METHOD FILE:LINE" of each marker. A recording has Bag<T>.Mix as Bag<Tag>.Mix<U>.
sed -s -nE '/\/\/ (hot|call): /{F;=;p}' "$SOURCE"/tests/apps/Inlined/*.cs "$SOURCE"/tests/apps/InlinedOther/*.cs |
  paste - - - | sed -E 's#^.*/([^/\t]*)\t([0-9]*)\t.*// (hot|call): (.*)$#\3 \4 \1:\2#' > truth
[ "$(wc -l < truth)" = 13 ] || fail "the sources have $(wc -l < truth) markers"
line_of() { awk -v what="$1" -v method="$2" '$1 == what && $2 == method { print $3; exit }' truth; }

# record NAME WHAT MS OPTIONS...
record() {
  local name=$1 what=$2 ms=$3
  shift 3
  timeout 300 "$BUILD/bin/clrsnap" record "${PERF[@]}" --native off -F 999 -o "$name.collapsed" -o "$name.json" "$@" -- \
    dotnet "$APP" "$what" "$ms" > /dev/null 2> "$name.err"
  [ $? = 42 ] || { cat "$name.err"; fail "$name: the recording ended otherwise"; }
}

# shares NAME METHOD POINTS: of all samples below METHOD the three have 60, 30 and 10 % to within POINTS, by their number: weights
# contain time that was taken from the machine. An inlined leaf is on its hot line; and most leaves are inlined.
shares() {
  PYTHONPATH=$SOURCE/tests/tools python3 - "$1.json" "$2" "$3" << 'PYTHON' || fail "$1: shares (above)"
import json
import sys

import jsontree

want = {"Inl.Program.Deep": 60, "Inl.Bag<Tag>.Mix<U>": 30, "InlinedOther.Far.Mix": 10}
own, whole = dict.fromkeys(want, 0), 0
for frames, samples, _ in jsontree.stacks(json.load(open(sys.argv[1]))["modes"][0]):
    if any(frame.startswith(sys.argv[2]) for frame in frames):
        whole += samples
        for method in want:
            own[method] += samples * frames[-1].startswith(method)
got = {method: 100 * n / max(whole, 1) for method, n in own.items()}
print(f"of {whole} samples", {method: f"{share:.2f} %" for method, share in got.items()})
assert all(abs(got[method] - want[method]) <= float(sys.argv[3]) for method in want), want
PYTHON
  awk -v method="$2" -v deep="$(line_of hot Inl.Program.Deep)" -v far="$(line_of hot InlinedOther.Far.Mix)" \
    -v bag="$(line_of hot 'Inl.Bag<T>.Mix')" '
    BEGIN { line["Inl.Program.Deep"] = deep; line["Inl.Bag<Tag>.Mix<U>"] = bag; line["InlinedOther.Far.Mix"] = far }
    { weight = $NF / 1e6; sub(/ [0-9]+$/, ""); n = split($0, frames, ";"); at = 0
      for (i = 1; i <= n; i++) if (index(frames[i], method) == 1) at = i
      if (at == 0) next
      all += weight
      for (m in line) {
        if (index(frames[n], m) != 1) continue
        if (frames[n] !~ / \(inlined\)$/) continue
        inlined += weight
        if (frames[n] != m " (" line[m] ") (inlined)") { print "not on its line: " frames[n], weight; bad = 1 }
        # Every frame between is inlined, too; Deep is two levels deep.
        for (i = at + 1; i < n; i++) if (m != "Inl.Program.Deep" || frames[i] !~ /^Inl.Program.Middle/) {
          print "in between: " frames[i]; bad = 1 }
      } }
    END { printf "%.1f %% inlined\n", 100 * inlined / all
      exit bad || inlined < 0.7 * all }' "$1.collapsed" || { cat "$1.err" "$1.collapsed"; fail "$1: (above)"; }
}

# lines NAME METHOD: METHOD is on the line that calls what was inlined into it, and so is Middle, which was
# inlined itself.
lines() {
  local call
  call=$(line_of call "$2")
  awk -v method="$2" -v file="${call%:*}" -v line="${call#*:}" -v middle="$(line_of call Inl.Program.Middle)" '
    BEGIN { at["Inl.Program.Middle"] = line; at["Inl.Bag<Tag>.Mix<U>"] = line + 1; at["InlinedOther.Far.Mix"] = line + 2 }
    { weight = $NF / 1e6; sub(/ [0-9]+$/, ""); n = split($0, frames, ";")
      for (i = 1; i < n; i++) for (m in at) {
        if (index(frames[i], method) != 1 || index(frames[i + 1], m) != 1 || frames[i + 1] !~ / \(inlined\)/) continue
        right = frames[i] == method " (" file ":" at[m] ")"
        if (m == "Inl.Program.Middle") right = right && frames[i + 1] == m " (" middle ") (inlined)"
        if (right) seen[m]++
        else if (frames[i] != method) { print weight, $0; bad = 1 } } }
    END { for (m in at) if (!seen[m]) { print m ": the line of its call is not known"; bad = 1 }
      exit bad }' "$1.collapsed" || { cat "$1.collapsed"; fail "$1: $2 is not where it calls"; }
}

calls() {
  record with calls 3000 --inlined -o with.clrsnap -o with.pb.gz -o with.firefox.json
  shares with Inl.Program.Hot 2
  lines with Inl.Program.Hot
  "$BUILD/bin/clrsnap" report --native off -o again.collapsed with.clrsnap 2> report.err &&
    "$BUILD/bin/clrsnap" report --native off -o again.pb.gz with.clrsnap 2> report.err || { cat report.err; fail "report"; }
  cmp with.collapsed again.collapsed && cmp with.pb.gz again.pb.gz || fail "report and record differ"
  "$BUILD/bin/clrsnap" report --native off --no-lines -o plain.collapsed with.clrsnap 2> report.err
  grep -q ';Inl.Program.Hot;Inl.Program.Middle (inlined);Inl.Program.Deep (inlined) ' plain.collapsed ||
    fail "inlined methods want lines"
  grep -q '"Inl.Program.Deep (inlined)"' with.firefox.json || fail "firefox: nothing is inlined"
  if command -v go > /dev/null; then
    go tool pprof -traces with.pb.gz 2> /dev/null | grep -A2 'Inl.Program.Deep (inline)' | tr -s ' \n' ' ' |
      grep -q 'Deep (inline) Inl.Program.Middle \(inline\|(inline)\) Inl.Program.Hot' ||
      { go tool pprof -traces with.pb.gz | head -40; fail "go tool pprof sees nothing inlined"; }
  fi
  "$BUILD/bin/clrsnap" report -o with.json with.clrsnap 2> report.err || { cat report.err; fail "report"; }
  python3 - << 'PYTHON' || fail "json: not all that was inlined into Hot"
import json
mode = json.load(open("with.json"))["modes"][0]
names, pairs = mode["strings"], mode["inlining"]
hot = {names[method] for method, into in zip(pairs[::2], pairs[1::2]) if names[into] == "Inl.Program.Hot"}
assert hot >= {"Inl.Program.Middle", "Inl.Program.Deep", "Inl.Bag<Tag>.Mix<U>", "InlinedOther.Far.Mix"}, hot
PYTHON
  # A search says into which method it was inlined; the share is that of the page's boxes.
  "$BUILD/bin/clrsnap" report --search 'Program\.Deep' with.clrsnap 2> found || { cat found; fail "report --search"; }
  grep -Eq '^clrsnap: cpu mode: [0-9.]+ % in and below what matches, [0-9.]+ % in itself, of ' found &&
    grep -Eq '^clrsnap:   inlined: Inl.Program.Deep into Inl.Program.Hot \([0-9]{2}\.[0-9] %\)$' found &&
    grep -q '^clrsnap: not seen: what is inlined into precompiled code' found || { cat found; fail "a search"; }
  # Without --inlined the outer method has all of the time, and the runtime keeps no data.
  record without calls 1500
  grep -q inlined without.collapsed && fail "inlined frames that nobody asked for"
  awk '{ weight = $NF / 1e6; sub(/ [0-9]+$/, "")
    if (/;Inl.Program.Hot(;|$)/) { all += weight; if (/;Inl.Program.Hot$/) own += weight } }
    END { printf "without: Hot has %.1f %% for its own\n", 100 * own / all; exit own < 0.7 * all }' without.collapsed ||
    fail "without --inlined, Hot has not all of it"
}

caller() {
  record caller caller 2000 --inlined
  awk -v place="Inl.Program.Between ($(line_of call Inl.Program.Between)) (inlined)" '
    { weight = $NF / 1e6; sub(/ [0-9]+$/, "") }
    /;Inl.Program.Leaf/ { all += weight; if (index($0, ";" place ";Inl.Program.Leaf")) right += weight
      else if (/\(inlined\);Inl.Program.Leaf/) wrong += weight }
    END { printf "%.1f %% below %s\n", 100 * right / all, place; exit right < 0.7 * all || wrong > 0 }' \
    caller.collapsed || { cat caller.collapsed; fail "a caller is not where it calls"; }
}

# start MS VARIABLE=VALUE: starts as PID a program that runs for MS of CPU time, and waits until all its code is compiled.
start() {
  local ms=$1 ticks=0
  shift
  env "$@" dotnet "$APP" calls "$ms" > /dev/null &
  PID=$!
  trap 'kill $PID 2> /dev/null; rm -rf "$WORK"' EXIT
  while [ "${ticks:-100}" -lt 100 ]; do
    sleep 0.1
    ticks=$(awk '{ sub(/.*\) /, ""); print $12 + $13 }' "/proc/$PID/stat")
  done
}

attach() {
  start 60000 A=b
  "$BUILD/bin/clrsnap" record --inlined -d 1 "$PID" 2> refused.err
  [ $? = 1 ] && grep -q "process $PID was started without DOTNET_RichDebugInfo=1" refused.err ||
    { cat refused.err; fail "a program without the variable was not refused"; }
  kill "$PID"
  wait "$PID" 2> /dev/null
  start 5000 DOTNET_RichDebugInfo=1
  timeout 300 "$BUILD/bin/clrsnap" record --inlined "${PERF[@]}" --native off -F 999 -o attach.collapsed -o attach.json "$PID" 2> attach.err ||
    { cat attach.err; fail "the attach"; }
  shares attach Inl.Program.Hot 4 # it begins anywhere
}

# Compares the debug info that clrsnap reads with the runtime's event.
events() {
  local providers='Microsoft-Windows-DotNETRuntime:10:5,Microsoft-Windows-DotNETRuntimePrivate:40000:4'
  export DOTNET_EnableEventPipe=1 DOTNET_EventPipeOutputPath=$WORK/trace DOTNET_EventPipeConfig=$providers
  export DOTNET_EventPipeCircularMB=256 DOTNET_TieredCompilation=0 DOTNET_ReadyToRun=0
  record events calls 1000 --inlined -o events.clrsnap
  python3 "$SOURCE/tests/live/names/inlined_events.py" trace events.clrsnap || fail "not what the runtime tells"
}

case $WHAT in
  calls | caller | attach | events) $WHAT ;;
  osr) record osr osr 3000 --inlined && shares osr Inl.Program.Endless 2 && lines osr Inl.Program.Endless ;;
  *) fail "there is no test '$WHAT'" ;;
esac
pass "$WHAT"
