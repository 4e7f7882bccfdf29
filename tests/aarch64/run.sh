#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# run.sh build|unit|twin BUILD SOURCE MATERIAL: the tests of arm64 on another machine.
#   build   compiles core and its tests with Debian's cross compiler, in BUILD/aarch64
#   unit    runs the unit tests of core under qemu-user, among them elfutils over every row of Debian's arm64 libraries
#   twin    runs the reference twin of the managed unwinder (twin.c) over every function of this machine's CoreLib, compiled
#           for arm64 by crossgen2
set -euo pipefail
what=$1 build=$2 source=$3 material=$4
command -v aarch64-linux-gnu-gcc > /dev/null || { echo "skipped: there is no aarch64-linux-gnu-gcc"; exit 77; }
command -v qemu-aarch64 > /dev/null || { echo "skipped: there is no qemu-aarch64"; exit 77; }

build() {
  "$source/scripts/fetch-aarch64.sh" "$material" || exit $?
  cmake -S "$source" -B "$build/aarch64" -G Ninja "-DCMAKE_TOOLCHAIN_FILE=$source/cmake/aarch64.cmake" \
    -DCMAKE_BUILD_TYPE=RelWithDebInfo "-DCLRSNAP_MATERIAL=$material" > /dev/null
  cmake --build "$build/aarch64" --target unit_tests
}

unit() { ctest --test-dir "$build/aarch64" --output-on-failure; }

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

"$what"
