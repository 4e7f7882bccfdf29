#!/bin/bash
# SPDX-License-Identifier: MIT
# doctor.sh BUILD SOURCE MATERIAL: `clrsnap doctor` finds what works, and each fault that is made on purpose.
BUILD=$1 SOURCE=$2 MATERIAL=$3
. "$SOURCE/tests/live/lib.sh"
build_app Record
clrsnap=$BUILD/bin/clrsnap
command -v python3 > /dev/null || skip "there is no python3"

# doctor CODE [WITH...]: checks the exit code; WORK/said has the findings, the same in both forms.
doctor() {
  local rc=0 json=0
  "${@:2}" "$clrsnap" doctor $PID > "$WORK/said" 2>&1 || rc=$?
  [ $rc = "$1" ] || { cat "$WORK/said"; fail "doctor $PID ended with $rc, not $1"; }
  "${@:2}" "$clrsnap" doctor --json $PID > "$WORK/json" || json=$?
  [ $json = $rc ] || fail "with --json it ends with $json, not $rc"
  python3 - "$WORK/json" "$rc" << 'X' > "$WORK/names" || fail "the JSON"
import json, sys
d = json.load(open(sys.argv[1]))
faults = [f for f in d['findings'] if f['state'] == 'fault']
assert d['works'] == (not faults) == (sys.argv[2] == '0')
print(*[f['name'] for f in d['findings']], sep='\n')
X
  [ "$(wc -l < "$WORK/names")" = "$(grep -cE '^(ok|note|FAIL) ' "$WORK/said")" ] || fail "text and JSON differ"
}
# says STATE NAME TEXT
says() {
  grep -E "^$1 +$2 " "$WORK/said" | grep -qF -- "$3" || { cat "$WORK/said"; fail "not said: $1 $2 $3"; }
}

PID=
doctor 0
says ok agent "$BUILD/lib/libclrsnap.so"
says ok 'shared memory' 'sealed memory of 16 MiB is available'
says '(ok|note)' 'cpu mode' 'engine'
if [ -f "$BUILD/lib/ClrsnapLabels.dll" ]; then says ok labels "$BUILD/lib/ClrsnapLabels.dll"; fi
mkdir "$WORK/lib" && cp "$BUILD/lib/libclrsnap.so" "$WORK/lib"
doctor 0 env CLRSNAP_LIB="$WORK/lib/libclrsnap.so"
says note labels "--labels needs $WORK/lib/ClrsnapLabels.dll, which does not exist"
doctor 1 env CLRSNAP_LIB=/nowhere/libclrsnap.so
says FAIL agent 'CLRSNAP_LIB=/nowhere/libclrsnap.so: No such file or directory'
doctor 1 prlimit --fsize=1048576
says FAIL 'shared memory' 'ulimit -f'
pass "the machine"

start A=1
doctor 0
for name in process 'diagnostics port' runtime "agent's file" 'its shared memory' 'other profilers' engine stack; do
  says ok "$name" ''
done
says ok symbols 'PDBs of 1 of the 1 assemblies'
says ok 'other profilers' 'none in its environment'
stop
start CORECLR_ENABLE_PROFILING=1 CORECLR_PROFILER='{12345678-9ABC-DEF0-1234-56789ABCDEF0}' CORECLR_PROFILER_PATH=/none.so
doctor 0
says note 'other profilers' 'the profiler {12345678-9ABC-DEF0-1234-56789ABCDEF0}; record works beside it'
stop
start DOTNET_ENABLE_PROFILING=1 DOTNET_PROFILER='{12345678-9ABC-DEF0-1234-56789ABCDEF0}' DOTNET_PROFILER_PATH=/none.so
doctor 0
says note 'other profilers' 'DOTNET_PROFILER names {12345678-9ABC-DEF0-1234-56789ABCDEF0}, which .NET 10 does not load'
stop
start DOTNET_EnableDiagnostics=0
doctor 1
says FAIL 'diagnostics port' 'was started with DOTNET_EnableDiagnostics=0'
grep -q 'forbids profilers at a start, too' "$WORK/said" || { cat "$WORK/said"; fail 'a start is advised that is refused'; }
stop
PID=$$
doctor 1
says FAIL process 'is not a .NET program'
pass "a process"

get_runtimes
build_app Old
mkfifo "$WORK/go"
# PID becomes the program: CHILD is it, or the shell that has started it.
find_old() {
  old_there() {
    for PID in $CHILD $(below $CHILD); do grep -qs Old.dll "/proc/$PID/maps" && return; done
    false
  }
  until_true 60 old_there || { cat "$WORK/err"; fail "the program does not start"; }
  sleep 0.3
}
run_on 8.0.33 "$APP" wait < "$WORK/go" > "$WORK/out" 2> "$WORK/err" &
CHILD=$!
exec 3> "$WORK/go"
find_old
doctor 1
says FAIL runtime '.NET 8.0.33, which is not supported yet'
exec 3>&-
wait $CHILD
DOTNET_EnableDiagnostics_IPC=0 run_on 8.0.33 "$APP" wait < "$WORK/go" > "$WORK/out" 2> "$WORK/err" &
CHILD=$!
exec 3> "$WORK/go"
find_old
doctor 1
says FAIL 'diagnostics port' 'was started with DOTNET_EnableDiagnostics_IPC=0'
says FAIL runtime '.NET 8.0.33, which is not supported yet'
grep -q 'clrsnap record -- instead' "$WORK/said" && { cat "$WORK/said"; fail "a start is advised that is refused"; }
exec 3>&-
wait $CHILD
pass "a runtime that is not supported"
