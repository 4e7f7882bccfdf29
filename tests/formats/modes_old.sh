#!/bin/bash
# SPDX-License-Identifier: MIT
# modes_old.sh BUILD SOURCE MATERIAL VERSION: the modes on an older runtime, compared with a program that knows what it
# allocates, waits for and throws, and how often it collects (modes.py). Skipped where NuGet cannot be reached.
BUILD=$1 SOURCE=$2 MATERIAL=$3 VERSION=$4
. "$SOURCE/tests/live/lib.sh"
on_older ModesOld "$VERSION"
clrsnap=$BUILD/bin/clrsnap
cd "$WORK" || exit 1

timeout -k 5 300 "$clrsnap" record --mode cpu,wall,alloc,lock,wait,exception,gc -F 199 --alloc 100k --event-rate 1000000 --walk-limit 9000 --buffer 64 \
  -o all.clrsnap -- "${target[@]}" 500 > truth 2> err || { cat err; fail "the recording"; }
cat err
for mode in alloc lock holders wait exception gc; do
  "$clrsnap" report --mode $mode -o "all.$mode.folded" all.clrsnap 2> report.err || { cat report.err; fail "mode $mode"; }
done
python3 "$SOURCE/tests/formats/modes.py" collapsed all < truth || fail "not the truth"

# Exceptions are at the place where they were thrown, and again where they were rethrown.
thrown='Modes.Program.Main;Modes.Program.Throw;Modes.Program.ThrowInvalid;System.InvalidOperationException 60$'
grep -q "$thrown" all.exception.folded || { cat all.exception.folded; fail "where it was thrown"; }
grep -q ';Modes.Program.Nested;System.FormatException 10$' all.exception.folded || fail "where it was thrown on"
# Each requested collection is a pause, with its reason and the stack that requested it.
"$clrsnap" report --mode gc -o gc.json all.clrsnap 2> /dev/null || fail "gc as json"
PYTHONPATH=$SOURCE/tests/tools python3 - << 'PYTHON' || fail "the collections that were asked for"
import json

import jsontree

found = {}
for path, samples, _ in jsontree.stacks(json.load(open("gc.json"))["modes"][0]):
    if "Modes.Program.Collect" in path and samples:
        found[path[-1]] = found.get(path[-1], 0) + samples
reason = "GC gen 2, induced, blocking]"
assert found == {"[" + reason: 7, "[way to the safe point: " + reason: 7}, found
PYTHON
# No output promises an error of chance for objects that are not chosen at random.
grep -q 'NET 9 chooses small objects by their count of bytes, not at random' err || fail "the summary does not say how objects are chosen"
"$clrsnap" report --mode alloc --top 3 all.clrsnap 2> one.top && "$clrsnap" report --mode alloc -o one.md all.clrsnap 2> report.err &&
  "$clrsnap" report --format md -o - all.clrsnap 2> report.err | grep '^alloc: ' > all.md || { cat report.err; fail "outputs of alloc mode"; }
for file in one.top one.md all.md; do
  grep -qE 'NET 9.* far off' $file && ! grep -qE '[+]-[0-9]|by up to' $file || { head -20 $file; fail "$file does not say how objects are chosen"; }
done
"$clrsnap" report --mode cpu,alloc -o page.html all.clrsnap 2> report.err || { cat report.err; fail "a page"; }
python3 - << 'PYTHON' || fail "the page promises an error of chance"
import base64, json, re, zlib

packed = re.search(r'<script id="data"[^>]*>\s*([^<\s]+)', open("page.html").read())[1]
raw = zlib.decompress(base64.b64decode(packed))
modes = {mode["facts"]["mode"]: mode for mode in json.loads(raw[int(raw[-10:]):-10])["modes"]}
assert "tenthsOff" in modes["cpu"] and "tenthsOff" not in modes["alloc"], modes.keys()
PYTHON
# Small objects are named by the runtime, large ones by the agent.
for type in 'AllocateLarge;Modes.Large' 'AllocateArrays;byte\[\]' 'AllocateFirst;byte\[\]'; do
  grep -q ";Modes.Program.$type " all.alloc.folded || { cat all.alloc.folded; fail "no type at the allocation: $type"; }
done
pass "$VERSION: allocations, locks, waits, exceptions and collections"

# A single mode, also by attach.
timeout -k 5 300 "$clrsnap" record --mode alloc --alloc 100k --buffer 64 -o one.clrsnap -- "${target[@]}" 200 > truth 2> err || { cat err; fail "alloc mode alone"; }
grep -q "samples in .* (alloc, .NET $VERSION)" err || { cat err; fail "alloc mode alone: the summary"; }
timeout -k 5 300 "${target[@]}" allocate > out 2> err &
CHILD=$!
until_true 60 grep -q round out || { cat err; fail "the program does not start"; }
find_program
record_process --mode alloc --alloc 100k -d 1 -o attached.folded "$PID"
kill "$PID"
wait "$CHILD" 2> /dev/null
awk '!/^\[cut: put-off\];/ { all += $NF } /;Modes.Program.AllocateFirst;byte\[\] / { first += $NF } /;Modes.Program.AllocateSecond;byte\[\] / { second += $NF }
  END { printf "attached: first %.1f %%, second %.1f %%\n", 100 * first / all, 100 * second / all
    exit !(all > 0 && first > 0.48 * all && second > 0.48 * all) }' attached.folded || { cat "$WORK/said"; fail "alloc mode by attach"; }
pass "$VERSION: alloc mode alone, and by attach"

# Of objects of all sizes in random order, a size's share is right but for chance: 4.5 standard deviations of so many ticks.
timeout -k 5 300 "$clrsnap" record --mode alloc --alloc 100k --buffer 64 -o mix.folded -- "${target[@]}" mix 2000 > truth 2> err || { cat err; fail "the mix"; }
python3 - << 'PYTHON' || { cat err; fail "shares of a mix of sizes"; }
import re

true = {name: int(amount) for _, _, name, amount in map(str.split, open("truth"))}
stacks = [(stack.split(";"), int(value)) for stack, value in (line.rsplit(" ", 1) for line in open("mix.folded"))]
found = {name: sum(value for stack, value in stacks if name in stack) for name in true}
ticks = int(re.search(r"alloc: (\d+) sampled", open("err").read())[1])
assert len(true) == 5 and ticks > 10_000, (true, ticks)
# An allocation whose walk was put off, as on a machine that is busy elsewhere, has no stack.
bare = sum(value for stack, value in stacks if stack[0] == "[cut: put-off]")
assert bare < 0.2 * sum(true.values()) and abs((sum(found.values()) + bare) / sum(true.values()) - 1) < 0.02, (found, bare, true)
wrong = []
for name, amount in true.items():
    should, is_ = amount / sum(true.values()), found[name] / sum(found.values())
    off = 4.5 * (should * (1 - should) / ticks) ** 0.5
    print(f"{name:28} {100 * is_:6.2f} % (truly {100 * should:.2f} %, within {100 * off:.2f} points)")
    wrong += [name] if abs(is_ - should) > off else []
assert not wrong, wrong
PYTHON
pass "$VERSION: a mix of sizes"
