#!/bin/bash
# SPDX-License-Identifier: MIT
# callers.sh BUILD SOURCE MATERIAL: native threads that call managed code, and come and go in thousands: each sample
# is on the thread that it was taken on, not on one that had its place in memory, its number or its record before.
BUILD=$1 SOURCE=$2 MATERIAL=$3
. "$SOURCE/tests/live/lib.sh"
build_app Callers
export LD_LIBRARY_PATH=$BUILD/lib

timeout 300 "$BUILD/bin/clrsnap" record --mode cpu,wall,alloc,lock,exception -o "$WORK/x.clrsnap" -- \
  dotnet "$APP" 6000 12 > "$WORK/said" 2>&1 || { cat "$WORK/said"; fail "the recording ends with $?"; }
grep -q 'threads 6000 failed 0' "$WORK/said" || { cat "$WORK/said"; fail "not all threads have run"; }
"$SOURCE/tests/live/callers.py" "$WORK/x.clrsnap" 30 > "$WORK/found" || { cat "$WORK/said" "$WORK/found"; fail "samples are on threads that they are not of"; }
pass "$(tail -1 "$WORK/found")"
