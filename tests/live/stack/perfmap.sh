#!/bin/bash
# SPDX-License-Identifier: MIT
# perfmap.sh BUILD SOURCE MATERIAL: `clrsnap perfmap` names the managed code at every address at which `clrsnap stack` has a
# managed frame, and perf finds these names; its file replaces what stands in the way, and follows no link.
BUILD=$1 SOURCE=$2 MATERIAL=$3
. "$SOURCE/tests/live/lib.sh"
CLRSNAP=$BUILD/bin/clrsnap
build_app Record
finish() {
  [ -z "${launcher:-}" ] || { kill "$launcher" && wait "$launcher"; } 2> /dev/null
  [ -z "${pid:-}" ] || rm -f "/tmp/perf-$pid.map"
  launcher='' pid=''
}
trap 'finish; rm -rf "$WORK"' EXIT

# start VARIABLE...: runs the program until its worker is in Hot, and Main in Join.
start() {
  timeout 300 env "$@" dotnet "$APP" hot 60000 > /dev/null 2>&1 &
  launcher=$!
  for _ in $(seq 300); do
    pid=$(pgrep -P $launcher) && said=$("$CLRSNAP" stack "$pid" 2> /dev/null) && grep -q Rec.Program.Hot <<< "$said" &&
      grep -q "for a thread to end" <<< "$said" && return
    sleep 0.1
  done
  fail "the program does not start"
}
# Methods that are compiled between the two commands are in one of them only, so that there are several tries.
same_names() {
  for _ in $(seq 20); do
    "$CLRSNAP" stack --json "$pid" > "$WORK/json" || fail "stack"
    "$CLRSNAP" perfmap -o "$WORK/map" "$pid" 2> "$WORK/said" || { cat "$WORK/said"; fail "perfmap"; }
    python3 - "$WORK/json" "$WORK/map" > "$WORK/python" 2>&1 << 'PYTHON' && { cat "$WORK/python"; return; }
import bisect, json, sys
pieces = []
for line in open(sys.argv[2]):
    begin, size, name = line.rstrip("\n").split(" ", 2)
    pieces.append((int(begin, 16), int(size, 16), name))
assert pieces == sorted(pieces) and len(pieces) > 50, len(pieces)
assert all(a[0] + a[1] <= b[0] for a, b in zip(pieces, pieces[1:])), "pieces overlap"
starts, kinds, wrong = [p[0] for p in pieces], {"jit": 0, "r2r": 0}, []
for thread in json.load(open(sys.argv[1]))["threads"]:
    for frame in thread["frames"]:
        if frame["kind"] not in kinds or frame["funclet"]:
            continue
        ip = int(frame["ip"], 16) - (not frame["exact"])
        at = bisect.bisect_right(starts, ip) - 1
        begin, size, name = pieces[at] if at >= 0 else (0, 0, "")
        if ip >= begin + size or name != frame["name"]:
            wrong.append((frame["name"], hex(ip), name))
        kinds[frame["kind"]] += 1
assert not wrong, wrong
assert kinds["jit"] >= 3 and kinds["r2r"] >= 2, kinds
print("the same names at", kinds)
PYTHON
  done
  cat "$WORK/python"
  fail "another name at an address"
}

start DOTNET_EnableWriteXorExecute=1
same_names
! grep -q EnableWriteXorExecute "$WORK/said" || fail "a file of its own is not for perf: $(cat "$WORK/said")"
"$CLRSNAP" perfmap "$pid" 2> "$WORK/said" || { cat "$WORK/said"; fail "perfmap"; }
grep -q 'start it with DOTNET_EnableWriteXorExecute=0' "$WORK/said" || { cat "$WORK/said"; fail "what perf cannot name is not said"; }
finish
pass "with code that is mapped twice"

start DOTNET_EnableWriteXorExecute=0
same_names
# By its name, before and after options; other tests may run the same program now.
# by_name TEXT COMMAND...: what it writes to WORK/map has TEXT.
by_name() {
  local rc=0
  "$CLRSNAP" "${@:2}" > "$WORK/said" 2>&1 || rc=$?
  case $rc in
    0) grep -q "$1" "$WORK/map" || fail "${*:2}: another program was meant" ;;
    2) grep -q "processes are called 'record': choose one" "$WORK/said" && grep -q "clrsnap: *$pid " "$WORK/said" ||
      { cat "$WORK/said"; fail "${*:2}: which processes have the name is not said"; } ;;
    *) cat "$WORK/said"; fail "${*:2}: a process by its name: $rc" ;;
  esac
}
by_name Rec.Program.Hot perfmap record -o "$WORK/map"
by_name Rec.Program.Hot record record -d 5 --format collapsed -o "$WORK/map"
echo untouched > "$WORK/victim"
ln -s "$WORK/victim" "/tmp/perf-$pid.map"
"$CLRSNAP" perfmap "$pid" 2> "$WORK/said" || { cat "$WORK/said"; fail "perfmap"; }
grep -qx "clrsnap: wrote /tmp/perf-$pid.map" "$WORK/said" || { cat "$WORK/said"; fail "the file is not named"; }
[ "$(cat "$WORK/victim")" = untouched ] && [ ! -L "/tmp/perf-$pid.map" ] || fail "a link was followed"
[ "$(stat -c '%u %a' "/tmp/perf-$pid.map")" = "$(id -u) 600" ] || fail "owner and rights: $(stat -c '%u %a' "/tmp/perf-$pid.map")"
pass "a link is replaced, not followed"

# A thread that ends while perf opens its event ends perf; a method may be compiled again after the map was written.
for _ in $(seq 10); do
  "$CLRSNAP" perfmap "$pid" 2> "$WORK/said" || { cat "$WORK/said"; fail "perfmap"; }
  perf record -e cpu-clock -F 499 -p "$pid" -o "$WORK/perf.data" -- sleep 1 > "$WORK/perf" 2>&1 || continue
  perf report -i "$WORK/perf.data" --stdio --sort sym > "$WORK/report" 2>&1
  grep -Eq 'Rec\.Program\.(Hot|BurnHot)' "$WORK/report" && found=1 && break
done
if [ -n "${found:-}" ]; then
  pass "perf finds the names"
else
  grep -qE 'not permitted|No permission|Access to performance' "$WORK/perf" ||
    { cat "$WORK/perf"; head -20 "$WORK/report"; fail "perf does not find the names"; }
  pass "perf may not record here"
fi
finish

rc=0
"$CLRSNAP" perfmap $$ 2> "$WORK/said" || rc=$?
[ $rc = 1 ] && grep -q "there is no CoreCLR in process $$" "$WORK/said" || fail "no .NET: $rc, $(cat "$WORK/said")"
pass "perfmap"
