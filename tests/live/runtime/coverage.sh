#!/bin/bash
# SPDX-License-Identifier: MIT
# coverage.sh BUILD SOURCE MATERIAL alone|host|binary|attach [VERSION]: a real CLR profiler,
# Microsoft's CLR Instrumentation Engine of the package Microsoft.CodeCoverage, plainly and through the
# drop-in: its log, its result and the program must be the same. It wraps the profiling API itself.
#   alone    the engine in a program, by `run-profiler --profiler`
#   host     the engine and its coverage method in a test host that sets them up itself, taken over
#   binary   the same, with the result in the collector's own format
#   attach   the engine attached to a running program
BUILD=$1 SOURCE=$2 MATERIAL=$3 WHAT=$4 VERSION=${5:-}
. "$SOURCE/tests/live/lib.sh"
unset LD_PRELOAD CLRSNAP_PROFILER_PATH CLRSNAP_HOLD CLRSNAP_DYNAMIC CLRSNAP_ELIDE_SUSPEND
rc=0
"$SOURCE/scripts/fetch-coverage.sh" "$MATERIAL" > "$WORK/fetch.log" 2>&1 || rc=$?
[ $rc != 77 ] || skip "$(tail -1 "$WORK/fetch.log")"
[ $rc = 0 ] || { cat "$WORK/fetch.log"; fail "the package cannot be fetched"; }
[ -z "$VERSION" ] || get_runtimes
refused=  # by the drop-in, which then leaves walks to the runtime
case $VERSION in 8.*) refused=yes ;; esac
COLLECTOR=$(realpath "$MATERIAL/coverage") || exit 1
ENGINE=$COLLECTOR/ubuntu/x64/libInstrumentationEngine.so
ENGINE_CLASS='{324F817A-7420-4E6D-B3C1-143FBED6D855}'
missing=$(ldd "$ENGINE" | grep 'not found') && skip "the engine needs:$missing (libxml2.so.2 is of the package libxml2)"
CLRSNAP=$BUILD/bin/clrsnap

# with NAME COMMAND...: the engine, if it is loaded, logs to WORK/NAME.engine, and the drop-in to WORK/NAME.log.
with() {
  local name=$1
  shift
  env MicrosoftInstrumentationEngine_LogLevel=All MicrosoftInstrumentationEngine_FileLog=All \
    MicrosoftInstrumentationEngine_FileLogPath="$WORK/$name.engine" CLRSNAP_LOG="$WORK/$name.log" \
    timeout -k 5 300 "$@"
}

# Times, processes and addresses differ between runs.
normal() {
  sed -E 's/\[[0-9:]+\]/[T]/; s/process [0-9]+/process N/; s/\b[0-9a-f]{6,16}\b/ADDRESS/g' "$WORK/$1.engine" |
    sort > "$WORK/$1.normal"
}

# through_us NAME: the drop-in has loaded the engine, and walks for it or says why it does not.
through_us() {
  grep -qF "profiler $ENGINE, class $ENGINE_CLASS" "$WORK/$1.log" ||
    { cat "$WORK/$1.log"; fail "$1: the engine was not loaded through the drop-in"; }
  if grep -qF "runs on with the runtime's own DoStackSnapshot" "$WORK/$1.log"; then
    [ -n "$refused" ] || fail "$1: the drop-in does not walk on this runtime"
  else
    [ -z "$refused" ] || fail "$1: the drop-in says nothing of .NET $VERSION"
  fi
}

# ---- The engine in a program ----

