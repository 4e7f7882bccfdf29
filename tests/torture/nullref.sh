#!/bin/bash
# SPDX-License-Identifier: MIT
# nullref.sh BUILD MATERIAL [SECONDS]: null references in a tight loop on three threads, sampled at
# 10 kHz. The program must survive, no thread may be left with clrsnap's signal blocked, and each thread
# must still be sampled afterwards. The tests have a short run; ./dev torture has longer ones.
BUILD=$1 APP=$2/apps/Proofs/Proofs.dll SECONDS_WANTED=${3:-8}
fail() { echo "FAIL: $*"; exit 1; }
command -v dotnet > /dev/null || { echo "skipped: there is no dotnet command"; exit 77; }
WORK=$(mktemp -d) || exit 1
trap 'rm -rf "$WORK"' EXIT
timeout -k 10 $((SECONDS_WANTED + 120)) "$BUILD/bin/clrsnap" record -F 10000 --mode wall --format collapsed \
  --native off -o "$WORK/out" -- dotnet "$APP" torture "$SECONDS_WANTED" 2> "$WORK/log"
rc=$?
cat "$WORK/log"
[ $rc = 0 ] || fail "the program ended with $rc"
for method in After0 After1 After2; do
  n=$(awk -v m="Proofs.Torture.$method" 'index($0, m) { n += $NF } END { printf "%d", n / 1e5 }' "$WORK/out") # at 10 kHz
  echo "$method: $n samples"
  [ "$n" -gt 20 ] || fail "the thread of $method is not sampled any more"
done
