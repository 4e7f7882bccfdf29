#!/bin/bash
# SPDX-License-Identifier: MIT
# many.sh BUILD SOURCE MATERIAL: more waits and exceptions than are walked. All of them must be counted, each type with
# as many as were thrown, and the walked ones must represent the others: the methods' shares are right.
BUILD=$1 SOURCE=$2 MATERIAL=$3
. "$SOURCE/tests/live/lib.sh"
build_app Modes
cd "$WORK" || exit 1
clrsnap=$BUILD/bin/clrsnap
count=60000

# record NAME OPTIONS...
record() {
  local name=$1
  shift
  timeout 120 "$clrsnap" record --mode wait,exception "$@" -o "$name.clrsnap" -- dotnet "$APP" many $count > truth 2> "$name.err" ||
    { cat "$name.err"; fail "the recording"; }
  cat "$name.err"
  for mode in wait exception; do
    "$clrsnap" report --mode $mode -o "$name.$mode.folded" "$name.clrsnap" 2> report.err || { cat report.err; fail "$mode"; }
  done
}

# Exits with 3 if the machine's load may explain what is missing: the agent starts concurrently with the program and
# misses what comes before it is ready, and a thread that loses its processor in a walk is skipped for longer.
judge() {
  python3 - << 'PYTHON'
import re
import sys


def expect_unless_loaded(good, what):
    if not good:
        print("under load?", what)
        sys.exit(3)


truth, found = {}, {}
for line in open("truth"):
    word, mode, name, amount = line.split()
    truth.setdefault(mode, {})[name] = float(amount)
for run in ("few", "all"):
    said = open(f"{run}.err").read()
    for mode in ("wait", "exception"):
        stacks = [line.rpartition(" ") for line in open(f"{run}.{mode}.folded")]
        found[run, mode] = [(stack.split(";"), float(value)) for stack, _, value in stacks]
    line = re.search(r"exception: (\d+) exceptions(?:; (\d+) of them walked)?", said)
    walked = int(line[2] or line[1])
    assert int(line[1]) <= 60010, line[0]
    expect_unless_loaded(int(line[1]) >= 50000, line[0])
    if run == "few":
        assert walked < 0.6 * int(line[1]), line[0]
    else:
        expect_unless_loaded(walked >= 0.6 * int(line[1]), line[0])
    assert sum(v for _, v in found[run, "exception"]) == int(line[1]), line[0]
    assert re.search(r"wait: \d+ waits.* of them walked" if run == "few" else r"wait: \d+ waits", said), said
    by_type = {}
    for stack, value in found[run, "exception"]:
        by_type[stack[-1]] = by_type.get(stack[-1], 0) + value
    share = by_type["System.NullReferenceException"] / sum(by_type.values())
    assert abs(share - 0.9) < 0.005, by_type
    # The places of the throws: nearly all of them are on a walked stack.
    placed = sum(v for stack, v in found[run, "exception"] if "Modes.Program.Dereference" in stack)
    assert abs(placed / by_type["System.NullReferenceException"] - 1) < 0.1, (placed, by_type)
    waited = sum(v for stack, v in found[run, "wait"] if "Modes.Waits.Ping" in stack or "Modes.Waits.Pong" in stack)
    told = re.search(r"wait: \d+ waits, ([\d.]+) (ms|s)", said)
    total = float(told[1]) * (1e6 if told[2] == "ms" else 1e9)
    print(run, line[0], f"waited {waited / 1e6:.0f} ms of {total / 1e6:.0f}")
    # The counts are complete; the amounts for which the walked ones stand are estimates.
    expect_unless_loaded(abs(waited / total - 1) < 0.25, (waited, total))
PYTHON
}
for try in 1 2 3 4; do
  record few --event-rate 500
  record all --event-rate 1000000
  judge
  case $? in
    0) break ;;
    3) [ $try -lt 4 ] || fail "not the truth, in $try tries" ;;
    *) fail "not the truth" ;;
  esac
done

# A table of the waits, a tree, and the difference between two recordings of them: each shows how many there were, and
# not only how many were walked.
waits=$(sed -n 's/^clrsnap:   wait: \([0-9]*\) waits.*/\1/p' few.err)
"$clrsnap" report --mode wait --top 5 -o few.txt few.clrsnap 2> top || { cat top; fail "the table of waits"; }
grep -Eq '^clrsnap: +[0-9.]+ % +[0-9.]+ % +[0-9]+  WaitHandle.WaitOne$' top || { cat top; fail "the table of waits has no WaitHandle.WaitOne"; }
grep -Eq "^$waits waits, [0-9]+ of them walked in .* \(wait," few.txt || { head -5 few.txt; fail "the tree of waits"; }
"$clrsnap" diff --mode wait few.clrsnap all.clrsnap > changed 2> report.err || { cat report.err; fail "diff of waits"; }
grep -Eq "^ +$waits waits, [0-9]+ of them walked, .* of waiting time in .* wait mode" changed || { cat changed; fail "diff of waits"; }
grep -q '^numbers are percent of each recording.s waiting time$' changed || { cat changed; fail "diff of waits: its unit"; }
pass "$(grep -c . few.wait.folded) stacks of waits"
