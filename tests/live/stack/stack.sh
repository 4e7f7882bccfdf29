#!/bin/bash
# SPDX-License-Identifier: MIT
# stack.sh BUILD SOURCE MATERIAL: `clrsnap stack`: a program's threads with the methods that they are known to
# be in, as text and as JSON; a program that hangs (all its threads stopped) and one that uses all processors;
# and the reason where a process cannot be read.
BUILD=$1 SOURCE=$2 MATERIAL=$3
. "$SOURCE/tests/live/lib.sh"
CLRSNAP=$BUILD/bin/clrsnap
build_app Record

# refused CODE TEXT ARGS...: the command exits with CODE and prints TEXT in one line.
refused() {
  local code=$1 text=$2 rc=0
  shift 2
  "$CLRSNAP" stack "$@" > "$WORK/out" 2> "$WORK/err" || rc=$?
  [ $rc = "$code" ] && grep -qF -- "$text" "$WORK/err" || { cat "$WORK/err"; fail "$*: $rc, not: $text"; }
  [ "$(wc -l < "$WORK/err")" = 1 ] && [ ! -s "$WORK/out" ] || fail "$*: more than one line"
}
refused 2 "stack takes one process, by its number or name"
refused 2 "no .NET process is called 'x'; 'clrsnap ps' lists them" x
refused 2 "stack takes the number or the name of a process, not '-5'" -- -5
refused 2 "stack takes the number or the name of a process, not '0'" 0
refused 2 "unknown option '--nope'" --nope 1
refused 2 "--native takes 'on' or 'off', not 'maybe'" --native maybe 1
refused 1 "there is no process 2147483647" 2147483647
refused 1 "there is no CoreCLR in process $$" $$
"$CLRSNAP" stack --help | grep -q "usage: clrsnap stack" || fail "--help"
"$CLRSNAP" help stack | grep -q "usage: clrsnap stack" || fail "help stack"

timeout 300 dotnet "$APP" hot 60000 > /dev/null 2>&1 &
launcher=$!
for _ in $(seq 300); do
  # Both are there: the worker in Hot, Main in Join.
  pid=$(pgrep -P $launcher) && said=$("$CLRSNAP" stack "$pid" 2> /dev/null) && grep -q Rec.Program.Hot <<< "$said" &&
    grep -q "for a thread to end" <<< "$said" && break
  sleep 0.1
done
[ -n "$pid" ] || fail "the program does not start"

# check: both threads of the program, and one of the runtime's own, in $WORK/text.
check() {
  "$CLRSNAP" stack "$pid" > "$WORK/text" || fail "stack ended with $?"
  # From the thread's line to the empty one: the frames and their details.
  awk '/^Thread .*"Hot worker"/, /^$/' "$WORK/text" > "$WORK/hot"
  grep -q "Rec.Program.Hot  (Record.dll)" "$WORK/hot" || { cat "$WORK/hot"; fail "$1: the hot worker is not in Hot"; }
  grep -q "System.Threading.Thread.StartCallback  (System.Private.CoreLib.dll)" "$WORK/hot" || fail "$1: StartCallback"
  tail -3 "$WORK/hot" | grep -q "clone" || { cat "$WORK/hot"; fail "$1: the hot worker has no base"; }
  awk "/^Thread $pid /, /^\$/" "$WORK/text" > "$WORK/main"
  grep -q "waiting in futex" "$WORK/main" || [ -n "${2:-}" ] || fail "$1: Main does not wait"
  sed -n '/Thread.Join/,/Program.Main/p' "$WORK/main" | grep -q "Rec.Program.Main  (Record.dll)" ||
    { cat "$WORK/main"; fail "$1: Main is not in Join"; }
  grep -q '".NET Finalizer"' "$WORK/text" || fail "$1: no finalizer thread"
  ! grep -q "cut here" "$WORK/text" || { cat "$WORK/text"; fail "$1: a stack is cut"; }
}
check "a running program"
# Between two calls the hot thread is briefly not in Hot.
for _ in $(seq 10); do
  "$CLRSNAP" stack --json "$pid" > "$WORK/json" || fail "--json"
  grep -q '"Rec.Program.Hot"' "$WORK/json" && break
