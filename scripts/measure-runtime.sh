#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# measure-runtime.sh OUT VERSION...: compares every number of our description of these runtimes (src/core/contract/netN.json)
# with running programs, as the runtime's own debugger support sees them (tests/oracle/measure). OUT: a build folder; the
# runtimes are fetched into OUT/runtimes. Exit 77: NuGet cannot be reached. MEASURE_STOPS: how often the program is stopped.
set -euo pipefail
[ $# -ge 2 ] || { echo "usage: measure-runtime.sh OUT VERSION..." >&2; exit 2; }
scripts=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
out=$(cd "$1" && pwd)
shift
"$scripts/fetch-runtimes.sh" "$out" "$@"
"$scripts/build-apps.sh" "$out" "$scripts/../tests/oracle/measure/Measure" "$scripts/../tests/apps/ProofsOld"
for app in Measure ProofsOld; do
  [ ! -f "$out/apps/$app.unavailable" ] || { echo "skipped: $(cat "$out/apps/$app.unavailable")"; exit 77; }
done
export CLRSNAP_RUNTIMES=$out/runtimes
work=$(mktemp -d) pid=
trap '[ -z "$pid" ] || kill -9 $pid || true; rm -rf "$work"' EXIT

# The program at random instants; after a while it is another run of it.
for version in "$@"; do
  description=$scripts/../src/core/contract/net${version%%.*}.json
  lost=0
  rm -f "$work/notes"
  for ((stop = 0; stop < ${MEASURE_STOPS:-100}; stop++)); do
    if ! kill -0 $pid 2> /dev/null || ((stop % 4 == 0)); then
      [ -z "$pid" ] || kill -9 $pid 2> /dev/null || true
      "$scripts/dotnet-with" "$version" "$out/apps/ProofsOld/ProofsOld.dll" variety all 100000 > /dev/null 2>&1 &
      pid=$!
      sleep 0.4  # much is compiled at a start: stubs have their Frames then
    fi
    # The DAC itself crashes at some instants.
    { dotnet "$out/apps/Measure/Measure.dll" "$description" "$work/notes" $pid > "$work/err" 2>&1; } 2> /dev/null || lost=$((lost + 1))
  done
  kill -9 $pid 2> /dev/null || true
  pid=
  echo "== $version: $((stop - lost)) stops; $lost more at which the debugger support failed"
  [ $lost -lt $((stop / 2)) ] || { cat "$work/err"; exit 1; }
  dotnet "$out/apps/Measure/Measure.dll" "$description" "$work/notes"
done
