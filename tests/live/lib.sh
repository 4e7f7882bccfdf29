# SPDX-License-Identifier: MIT
# What the live tests share. Sourced; wants BUILD (the build directory) and SOURCE (the source tree).
set -u
CLSID='{8F3E6C1A-5B2D-4E7F-9A41-C6D0E2B7F519}'
export DOTNET_NOLOGO=1 DOTNET_CLI_TELEMETRY_OPTOUT=1 DOTNET_GENERATE_ASPNET_CERTIFICATE=false
export MSBUILDDISABLENODEREUSE=1 MSBUILDTERMINALLOGGER=off
# A profiler that the caller's shell has set up is not part of the test.
unset CORECLR_ENABLE_PROFILING CORECLR_PROFILER CORECLR_PROFILER_PATH CORECLR_PROFILER_PATH_64
unset CORECLR_ENABLE_NOTIFICATION_PROFILERS CORECLR_NOTIFICATION_PROFILERS CLRSNAP_LOG CLRSNAP_SHM

fail() { echo "FAIL: $*"; exit 1; }
skip() { echo "skipped: $*"; exit 77; }
pass() { echo "pass: $*"; }

command -v dotnet > /dev/null || skip "there is no dotnet command"
WORK=$(mktemp -d) || exit 1
trap 'rm -rf "$WORK"' EXIT

# build_app NAME: builds tests/apps/NAME once for all tests; APP is its dll.
build_app() {
  local out="$BUILD/apps/$1"
  APP="$out/bin/$1/release/$1.dll"
  mkdir -p "$out"
  (
    flock 9
    dotnet build "$SOURCE/tests/apps/$1" -c Release --artifacts-path "$out" -v q > "$out/log" 2>&1
  ) 9> "$out/lock" || { cat "$out/log"; fail "tests/apps/$1 does not build"; }
}
