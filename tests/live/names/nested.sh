#!/bin/bash
# SPDX-License-Identifier: MIT
# nested.sh BUILD SOURCE MATERIAL APP [VERSION]: the modes alloc and exception tell nested types of one name apart. Each
# method of tests/apps/Nested allocates or throws one type only, and must have that type and no other (nested.py), in a
# recording from the start and by attach, with many events and with all of them. Types that are unloaded while the
# recording runs may have their inner name alone, but never that of another type.
BUILD=$1 SOURCE=$2 MATERIAL=$3 NAME=$4
. "$SOURCE/tests/live/lib.sh"
if [ $# = 5 ]; then on_older "$NAME" "$5"; else build_app "$NAME" && target=(dotnet "$APP"); fi
cd "$WORK" || exit 1
clrsnap=$BUILD/bin/clrsnap
every=(--alloc 100k --event-rate 1000000 --buffer 64)

# judge WHAT [EXACT]: exceptions are as many as the program has thrown, too.
judge() {
  for mode in alloc exception; do
    "$clrsnap" report --mode $mode -o $mode.folded all.clrsnap 2> report.err || { cat report.err; fail "$1: report"; }
  done
  python3 "$SOURCE/tests/live/names/nested.py" alloc.folded exception.folded "${@:2}" < truth || fail "$1: not the types"
  pass "$1"
}
# record WHAT OPTIONS...: from the start, 30 rounds.
record() {
  timeout -k 5 300 "$clrsnap" record --mode alloc,exception "${@:2}" -o all.clrsnap -- "${target[@]}" 30 > truth 2> err ||
    { cat err; fail "$1: the recording"; }
  grep -qx 'unloaded [1-9][0-9]* of 30' truth || { cat truth; fail "nothing was unloaded"; }
  judge "$1" exact
}
record "every event" "${every[@]}"
record "as many events as are cheap"

launch_app again
record_process --mode alloc,exception "${every[@]}" -d 5 -o all.clrsnap "$PID"
kill "$PID"
wait "$LAUNCHER" 2> /dev/null
LAUNCHER=

grep '^truth' "$WORK/truth" > told
mv told truth
judge "by attach"
