#!/bin/bash
# SPDX-License-Identifier: MIT
# modes.sh BUILD SOURCE MATERIAL: a program that knows what it allocates, waits for, throws and how often it
# collects is recorded in all modes at once; what each mode says must be true (modes.py). Each mode
# alone has that and nothing else, and the recording by attach has what it has from the start.
BUILD=$1 SOURCE=$2 MATERIAL=$3
. "$SOURCE/tests/live/lib.sh"
build_app Modes
cd "$WORK" || exit 1
clrsnap=$BUILD/bin/clrsnap

timeout 100 "$clrsnap" record --mode cpu,wall,alloc,lock,exception,gc -F 199 --buffer 64 -o all.clrsnap -o all.pb.gz -o all.txt \
  -o all.html -o all.json -- dotnet "$APP" 3000 > truth 2> err || { cat err; fail "the recording"; }
cat err
for mode in alloc lock exception gc; do
  "$clrsnap" report --mode $mode -o "all.$mode.folded" all.clrsnap 2> report.err || { cat report.err; fail "mode $mode"; }
done
python3 "$SOURCE/tests/formats/modes.py" collapsed all < truth ||
  { head -c 3000 all.alloc.folded; fail "collapsed: not the truth"; }
if command -v go > /dev/null; then
  python3 "$SOURCE/tests/formats/modes.py" pprof all < truth || fail "pprof: not the truth"
fi

# speedscope has a profile for each mode of a thread, OTLP one for each mode, a trace the events beside the samples of one of cpu and
# wall.
"$clrsnap" report -o both.trace.json all.clrsnap 2> refused && fail "chromium shows cpu and wall at once"
grep -q 'shows one of cpu and wall' refused || { cat refused; fail "no reason"; }
"$clrsnap" report -o all.speedscope.json all.clrsnap 2> /dev/null || fail "speedscope"
"$clrsnap" report --mode wall,alloc,lock,exception,gc -o all.trace.json all.clrsnap 2> /dev/null || fail "chromium"
"$clrsnap" report -o all.otlp all.clrsnap 2> /dev/null || fail "otlp"
for form in speedscope chromium otlp; do
  python3 "$SOURCE/tests/formats/modes.py" $form all < truth || fail "$form: not the truth"
done
python3 - << 'PYTHON' || fail "cpu and wall beside the others"
import json

profiles = json.load(open("all.speedscope.json"))["profiles"]
assert {p["name"].rpartition(": ")[2] for p in profiles} == {"cpu", "wall", "alloc", "lock", "exception", "gc"}
trace = json.load(open("all.trace.json"))
assert trace["otherData"]["mode"] == "wall,alloc,lock,exception,gc", trace["otherData"]
assert sum(e["ph"] == "X" and e["name"].startswith("Modes.Program.") for e in trace["traceEvents"]) > 5
PYTHON
schema=$(ls "$MATERIAL"/speedscope/package/dist/release/file-format-schema.json 2> /dev/null)
if [ -n "$schema" ] && python3 -c 'import jsonschema' 2> /dev/null; then
  python3 -c 'import json, jsonschema, sys; jsonschema.validate(*(json.load(open(p)) for p in sys.argv[1:]))' \
    all.speedscope.json "$schema" || fail "speedscope's schema"
fi

# Exceptions stand where they were thrown, and again where they were thrown on.
thrown='Modes.Program.Main;Modes.Program.Throw;Modes.Program.ThrowInvalid;System.InvalidOperationException 60$'
grep -q "$thrown" all.exception.folded || { cat all.exception.folded; fail "where it was thrown"; }
grep -q ';Modes.Program.Nested;System.FormatException 10$' all.exception.folded || fail "where it was thrown on"
grep -q ';Modes.Program.AllocateLarge;Modes.Large ' all.alloc.folded || fail "no type at the allocation"
# Each collection that was asked for is a pause, told by who has asked and why.
"$clrsnap" report --mode gc -o gc.json all.clrsnap 2> /dev/null || fail "gc as json"
python3 - << 'PYTHON' || fail "the collections that were asked for"
import json

data = json.load(open("gc.json"))["modes"][0]
names = [data["strings"][data["frames"][3 * i]] for i in range(len(data["frames"]) // 3)]
paths, pauses = {0: []}, 0
for i, (back, frame) in enumerate(zip(data["parent"], data["frame"]), 1):
    paths[i] = paths[i - back] + [names[frame]] if i != back else []
    if "Modes.Program.Collect" in paths[i] and data["self"][i - 1]:
        assert paths[i][-1] == "[GC gen 2, induced, blocking]", paths[i]
        pauses += data["self"][i - 1]
assert pauses == 7, pauses
both = json.load(open("all.json"))["modes"]
assert [m["facts"]["mode"] for m in both] == ["cpu", "wall", "alloc", "lock", "exception", "gc"]
assert [m["facts"]["unit"] for m in both][2:5] == ["bytes", "nanoseconds", "count"]
PYTHON

# The Firefox Profiler has events as markers of their threads.
"$clrsnap" report -o both.firefox.json all.clrsnap 2> refused && fail "firefox shows cpu and wall at once"
grep -q 'shows one of cpu and wall' refused || { cat refused; fail "no reason"; }
"$clrsnap" report --mode wall,alloc,lock,exception,gc -o all.firefox.json all.clrsnap 2> /dev/null || fail "firefox"
# Without allocations: an exception that was thrown may be a sampled object, too, and has the same name.
"$clrsnap" report --mode wall,lock,exception,gc -o few.firefox.json all.clrsnap 2> /dev/null || fail "firefox"
python3 - << 'PYTHON' || fail "the markers"
import collections
import json

def markers(file):
    names, waits = collections.Counter(), 0
    for thread in json.load(open(file))["threads"]:
        table = thread["markers"]
        assert all(len(column) == table["length"] for column in table.values() if isinstance(column, list))
        for name, phase, begin, end in zip(table["name"], table["phase"], table["startTime"], table["endTime"]):
            name = thread["stringArray"][name]
            names[name] += 1
            assert (end is None) == (phase == 0) and (end is None or end >= begin), (name, phase, begin, end)
            waits += end - begin if name == "lock" else 0
    return names, waits

names, waits = markers("few.firefox.json")
assert [names["System." + e + "Exception"] for e in ("InvalidOperation", "NullReference", "Format")] == [70, 30, 10]
assert names["lock"] == 6 and 880 < waits < 2000, (names["lock"], waits)
assert names["[GC gen 2, induced, blocking]"] == 7
assert names["Modes.Small"] == 0 and markers("all.firefox.json")[0]["Modes.Small"] > 1000
PYTHON

# A mode alone: nothing else is asked of the runtime, and no thread is interrupted.
for mode in alloc lock exception gc; do
  timeout 60 "$clrsnap" record --mode $mode -o "one.$mode.folded" -- dotnet "$APP" 200 > /dev/null 2> err ||
    { cat err; fail "mode $mode alone"; }
  grep -q "samples\? in .* ($mode, .NET" err || { cat err; fail "mode $mode alone: the summary"; }
  [ -s "one.$mode.folded" ] || fail "mode $mode alone has nothing"
done
pass "$(sed -n 's/^clrsnap: \([0-9]* samples.*\)/\1/p' err)"
