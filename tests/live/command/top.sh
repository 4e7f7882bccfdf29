#!/bin/bash
# SPDX-License-Identifier: MIT
# top.sh BUILD SOURCE MATERIAL WHAT: `clrsnap top` of a program whose methods take 60, 30 and 10 % of
# its CPU time: as text, as JSON, of a running process, on a terminal.
BUILD=$1 SOURCE=$2 MATERIAL=$3 WHAT=$4
. "$SOURCE/tests/live/lib.sh"
build_app Split
cd "$WORK" || exit 1
clrsnap=$BUILD/bin/clrsnap
by_perf
bad() { tail -n 5 out err | cut -c1-2000; fail "$*"; }

# near METHOD PERCENT WANTED: within 5 points.
near() {
  awk -v got="$2" -v want="$3" 'BEGIN { exit !(got != "" && got > want - 5 && got < want + 5) }' ||
    bad "$1 has $2 %, not $3"
}

text() {
  # The last table covers the program's whole run. The program's own output is not among the tables.
  timeout 300 "$clrsnap" top "${PERF[@]}" --interval 0.5 --whole --rows 1000 -- dotnet "$APP" 3 > out 2> err || bad "it ends with $?"
  [ "$(grep -c '^truth' err)" = 3 ] || bad "the program's own output is not on standard error"
  grep -q truth out && bad "the program's own output is among the tables"
  [ "$(grep -c '^clrsnap top: [0-9]* dotnet' out)" -ge 4 ] || bad "fewer than 4 tables in 3 s"
  grep -q '^ self %  total %  method  *module$' out || bad "no title"
  # Shares of the three methods' time, which the program has measured: the runtime's start takes a share of the whole, too.
  awk 'FNR == NR { if ($1 == "truth") { truth[$2] = $3; all += $3 } next }
    $1 == "self" { delete total } $3 ~ /^Split.Program.(Sixty|Thirty|Ten)$/ { total[$3] = $2 }
    END { for (m in total) sum += total[m]; for (m in total) print m, 100 * total[m] / sum, 100 * truth[m] / all }' err out > shares
  for name in Sixty Thirty Ten; do
    read -r got want < <(sed -n "s/^Split.Program.$name //p" shares)
    near $name "$got" "$want"
  done
  grep -Eq '^\.NET [0-9.]+, cpu 499 Hz, [0-9]+ s; [1-9][0-9]* samples, [0-9]+/s, lost 0, complete' out ||
    bad "no facts"
  # The command ends with the program.
  timeout 300 "$clrsnap" top --text -- dotnet "$APP" no-number > out 2> err
  [ $? = 134 ] || bad "the exit code of a program that dies is lost"
  # The first second may be over before the thread exists.
  timeout 300 "$clrsnap" top --no-counters --threads --filter splitter --interval 3 -n 1 -- dotnet "$APP" 100 > out 2> err || bad "it ends with $?"
  [ "$(grep -c '^ *[0-9][0-9]* .*Splitter  *Split.Program.Burn$' out)" = 1 ] || bad "no thread Splitter"
  grep -q 'allocations and GC: not asked for' out || bad "counters in spite of --no-counters"
  [ "$(wc -l < out)" = 7 ] || bad "the filter lets others through"
}

json() {
  timeout 300 "$clrsnap" top "${PERF[@]}" --json --whole --interval 0.5 --rows 1000 -- dotnet "$APP" 3 > out 2> err ||
    bad "it ends with $?"
  python3 - out err << 'PYTHON' || bad "the JSON is wrong"
import json, sys
lines = [json.loads(line) for line in open(sys.argv[1])]
truth = {words[1]: int(words[2]) for words in map(str.split, open(sys.argv[2])) if words[:1] == ["truth"]}
assert len(lines) >= 4, len(lines)
last = lines[-1]
methods = {m["name"]: m for m in last["methods"]}
shares = {name: 100 * truth["Split.Program." + name] / sum(truth.values()) for name in ("Sixty", "Thirty", "Ten")}
three = sum(methods["Split.Program." + name]["total_percent"] for name in shares)
for name, want in shares.items():
    got = 100 * methods["Split.Program." + name]["total_percent"] / three
    assert abs(got - want) < 5, (name, got)
assert methods["Split.Program.Burn"]["self_percent"] > 60
assert methods["Split.Program.Burn"] == last["methods"][0] and last["methods"][0]["kind"] == "user"
assert last["samples"] > lines[0]["samples"] and last["lost"] == 0 and last["window_s"] is None
assert all(line["rss_bytes"] > 1e6 for line in lines)
assert 0 < max(line["cpu_percent"] for line in lines) < 1000
# A table may fall between the thread's end and the program's.
(thread,) = [t for line in lines for t in line["threads"] if t["name"] == "Splitter"][-1:]
assert thread["share_percent"] > 60 and thread["hottest"] == "Split.Program.Burn", thread
PYTHON
  # When its reader closes the pipe, the command ends, and with it the program.
  timeout 300 "$clrsnap" top --json --interval 0.2 -- dotnet "$APP" 100 2> err | head -1 > out
  [ "${PIPESTATUS[0]}" = 0 ] && [ -s out ] || bad "a closed pipe is an error"
  timeout 300 "$clrsnap" top ls > out 2> err && bad "ls is a .NET program"
  grep -q 'nothing to show: no .NET runtime in ls' err || bad "not said why"
}