done
python3 - "$WORK/json" "$pid" << 'PYTHON' || fail "the JSON does not say what the text says"
import json, sys
all = json.load(open(sys.argv[1]))
assert all["pid"] == int(sys.argv[2]) and all["runtime"].startswith("10."), all
hot = [t for t in all["threads"] if t["name"] == "Hot worker"][0]
assert hot["managed"] and hot["complete"] and hot["end"] == "base", hot
assert any(f["name"] == "Rec.Program.Hot" and f["kind"] == "jit" and f["token"] >> 24 == 6 for f in hot["frames"])
assert hot["frames"][0]["exact"] and len({f["sp"] for f in hot["frames"]}) == len(hot["frames"])
PYTHON
"$CLRSNAP" stack --native off --managed "$pid" > "$WORK/managed" || fail "--native off"
! grep -q "libcoreclr\|libc.so\|not managed" "$WORK/managed" || fail "--native off shows native frames"
grep -q "Rec.Program.Hot" "$WORK/managed" || fail "--native off hides managed frames"
pass "threads, frames, text and JSON"

kill -STOP "$pid"
# The signal takes its time to reach every thread.
for _ in $(seq 200); do
  grep -hq '^State:.*T (stopped)' /proc/"$pid"/task/*/status && ! grep -hE '^State:' /proc/"$pid"/task/*/status | grep -qv 'T (stopped)' && break
  sleep 0.05
done
check "a stopped program" stopped
grep -q 'stopped by a signal' "$WORK/text" || fail "the state of a stopped program"
[ "$(awk '{ print $3 }' "/proc/$pid/stat")" = T ] || fail "the program is not stopped any more"
kill -CONT "$pid"
pass "a program that answers nobody"

# It runs on undisturbed.
for _ in $(seq 20); do "$CLRSNAP" stack "$pid" > /dev/null || fail "stack, again and again"; done
kill -0 "$pid" || fail "the program has died"
check "after twenty snapshots"
kill "$pid"
wait $launcher 2> /dev/null
refused 1 "there is no process $pid" "$pid"
pass "the program has not noticed"

