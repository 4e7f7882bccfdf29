#!/bin/bash
# SPDX-License-Identifier: MIT
# clrmd.sh BUILD MATERIAL compiler|web|bench STOPS: compares the library's walk of another process with ClrMD's, frame
# by frame, at STOPS arbitrary instants of a real program. docs/oracles.md lists the allowed differences with their
# reasons.
BUILD=$1 MATERIAL=$2 WHAT=$3 STOPS=$4 HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
fail() { echo "FAIL: $*"; exit 1; }
command -v dotnet > /dev/null || { echo "skipped: there is no dotnet command"; exit 77; }
WORK=$(mktemp -d) || exit 1
trap 'rm -rf "$WORK"' EXIT
export DOTNET_NOLOGO=1 DOTNET_CLI_TELEMETRY_OPTOUT=1
unset CORECLR_ENABLE_PROFILING CORECLR_ENABLE_NOTIFICATION_PROFILERS DOTNET_ENABLE_PROFILING DOTNET_ENABLE_NOTIFICATION_PROFILERS

# build DIR: builds the program in the folder DIR of tests/ as MATERIAL/apps/NAME/NAME.dll.
build() {
  local name=${1##*/}
  "$HERE/../../../scripts/build-apps.sh" "$MATERIAL" "$HERE/../../$1" > "$WORK/build.log" 2>&1 ||
    { cat "$WORK/build.log"; fail "tests/$1 does not build"; }
  [ ! -f "$MATERIAL/apps/$name.unavailable" ] || { echo "skipped: $(cat "$MATERIAL/apps/$name.unavailable")"; exit 77; }
}
build oracle/clrmd/ClrMd
# whole: how many of a hundred walks must be comparable from end to end: the share that was seen, less what one thread
# takes away that stands in one of the runtime's helpers for all of a short run.
case $WHAT in
  compiler)
    . "$HERE/../recorded/classes.sh"
    find_compiler || { echo "skipped: the SDK's compiler is not where it is looked for"; exit 77; }
    make_classes "$WORK"
    whole=70
    target=(dotnet "$CSC" -noconfig "@$WORK/rsp" "-out:$WORK/made.dll")
    ;;
  web) build apps/Web && whole=90 target=(dotnet "$MATERIAL/apps/Web/Web.dll") ;;
  bench) build apps/Bench && whole=75 target=(dotnet "$MATERIAL/apps/Bench/Bench.dll") ;;
  *) fail "there is no program '$WHAT'" ;;
esac
# The walks of one stop are alike, so a few stops are a small sample: three standard deviations are allowed for.
whole=$(awk -v p="$whole" -v n="$STOPS" 'BEGIN { printf "%d", p - 300 * sqrt(p / 100 * (1 - p / 100) / n) }')
timeout -k 10 3600 dotnet "$MATERIAL/apps/ClrMd/ClrMd.dll" "$BUILD/bin/remote_walk" "$STOPS" "$whole" "${target[@]}" ||
  fail "$WHAT: the walks differ, or could not be compared"
echo "pass: $WHAT"
