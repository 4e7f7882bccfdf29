#!/bin/bash
# SPDX-License-Identifier: MIT
# runtime_parts.sh BUILD SOURCE MATERIAL: a program that makes the runtime do one thing at a time; without symbols, the
# runtime's frames have the class of that.
BUILD=$1 SOURCE=$2 MATERIAL=$3
. "$SOURCE/tests/live/lib.sh"
build_app RuntimeParts
cd "$WORK" || exit 1

"$BUILD/bin/clrsnap" record -F 999 -o parts.collapsed -o parts.clrsnap -- dotnet "$APP" 0.25 2> err ||
  { cat err; fail "the recording ended with $?"; }
python3 "$SOURCE/tests/live/runtime_parts.py" "$SOURCE/src/command/metadata/runtime_class.h" parts.collapsed err ||
  { cat err; exit 1; }
"$BUILD/bin/clrsnap" report --raw-names -o raw.collapsed parts.clrsnap 2> err || { cat err; fail "report"; }
grep -qF '[GC]' raw.collapsed && fail "--raw-names has classes"
sum() { awk '{ n += $NF } END { printf "%.0f\n", n }' "$1"; }
[ "$(sum raw.collapsed)" = "$(sum parts.collapsed)" ] || fail "samples are lost with the classes"
pass "the runtime's frames have the class of what it was made to do"
