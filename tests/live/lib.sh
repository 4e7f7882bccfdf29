# SPDX-License-Identifier: MIT
# Shared by the live tests, which source it. Needs BUILD (the build directory), SOURCE (the
# source tree) and MATERIAL (the apps and runtimes, which all builds share).
set -u
CLSID='{8F3E6C1A-5B2D-4E7F-9A41-C6D0E2B7F519}'
export DOTNET_NOLOGO=1 DOTNET_CLI_TELEMETRY_OPTOUT=1 DOTNET_GENERATE_ASPNET_CERTIFICATE=false
export MSBUILDDISABLENODEREUSE=1 MSBUILDTERMINALLOGGER=off
# A profiler in the environment of the caller's shell is not part of the test.
unset CORECLR_ENABLE_PROFILING CORECLR_PROFILER CORECLR_PROFILER_PATH CORECLR_PROFILER_PATH_64
unset DOTNET_ENABLE_PROFILING DOTNET_PROFILER DOTNET_PROFILER_PATH DOTNET_PROFILER_PATH_64
unset DOTNET_ENABLE_NOTIFICATION_PROFILERS DOTNET_NOTIFICATION_PROFILERS
unset CORECLR_ENABLE_NOTIFICATION_PROFILERS CORECLR_NOTIFICATION_PROFILERS CLRSNAP_LOG CLRSNAP_SHM CLRSNAP_CHILDREN CLRSNAP_PID_NAMESPACE

fail() { echo "FAIL: $*"; exit 1; }
skip() { echo "skipped: $*"; exit 77; }
# have PROGRAM: succeeds if PROGRAM, which part of a test needs, is there. Without it the whole test counts as skipped.
have() { command -v "$1" > /dev/null || { lacking="${lacking:-} $1" && false; }; }
pass() {
  echo "pass: $*"
  [ -z "${lacking:-}" ] || skip "in part, without$lacking"
}

command -v dotnet > /dev/null || skip "there is no dotnet command"
WORK=$(mktemp -d) || exit 1
# A program that launch_app has started does not outlive a test that fails.
LAUNCHER=
trap '[ -z "$LAUNCHER" ] || kill "$LAUNCHER" 2> /dev/null; rm -rf "$WORK"' EXIT

# build_app NAME: APP is the dll of tests/apps/NAME, built once for all tests.
build_app() {
  "$SOURCE/scripts/build-apps.sh" "$MATERIAL" "$SOURCE/tests/apps/$1" > "$WORK/build.log" 2>&1 ||
    { cat "$WORK/build.log"; fail "tests/apps/$1 does not build"; }
  [ ! -f "$MATERIAL/apps/$1.unavailable" ] || skip "$(cat "$MATERIAL/apps/$1.unavailable")"
  APP=$MATERIAL/apps/$1/$1.dll
}

# by_perf: PERF has the option for the perf engine, if this machine has it. Where losing a processor is dear, as on a busy virtual
# machine, auto takes the clock engine, which has few scans there: too few to compare shares after some seconds.
PERF=()
by_perf() { ! "$BUILD/bin/clrsnap" doctor 2> /dev/null | grep -q 'engine perf: any rate' || PERF=(--engine perf); }

# sampled_nothing FILE: whether `record` says there that it took no sample, as a short recording on a busy machine may.
sampled_nothing() { grep -q '^clrsnap: nothing was sampled: ' "$1"; }

# get_runtimes: fetches other runtimes than the installed one from NuGet, once.
get_runtimes() {
  local rc=0
  "$SOURCE/scripts/fetch-runtimes.sh" "$MATERIAL" > "$WORK/fetch.log" 2>&1 || rc=$?
  [ $rc != 77 ] || skip "$(tail -1 "$WORK/fetch.log")"
  [ $rc = 0 ] || { cat "$WORK/fetch.log"; fail "the other runtimes could not be fetched"; }
}
# run_on VERSION DLL ARGS...: runs a program on one of them.
run_on() { CLRSNAP_RUNTIMES=$MATERIAL/runtimes "$SOURCE/scripts/dotnet-with" "$@"; }

# on_older NAME VERSION: the array `target` runs tests/apps/NAME, for .NET 8 on, on a runtime from NuGet.
on_older() {
  get_runtimes
  build_app "$1"
  export CLRSNAP_RUNTIMES=$MATERIAL/runtimes
  target=("$SOURCE/scripts/dotnet-with" "$2" "$APP")
}

# find_program [FILE]: PID becomes the .NET program below CHILD, once its own code, or FILE, is mapped.
find_program() {
  local until=$((SECONDS + 40)) pid
  PID=
  while [ $SECONDS -lt $until ]; do
    pid=$(pgrep -P "$CHILD" -x dotnet) && PID=$pid && grep -qsF "${1:-${APP##*/}}" "/proc/$PID/maps" && break
    pid=
    sleep 0.05
  done
  [ -n "$pid" ] || fail "the program has not started"
  sleep 0.5
}
# record_process OPTIONS... PID: records a process, with what the command says in WORK/said. Without a sample it ends with 1.
record_process() {
  local rc=0 expected=0
  timeout 300 "$BUILD/bin/clrsnap" record "$@" > "$WORK/said" 2>&1 || rc=$?
  ! grep -q '^clrsnap: nothing was sampled' "$WORK/said" || expected=1
  [ $rc = $expected ] || { cat "$WORK/said"; fail "record $*: it ends with $rc"; }
}
# until_true SECONDS COMMAND...: waits until COMMAND succeeds; fails if it has not by then.
until_true() {
  local until=$((SECONDS + $1))
  shift
  until "$@"; do
    [ $SECONDS -lt $until ] || return 1
    sleep 0.05
  done
}
# below PID: the processes that it has started, directly or indirectly.
below() {
  local child
  for child in $(pgrep -P "$1"); do
    echo "$child"
    below "$child"
  done
}
# recorded_now PID: the agent's thread is in the process.
recorded_now() { grep -qsx .clrsnap "/proc/$1"/task/*/comm; }
# start [VARIABLE=VALUE...] [PREFIX...]: starts the program Record as PID, by the command PREFIX if there is one, which
# must exec it; it sleeps until it is stopped. It has started when it has mapped MAPPED, or its own code.
start() {
  env "$@" timeout -k 5 600 dotnet "$APP" names 600000 > /dev/null 2> "$WORK/err" &
  CHILD=$!
  find_program ${MAPPED:+"$MAPPED"}
}
stop() {
  kill -9 "$PID" 2> /dev/null
  wait $CHILD 2> /dev/null
}
# launch_app ARGS...: starts APP, or the command `target` if there is one, and waits until it prints "ready": PID becomes its process,
# LAUNCHER the job that ends with it, and WORK/said what it prints.
launch_app() {
  : > "$WORK/said"  # what the last one has printed, else it may be read again
  [ -n "${target:-}" ] || local target=(dotnet "$APP")
  timeout 300 "${target[@]}" "$@" > "$WORK/said" 2>&1 &
  LAUNCHER=$!
  for _ in $(seq 600); do grep -q ready "$WORK/said" && break; sleep 0.1; done
  PID=$(pgrep -P $LAUNCHER) && grep -q ready "$WORK/said" || { cat "$WORK/said"; fail "the program does not start"; }
}
