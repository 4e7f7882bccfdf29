#!/bin/bash
# SPDX-License-Identifier: MIT
# load.sh BUILD SOURCE MATERIAL: all ways into a process: as the main profiler, on the notification list beside
# another profiler, both at once, and by attaching. The program's output and exit code must not change.
BUILD=$1 SOURCE=$2 MATERIAL=$3
. "$SOURCE/tests/live/lib.sh"
build_app Abi
export CLRSNAP_LOG=$WORK/log
ours=$BUILD/lib/libclrsnap.so other=$BUILD/lib/libtest_abi.so
dotnet "$APP" > "$WORK/want" || [ $? = 42 ] || fail "the program does not run by itself"

# expect NAME RC: the run's output is that of a run without a profiler, and stderr is empty.
expect() {
  [ "$2" = 42 ] || { cat "$WORK/stderr"; fail "$1: exit code $2, not 42"; }
  diff "$WORK/want" "$WORK/stdout" || fail "$1: the program's output has changed"
  [ -s "$WORK/stderr" ] && { cat "$WORK/stderr"; fail "$1: something on stderr"; }
  pass "$1"
}
# told NAME FILE TEXT...: the test profiler has logged these.
told() {
  local name=$1 file=$2 text
  shift 2
  grep -q '^FAIL' "$file" && { cat "$file"; fail "$name: a check failed"; }
  for text in "$@"; do
    grep -qF "$text" "$file" || { cat "$file"; fail "$name: not seen: $text"; }
  done
}

CORECLR_ENABLE_PROFILING=1 CORECLR_PROFILER=$CLSID CORECLR_PROFILER_PATH=$ours \
  dotnet "$APP" > "$WORK/stdout" 2> "$WORK/stderr"
expect "main profiler" $?

logged() { # logged NAME TEXT: the library's log has it; the log starts anew
  grep -qF "$2" "$WORK/log" || { cat "$WORK/log"; fail "$1: not in the log: $2"; }
  rm -f "$WORK/log"
}
logged "main profiler" "Initialize: .NET 10."

# The names that .NET 11 reads as well mean nothing to .NET 10; a recording runs beside whatever they name.
DOTNET_ENABLE_PROFILING=1 DOTNET_PROFILER=$CLSID DOTNET_PROFILER_PATH=$ours DOTNET_PROFILER_PATH_64=$ours \
  dotnet "$APP" > "$WORK/stdout" 2> "$WORK/stderr"
expect "by .NET 11's names" $?
[ ! -e "$WORK/log" ] || { cat "$WORK/log"; fail ".NET 10 has loaded a profiler by .NET 11's names"; }
DOTNET_ENABLE_PROFILING=1 DOTNET_PROFILER='{12345678-9ABC-DEF0-1234-56789ABCDEF0}' DOTNET_PROFILER_PATH=$other \
  DOTNET_NOTIFICATION_PROFILERS="$other=$CLSID;" "$BUILD/bin/clrsnap" record --mode wall -F 999 \
  -o "$WORK/out.collapsed" -- dotnet "$APP" > "$WORK/stdout" 2> "$WORK/summary"
expect "a recording beside .NET 11's names" $?
grep -qF "recording, pid" "$WORK/log" || { cat "$WORK/log" "$WORK/summary"; fail "nothing is recorded beside .NET 11's names"; }
logged "a recording beside .NET 11's names" "Initialize: .NET 10."

# The runtime drops a last entry that has no semicolon on .NET 9 and 10, so there is one.
CORECLR_ENABLE_PROFILING=1 CORECLR_ENABLE_NOTIFICATION_PROFILERS=1 \
  CORECLR_NOTIFICATION_PROFILERS="$ours=$CLSID;" \
  dotnet "$APP" > "$WORK/stdout" 2> "$WORK/stderr"
expect "notification profiler" $?
logged "notification profiler" "Initialize: .NET 10."

CLRSNAP_TEST_OUT=$WORK/both CLRSNAP_TEST_UNTIL=$WORK/until.both \
  CORECLR_ENABLE_PROFILING=1 CORECLR_PROFILER=$CLSID CORECLR_PROFILER_PATH=$other \
  CORECLR_ENABLE_NOTIFICATION_PROFILERS=1 CORECLR_NOTIFICATION_PROFILERS="$ours=$CLSID;" \
  dotnet "$APP" until "$WORK/until.both" > "$WORK/stdout" 2> "$WORK/stderr"
expect "beside another main profiler" $?
logged "beside another main profiler" "Initialize: .NET 10."
told "beside another main profiler" "$WORK/both" "slot 97" "slot 3 Initialize" "done"

# clrsnap's library, set up as the main profiler, declares itself a notification profiler and leaves the
# main place free: the other one, which is on the list, takes it.
CLRSNAP_TEST_OUT=$WORK/swapped CLRSNAP_TEST_UNTIL=$WORK/until.swapped \
  CORECLR_ENABLE_PROFILING=1 CORECLR_PROFILER=$CLSID CORECLR_PROFILER_PATH=$ours \
  CORECLR_ENABLE_NOTIFICATION_PROFILERS=1 CORECLR_NOTIFICATION_PROFILERS="$other=$CLSID;" \
  dotnet "$APP" until "$WORK/until.swapped" > "$WORK/stdout" 2> "$WORK/stderr"
expect "under the main profiler's name, with another on the list" $?
logged "swapped" "Initialize: .NET 10."
told "swapped" "$WORK/swapped" "slot 97" "slot 3 Initialize" "done"

# attach LIBRARY...: starts the program, attaches each library, and waits for the program's end.
attach() {
  local pid rc library ready=0
  mkfifo "$WORK/stdin.$1"
  CLRSNAP_TEST_OUT=$WORK/attached dotnet "$APP" wait < "$WORK/stdin.$1" > "$WORK/stdout" \
    2> "$WORK/stderr" &
  pid=$!
  exec 8> "$WORK/stdin.$1"
  for _ in $(seq 600); do
    grep -q caught "$WORK/stdout" && { ready=1; break; }
    sleep 0.05
  done
  [ $ready = 1 ] || { kill $pid; fail "$1: the program did not start"; }
  shift
  for library in "$@"; do
    "$BUILD/bin/attach" $pid "$library" "$CLSID" || { kill $pid; fail "cannot attach $library"; }
  done
  exec 8>&-
  wait $pid
  expect "attach ${*##*/}" $?
}
attach one "$ours"
logged "attach" "InitializeForAttach: .NET 10."
attach two "$other"
told "attach" "$WORK/attached" "slot 80 InitializeForAttach" "slot 81 ProfilerAttachComplete" \
  "ok attach: threads" "ok attach: code"
rm -f "$WORK/attached"
attach three "$other" "$ours"
logged "attach beside another" "InitializeForAttach: .NET 10."

"$BUILD/bin/attach" $$ "$ours" "$CLSID" 2> /dev/null && fail "attached to a shell"
pass "a process without .NET is refused"
