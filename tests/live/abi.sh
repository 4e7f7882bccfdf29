#!/bin/bash
# SPDX-License-Identifier: MIT
# abi.sh BUILD SOURCE: the profiling API's slots and the contract room, against the running runtime.
BUILD=$1 SOURCE=$2
. "$SOURCE/tests/live/lib.sh"
build_app Abi
out="$WORK/out"
CLRSNAP_TEST_OUT=$out CLRSNAP_TEST_UNTIL=$WORK/until CORECLR_ENABLE_PROFILING=1 \
  CORECLR_PROFILER=$CLSID CORECLR_PROFILER_PATH=$BUILD/lib/libtest_abi.so \
  dotnet "$APP" until "$WORK/until" > "$WORK/stdout" 2> "$WORK/stderr"
rc=$?
cat "$out"
[ $rc = 42 ] || { cat "$WORK/stdout" "$WORK/stderr"; fail "the program's exit code is $rc, not 42"; }
grep -q '^FAIL' "$out" && fail "some calls went wrong"
[ "$(tail -1 "$out")" = done ] || fail "the profiler did not reach its end"
[ "$(grep -c '^ok' "$out")" -ge 100 ] || fail "fewer than 100 checks were made"
pass "$(grep -c '^ok' "$out") checks"
