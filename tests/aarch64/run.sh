#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# run.sh WHAT BUILD SOURCE MATERIAL: the tests of arm64 on another machine. WHAT:
#   build   compiles clrsnap and the tests with Debian's cross compiler, in BUILD/aarch64
#   unit    runs unit tests under qemu-user, among them elfutils over every row of Debian's arm64 libraries
#   machine runs those unit tests that need more of the kernel than qemu-user has, in an emulated machine
#   twin    runs the reference twin of the managed unwinder (twin.c) over every function of this machine's CoreLib, compiled
#           for arm64 by crossgen2
#   native  runs the reference twin of the native rows (native_twin.c) over the native code of a real arm64 runtime
#   sync, ready, known, shadow   run oracles of tests/oracle on that runtime, in an emulated machine: CoreCLR's own walks, in
#           jitted and in ReadyToRun code, known scenes, and the shadow stack at random instants
#   stack   clrsnap stack, perfmap and doctor there, on a program whose threads stand at known places (stack.sh)
#   record  recordings there, of a program that counts what it does (record.sh, record.py)
#   guest   the drop-in there, with the profiler in C++ of tests/guest (guest.sh)
#   step, step_long   the every-instruction oracle of tests/step there (step.sh)
#   formats the command for arm64 writes what that for x86-64 writes (formats.sh), under qemu-user
#   package the tarballs for arm64 that the test `package` has made (package.sh)
set -euo pipefail
what=$1 build=$2 source=$3 material=$4
command -v aarch64-linux-gnu-gcc > /dev/null || { echo "skipped: there is no aarch64-linux-gnu-gcc"; exit 77; }
command -v qemu-aarch64 > /dev/null || { echo "skipped: there is no qemu-aarch64"; exit 77; }

build() {
  "$source/scripts/fetch-aarch64.sh" "$material" || exit $?
  cmake -S "$source" -B "$build/aarch64" -G Ninja "-DCMAKE_TOOLCHAIN_FILE=$source/cmake/aarch64.cmake" \
    -DCMAKE_BUILD_TYPE=RelWithDebInfo "-DCLRSNAP_MATERIAL=$material" > /dev/null
  cmake --build "$build/aarch64" --target unit_tests package_files
}

unit() { ctest --test-dir "$build/aarch64" --output-on-failure; }

