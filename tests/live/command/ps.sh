#!/bin/bash
# SPDX-License-Identifier: MIT
# ps.sh BUILD SOURCE MATERIAL: `clrsnap ps` lists the processes, and `clrsnap record PID` says why it cannot record
# some of them.
BUILD=$1 SOURCE=$2 MATERIAL=$3
. "$SOURCE/tests/live/lib.sh"
build_app Record
clrsnap=$BUILD/bin/clrsnap
command -v python3 > /dev/null || skip "there is no python3"

# find_process CONDITION KEY: prints property KEY of the listed processes p for which CONDITION is true.
find_process() {
  "$clrsnap" ps --json | python3 -c '
import json, sys
print(*[p[sys.argv[2]] for p in json.load(sys.stdin) if eval(sys.argv[1])])' "$1" "$2"
}
# listed KEY WANT: ps lists the process with this value.
listed() {
  local got
  got=$(find_process "p['pid'] == $PID" "$1") || fail "ps --json is no JSON"
  [ "$got" = "$2" ] || fail "ps: $1 is '$got', not '$2'"
}
# refused NAME TEXT: there is no recording and no file, and the command says TEXT.
refused() {
  local rc=0
  timeout 300 "${@:3}" "$clrsnap" record -d 1 -o "$WORK/none.clrsnap" "$PID" > "$WORK/said" 2>&1 || rc=$?
  [ $rc = 1 ] || { cat "$WORK/said"; fail "$1: ended with $rc, not 1"; }
  diff <(echo "clrsnap: $2") "$WORK/said" || fail "$1"
  [ ! -e "$WORK/none.clrsnap" ] || fail "$1: a file is left"
  pass "$1"
}

start A=1
listed assembly Record
listed runtime "$(dotnet --list-runtimes | sed -n 's/^Microsoft.NETCore.App \(10[^ ]*\).*/\1/p' | tail -1)"
listed problem None
listed command "dotnet $APP names 600000"
"$clrsnap" ps | grep -qE "^ *$PID +10\.[0-9.]+ +Record +dotnet " || fail "the table"
kill -STOP "$PID"
listed problem "process $PID is stopped, by a signal or a debugger, and has not responded for 2 s"
"$clrsnap" doctor "$PID" > "$WORK/doctor" && fail "doctor finds nothing wrong with a stopped process"
grep -A1 "is stopped, by a signal or a debugger" "$WORK/doctor" | grep -q "let it run (kill -CONT" || { cat "$WORK/doctor"; fail "doctor's advice"; }
kill -CONT "$PID"
pass "ps"
if setpriv --reuid 65534 --clear-groups test -x "$BUILD/bin/clrsnap" 2> "$WORK/setpriv"; then
  chmod 777 "$WORK"
  refused "another user's" "process $PID belongs to another user ($(id -u)); only that user and root may attach to it" \
    setpriv --reuid 65534 --clear-groups
fi
mkdir "$WORK/lib"
cp "$BUILD/lib/libclrsnap.so" "$WORK/lib/"
unshare --mount sh -c 'mkdir "$0/hidden" && mount --bind "$0/lib" "$0/hidden" &&
  CLRSNAP_LIB=$0/hidden/libclrsnap.so exec "$@"' "$WORK" "$clrsnap" record --mode wall -d 2 -o "$WORK/seen.clrsnap" "$PID" \
  > "$WORK/said" 2>&1 || { cat "$WORK/said"; fail "a library that the process does not see"; }
stop

start DOTNET_EnableDiagnostics=0
refused "no diagnostics" "process $PID was started with DOTNET_EnableDiagnostics=0: it has no diagnostics port"
listed assembly None
stop
MAPPED=libcoreclr.so start DOTNET_DefaultDiagnosticPortSuspend=1
for _ in $(seq 200); do
  compgen -G "${TMPDIR:-/tmp}/dotnet-diagnostic-$PID-*-socket" > "$WORK/port" && break
  sleep 0.1
done
refused "suspended at its start" "process $PID refuses the profiler (0x8013135b): its runtime is still starting; try again"
stop

PID=$$
refused "no .NET program" "process $PID has no diagnostics port (in ${TMPDIR:-/tmp}): it is not a .NET program, or its \
runtime has not started"
PID=4194305
refused "no process" "there is no process $PID"

# With an unsupported runtime the command says so, and the program runs on.
get_runtimes
build_app Old
mkfifo "$WORK/go"
run_on 8.0.33 "$APP" wait < "$WORK/go" > "$WORK/out" 2> "$WORK/err" &
CHILD=$!
exec 3> "$WORK/go"
old_listed() {
  PID=$(find_process "p['command'].endswith('/Old.dll wait') and p['pid'] in ($CHILD, $(below $CHILD | sed 's/$/,/'))" pid)
  [ -n "$PID" ] && grep -qs Old.dll "/proc/$PID/maps"
}
until_true 60 old_listed || { cat "$WORK/err"; fail "the program does not start"; }
sleep 0.5
listed runtime 8.0.33
refused "a runtime that is not supported" "this program runs on .NET 8.0.33, which is not supported yet (.NET 9 and 10 are)"
exec 3>&-
rc=0
wait $CHILD || rc=$?
[ $rc = 7 ] && grep -q '^sum ' "$WORK/out" || fail "the program does not go on"
