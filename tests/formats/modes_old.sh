#!/bin/bash
# SPDX-License-Identifier: MIT
# modes_old.sh BUILD SOURCE MATERIAL VERSION: the modes on an older runtime, compared with a program that knows what it
# allocates, waits for and throws, and how often it collects (modes.py). Skipped where NuGet cannot be reached.
BUILD=$1 SOURCE=$2 MATERIAL=$3 VERSION=$4
. "$SOURCE/tests/live/lib.sh"
on_older ModesOld "$VERSION"
clrsnap=$BUILD/bin/clrsnap
cd "$WORK" || exit 1

timeout -k 5 300 "$clrsnap" record --mode cpu,wall,alloc,lock,wait,exception,gc -F 199 --alloc 100k --event-rate 1000000 --buffer 64 \
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
python3 - << 'PYTHON' || fail "the collections that were asked for"
import json

data = json.load(open("gc.json"))["modes"][0]
names = [data["strings"][data["frames"][3 * i]] for i in range(len(data["frames"]) // 3)]
paths, found = {0: []}, {}
for i, (back, frame) in enumerate(zip(data["parent"], data["frame"]), 1):
    paths[i] = paths[i - back] + [names[frame]] if i != back else []
    if "Modes.Program.Collect" in paths[i] and data["self"][i - 1]:
        found[paths[i][-1]] = found.get(paths[i][-1], 0) + data["self"][i - 1]
reason = "GC gen 2, induced, blocking]"
assert found == {"[" + reason: 7, "[way to the safe point: " + reason: 7}, found
PYTHON
# No output promises an error of chance for objects that are not chosen at random.
grep -q 'NET 9 chooses small objects by their count of bytes, not at random' err || fail "the summary does not say how objects are chosen"
"$clrsnap" report --mode alloc --top 3 all.clrsnap 2> one.top && "$clrsnap" report --mode alloc -o one.md all.clrsnap 2> report.err &&
  "$clrsnap" report --format md -o - all.clrsnap 2> report.err | grep '^alloc: ' > all.md || { cat report.err; fail "outputs of mode alloc"; }
for file in one.top one.md all.md; do
  grep -qE 'NET 9.* far off' $file && ! grep -qE '[+]-[0-9]|by up to' $file || { head -20 $file; fail "$file does not say how objects are chosen"; }
done
"$clrsnap" report --mode cpu,alloc -o page.html all.clrsnap 2> report.err || { cat report.err; fail "a page"; }
python3 - << 'PYTHON' || fail "the page promises an error of chance"
import base64, json, re, zlib

# refused TEXT MODES...: nothing is recorded, for this reason, and the program runs on.
refused() {
  local text=$1
  shift
  timeout -k 5 120 "$clrsnap" record "$@" -o none.clrsnap -- "${target[@]}" many 1 > out 2> err
  grep -q "nothing was recorded: $text" err || { cat err; fail "$*: not refused"; }
  [ -s out ] || fail "$*: the program did not run on"
}
refused "on .NET $major mode alloc is not recorded" --mode cpu,alloc
refused "on .NET $major mode holders is not recorded (mode lock is, with --holders off)" --mode lock
refused "on .NET $major no labels are recorded" --labels
pass "$VERSION: what was not tried is refused"