alone() {
  build_app Old
  local name got runtime=$VERSION
  [ -n "$runtime" ] ||
    runtime=$(dotnet --list-runtimes | awk '$1 == "Microsoft.NETCore.App" { newest = $2 } END { print newest }')
  for name in bare plain again ours; do
    local command=(env)
    case $name in
      plain | again)
        command+=(CORECLR_ENABLE_PROFILING=1 CORECLR_PROFILER="$ENGINE_CLASS" CORECLR_PROFILER_PATH_64="$ENGINE")
        ;;
      ours) command=("$CLRSNAP" run-profiler --profiler "$ENGINE" --clsid "$ENGINE_CLASS" --) ;;
    esac
    got=0
    with $name "${command[@]}" env CLRSNAP_RUNTIMES="$MATERIAL/runtimes" "$SOURCE/scripts/dotnet-with" \
      "$runtime" "$APP" > "$WORK/$name.out" 2> "$WORK/$name.err" || got=$?
    [ $got = 7 ] || { cat "$WORK/$name.err"; fail "$name: exit code $got, not 7"; }
    diff "$WORK/bare.out" "$WORK/$name.out" || fail "$name: the program's output has changed"
    [ $name = ours ] || [ ! -s "$WORK/$name.err" ] || { cat "$WORK/$name.err"; fail "$name: something on stderr"; }
    [ $name = bare ] || normal $name
  done
  through_us ours
  # One line on stderr if the runtime is not supported; otherwise nothing.
  [ -z "$refused" ] || echo "clrsnap: the profiler runs on with the runtime's own DoStackSnapshot: this program \
runs on .NET $VERSION, which is not supported yet (.NET 9 and 10 are)" > "$WORK/want.err"
  [ -n "$refused" ] || : > "$WORK/want.err"
  diff "$WORK/want.err" "$WORK/ours.err" || fail "stderr is not what it should be"
  [ "$(wc -l < "$WORK/plain.normal")" -gt 20 ] || fail "the engine has logged next to nothing"
  cmp -s "$WORK/again.normal" "$WORK/ours.normal" || diff "$WORK/plain.normal" "$WORK/ours.normal" ||
    fail "the engine's log is another through the drop-in"
  pass "the engine alone: $(wc -l < "$WORK/ours.normal") lines of log, the same as plainly"
}

# ---- The engine in a test host ----

# settings FORMAT: writes the settings of the test run.
settings() {
  local muxer=
  [ -z "$VERSION" ] || muxer="<DotNetHostPath>$(realpath "$MATERIAL/runtimes")/dotnet</DotNetHostPath>"
  cat << XML
<RunSettings><RunConfiguration>$muxer</RunConfiguration><DataCollectionRunSettings><DataCollectors><DataCollector friendlyName="Code Coverage">
  <Configuration><Format>$1</Format></Configuration>
</DataCollector></DataCollectors></DataCollectionRunSettings></RunSettings>
XML
}

# test_run NAME FORMAT PREFIX...: RESULT becomes the file that the collector has written.
test_run() {
  local name=$1 format=$2 rc=0
  shift 2
  settings "$format" > "$WORK/$name.runsettings"
  # The collector rewrites the assembly in place and restores it afterwards, so concurrent runs do not share it.
  rm -rf "$WORK/app"
  cp -r "$(dirname "$APP")" "$WORK/app"
  # The host gets time to end: otherwise it is killed after 100 ms, and its log is cut off.
  COVERAGE_MAPS=$WORK/$name.maps VSTEST_TESTHOST_SHUTDOWN_TIMEOUT=60000 with "$name" "$@" \
    dotnet test "$WORK/app/${APP##*/}" --collect 'Code Coverage' --settings "$WORK/$name.runsettings" \
    --test-adapter-path "$COLLECTOR" \
    --results-directory "$WORK/$name.results" > "$WORK/$name.out" 2>&1 || rc=$?
  grep -q '^Passed! .*Failed: *0, Passed: *7, Skipped: *0' "$WORK/$name.out" && [ $rc = 0 ] ||
    { cat "$WORK/$name.out"; fail "$name: the tests do not pass"; }
  RESULT=$(find "$WORK/$name.results" -type f)
  [ -s "$RESULT" ] || { cat "$WORK/$name.out"; fail "$name: no result was written"; }
}

# mapped NAME LIBRARY...: the test host had them mapped.
mapped() {
  local name=$1 library
  shift
  for library in "$@"; do
    grep -q "/$library$" "$WORK/$name.maps" || fail "$name: $library is not in the test host"
  done
}

