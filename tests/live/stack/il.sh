#!/bin/bash
# SPDX-License-Identifier: MIT
# il.sh BUILD SOURCE MATERIAL: compares the IL maps that `clrsnap stack` reads from a process's memory with those that the
# runtime gives a profiler, for every method that was compiled or prepared to run in the C# compiler and in a program that has been
# through the tiers.
BUILD=$1 SOURCE=$2 MATERIAL=$3
. "$SOURCE/tests/live/lib.sh"
build_app Lines
sdk=$(dirname "$(readlink -f "$(command -v dotnet)")")/sdk
compiler=$sdk/$(ls "$sdk" | sort -V | tail -1)/Roslyn/bincore/csc.dll
[ -f "$compiler" ] || fail "the SDK has no compiler at $compiler"

# check NAME CODE JIT R2R COMMAND...: it exits with CODE, has at least JIT and R2R methods, and no place differs or has a map on one side only.
check() {
  local name=$1 code=$2 jit=$3 r2r=$4 rc=0
  shift 4
  CLRSNAP_TEST_OUT=$WORK/$name CORECLR_ENABLE_PROFILING=1 CORECLR_PROFILER=$CLSID \
    CORECLR_PROFILER_PATH=$BUILD/lib/libtest_il_maps.so "$@" > "$WORK/out" 2>&1 || rc=$?
  [ $rc = "$code" ] || { cat "$WORK/out"; fail "$name: the program ended with $rc"; }
  awk -v jit="$jit" -v r2r="$r2r" '/^jit / { last = $0; good = $2 >= jit && $4 >= r2r && $8 == $6 && $10 == 0 } END { print last; exit !good }' \
    "$WORK/$name" > "$WORK/verdict" || { cat "$WORK/$name"; fail "$name: maps differ, or are too few"; }
  pass "$name: $(cat "$WORK/verdict")"
}
check tiered 42 40 200 dotnet "$APP" 100
check untiered 42 40 200 env DOTNET_TieredCompilation=0 dotnet "$APP" 20
framework=$(dirname "$sdk")/shared/Microsoft.NETCore.App
framework=$framework/$(ls "$framework" | grep '^10\.' | sort -V | tail -1)
echo 'class P { static void Main() => System.Console.WriteLine(1); }' > "$WORK/p.cs"
check compiler 0 500 5000 dotnet exec "$compiler" -nologo -noconfig -nostdlib+ "-out:$WORK/p.dll" \
  "-r:$framework/System.Private.CoreLib.dll" "-r:$framework/System.Runtime.dll" "-r:$framework/System.Console.dll" "$WORK/p.cs"
