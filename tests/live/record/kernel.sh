#!/bin/bash
# SPDX-License-Identifier: MIT
# kernel.sh BUILD SOURCE MATERIAL: the kernel's part of stacks (--kernel) compared with perf and with the program's own
# clocks, samples by another event than CPU time (--event), and the messages where either is not available.
BUILD=$1 SOURCE=$2 MATERIAL=$3
. "$SOURCE/tests/live/lib.sh"
build_app Engine
clrsnap=$BUILD/bin/clrsnap
cd "$WORK" || exit 1
says() { grep -qE -- "$1" err || { cat err; fail "not said: $1"; }; }

# ---- Refusals before anything is started ----
refuses() { # SENTENCE OPTIONS...
  local sentence=$1
  shift
  "$clrsnap" record "$@" -o no.clrsnap -- false > out 2> err
  [ $? = 2 ] || { cat err; fail "$* is not refused"; }
  says "$sentence"
}
refuses 'did you mean .page-faults.' --event page-fault
refuses 'page-faults, .*cycles.*, not .xyzzy.' --event xyzzy
refuses 'would wake each thread' --event context-switches
refuses 'PERIOD' --event page-faults:0
refuses 'NAME:PERIOD' --event page-faults -F 99
refuses 'needs the perf engine, not clock' --kernel --engine clock
refuses 'belongs to cpu mode' --kernel --mode wall
refuses 'belongs to cpu mode' --event cycles --mode alloc
pass "what cannot be is refused with a sentence"

# ---- Where the kernel refuses ----
# Without capabilities, which root has, and where kernel.perf_event_paranoid requires one.
if [ "$(cat /proc/sys/kernel/perf_event_paranoid)" -ge 2 ]; then
  without=()
  [ "$(id -u)" != 0 ] || without=(setpriv --bounding-set=-sys_admin,-perfmon,-syslog)
  "${without[@]}" "$clrsnap" record --kernel -o no.clrsnap -- dotnet "$APP" burn 50 > out 2> err
  [ $? = 1 ] || fail "nothing was recorded, and the command says that it went well"
  says 'nothing was recorded: .*kernel.perf_event_paranoid is [2-9].*set it to 1, or give the program CAP_PERFMON'
  pass "--kernel where it is not allowed"
fi
"$clrsnap" doctor | grep -q 'engine perf: ' || exit 0

# ---- Kernel frames ----
"$clrsnap" record --kernel -F 999 -o rec.clrsnap -o rec.folded -- dotnet "$APP" kernel 2500 > out 2> err ||
  fail "the program failed"
says '^clrsnap: engine perf: '
measured=$(sed -n 's/^seven //p' out)
# Nearly all of Reads' time is in the kernel; Seven's is its own, except for reading the clock, and for being interrupted,
# which is a third of it where other programs want the processors, too.
awk -v measured="$measured" '
  { total += $NF }
  /Program\.Reads.*_\[k\]|Program\.Reads.* \[k\]/ { reads_kernel += $NF }
  /Program\.Reads/ { reads += $NF }
  /Program\.Seven/ { seven += $NF }
  /Program\.Seven/ && /\[k\]/ { seven_kernel += $NF }
  /read_zero/ { zero += $NF }
  END {
    printf "Reads: %.3f in the kernel, %.3f of all in read_zero; Seven: %.3f in the kernel, its share %.3f, measured %.3f\n",
      reads_kernel / reads, zero / total, seven_kernel / seven, seven / (seven + reads), measured
    exit !(reads_kernel / reads > 0.85 && seven_kernel / seven < 0.55)
  }' rec.folded || fail "the kernel's part"
pass "what a thread does in the kernel stands above what has called it"

if [ -r /proc/kallsyms ] && grep -q '^ffff' /proc/kallsyms; then
  grep -q 'Program.Reads;.*pread.*;.*vfs_read \[k\]' rec.folded || { head -20 rec.folded; fail "no vfs_read of pread"; }
  # No frame of the program is called by a frame of the kernel.
  ! grep -E '\[k\];[^;]*[^]];' rec.folded | grep -vE '\[k\];([^;]*\[k\];)*[^;]* \[k\] [0-9]+$' | grep -q . ||
    fail "a frame of the program's above one of the kernel's"
  pass "kernel functions have their names"
  if command -v perf > /dev/null; then
    dotnet "$APP" kernel 60000 > /dev/null &
    program=$!
    until_true 60 grep -qsF Engine.dll /proc/$program/maps || fail "the program does not start"
    sleep 1
    perf record -q -e task-clock -F 999 -o perf.data -p $program -- sleep 2 > /dev/null 2>&1
    kill $program
    wait $program 2> /dev/null
    theirs=$(perf report -i perf.data --stdio --sort symbol 2> /dev/null | awk '/read_zero/ { print $1 + 0; exit }')
    ours=$(awk '{ total += $NF } / read_zero \[k\] [0-9]+$|;read_zero \[k\] [0-9]+$/ { own += $NF } END { print 100 * own / total }' rec.folded)
    echo "read_zero: perf $theirs %, recorded $ours %"
    awk -v a="$ours" -v b="$theirs" 'BEGIN { exit !(b > 20 && a > b - 12 && a < b + 12) }' || fail "perf has another share"
    pass "perf has the same share"
  fi
