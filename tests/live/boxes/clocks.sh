#!/bin/bash
# SPDX-License-Identifier: MIT
# clocks.sh BUILD SOURCE MATERIAL: a program in a time namespace, where the clocks since the machine's start show other times:
# its diagnostics port, which is named after such a time, is found, and a recording's times are its own.
BUILD=$1 SOURCE=$2 MATERIAL=$3
. "$SOURCE/tests/live/lib.sh"
build_app Modes
modes=$APP
build_app Record
clrsnap=$BUILD/bin/clrsnap
command -v python3 > /dev/null || skip "there is no python3"
unset TMPDIR

# in_namespace SECONDS NANOSECONDS COMMAND...: runs it where these clocks are ahead. A child of what makes the namespace is in it on
# every kernel; what it executes itself, only on newer ones.
in_namespace() {
  python3 -c '
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
if libc.unshare(0x80) != 0:
    sys.exit(77)
with open("/proc/self/timens_offsets", "w") as out:
    out.write("".join(f"{clock} {sys.argv[1]} {sys.argv[2]}\n" for clock in ("monotonic", "boottime")))
child = os.fork()
if child == 0:
    os.execvp(sys.argv[3], sys.argv[3:])
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) & 255)' "$@"
}
in_namespace 5000 0 true || skip "no time namespace can be made here"
here=$(cut -d' ' -f1 /proc/uptime) there=$(in_namespace 5000 0 cut -d' ' -f1 /proc/uptime)
[ "${there%.*}" -ge $((${here%.*} + 4000)) ] || fail "the clock of the namespace is not ahead"

# launch SECONDS NANOSECONDS: PID becomes the program Record there; it sleeps until it is stopped.
launch() {
  in_namespace "$1" "$2" timeout -k 5 300 dotnet "$APP" names 600000 > "$WORK/out" 2>&1 &
  OUTER=$!
  until_true 40 is_there || { cat "$WORK/out"; fail "the program does not start"; }
}
is_there() { PID=$(below $OUTER | tail -1) && [ -n "$PID" ] && grep -qsF Record.dll "/proc/$PID/maps"; }
end_program() {
  # shellcheck disable=SC2046
  [ -z "${OUTER:-}" ] || kill -9 $(below "$OUTER") 2> /dev/null
  wait 2> /dev/null
  OUTER=
}
trap 'end_program; rm -rf "$WORK"' EXIT

# within MODE...: all times of the recording in WORK/r.json are times of it, and each mode has samples.
within() {
  python3 - "$WORK/r.json" "$@" << 'Y' || { cat "$WORK/said"; fail "times"; }
import json, sys
d = json.load(open(sys.argv[1]))
SLACK_MS = 2000  # what a busy machine adds; the namespace's clocks are off by far more
found = set()
for mode in d['modes']:
    facts, limit = mode['facts'], mode['facts']['durationMs'] + SLACK_MS
    assert 0 < facts['durationMs'] < 600_000, facts['durationMs']
    at, times = 0, mode.get('time', [])
    for node_samples in mode['self']:
        now = 0
        for _ in range(node_samples if times else 0):
            now += times[at]
            at += 1
            assert now <= limit, (facts['mode'], now, limit)
    assert at == len(times)
    if times:
        found.add(facts['mode'])
    total = sum(mode['selfUs']) / 1000 if 'selfUs' in mode else 0
    assert total <= limit * 64 * max(1, len(mode['threads'])), (facts['mode'], total, limit)
for begin, duration, text in d.get('marks', []):
    assert (begin + duration) / 1000 <= max(m['facts']['durationMs'] for m in d['modes']) + SLACK_MS, (begin, duration, text)
missing = set(sys.argv[2:]) - found
assert not missing, (missing, found)
Y
}

for offset in "5000 0" "1000 5000001" "-20 4999999"; do
  # shellcheck disable=SC2086
  launch $offset
  "$clrsnap" doctor "$PID" > "$WORK/said" || { cat "$WORK/said"; fail "doctor, $offset"; }
  grep -qE '^ok +diagnostics port +responds' "$WORK/said" || { cat "$WORK/said"; fail "the port is not found, $offset"; }
  if [ "$offset" = "5000 0" ]; then
    record_process -d 2 --mode cpu,wall --async -o "$WORK/r.json" "$PID"
    within wall
    # By a command in the same namespace, and in a third one.
    nsenter --time="/proc/$PID/ns/time" "$clrsnap" doctor "$PID" > "$WORK/said" || { cat "$WORK/said"; fail "from its namespace"; }
    in_namespace 70 5 "$clrsnap" doctor "$PID" > "$WORK/said" || { cat "$WORK/said"; fail "from another namespace"; }
  fi
  end_program
done
pass "attach"
timeout -k 5 300 dotnet "$APP" names 600000 > "$WORK/out" 2>&1 &
OUTER=$!
until_true 40 is_there || { cat "$WORK/out"; fail "the program does not start"; }
in_namespace 5000 1 "$clrsnap" doctor "$PID" > "$WORK/said" || { cat "$WORK/said"; fail "from a namespace to a program outside"; }
end_program
pass "attach from a namespace"

export -f in_namespace
"$clrsnap" record --mode cpu,wall,alloc,lock,wait,exception,gc -o "$WORK/r.json" -- \
  bash -c 'in_namespace "$@"' in_namespace 5000 7 dotnet "$modes" 100 > "$WORK/said" 2>&1 || { cat "$WORK/said"; fail "record"; }
within cpu wall alloc lock exception gc
pass "a recording from the start"
