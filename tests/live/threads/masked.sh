#!/bin/bash
# SPDX-License-Identifier: MIT
# masked.sh BUILD SOURCE MATERIAL perf|clock|wall start|attach: the time of threads that run with their signals blocked is
# recorded as theirs, without stacks, with the reason; what such a thread does after it has unblocked them does not count for
# the time before.
BUILD=$1 SOURCE=$2 MATERIAL=$3 WHAT=$4 FROM=$5
. "$SOURCE/tests/live/lib.sh"
build_app Masked
export LD_LIBRARY_PATH=$BUILD/lib
options=(-F 200 -o "$WORK/x.clrsnap")
[ "$WHAT" = wall ] && options+=(--mode wall) || options+=(--engine "$WHAT")
bad() { cat "$WORK/summary" "$WORK/said"; fail "$WHAT, $FROM: $*"; }
# clocks: of each thread of PID, its name and its CPU time in ns.
clocks() {
  local task
  for task in /proc/"$PID"/task/*; do echo "$(< "$task/comm") cpu $(cut -d' ' -f1 "$task/schedstat") wall 0"; done
}

if [ "$FROM" = start ]; then
  rc=0
  timeout -k 5 300 "$BUILD/bin/clrsnap" record "${options[@]}" -- dotnet "$APP" 2000 > "$WORK/said" 2> "$WORK/summary" || rc=$?
  [ $rc = 42 ] || bad "the program has ended with $rc"
else
  : > "$WORK/summary"
  launch_app 600000
  clocks > "$WORK/before"
  timeout 300 "$BUILD/bin/clrsnap" record "${options[@]}" -d 8 "$PID" > "$WORK/summary" 2>&1 || bad "the recording"
  clocks > "$WORK/after"
  kill -9 "$PID"
  wait $LAUNCHER 2> /dev/null
  LAUNCHER=
fi
for kind in json md; do
  "$BUILD/bin/clrsnap" report -o "$WORK/x.$kind" "$WORK/x.clrsnap" > /dev/null 2> "$WORK/reported" ||
    { cat "$WORK/reported"; bad "the report as $kind"; }
done
grep -q 'without stacks: threads ran with their signals blocked (' "$WORK/summary" || bad "the summary does not say it"
grep -q 'without stacks: threads ran with their signals blocked (' "$WORK/x.md" || bad "the Markdown does not say it"
"$SOURCE/tests/live/threads/masked.py" "$WHAT" "$FROM" "$WORK" > "$WORK/found" || { cat "$WORK/found"; bad "the time"; }
cat "$WORK/found"
pass "$WHAT, $FROM"
