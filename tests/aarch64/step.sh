# SPDX-License-Identifier: MIT
# step.sh short|long SEED: runs in the emulated machine of machine.sh: the every-instruction oracle (tests/step) over the program
# tests/apps/Step, which is a single file with the runtime in it. The exit code is 1 if anything is wrong. Busybox's shell runs
# it. One processor, because two that hand over to each other at each instruction are slower.
export LD_LIBRARY_PATH=/app DOTNET_SYSTEM_GLOBALIZATION_INVARIANT=1 STEP_MARK_LIB=libstepmark.so
# With that setting the emulator does not run old code of dynamic methods: docs/oracles.md.
export DOTNET_EnableWriteXorExecute=0
# The dynamic linker's _dl_runtime_resolve has no rule on purpose: docs/oracles.md.
export LD_BIND_NOW=1
ln -s libc.so.6 /lib/aarch64-linux-gnu/libc.so
mode=$1 seed=$2 total=0
fail() { echo "FAIL: $*"; exit 1; }

# run NAME "VARIABLE=VALUE ..." ROUNDS SCENES STEP-OPTIONS...: SCENES is a substring of the scenes' names.
run() {
  local name=$1 settings=$2 rounds=$3 scenes=$4 code
  shift 4
  echo "== $name"
  # shellcheck disable=SC2086
  taskset 1 env $settings ./step -r "$seed" "$@" -- ./stepped "$rounds" "$scenes" > /tmp/out 2>&1
  code=$?
  cat /tmp/out
  [ $code = 0 ] || fail "$name: step ended with $code"
  total=$((total + $(awk '$1 == "all" { print $2 }' /tmp/out)))
  seed=$((seed + 1))
}

./step -t || fail "the oracle's own bounds are not held"
case $mode in
  short)
    need=50000
    run "as it runs by default" "" 1 "" -q 500 -p 50
    run "an exception to its end" "" 1 "caught in the same method" -q 60000 -p 50
    run "a null reference to its end" "" 1 "null reference" -q 60000 -p 50
    ;;
  long)
    need=2000000
    run "as it runs by default" "" 2 "" -q 20000 -p 500
    run "optimized at once" "DOTNET_TieredCompilation=0" 1 "" -q 15000 -p 500
    run "optimized after two calls" "DOTNET_TC_CallCountThreshold=2 DOTNET_TC_CallCountingDelayMs=0 \
      DOTNET_TC_BackgroundWorkerTimeoutMs=0" 2 "" -q 8000 -p 500
    run "loops replaced early" "DOTNET_OSR_HitLimit=1 DOTNET_TC_OnStackReplacement_InitialCounter=20" 1 "" -q 10000 -p 500
    run "the framework jitted" "DOTNET_ReadyToRun=0 DOTNET_TieredPGO=0" 1 "" -q 10000 -p 500
    ;;
esac
echo "walks compared, over all: $total"
[ "$total" -ge $need ] || fail "only $total instructions were walked at, not $need"