# What threads wait for: each one's name says it; one name is longer than the kernel keeps.
build_app Waits
timeout 300 dotnet "$APP" > "$WORK/waits" 2>&1 &
launcher=$!
for _ in $(seq 300); do grep -q ready "$WORK/waits" && break; sleep 0.1; done
pid=$(pgrep -P $launcher) && grep -q ready "$WORK/waits" || { cat "$WORK/waits"; fail "the threads do not come to wait"; }
# A barrier waits for a while, spins, and waits again: not each snapshot finds it waiting.
waits() {
  "$CLRSNAP" stack --json "$pid" > "$WORK/json" || fail "--json"
  python3 - "$WORK/json" 2> "$WORK/wrong" << 'PYTHON'
import json, sys
waits = [t for t in json.load(open(sys.argv[1]))["threads"]
         if any(f["name"].startswith("Program.Main.lambda#") for f in t["frames"])]
assert len(waits) == 14, [t["name"] for t in waits]
for t in waits: assert t["name"] == t.get("waits_for"), (t["name"], t.get("waits_for"), [f["name"] for f in t["frames"]])
PYTHON
}
waits || waits || waits || waits || waits || { cat "$WORK/wrong"; fail "threads wait for something else"; }
# lines NAME MIN: at least MIN frames of the program have lines (optimized code has lost some frames to tail calls).
lines() {
  python3 - "$WORK/json" "$SOURCE/tests/apps/Waits/Program.cs" "$2" << 'PYTHON' || fail "$1: a frame is not on the line that it waits in"
import json, re, sys
source = open(sys.argv[2]).read().split("\n")
line = lambda text, after=0: next(n for n, s in enumerate(source, 1) if n > after and text in s)
waits = [n for n, s in enumerate(source, 1) if s.startswith("Start(")]
waits = [line("it waits here") if source[n - 1].endswith("=>") else n for n in waits]
frames = [f for t in json.load(open(sys.argv[1]))["threads"] for f in t["frames"] if f.get("module", "").endswith("/Waits.dll")]
assert len(frames) >= int(sys.argv[3]), len(frames)
for f in frames:
    number = re.match(r"Program\.Main\.lambda#(\d+)$", f["name"])
    if not number: want = line("Thread.Sleep(Timeout.Infinite);", line('WriteLine("ready")'))
    elif int(number[1]) <= len(waits): want = waits[int(number[1]) - 1]
    else: want = line("=> wait()")
    assert f.get("line") == want and f["file"].endswith("/tests/apps/Waits/Program.cs"), (want, f)
PYTHON
}
lines tiered 29
"$CLRSNAP" stack "$pid" | grep -qE "^    Program.Main  \(Waits.dll\)  Program.cs:[0-9]+$" || fail "the text has no lines"
"$CLRSNAP" stack "$pid" | grep -q '"a reader-writer lock": waiting in .* for a reader-writer lock' || fail "the text says otherwise"
"$CLRSNAP" stack --raw-names "$pid" | grep -qF '<>c__DisplayClass0_0.<<Main>$>b__' || fail "stack --raw-names"
kill "$pid"
wait $launcher 2> /dev/null
rm "$WORK/waits"
cp -r "$(dirname "$APP")" "$WORK/copy"
DOTNET_TieredCompilation=0 timeout 300 dotnet "$WORK/copy/Waits.dll" > "$WORK/waits" 2>&1 &
launcher=$!
for _ in $(seq 300); do grep -qs ready "$WORK/waits" && break; sleep 0.1; done
pid=$(pgrep -P $launcher) && "$CLRSNAP" stack --json "$pid" > "$WORK/json" || fail "the optimized program"
lines optimized 12
# The program's file and its PDB are replaced by another build: all names are those of the running one, and so are the
# lines, from the PDB that the compiler has left, if it is there.
build_app Collects
cp "${APP%.dll}.pdb" "$WORK/copy/Waits.pdb" && cp "$APP" "$WORK/copy/new" && mv "$WORK/copy/new" "$WORK/copy/Waits.dll"
"$CLRSNAP" stack "$pid" | grep '(Waits.dll)' > "$WORK/replaced"
"$CLRSNAP" stack --json "$pid" > "$WORK/json" || fail "the replaced program"
lines optimized 12
grep -q '^    Program.Main.lambda#1 ' "$WORK/replaced" && ! grep -q '\[method' "$WORK/replaced" ||
  { cat "$WORK/replaced"; fail "a replaced file"; }
kill "$pid"
wait $launcher 2> /dev/null
pass "what threads wait for, and on which lines"

# Which thread suspends the runtime: in some of so many snapshots the thread that collects, never another one, and none when it has ended.
timeout 300 dotnet "$APP" "$WORK/end" > "$WORK/collects" 2>&1 &
launcher=$!
for _ in $(seq 300); do grep -q ready "$WORK/collects" && break; sleep 0.1; done
pid=$(pgrep -P $launcher) && grep -q ready "$WORK/collects" || { cat "$WORK/collects"; fail "the program that collects"; }
suspended() { for _ in $(seq 10); do "$CLRSNAP" stack "$pid" | grep '^Thread'; done > "$WORK/threads"; grep "suspends" "$WORK/threads"; }
suspended > "$WORK/suspended"
[ "$(wc -l < "$WORK/suspended")" -ge 2 ] || { cat "$WORK/threads"; fail "no collection was seen"; }
! grep -v '"Collector": .*, suspends the runtime for a collection$' "$WORK/suspended" || fail "another thread suspends"
for _ in $(seq 20); do "$CLRSNAP" stack --json "$pid" > "$WORK/json" && grep -q '"suspends":true' "$WORK/json" && break; done
python3 -c 'import json, sys; t = [t for t in json.load(open(sys.argv[1]))["threads"] if "suspends" in t]; assert [x["name"] for x in t] == ["Collector"], t' \
  "$WORK/json" || fail "--json does not tell who suspends"
touch "$WORK/end"
for _ in $(seq 300); do grep -q ended "$WORK/collects" && break; sleep 0.1; done
! suspended || fail "the runtime is suspended though nothing collects"
kill "$pid"
wait $launcher 2> /dev/null
pass "who has suspended the runtime"