pid() {
  dotnet "$APP" 100 > /dev/null &
  child=$!
  trap 'kill $child; rm -rf "$WORK"' EXIT
  for _ in $(seq 300); do grep -qsx Splitter /proc/$child/task/*/comm && break; sleep 0.1; done
  for round in 1 2; do
    # A machine that is busy elsewhere needs longer for as many samples, which an attach is then a small part of.
    for tables in 2 8 24; do
      timeout 300 "$clrsnap" top "${PERF[@]}" --json --interval 1 --window $((tables + 1)) -n $tables --rows 1000 $child > out 2> err ||
        bad "round $round ends with $?"
      python3 -c 'import json, sys; first, *_, last = map(json.loads, sys.stdin)
sys.exit(last["samples"] < 200 or first["samples"] == 0)' < out && break
    done
    python3 - out $tables << 'PYTHON' || bad "the JSON is wrong"
import json, sys
first, *_, last = [json.loads(line) for line in open(sys.argv[1])]
methods = {m["name"]: m["total_percent"] for m in last["methods"]}
burn = methods["Split.Program.Burn"]
parts = sum(methods.get("Split.Program." + m, 0) for m in ("Sixty", "Thirty", "Ten"))
# The first stack after an attach may be cut above Burn; on a busy machine there are few others.
assert burn > 50 and abs(burn - parts) < 1 + 200 / last["samples"], (burn, parts)
assert last["window_s"] == int(sys.argv[2]) + 1 and last["samples"] > first["samples"] > 0
PYTHON
  done
  kill -0 $child || bad "the process did not run on"
  # The command notices that the process has ended, and ends.
  rm out
  timeout 300 "$clrsnap" top --text --interval 0.3 $child > out 2> err &
  top=$!
  for _ in $(seq 500); do [ -s out ] && break; sleep 0.1; done
  kill $child
  wait $top || bad "the end of the process is an error"
  grep -qx "clrsnap: process $child has ended" err || { cat err; bad "not said that it has ended"; }
  trap 'rm -rf "$WORK"' EXIT
  timeout 300 "$clrsnap" top $$ > out 2> err && bad "bash is a .NET program"
  grep -q 'it is not a .NET program' err || bad "not said why"
}

# inlined_shares OPTION: in the last table.
inlined_shares() {
  python3 - out "$1" << 'PYTHON'
import json, sys
methods = {m["name"]: m for m in json.loads(open(sys.argv[1]).readlines()[-1])["methods"]}
for m in methods.values(): assert "(inlined)" not in m["name"] and m["self_percent"] <= m["total_percent"] + 0.01, m
hot = methods["Inl.Program.Hot"]
if sys.argv[2] != "--inlined":
    assert hot["self_percent"] > 0.7 * hot["total_percent"], hot
    sys.exit()
want = {"Inl.Program.Deep": 60, "Inl.Bag<Tag>.Mix<U>": 30, "InlinedOther.Far.Mix": 10}
for name, share in want.items():
    got = 100 * methods[name]["self_percent"] / hot["total_percent"]
    assert abs(got - share) < 5, (name, got)
# Deep is in Middle, and that in Hot.
assert abs(methods["Inl.Program.Middle"]["total_percent"] - methods["Inl.Program.Deep"]["total_percent"]) < 5, methods
assert hot["self_percent"] < 0.1 * hot["total_percent"], hot
PYTHON
}

# Inlined methods have their own time, compared with the truth of tests/apps/Inlined; without --inlined, the outer method has it.
inlined() {
  build_app Inlined
  for option in --inlined --whole; do
    for ms in 1500 6000 24000; do # where a hypervisor takes the processor, its time is a method's
      timeout 300 "$clrsnap" top "${PERF[@]}" --json --whole $option --native off --no-counters --rows 200 -- dotnet "$APP" calls $ms > out 2> err
      code=$?
      [ $code = 42 ] || bad "it ends with $code"
      inlined_shares $option && break
      [ $ms != 24000 ] || bad "the shares are wrong ($option)"
    done
  done
  dotnet "$APP" calls 60000 > /dev/null &
  child=$!
  trap 'kill $child; rm -rf "$WORK"' EXIT
  for _ in $(seq 100); do compgen -G "${TMPDIR:-/tmp}/dotnet-diagnostic-$child-*" > /dev/null && break; sleep 0.1; done
  timeout 300 "$clrsnap" top --inlined $child > out 2> err && bad "it has kept nothing of what is inlined"
  grep -q "process $child was started without DOTNET_RichDebugInfo=1" err || bad "not said why"
}

# A method that awaits has the awaited method's time in its total; with --async-callers off, the code that resumed it has.
async() {
  build_app Awaits
  local switch rounds rc
  for switch in on off; do
    for rounds in 30 120 480; do  # in a short run, time that is taken from the machine is a large part
      timeout 300 "$clrsnap" top "${PERF[@]}" --json --whole --async-callers $switch --no-counters --rows 1000 -F 999 -- dotnet "$APP" chains $rounds > out 2> err ||
        bad "it ends with $?"
      rc=0
      async_totals $switch || rc=$?
      [ $rc != 0 ] || break
    done
    [ $rc = 0 ] || bad "the totals are wrong ($switch)"
  done
}
async_totals() {
  python3 - out "$1" << 'PYTHON'
import json, sys
methods = {m["name"]: m for m in json.loads(open(sys.argv[1]).readlines()[-1])["methods"]}
total = lambda name: methods[name]["total_percent"] if name in methods else 0
awaits = {n: m for n, m in methods.items() if n.endswith(" [awaits]")}
leaves = sum(m["total_percent"] for n, m in methods.items() if n in ("Leaf.Red", "Leaf.Blue"))
dispatch = total("System.Threading.ThreadPoolWorkQueue.Dispatch")
print(leaves, dispatch, {n: m["total_percent"] for n, m in awaits.items()})
assert leaves > 30, methods.keys()
if sys.argv[2] == "off":
    assert not awaits and dispatch > 0.9 * leaves
else:
    outer = sum(m["total_percent"] for n, m in awaits.items() if n.split(" ")[0].endswith("Outer"))
    assert 0.85 * leaves < outer <= 1.05 * leaves and dispatch < 0.3 * leaves
    for m in awaits.values(): assert m["kind"] == "awaits" and m["self_percent"] < 1, m
PYTHON
}

# The runtime's figures for its heap, compared with the program's own: how much it allocates in a
# second, and how often each generation is collected.
heap() {
  build_app Heap
  timeout 300 "$clrsnap" top --json --rows 3 -- dotnet "$APP" 15 > out 2> err || bad "it ends with $?"
  python3 - out err << 'PYTHON' || bad "the heap's numbers are wrong"
import json, sys
lines = [json.loads(line) for line in open(sys.argv[1])]
truth = [float(word) for word in next(l for l in open(sys.argv[2]) if l.startswith("truth")).split()[1:]]
# A table may fall between the arrival of two counters of the first second.
known = [l for l in lines if l["gc_counts"] is not None and l["gc_pause_percent"] is not None]
assert len(known) >= 3, "fewer than 3 seconds are known"
# The mean of the reported seconds; on a busy machine single ones differ.
rate = truth[0] / truth[5]
mean = sum(line["alloc_bytes_per_s"] for line in known) / len(known)
assert 0.6 * rate < mean < 1.6 * rate, (mean, rate)
for line in known:
    assert 0 < line["heap_bytes"] < 1e8 and 0 <= line["gc_pause_percent"] < 100, line
assert sum(line["gc_pause_percent"] for line in known) > 0, known
last = known[-1]["gc_counts"]
for generation in range(3):
    share = last[generation] / truth[1 + generation]
    assert 0.4 < share <= 1, (generation, last, truth)
assert last[0] > last[1] > last[2], last
PYTHON
  # Where there is no port the output says why, and everything else is there.
  DOTNET_EnableDiagnostics_IPC=0 timeout 300 "$clrsnap" top -n 1 -- dotnet "$APP" 100 > out 2> err || bad "it ends with $?"
  grep -q 'allocations and GC: .*DOTNET_EnableDiagnostics_IPC=0' out || bad "not said why"
  grep -q '^ self %' out || bad "no table"
}

screen() {
  for python in python3 /usr/bin/python3 ""; do
    [ -n "$python" ] || skip "no pyte (python3-pyte) for python3 here"
    "$python" -c 'import pyte' 2> /dev/null && break
  done
  TMPDIR=$WORK timeout 300 "$python" "$SOURCE/tests/live/command/top_screen.py" "$clrsnap" dotnet "$APP" || fail "top_screen.py"
  [ -z "$(find "$WORK" -name 'clrsnap-top-*')" ] || fail "files are left: $(ls "$WORK")"
}

"$WHAT"
pass "$WHAT"
