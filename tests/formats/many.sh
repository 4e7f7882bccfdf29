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
  timeout 300 "$clrsnap" record --mode wait,exception "$@" -o "$name.clrsnap" -- dotnet "$APP" many $count > truth 2> "$name.err" ||
    { cat "$name.err"; fail "the recording"; }
  cat "$name.err"
  for mode in wait exception; do
    "$clrsnap" report --mode $mode -o "$name.$mode.folded" "$name.clrsnap" 2> report.err || { cat report.err; fail "$mode"; }
  done
}

# What holds whatever else runs on the machine. At the higher rate walks may take a tenth of the thread's time, which is less
# than all of them if exceptions or waits come fast: the others have no stack and say why. Exits with 3 if the recording itself says
# that something is missing, because the recorder got no processor.
judge() {
  python3 - << 'PYTHON'
import re
import sys

BARE = "[cut: put-off]"


def weight_of(stacks, word=None):
    return sum(value for stack, value in stacks if word is None or word in stack)


truth = {}
for line in open("truth"):
    word, mode, name, amount = line.split()
    truth.setdefault(mode, {})[name] = float(amount)
for run in ("few", "all"):
    said = open(f"{run}.err").read()
    missing = re.search(r"clrsnap: (the first .* are missing.*|lost [1-9].*)", said)
    if missing:
        print(missing[0])
        sys.exit(3)
    found = {}
    for mode in ("wait", "exception"):
        stacks = [line.rpartition(" ") for line in open(f"{run}.{mode}.folded")]
        found[mode] = [(stack.split(";"), float(value)) for stack, _, value in stacks]
    line = re.search(r"exception: (\d+) exceptions(?:; (\d+) of them walked, which stand for (\w+))?", said)
    count, walked = int(line[1]), int(line[2] or line[1])
    unwalked = sum(value for stack, value in found["exception"] if len(stack) == 1)  # the type alone
    assert line[3] in (None, "all" if unwalked == 0 else f"{count - unwalked:.0f}"), (line[0], unwalked)
    assert sum(truth["exception"].values()) <= count <= sum(truth["exception"].values()) + 10, line[0]
    assert weight_of(found["exception"]) == count, line[0]
    assert walked < 0.6 * count if run == "few" else walked == count, line[0]
    # Each type has as many as were thrown, and nearly all of those that have a stack are where they were thrown.
    for name, place in (("InvalidOperation", "ThrowInvalid"), ("NullReference", "Dereference")):
        stacks = [(stack, value) for stack, value in found["exception"] if stack[-1] == f"System.{name}Exception"]
        thrown, bare = weight_of(stacks), weight_of(stacks, BARE)
        assert 0 <= thrown - truth["exception"][f"System.{name}Exception"] <= 10, (name, thrown)
        placed = weight_of(stacks, f"Modes.Program.{place}")
        # Those since the last one of the type that was walked: one of 64 on average.
        since = sum(value for stack, value in stacks if len(stack) == 1)
        print(f"{run}: {thrown:.0f} {name}, {placed:.0f} where they were thrown, {bare:.0f} without a stack, {since:.0f} since")
        assert placed >= 0.9 * (thrown - bare - since) and placed > 0, (name, placed, bare, since, thrown)
        assert since < 0.2 * thrown, (name, since, thrown)
    # The counts are complete; the amounts for which the walked ones stand are estimates.
    line = re.search(r"wait: \d+ waits, ([\d.]+) (ms|s)(; \d+ of them walked)?", said)
    total = float(line[1]) * (1e6 if line[2] == "ms" else 1e9)
    assert (line[3] is not None) == (run == "few"), line[0]
    bare = weight_of(found["wait"], BARE)
    waited = weight_of(found["wait"], "Modes.Waits.Ping") + weight_of(found["wait"], "Modes.Waits.Pong")
    joined = weight_of(found["wait"], "Thread.Join")  # until the other thread has ended: long where processors are short
    print(f"{run}: waited {waited / 1e6:.0f} ms, without a stack {bare / 1e6:.0f}, for an end {joined / 1e6:.0f}, of {total / 1e6:.0f}")
    # Beside these the start of the program, and of the other thread, waits for locks and threads of the core library.
    others = [(value, stack) for stack, value in found["wait"]
              if not {"Modes.Waits.Ping", "Modes.Waits.Pong", "Thread.Join", BARE} & set(stack)]
    elsewhere = sum(value for value, _ in others)
    assert elsewhere < 0.05 * total + 5e8, sorted(others)[-5:]
    known = waited + bare + joined + elsewhere
    assert abs(known / total - 1) < (0.25 if run == "few" else 0.02), (line[0], elsewhere, sorted(others)[-5:])
    # Events without a stack are as many as the summary says, and it says whose.
    cut = re.search(r"clrsnap:   cut (\d+) put-off:", said)
    told = re.search(r"clrsnap: (\d+) events? ha(?:ve|s) no stack: walks for so many took a tenth of the time of thread '.+'", said)
    assert (cut and cut[1]) == (told and told[1]), said
    assert bool(cut) == any(BARE in stack for mode in found for stack, _ in found[mode]), said
PYTHON
}
for try in 1 2 3 4; do
  record few --event-rate 500
  record all --event-rate 1000000
  judge
  case $? in
    0) break ;;
    3) [ $try -lt 4 ] || fail "something is missing, in $try tries" ;;
    *) fail "not the truth" ;;
  esac
done

# In pprof the values of events that are counted are what their samples stand for, too.
for mode in exception wait; do
  "$clrsnap" report --mode $mode -o few.pb.gz -o few.folded few.clrsnap 2> report.err || { cat report.err; fail "pprof of $mode"; }
  go tool pprof -raw few.pb.gz > raw 2> raw.err || { cat raw.err; fail "pprof of $mode cannot be read"; }
  python3 - $mode << 'PYTHON' || fail "pprof of $mode has other sums"
import re
import sys

values = re.findall(r"^ +([\d ]+): ", open("raw").read().split("\nSamples:\n")[1].split("\nLocations")[0], re.M)
mine = sum(int(line.split()[-1]) for line in values)
folded = sum(int(line.rsplit(" ", 1)[1]) for line in open("few.folded"))
print(f"{sys.argv[1]}: {mine} in pprof, {folded} in collapsed stacks")
assert mine == folded > len(values) > 0
PYTHON
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