host() {
  build_app Coverage
  local name
  for name in plain ours; do
    if [ $name = plain ]; then test_run plain Cobertura; else test_run ours Cobertura "$CLRSNAP" run-profiler --; fi
    mapped $name libInstrumentationEngine.so libCoverageInstrumentationMethod.so "${VERSION:-10.*}/libcoreclr.so"
    sed -E 's/ timestamp="[0-9]+"//' "$RESULT" > "$WORK/$name.xml"
    normal $name
    sort -u "$WORK/$name.normal" > "$WORK/$name.kinds" # how many there are depends on the JIT's threads
  done
  grep -q '/libclrsnap[^/]*$' "$WORK/plain.maps" && fail "plain: clrsnap is in the test host"
  mapped ours libclrsnap.so libclrsnap-takeover.so
  through_us ours
  grep -q 'hits="1"' "$WORK/plain.xml" && grep -q 'hits="0"' "$WORK/plain.xml" || fail "there is no coverage to compare"
  diff "$WORK/plain.xml" "$WORK/ours.xml" || fail "the coverage is another through the drop-in"
  diff "$WORK/plain.kinds" "$WORK/ours.kinds" || fail "the engine's log is another through the drop-in"
  pass "the same coverage: $(grep -c '<line ' "$WORK/ours.xml") lines of Cobertura"
}

# The collector's own format, its default. A profiler from the command line is in every .NET process of the test run,
# except where the collector sets up its own.
binary() {
  build_app Coverage
  test_run ours Coverage "$CLRSNAP" run-profiler --profiler "$ENGINE" --clsid "$ENGINE_CLASS" --
  through_us ours
  mapped ours libInstrumentationEngine.so libCoverageInstrumentationMethod.so libclrsnap.so
  [[ $RESULT = *.coverage ]] || fail "$RESULT is not what the collector writes unless told"
  pass "$(basename "$RESULT"): $(stat -c %s "$RESULT") bytes"
}

# ---- The engine attached ----

# attached NAME COMMAND...: starts the program and runs the command; the word PID in it becomes the program's number.
# When the command runs, all methods have been compiled, and none will be compiled again: the engine logs each method of
# an older module that is.
attached() {
  local name=$1 pid rc=0
  shift
  rm -f "$WORK/until"
  with "$name" env DOTNET_TieredCompilation=0 sh -c 'echo $$ > "$0"; exec "$@"' "$WORK/pid" dotnet "$APP" until "$WORK/until" say \
    > "$WORK/$name.out" 2> "$WORK/$name.err" &
  local child=$!
  for _ in $(seq 900); do
    grep -q waiting "$WORK/$name.out" 2> "$WORK/grep.err" && break
    sleep 0.1
  done
  pid=$(cat "$WORK/pid")
  "${@//PID/$pid}" > "$WORK/$name.attach" 2>&1 || rc=$?
  ATTACH_TWICE=$("$CLRSNAP" run-profiler --attach "$pid" --profiler "$ENGINE" --clsid "$ENGINE_CLASS" 2>&1)
  touch "$WORK/until"
  wait $child || [ $? = 42 ] || { cat "$WORK/$name.err"; fail "$name: the program does not end as it should"; }
  [ $rc = 0 ] || { cat "$WORK/$name.attach"; fail "$name: the profiler was not attached"; }
  [[ $ATTACH_TWICE = *"process $pid refuses the profiler (0x8013136a): it has a profiler already"* ]] ||
    fail "$name: attached twice: $ATTACH_TWICE"
  normal "$name"
}

attach() {
  build_app Abi
  # The engine's client data. Without any it crashes, also without clrsnap.
  local data='<InstrumentationEngineConfiguration></InstrumentationEngineConfiguration>'
  printf '%s' "$data" > "$WORK/data"
  attached plain "$BUILD/bin/attach" PID "$ENGINE" "$ENGINE_CLASS" 60000 "$data"
  attached ours "$CLRSNAP" run-profiler --attach PID --profiler "$ENGINE" --clsid "$ENGINE_CLASS" --data "$WORK/data"
  through_us ours
  diff "$WORK/plain.out" "$WORK/ours.out" || fail "the program's output has changed"
  [ -s "$WORK/ours.err" ] && { cat "$WORK/ours.err"; fail "something on stderr"; }
  [ "$(wc -l < "$WORK/plain.normal")" -gt 10 ] || fail "the engine has logged next to nothing"
  diff "$WORK/plain.normal" "$WORK/ours.normal" || fail "the engine's log is another through the drop-in"
  pass "attached: $(wc -l < "$WORK/ours.normal") lines of log, the same as plainly"
}

case $WHAT in
  alone | host | binary | attach) $WHAT ;;
  *) fail "there is no $WHAT" ;;
esac
