#!/bin/bash
# SPDX-License-Identifier: MIT
# run.sh BUILD MATERIAL PROFILER ARGS...: the program tests/apps/Proofs under a test profiler; its exit
# code is the test's. ORACLE_TIMEOUT: seconds after which it counts as hung (default 800).
# ORACLE_RUNTIME: the .NET version to run on, one that scripts/fetch-runtimes.sh has fetched.
BUILD=$1 MATERIAL=$2 APP=$2/apps/Proofs/Proofs.dll PROFILER=$3
shift 3
fail() { echo "FAIL: $*"; exit 1; }
command -v dotnet > /dev/null || { echo "skipped: there is no dotnet command"; exit 77; }

preload=
[ "$PROFILER" = rules ] && preload=$BUILD/lib/liboracle_heldmalloc.so
[ -n "${ORACLE_HANDLER:-}" ] && preload=$BUILD/lib/liboracle_trap.so
host=(dotnet) root=$(dirname "$0")/../..
[ -z "${ORACLE_RUNTIME:-}" ] || host=("$root/scripts/dotnet-with" "$ORACLE_RUNTIME")
if [[ ${ORACLE_RUNTIME:-} == [89].* ]]; then
  # It does not describe its Frames, so the oracle reads our description, too.
  APP=$MATERIAL/apps/ProofsOld/ProofsOld.dll
  export ORACLE_DESCRIPTION=$root/src/core/contract/net${ORACLE_RUNTIME%%.*}.json
  [ ! -f "$MATERIAL/apps/ProofsOld.unavailable" ] || { echo "skipped: $(cat "$MATERIAL/apps/ProofsOld.unavailable")"; exit 77; }
fi
[ -f "$APP" ] || fail "$APP is missing: scripts/build-apps.sh makes it"
export CLRSNAP_RUNTIMES=$MATERIAL/runtimes
export ORACLE_SLOW_LIBRARY=$BUILD/lib/liboracle_slow.so
timeout -k 10 "${ORACLE_TIMEOUT:-800}" env CORECLR_ENABLE_PROFILING=1 \
  CORECLR_PROFILER='{8F3E6C1A-5B2D-4E7F-9A41-C6D0E2B7F519}' \
  CORECLR_PROFILER_PATH="$BUILD/lib/liboracle_$PROFILER.so" ${preload:+LD_PRELOAD="$preload"} \
  "${host[@]}" "$APP" "$@"
rc=$?
[ $rc = 124 ] || [ $rc = 137 ] && fail "the program hangs: the last line above says where"
[ $rc -le 1 ] || [ $rc = 77 ] || fail "the program ended with $rc"
exit $rc
