#!/bin/bash
# SPDX-License-Identifier: MIT
# run.sh BUILD MATERIAL [short|single|long|VERSION]: the every-instruction oracle over the program tests/apps/Step, under
# several configurations of the runtime: code as it is jitted first and as it is optimized, framework code
# that is ReadyToRun and that is jitted, loops replaced while they run. short (the default): at least 100,000
# instructions in some seconds; single: as many in a program that is a single file, the runtime in it; long: at least
# 12,000,000, in half an hour; VERSION: as many as short, on that older runtime. Exit code 0, 1, or 77: no dotnet, no NuGet, or no permission.
BUILD=$1 MATERIAL=$2 MODE=${3:-short} APP=$2/apps/Step/Step.dll
fail() { echo "FAIL: $*"; exit 1; }
command -v dotnet > /dev/null || { echo "skipped: there is no dotnet command"; exit 77; }
[[ $MODE == [0-9]* ]] || [ -f "$APP" ] || fail "$APP is missing: scripts/build-apps.sh makes it"
export STEP_MARK_LIB=$BUILD/lib/libstepmark.so
unset CORECLR_ENABLE_PROFILING CORECLR_ENABLE_NOTIFICATION_PROFILERS
OUT=$(mktemp) || exit 1
trap 'rm -f "$OUT"' EXIT
total=0
program=(dotnet "$APP")

# run NAME "VARIABLE=VALUE ..." ROUNDS SCENES STEP-OPTIONS...: SCENES is a substring of the scenes' names.
run() {
  local name=$1 settings=$2 rounds=$3 scenes=$4
  shift 4
  echo "== $name"
  # shellcheck disable=SC2086
  timeout -k 10 "${STEP_TIMEOUT:-1800}" env $settings "$BUILD/bin/step" "$@" -- "${program[@]}" "$rounds" "$scenes" > "$OUT"
  local rc=$?
  cat "$OUT"
  [ $rc = 0 ] || fail "$name: step ended with $rc"
  total=$((total + $(awk '$1 == "all" { print $2 }' "$OUT")))
}

"$BUILD/bin/step" -t || fail "the oracle's own bounds are not held"
case $MODE in
  short)
    need=100000
    run "as it runs by default" "" 1 "" -q 4000 -j 500 -p 200 -r "$RANDOM"
    run "optimized at once" "DOTNET_TieredCompilation=0" 1 "" -q 1000 -j 200 -r "$RANDOM"
    run "an exception to its end" "" 1 "caught in the same method" -q 16000 -r "$RANDOM"
    # Where the thread is when the collector runs depends on the machine.
    for _ in $(seq 20); do
      run "return addresses replaced" "DOTNET_TieredCompilation=0" 1 "replaced" -q 40000 -j 100 -p 500 -r "$RANDOM"
      replaced=$(sed -nE 's/.*replaced return address ([0-9]+)$/\1/p' "$OUT")
      [ "$replaced" -gt 0 ] && break
    done
    [ "$replaced" -gt 0 ] || fail "no return address was replaced"
    run "a loop replaced while it runs" "DOTNET_OSR_HitLimit=1 DOTNET_TC_OnStackReplacement_InitialCounter=20" 1 \
      "a hot loop" -q 30000 -r "$RANDOM"
    ;;
  single)
    need=100000
    here=$(dirname "$0")
    single=$("$here/../../scripts/publish-app.sh" "$MATERIAL" "$here/../apps/Step" single-file) || exit $?
    program=("$single")
    run "as it runs by default" "" 1 "" -q 1500 -j 300 -p 200 -r "$RANDOM"
    run "optimized at once" "DOTNET_TieredCompilation=0" 1 "" -q 1500 -j 200 -r "$RANDOM"
    run "an exception to its end" "" 1 "caught in the same method" -q 16000 -r "$RANDOM"
    ;;
  long)
    need=12000000
    run "as it runs by default" "" 3 "" -q 150000 -j 5000 -p 1000 -r 1
    run "optimized at once" "DOTNET_TieredCompilation=0" 2 "" -q 60000 -j 2000 -p 1000 -r 2
    run "optimized after two calls" "DOTNET_TC_CallCountThreshold=2 DOTNET_TC_CallCountingDelayMs=0 \
      DOTNET_TC_BackgroundWorkerTimeoutMs=0" 3 "" -q 40000 -j 1000 -p 1000 -r 3
    run "loops replaced early" "DOTNET_OSR_HitLimit=1 DOTNET_TC_OnStackReplacement_InitialCounter=20" 1 "" \
      -q 60000 -j 2000 -p 1000 -r 4
    run "the framework jitted" "DOTNET_ReadyToRun=0 DOTNET_TieredPGO=0" 1 "" -q 40000 -j 500 -p 1000 -r 5
    run "two processors, a collector of its own" "DOTNET_gcServer=1 DOTNET_GCHeapCount=2" 1 "" -q 20000 -j 500 -p 1000 -r 6
    ;;
  [0-9]*)
    need=100000
    here=$(dirname "$0")
    [ ! -f "$MATERIAL/apps/StepOld.unavailable" ] || { echo "skipped: $(cat "$MATERIAL/apps/StepOld.unavailable")"; exit 77; }
    export CLRSNAP_RUNTIMES=$MATERIAL/runtimes
    program=("$here/../../scripts/dotnet-with" "$MODE" "$MATERIAL/apps/StepOld/StepOld.dll")
    run "as it runs by default" "" 1 "" -q 4000 -j 500 -p 200 -r "$RANDOM"
    run "optimized at once" "DOTNET_TieredCompilation=0" 1 "" -q 1000 -j 200 -r "$RANDOM"
    run "an exception to its end" "" 1 "caught in the same method" -q 16000 -r "$RANDOM"
    run "return addresses replaced" "DOTNET_TieredCompilation=0" 1 "replaced" -q 40000 -j 100 -p 500 -r "$RANDOM"
    ;;
  *) echo "usage: run.sh BUILD MATERIAL [short|single|long|VERSION]" >&2; exit 2 ;;
esac
echo "walks compared, over all: $total"
[ "$total" -ge $need ] || fail "only $total instructions were walked at, not $need"
