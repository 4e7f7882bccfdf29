#!/bin/bash
# SPDX-License-Identifier: MIT
# published.sh BUILD SOURCE MATERIAL KIND: record (from the start and by attach), stack, top and doctor with a program that
# dotnet publish makes and that contains the runtime. Methods have their modules, lines from the PDB beside the
# program, and the shares of CPU time that the program reports; the runtime's code has its name and colour, though
# it may be in the program's own file.
BUILD=$1 SOURCE=$2 MATERIAL=$3 KIND=$4
. "$SOURCE/tests/live/lib.sh"
case $KIND in
  self-contained | trimmed | composite) native="[libcoreclr.so]" ;;
  *) native="[Split: runtime]" ;;
esac

# check NAME: checks the recording $WORK/NAME.json.
check() {
  python3 - "$WORK/$1.json" "$native" << 'PY' || { cat "$WORK/$1.err"; fail "$1: above"; }
import json, sys
recording, native = json.load(open(sys.argv[1])), sys.argv[2]
mode = recording["modes"][0]
strings, kinds, frames = mode["strings"], [k[0] for k in mode["kinds"]], mode["frames"]
triples = [tuple(frames[i:i + 3]) for i in range(0, len(frames), 3)]
got = {}
for name, module, kind in triples:
    got.setdefault(strings[name], set()).add((strings[module], kinds[kind]))
def want(text, ok):
    if not ok:
        sys.exit(f"{text}: {sorted(got.items())}")
runtime = native.strip("[]").split(":")[0]
want("the runtime's code is not shown as such", got.get(native) == {(runtime, "runtime")})
want("code has the program's name and no other", "[Split]" not in got or runtime != "Split")
burn = {name: of for name, of in got.items() if name.startswith("Split.Program.Burn")}
want("lines", any(" (Program.cs:" in name for name in burn))
want("the program's module", all(of == {("Split.dll", "user")} for of in burn.values()))
start = [of for name, of in got.items() if name.startswith("System.Threading.Thread.StartCallback")]
want("the framework's module", start == [{("System.Private.CoreLib.dll", "framework")}])
PY
}
clrsnap() { timeout 300 "$BUILD/bin/clrsnap" "$@"; }
by_perf

rc=0
APP=$("$SOURCE/scripts/publish-app.sh" "$MATERIAL" "$SOURCE/tests/apps/Split" "$KIND" 2> "$WORK/publish") || rc=$?
[ $rc != 77 ] || skip "$(cat "$WORK/publish")"
[ $rc = 0 ] || { cat "$WORK/publish"; fail "the program cannot be published"; }
export DOTNET_BUNDLE_EXTRACT_BASE_DIR=$WORK/extracted
clrsnap record "${PERF[@]}" --lines -o "$WORK/launch.json" -- "$APP" 2 > "$WORK/out" 2> "$WORK/launch.err" ||
  { cat "$WORK/launch.err"; fail "the recording ended with $?"; }
grep -q '^truth Split.Program.Ten' "$WORK/out" || fail "the program said '$(cat "$WORK/out")'"
check launch
# Some 1,000 samples: a share of 60 % is more than 8 points off once in a million recordings.
python3 - "$WORK/launch.json" "$WORK/out" "$SOURCE/tests/formats" << 'PY' || fail "shares: above"
import json, sys
sys.path.insert(0, sys.argv[3])
import shares
truth = {line.split()[1]: float(line.split()[2]) for line in open(sys.argv[2]) if line.startswith("truth ")}
got = dict.fromkeys(truth, 0.0)
for path, weight in shares.stacks_json(json.load(open(sys.argv[1]))):
    for name in {frame.split(" ")[0] for frame in path} & set(truth):
        got[name] += weight
for name, ns in truth.items():
    share, true = 100 * got[name] / max(sum(got.values()), 1), 100 * ns / sum(truth.values())
    if abs(share - true) > 8:
        sys.exit(f"{name}: {share:.1f} %, which took {true:.1f} %: {got}")
PY

"$APP" 300 > /dev/null 2>&1 &
PID=$!
trap 'kill -9 $PID; wait $PID 2> /dev/null; rm -rf "$WORK"' EXIT
# Its thread computes.
for _ in $(seq 1200); do
  grep -qsF '(Splitter)' /proc/$PID/task/*/stat && break
  sleep 0.1
done
sleep 2
clrsnap stack --json $PID > "$WORK/stack.json" 2> "$WORK/err" || { cat "$WORK/err"; fail "stack"; }
clrsnap stack $PID > "$WORK/stack.txt" 2> "$WORK/err" || { cat "$WORK/err"; fail "stack"; }
python3 - "$WORK/stack.json" "$native" << 'PY' || fail "stack: above"
import json, os, sys
stack, native = json.load(open(sys.argv[1])), sys.argv[2]
def want(text, ok):
    if not ok:
        sys.exit(f"{text}: {stack}")
want("the runtime's version", stack["runtime"].startswith("10.0."))
thread = next(t for t in stack["threads"] if t["name"] == "Splitter")
def of(name):
    return [f for f in thread["frames"] if f["name"].startswith(name)]
for method in "Split.Program.Main.lambda#0", "Split.Program.Burn":
    frame = of(method)[0]
    want(method, os.path.basename(frame["module"]) == "Split.dll")
    want(method, frame["file"].endswith("/Program.cs") and frame["line"] > 1)
want("the framework's module", os.path.basename(of("System.Threading.Thread.StartCallback")[0]["module"]) ==
     "System.Private.CoreLib.dll")
runtime = [f for f in thread["frames"] if f.get("runtime")]
want("the runtime's frames", len(runtime) > 0 and
     all(os.path.basename(f["module"]) == native.strip("[]").split(":")[0] for f in runtime))
PY
grep -qF "${native%]}+0x" "$WORK/stack.txt" || { cat "$WORK/stack.txt"; fail "stack does not name the runtime"; }
! grep -F '[Split+0x' "$WORK/stack.txt" | grep -q . || [ "$native" != "[Split: runtime]" ] || fail "nameless"

# On a loaded machine the program may get almost no CPU time for some seconds.
for seconds in 2 10 40; do
  clrsnap record "${PERF[@]}" --lines -d $seconds -o "$WORK/attach.json" $PID > /dev/null 2> "$WORK/attach.err" ||
    { cat "$WORK/attach.err"; fail "attach ended with $?"; }
  [ "$(sed -nE 's/^clrsnap: ([0-9]+) samples in .*/\1/p' "$WORK/attach.err")" -lt 50 ] || break
done
check attach
clrsnap doctor $PID > "$WORK/doctor" 2>&1 || { cat "$WORK/doctor"; fail "doctor"; }
grep -Eq '^ok +runtime +\.NET 10\.' "$WORK/doctor" || { cat "$WORK/doctor"; fail "doctor does not know the runtime"; }
clrsnap top --json -n 5 $PID > "$WORK/top" 2> "$WORK/err" || { cat "$WORK/err"; fail "top"; }
python3 -c '
import json, sys
methods = [m for line in sys.stdin for m in json.loads(line)["methods"]]
assert any(m["name"] == "Split.Program.Burn" and m["module"] == "Split.dll" for m in methods), methods
assert all(m["kind"] == "runtime" for m in methods if m["name"] == sys.argv[1]), methods
' "$native" < "$WORK/top" || fail "top: above"
kill -0 $PID || fail "the program has ended"
pass "$KIND: record, attach, stack, doctor, top"
