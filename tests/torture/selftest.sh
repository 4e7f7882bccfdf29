#!/bin/bash
# SPDX-License-Identifier: MIT
# selftest.sh BUILD MATERIAL: the harness notices a program that has another result or exit code, crashes or hangs only when
# it is recorded, and a profiler that leaves something behind; it prints the command that repeats each.
BUILD=$1 MATERIAL=$2
command -v dotnet > /dev/null || { echo "skipped: there is no dotnet command"; exit 77; }
WORK=$(mktemp -d) || exit 1
trap 'rm -rf "$WORK"' EXIT
cd "$(dirname "${BASH_SOURCE[0]}")" || exit 1
mkdir -p "$WORK/build/bin" "$WORK/build/lib"
ln -s "$BUILD"/bin/clrsnap "$WORK/build/bin"
ln -s "$BUILD"/lib/* "$WORK/build/lib"

# noticed FAULT SENTENCE [SECONDS until a program counts as one that hangs]
noticed() {
  local rc=0
  TORTURE_PLANT=$1 TORTURE_PATIENCE=${3:-60} ./torture.py "$WORK/build" "$MATERIAL" --seed 7 --seconds 1 dynamic > "$WORK/said" 2>&1 ||
    rc=$?
  { [ $rc = 1 ] && grep -q "^FAIL: dynamic: $2" "$WORK/said" &&
    grep -q 'again: ./dev torture --seed 7 --seconds 1 dynamic' "$WORK/said"; } ||
    { cat "$WORK/said"; echo "FAIL: '$1' is not noticed"; exit 1; }
  [ -s "$WORK/build/torture/dynamic-7/failure" ] || { echo "FAIL: '$1' leaves no log"; exit 1; }
  echo "noticed: $1"
}
noticed checksum "the result is 'rounds"
noticed code 'the recorded program ended with 41, where it ends with 42 alone'
noticed crash 'the recorded program ended with 134 and has no result'
noticed hang 'the recorded program hangs' 15
TORTURE_PLANT= ./torture.py "$WORK/build" "$MATERIAL" --seed 7 --seconds 1 dynamic || exit 1

# A thread of that name, and shared memory of ours, in a process that nobody records.
python3 - << 'PY' || exit 1
import ctypes, os, sys
sys.path.insert(0, ".")
import trial
ctypes.CDLL(None).prctl(15, b".clrsnap", 0, 0, 0)
memory = os.memfd_create("clrsnap-x")
found = trial.left_over(os.getpid())
assert "the agent's thread" in found and "a descriptor" in found, found
print("noticed: what is left over")
PY