fi
"$clrsnap" report -o again.folded rec.clrsnap 2> err && cmp rec.folded again.folded || fail "the recording has others"
"$clrsnap" report -o rec.json -o rec.pb.gz -o rec.html rec.clrsnap 2> err || fail "report"
python3 - rec.json << 'X' || fail "kernel frames in JSON"
import json, sys
mode = json.load(open(sys.argv[1]))["modes"][0]
kinds = [token for token, _ in mode["kinds"]]
assert "kernel" in kinds, kinds
X
"$clrsnap" report --native off -o managed.folded rec.clrsnap 2> err && ! grep -q '\[k\]' managed.folded || fail "--native off"
pass "kernel frames in a recording and its formats"

# ---- Events ----
"$clrsnap" record --event page-faults:50 -o faults.clrsnap -o faults.folded -o faults.json -o faults.txt \
  -o faults.firefox.json -o faults.speedscope.json -o faults.trace.json -o faults.pb.gz -- \
  dotnet "$APP" faults 100 > out 2> err || fail "the program failed"
says '^clrsnap:   page-faults: [0-9]+ samples, [0-9]+ page faults$'
says '^clrsnap: engine perf: a sample in about (50 page faults|[0-9]+ page faults, not in 50: that was too frequent)$'
# Its weights are page faults as the kernel counts them for the program itself, and the summary's total is their sum.
# Those of a thread after its last sample are missing: some thousands if the kernel has just put its samples off.
told=$(sed -n 's/^new //p' out) thread=$(sed -n 's/^thread //p' out)
sum=$(sed -nE 's/^clrsnap:   page-faults: .* samples, ([0-9]+) page faults$/\1/p' err)
awk -v told="$told" -v thread="$thread" -v sum="$sum" '
  /TouchesNew/ { new += $NF }
  /TouchesOld/ { old += $NF }
  /Program\.Faults/ { mine += $NF }
  { total += $NF }
  END {
    printf "%d page faults (summary %d), %d in Faults (getrusage %d), %d in TouchesNew (getrusage %d), %d in TouchesOld\n",
      total, sum, mine, thread, new, told, old
    exit !(told > 85000 && total == sum && old < total / 100 && new > 0.88 * told && new < 1.05 * told &&
           mine > 0.88 * thread && mine < 1.05 * thread)
  }' faults.folded || fail "whose page faults they are"
grep -q 'shares of page faults' faults.txt || fail "the text's unit"
python3 - faults.json faults.firefox.json faults.speedscope.json faults.trace.json << 'X' || fail "the unit in JSON"
import json, sys
facts = json.load(open(sys.argv[1]))["modes"][0]["facts"]
assert (facts["mode"], facts["unit"], facts["whole"]) == ("page-faults", "count", "page faults"), facts
firefox = json.load(open(sys.argv[2]))
assert "Kernel event" in json.dumps(firefox["meta"]["markerSchema"])
speedscope = json.load(open(sys.argv[3]))
assert all(p["unit"] == "none" for p in speedscope["profiles"]), [p["unit"] for p in speedscope["profiles"]]
json.load(open(sys.argv[4]))
X
! zcat faults.pb.gz | strings | grep -qx 'nanoseconds' || fail "pprof has nanoseconds"
"$clrsnap" diff rec.clrsnap faults.clrsnap > out 2> err && fail "time and page faults are compared"
says 'counts CPU time in cpu mode, .* counts page faults: they cannot be compared'
"$clrsnap" diff faults.clrsnap faults.clrsnap > out 2> err || { cat err; fail "diff of page faults"; }
grep -q "each recording's page faults" out || fail "the unit of diff"
"$clrsnap" report --top 3 -o again.folded faults.clrsnap 2> err && cmp faults.folded again.folded || fail "the recording's events"
says 'share( \(\+-[0-9.]+ points\))? of [0-9]+ page faults'
"$clrsnap" report --mode page-faults -o again.folded faults.clrsnap 2> err && cmp faults.folded again.folded ||
  { cat err; fail "report --mode page-faults"; }
"$clrsnap" diff --mode page-faults faults.clrsnap faults.clrsnap > out 2> err || { cat err; fail "diff --mode page-faults"; }
"$clrsnap" report --mode page-faults -o no.folded rec.clrsnap 2> err && fail "CPU time as page faults"
says 'the recording has no page-faults mode: it counts CPU time in cpu mode'
"$clrsnap" report --mode major-faults -o no.folded faults.clrsnap 2> err && fail "page faults as others"
says 'no major-faults mode: it counts page faults'
"$clrsnap" diff --mode page-faults rec.clrsnap rec.clrsnap 2> err && fail "CPU time compared as page faults"
says 'counts CPU time in cpu mode: it has no page-faults mode'
pass "page faults in place of CPU time"

# The machine has counters, or the command says that it has none.
"$clrsnap" record --event instructions -o cycles.folded -- dotnet "$APP" burn 300 > out 2> err
grep -qE 'engine perf: a sample in about [0-9]+ instructions' err || says 'nothing was recorded: .*no counter for instructions'
pass "instructions, or the reason why not"