machine() {
  local programs
  mapfile -t programs < "$build/aarch64/machine-programs"
  [ ${#programs[@]} -gt 5 ] || { echo "no programs to run"; exit 1; }
  # shellcheck disable=SC2016
  "$source/tests/aarch64/machine.sh" "$material/aarch64-root" 400 'code=0; for program in test_*; do
    ./$program > /tmp/log 2>&1 && grep -q PASSED /tmp/log && echo "$program: passed" && continue
    cat /tmp/log; echo "$program: failed"; code=1; done; exit $code' "${programs[@]}"
}

# The IL of CoreLib is nearly the same for all architectures, so this one is compiled; it is never run.
twin() {
  local framework image=$material/aarch64-r2r/System.Private.CoreLib.dll
  command -v dotnet > /dev/null || { echo "skipped: there is no dotnet command"; exit 77; }
  framework=$(dotnet --list-runtimes | sed -nE 's/^Microsoft.NETCore.App (10\.\S+) \[(.*)\]$/\2\/\1/p' | sort -V | tail -1)
  [ -n "$framework" ] || { echo "skipped: there is no .NET 10 runtime"; exit 77; }
  "$source/scripts/fetch-crossgen.sh" "$material" || exit $?
  if [ ! "$image" -nt "$framework/System.Private.CoreLib.dll" ]; then
    mkdir -p "${image%/*}"
    "$material/crossgen/crossgen2" --targetos linux --targetarch arm64 -O --parallelism 2 -r "$framework/*.dll" \
      "$framework/System.Private.CoreLib.dll" -o "$image.new" > /dev/null
    mv "$image.new" "$image"
  fi
  qemu-aarch64 -L "$material/aarch64-root" "$build/aarch64/bin/twin" "$image"
}

native() {
  local option
  "$source/scripts/fetch-aarch64-runtime.sh" "$material" || exit $?
  for option in "" --uncorrected; do
    # shellcheck disable=SC2086
    qemu-aarch64 -L "$material/aarch64-root" "$build/aarch64/bin/native_twin" $option "$material/aarch64-runtime/program"
  done
}

# program MODE [guest|stepped]: builds the program of tests/apps/Proofs, or of tests/apps/Guest or Step, as $program. MODE:
# program.sh.
program() {
  local mode=$1 name=${2:-proofs} here=$source/tests/aarch64 apps=$source/tests/apps/Proofs own=program
  if [ "$name" = guest ]; then apps=$source/tests/apps/Guest own=guest; fi
  if [ "$name" = stepped ]; then apps=$source/tests/apps/Step own=stepped; fi
  program=$material/aarch64-runtime/$mode/$name
  "$source/scripts/fetch-aarch64-runtime.sh" "$material" || exit $?
  [ "$mode" = jitted ] || "$source/scripts/fetch-crossgen.sh" "$material" || exit $?
  mkdir -p "${program%/*}"
  exec 8> "$program.lock"
  flock 8
  if [ -n "$(find "$apps" "$here" -newer "$program" -print -quit 2>&1)" ]; then
    # shellcheck disable=SC2046
    "$here/program.sh" "$material" "$mode" "$program" $(find "$here/$own" "$here/program/Missing.cs" -name '*.cs' | sort -u) \
      $(sed "s#^#$apps/#" "$here/$own/sources") || exit $?
  fi
  flock -u 8
}

# made DIR SECONDS COMMAND FILE...: runs a command in the machine; what it leaves there in /tmp/made comes by the console, and
# is then in DIR.
made() {
  local out=$1 seconds=$2 command=$3 code=0
  shift 3
  rm -rf "$out"
  mkdir -p "$out"
  "$source/tests/aarch64/machine.sh" "$material/aarch64-root" "$seconds" "mkdir /tmp/made; code=0; $command || code=\$?
    echo 'made: begin'; tar cz -C /tmp/made . | base64; echo 'made: end'; exit \$code" "$@" > "$out.console" || code=$?
  sed '/^made: begin/,/^made: end/d' "$out.console"
  [ $code = 0 ] || exit $code
  sed -n '/^made: begin/,/^made: end/p' "$out.console" | grep -v '^made: ' | base64 -d | tar xz -C "$out"
}

# oracle PROFILER MODE SETTINGS ARGUMENTS: that program under a profiler of tests/oracle.
oracle() {
  local profiler=$1 settings=$3 arguments=$4
  program "$2"
  "$source/tests/aarch64/machine.sh" "$material/aarch64-root" 400 "export $settings LD_LIBRARY_PATH=/app
    export DOTNET_SYSTEM_GLOBALIZATION_INVARIANT=1 CORECLR_ENABLE_PROFILING=1 CORECLR_PROFILER_PATH=/app/liboracle.so
    export CORECLR_PROFILER={8F3E6C1A-5B2D-4E7F-9A41-C6D0E2B7F519}
    ln -s libc.so.6 /lib/aarch64-linux-gnu/libc.so; mv liboracle_$profiler.so liboracle.so
    ./proofs $arguments > /tmp/out 2>&1; code=\$?; cat /tmp/out
    grep -q ': pass (0 failed expectations)' /tmp/out || exit 1; exit \$code" \
    "$program" "$build/aarch64/lib/liboracle_$profiler.so" "$build/aarch64/lib/libclrsnap.so"
}

sync() { oracle sync jitted "ORACLE_KINDS=27" "variety all 1"; }
# The tour has more than 3,000 methods; those that are ready are not jitted before the tour ends.
ready() {
  local jitted out=$build/aarch64/ready.log
  oracle sync ready "ORACLE_KINDS=27" "variety all 1" > "$out" || { cat "$out"; exit 1; }
  cat "$out"
  jitted=$(awk '$1 == "JITCompilationStarted" { print $2 }' "$out")
  [ "$jitted" -lt 1000 ] || { echo "$jitted methods were jitted: ReadyToRun code did not run"; exit 1; }
}
# With that setting the emulator does not run old code of dynamic methods: docs/oracles.md.
known() { oracle known jitted "DOTNET_EnableWriteXorExecute=0 ORACLE_SCENES=40 ORACLE_SNAPSHOTS=40" "known"; }
shadow() { oracle shadow jitted "ORACLE_SNAPSHOTS=3000" "shadow"; }

stack() {
  program jitted
  "$source/tests/aarch64/machine.sh" "$material/aarch64-root" 500 "sh stack.sh" "$source/tests/aarch64/stack.sh" "$program" \
    "$build/aarch64/bin/clrsnap" "$build/aarch64/lib/libclrsnap.so"
}

# Where the machine is so slow that there are too few samples to tell, the program runs for longer.
record() {
  local times code=0 out=$build/aarch64/record
  program ready
  for times in 1 3; do
    made "$out" 700 "TIMES=$times sh record.sh" "$source/tests/aarch64/record.sh" "$program" "$program.pdb" \
      "$build/aarch64/bin/clrsnap" "$build/aarch64/lib/libclrsnap.so"
    code=0
    python3 "$source/tests/aarch64/record.py" "$out" "$build/bin/clrsnap" || code=$?
    [ $code = 3 ] || exit $code
  done
  echo "FAIL: too few samples to tell, in a run of $times times the length"
  exit 1
}

guest() {
  local out=$build/aarch64/guest mode code=0
  [ -f "$build/aarch64/lib/libguest.so" ] || { echo "skipped: there is no aarch64-linux-gnu-g++"; exit 77; }
  program ready guest
  made "$out" 700 "sh guest.sh" "$source/tests/aarch64/guest.sh" "$program" "$build/aarch64/lib/libguest.so" \
    "$build/aarch64/lib/libclrsnap.so"
  cd "$out"
  mv drop-in.handler handler
  for mode in suspend sites cross detach; do
    python3 "$source/tests/guest/compare.py" $mode plain.$mode drop-in.$mode plain.suspend || code=1
  done
  python3 "$source/tests/guest/compare.py" handler - handler plain.suspend || code=1
  exit $code
}

# stepped short|long SECONDS
stepped() {
  program ready stepped
  "$source/tests/aarch64/machine.sh" "$material/aarch64-root" "$2" "sh step.sh $1 $RANDOM" "$source/tests/aarch64/step.sh" \
    "$program" "$build/aarch64/bin/step" "$build/aarch64/lib/libstepmark.so"
}
step() { stepped short 500; }
step_long() { stepped long 14400; }

package() {
  program jitted
  "$source/tests/aarch64/machine.sh" "$material/aarch64-root" 400 "sh package.sh" "$source/tests/aarch64/package.sh" "$program" \
    "$build"/package/clrsnap-*-linux{,-musl}-arm64.tar.gz
}

formats() { "$source/tests/aarch64/formats.sh" "$build" "$material"; }

"$what"
