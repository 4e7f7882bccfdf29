#!/bin/bash
# SPDX-License-Identifier: MIT
# abi.sh BUILD SOURCE MATERIAL [VERSION|single-file]: the profiling API's slots and the contract room, against
# the installed runtime, another one from NuGet, or one that is linked into the application.
BUILD=$1 SOURCE=$2 MATERIAL=$3 WHERE=${4:-installed}
. "$SOURCE/tests/live/lib.sh"
least=100
case $WHERE in
  installed)
    build_app Abi
    run() { dotnet "$APP" "$@"; }
    ;;
  single-file)
    dotnet publish "$SOURCE/tests/apps/Abi" -c Release -r linux-x64 --self-contained -v q \
      -p:PublishSingleFile=true -p:UseAppHost=true --artifacts-path "$WORK/publish" > "$WORK/log" 2>&1 ||
      { tail -3 "$WORK/log"; skip "the single-file host cannot be had from NuGet here"; }
    run() { "$WORK/publish/publish/Abi/release_linux-x64/Abi" "$@"; }
    least=70 # its modules have no files, so the metadata is not looked at
    ;;
  *)
    get_runtimes
    build_app Abi
    run() { run_on "$WHERE" "$APP" "$@"; }
    ;;
esac

out="$WORK/out"
CLRSNAP_TEST_OUT=$out CLRSNAP_TEST_UNTIL=$WORK/until CORECLR_ENABLE_PROFILING=1 \
  CORECLR_PROFILER=$CLSID CORECLR_PROFILER_PATH=$BUILD/lib/libtest_abi.so \
  run until "$WORK/until" > "$WORK/stdout" 2> "$WORK/stderr"
rc=$?
cat "$out"
[ $rc = 42 ] || { cat "$WORK/stdout" "$WORK/stderr"; fail "the program's exit code is $rc, not 42"; }
grep -q '^FAIL' "$out" && fail "some calls went wrong"
[ "$(tail -1 "$out")" = done ] || fail "the profiler did not reach its end"
[ "$(grep -c '^ok' "$out")" -ge $least ] || fail "fewer than $least checks were made"
pass "$(grep -c '^ok' "$out") checks"
