#!/bin/bash
# SPDX-License-Identifier: MIT
# modes.sh BUILD SOURCE MATERIAL: records, in all modes at once, a program that knows what it allocates, waits for and
# throws, and how often it collects; the result of each mode must be true (modes.py). A recording of a single mode has
# that mode and nothing else, and a recording by attach has what a recording from the start has.
BUILD=$1 SOURCE=$2 MATERIAL=$3
. "$SOURCE/tests/live/lib.sh"
build_app Modes
cd "$WORK" || exit 1
clrsnap=$BUILD/bin/clrsnap

# Every event is walked, and no stack is cut where a hypervisor takes the processor during a walk. More than 10 ms of a walk would
# put the thread's next events off.
events=(--event-rate 1000000 --walk-limit 9000)
timeout -k 5 300 "$clrsnap" record --mode cpu,wall,alloc,lock,holders,wait,exception,gc -F 199 --alloc 100k "${events[@]}" --buffer 64 -o all.clrsnap -o all.pb.gz -o all.txt \
  -o all.html -o all.json -- dotnet "$APP" 3000 > truth 2> err || { cat err; fail "the recording"; }
cat err
for mode in alloc lock holders wait exception gc; do
  "$clrsnap" report --mode $mode -o "all.$mode.folded" all.clrsnap 2> report.err || { cat report.err; fail "mode $mode"; }
done
python3 "$SOURCE/tests/formats/modes.py" collapsed all < truth ||
  { head -c 3000 all.alloc.folded; fail "collapsed: not the truth"; }
if have go; then
  python3 "$SOURCE/tests/formats/modes.py" pprof all < truth || fail "pprof: not the truth"
fi

python3 "$SOURCE/tests/tools/pagedata.py" all.html all.json || fail "the page has other numbers than the JSON"

# speedscope has one profile for each mode of a thread, OTLP one for each mode, and a trace has the events beside the
# samples of either cpu or wall.
"$clrsnap" report -o both.trace.json all.clrsnap 2> refused && fail "chromium shows cpu and wall at once"
grep -q 'shows one of cpu and wall' refused || { cat refused; fail "no reason"; }
"$clrsnap" report -o all.speedscope.json all.clrsnap 2> /dev/null || fail "speedscope"
"$clrsnap" report --mode wall,alloc,lock,wait,exception,gc -o all.trace.json all.clrsnap 2> /dev/null || fail "chromium"
"$clrsnap" report -o all.otlp all.clrsnap 2> /dev/null || fail "otlp"
for form in speedscope chromium otlp; do
  python3 "$SOURCE/tests/formats/modes.py" $form all < truth || fail "$form: not the truth"
done
python3 - << 'PYTHON' || fail "cpu and wall beside the others"
import json

profiles = json.load(open("all.speedscope.json"))["profiles"]
assert {p["name"].rpartition(": ")[2] for p in profiles} == {"cpu", "wall", "alloc", "lock", "wait", "exception", "gc", "holders"}
trace = json.load(open("all.trace.json"))
assert trace["otherData"]["mode"] == "wall,alloc,lock,exception,gc,wait", trace["otherData"]
assert sum(e["ph"] == "X" and e["name"].startswith("Modes.Program.") for e in trace["traceEvents"]) > 5
PYTHON
schema=$(ls "$MATERIAL"/speedscope/package/dist/release/file-format-schema.json 2> /dev/null)
if [ -n "$schema" ] && python3 -c 'import jsonschema' 2> /dev/null; then
  python3 -c 'import json, jsonschema, sys; jsonschema.validate(*(json.load(open(p)) for p in sys.argv[1:]))' \
    all.speedscope.json "$schema" || fail "speedscope's schema"
fi

# Exceptions are at the place where they were thrown, and again where they were rethrown.
thrown='Modes.Program.Main;Modes.Program.Throw;Modes.Program.ThrowInvalid;System.InvalidOperationException 60$'
grep -q "$thrown" all.exception.folded || { cat all.exception.folded; fail "where it was thrown"; }
grep -q ';Modes.Program.Nested;System.FormatException 10$' all.exception.folded || fail "where it was thrown on"
grep -q ';Modes.Program.AllocateLarge;Modes.Large ' all.alloc.folded || fail "no type at the allocation"
# A pause has two samples, and is one pause in every output.
pauses=$(sed -n 's/^clrsnap:   gc: \([0-9]*\) pauses, .*/\1/p' err)
"$clrsnap" report --mode gc -o gc.txt -o gc.md all.clrsnap 2> /dev/null || fail "gc as text"
grep -q "^$pauses pauses in " gc.txt || { head -3 gc.txt; fail "not $pauses pauses as text"; }
grep -q "^$pauses pauses[,;].* every one was recorded" gc.md || { cat gc.md; fail "not $pauses pauses in Markdown"; }
# Each requested collection is a pause, with its reason and the stack that requested it.
"$clrsnap" report --mode gc -o gc.json all.clrsnap 2> /dev/null || fail "gc as json"
PYTHONPATH=$SOURCE/tests/tools python3 - << 'PYTHON' || fail "the collections that were asked for"
import json

