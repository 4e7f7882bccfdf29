#!/bin/bash
# SPDX-License-Identifier: MIT
# compiler.sh BUILD: records the C# compiler, a program that was not written for this test, at 1 kHz while it compiles
# 600 classes. Its output must be the same as without a recording, nothing may crash, 99.5 % of the walks must be
# complete, and at most one walk in a thousand may end for a reason that the summary does not name
# (src/core/base/stop.h).
BUILD=$1
fail() { echo "FAIL: $*"; exit 1; }
command -v dotnet > /dev/null || { echo "skipped: there is no dotnet command"; exit 77; }
. "$(dirname "${BASH_SOURCE[0]}")/classes.sh"
find_compiler || { echo "skipped: the SDK's compiler is not where it is looked for"; exit 77; }
WORK=$(mktemp -d) || exit 1
trap 'rm -rf "$WORK"' EXIT
make_classes "$WORK"
dotnet "$CSC" -noconfig "@$WORK/rsp" -out:"$WORK/made.dll" > "$WORK/log" 2>&1 ||
  { head -5 "$WORK/log"; fail "the generated classes do not compile"; }
mv "$WORK/made.dll" "$WORK/plain.dll"
engine=()
! "$BUILD/bin/clrsnap" doctor 2> /dev/null | grep -q 'engine perf: any rate' || engine=(--engine perf)
timeout -k 10 300 "$BUILD/bin/clrsnap" record "${engine[@]}" --walk-limit off -F 1000 --format collapsed -o "$WORK/out" -- \
  dotnet "$CSC" -noconfig "@$WORK/rsp" -out:"$WORK/made.dll" 2> "$WORK/log" ||
  { cat "$WORK/log"; fail "the compiler fails while it is recorded"; }
cat "$WORK/log"
cmp "$WORK/plain.dll" "$WORK/made.dll" || fail "the recorded compiler's output differs"
complete=$(sed -n 's/.*complete walks \([0-9.]*\) %.*/\1/p' "$WORK/log")
[ -n "$complete" ] || fail "the summary does not say how many walks were complete"
awk -v c="$complete" 'BEGIN { exit !(c >= 99.5) }' || fail "only $complete % of the walks were complete"
awk '/ samples in / { all = $2 } /complete walks/ { c = $4 } / cut [0-9]+ [a-z-]+: / { named += $3 }
  END { exit !(all > 500 && all * c / 100 + named >= all * 0.999 - 1) }' "$WORK/log" ||
  fail "walks ended without a reason"
echo "pass: the same $(stat -c %s "$WORK/plain.dll") bytes"