import jsontree

pauses, ways, way = 0, 0, "[way to the safe point: GC gen 2, induced, blocking]"
for path, samples, _ in jsontree.stacks(json.load(open("gc.json"))["modes"][0]):
    if "Modes.Program.Collect" in path and samples:
        assert path[-1] in ("[GC gen 2, induced, blocking]", way), path
        pauses += samples if path[-1] != way else 0
        ways += samples if path[-1] == way else 0
assert pauses == ways == 7, (pauses, ways)
both = json.load(open("all.json"))["modes"]
assert [m["facts"]["mode"] for m in both] == ["cpu", "wall", "alloc", "lock", "exception", "gc", "wait", "holders"]
assert [m["facts"]["unit"] for m in both][2:5] == ["bytes", "nanoseconds", "count"]
PYTHON

# The Firefox Profiler has events as markers of their threads.
"$clrsnap" report -o both.firefox.json all.clrsnap 2> refused && fail "firefox shows cpu and wall at once"
grep -q 'shows one of cpu and wall' refused || { cat refused; fail "no reason"; }
"$clrsnap" report --mode wall,alloc,lock,wait,exception,gc -o all.firefox.json all.clrsnap 2> /dev/null || fail "firefox"
python3 - << 'PYTHON' || fail "the markers"
import collections
import json
import re

profile = json.load(open("all.firefox.json"))
schemas = {schema["name"]: schema for schema in profile["meta"]["markerSchema"]}
assert list(schemas) == ["Allocation", "Exception", "Lock", "Lock holder", "Wait", "GC pause", "Kernel event"], list(schemas)
# Fields of version 47 of the format; the texts of a marker are in its schema.
formats = {"string": str, "bytes": int, "duration": float, "integer": int}
places = {"marker-chart", "marker-table", "timeline-overview"}
for schema in schemas.values():
    keys = {field["key"]: formats[field["format"]] for field in schema["data"]}
    assert all(field["label"] for field in schema["data"]) and set(schema["display"]) <= places, schema
    for label in ("chartLabel", "tooltipLabel", "tableLabel"):
        assert set(re.findall(r"{marker\.data\.(\w+)}", schema[label])) <= set(keys), schema
    schema["keys"] = keys

def stack(thread, leaf):
    stacks, frames, names = thread["stackTable"], thread["frameTable"]["func"], thread["funcTable"]["name"]
    path = []
    while leaf is not None:
        path.append(thread["stringArray"][names[frames[stacks["frame"][leaf]]]])
        leaf = stacks["prefix"][leaf]
    return path

found = {name: [] for name in schemas}
cut = 0  # stacks whose walk used up its CPU time, as the first ones may on a machine that is busy
for thread in profile["threads"]:
    table = thread["markers"]
    assert all(len(column) == table["length"] for column in table.values() if isinstance(column, list))
    for name, data, phase, begin, end in zip(
            *(table[column] for column in ("name", "data", "phase", "startTime", "endTime"))):
        assert thread["stringArray"][name] == data["type"], (thread["stringArray"][name], data)
        data_type = data.pop("type")
        keys = schemas[data_type]["keys"]
        cause = data.pop("cause", None)
        if "where" in data:
            path = stack(thread, cause["stack"])
            assert cause["time"] == begin and data["where"] in path, (data, path)
            assert data.get("typeName") not in path, (data, path)
            if data["where"].startswith("Modes.Program."):
                assert path[0] == data["where"] or data_type in ("GC pause", "Lock", "Wait"), (data, path)
                cut += path[-1] == "[cut: time]"
                assert path[-1] in ("[dotnet]", "__clone3", "Modes.Program.Main", "[cut: time]"), path
        assert all(isinstance(value, keys[key]) for key, value in data.items()), data
        assert (end is None) == (phase == 0), (data, phase, end)
        lasted = data.get("waited", data.get("pause"))
        assert (lasted is None) == (end is None) and (end is None or abs(end - begin - lasted) < 1e-3), data
        found[thread["stringArray"][name]].append(data)
assert cut <= 5, f"{cut} of {sum(map(len, found.values()))} stacks are cut"

def types(name, key="typeName"):
    return collections.Counter(data[key] for data in found[name])

# A thread that ends while the program lists them is an exception that the program catches.
found["Exception"] = [data for data in found["Exception"] if not data.get("where", "").startswith("Modes.Program.QueuedAll")]

# A thrown exception is a marker of its own, even if the object was sampled, too.
assert types("Exception") == {"System.InvalidOperationException": 70, "System.NullReferenceException": 30,
                              "System.FormatException": 10}, types("Exception")
assert all(data["where"].startswith("Modes.Program.") and data["own"] == data["where"]
           for data in found["Exception"] if data["typeName"] != "System.NullReferenceException")
assert types("Allocation")["Modes.Small"] > 1000
assert {data["own"] for data in found["Allocation"] if data["typeName"] == "Modes.Large"} == {"Modes.Program.AllocateLarge"}
assert all(data["bytes"] > 0 for data in found["Allocation"])
# A Pulse is not always over when the thread that it has woken needs the lock, nor is the release of the last round's
# lock; and where processors are short, threads of the framework wait for each other's locks, too.
found["Lock"] = [data for data in found["Lock"] if "own" in data
                 and not data["own"].startswith(("Modes.Waits.", "Modes.Program.Contend.lambda"))]
waited = sum(data["waited"] for data in found["Lock"])
assert {data["where"] for data in found["Lock"]} == {"Modes.Program.Wait"}, found["Lock"]
told = {"truth": 0, "slack": 0}
for line in open("truth"):
    word, mode, *_, amount = line.split()
    if mode == "lock":
        told[word] += int(amount) / 1e6
assert len(found["Lock"]) == 6 and abs(waited - told["truth"]) < 0.02 * told["truth"] + told["slack"], (waited, told)
assert types("GC pause", "reason")["GC gen 2, induced, blocking"] == 7, types("GC pause", "reason")
PYTHON

# Where all methods are compiled at once, and inlined as they are in the end, waits have the same names.
DOTNET_TieredCompilation=0 DOTNET_ReadyToRun=0 timeout -k 5 300 "$clrsnap" record --mode wait "${events[@]}" \
  -o inlined.folded -- dotnet "$APP" 200 > told 2> err || { cat err; fail "waits that are inlined"; }
python3 - << 'PYTHON' || fail "the names of waits that are inlined"
names = {line.split()[2]: " ".join(line.split()[3:]) for line in open("told") if line.startswith("leaf wait ")}
names["Modes.Waits.Forever"] = "ManualResetEventSlim"
names["Modes.Waits.ByAll"] = names["Modes.Waits.ByAny"]
seen = {}
for line in open("inlined.folded"):
    frames = line.rpartition(" ")[0].split(";")
    for method in names.keys() & set(frames):
        seen.setdefault(method, set()).add(frames[-1])
for method in seen.keys() & {"Modes.Waits.ByMonitor", "Modes.Waits.ByProcess"}:
    seen[method] -= {"[an unnamed wait]", "ReaderWriterLockSlim"}  # a lock of theirs that somebody else has just then
print("inlined:", seen)
# On a busy machine a wait may be over while it still spins.
assert len(seen) > 5 and all(of == {names[method]} for method, of in seen.items()), (names, seen)
PYTHON

# Where the framework is jitted as well, the runtime's own methods that dispatch an exception are not inlined.
DOTNET_ReadyToRun=0 timeout -k 5 300 "$clrsnap" record --mode exception "${events[@]}" -o jitted.folded -- dotnet "$APP" 200 \
  > /dev/null 2> err || { cat err; fail "exceptions of a jitted framework"; }
grep -q 'Modes.Program.Throw;Modes.Program.ThrowInvalid;System.InvalidOperationException ' jitted.folded &&
  grep -q ';Modes.Program.Nested;System.FormatException 10$' jitted.folded && ! grep 'System\.Runtime\.' jitted.folded ||
  { cat jitted.folded; fail "where exceptions of a jitted framework were thrown"; }

# A single mode: the runtime is asked for nothing else, and no thread is interrupted.
for mode in alloc lock wait exception gc; do
  timeout -k 5 300 "$clrsnap" record --mode $mode -o "one.$mode.folded" -- dotnet "$APP" 200 > /dev/null 2> err ||
    { cat err; fail "mode $mode alone"; }
  grep -q "samples\? in .* ($mode, .NET" err || { cat err; fail "mode $mode alone: the summary"; }
  [ -s "one.$mode.folded" ] || fail "mode $mode alone has nothing"
done
pass "$(sed -n 's/^clrsnap: \([0-9]* samples.*\)/\1/p' err)"
