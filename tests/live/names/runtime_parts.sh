#!/bin/bash
# SPDX-License-Identifier: MIT
# runtime_parts.sh BUILD SOURCE MATERIAL: a program that makes the runtime do one thing at a time; without symbols, the
# runtime's frames have the class of that.
BUILD=$1 SOURCE=$2 MATERIAL=$3
. "$SOURCE/tests/live/lib.sh"
build_app RuntimeParts
cd "$WORK" || exit 1

# Of a part that is short, what was taken from the machine is a large share.
for seconds in 0.25 1 4; do
  "$BUILD/bin/clrsnap" record -F 999 -o parts.collapsed -o parts.md -o parts.clrsnap -- dotnet "$APP" $seconds 2> err ||
    { cat err; fail "the recording ended with $?"; }
  python3 "$SOURCE/tests/live/names/runtime_parts.py" "$SOURCE/src/command/metadata/runtime_class.h" parts.collapsed err && break
  [ $seconds != 4 ] || { cat err; exit 1; }
done
# Markdown says the same as the summary.
told=$(sed -n 's/^clrsnap: cpu: \(.*\) in functions of the runtime without names, \(.*\) in those without a class either/\1 \2/p' err)
[ "$(sed -n 's/^\(.* %\) of CPU time is in functions of the runtime without names; \(.*\) in those without a class either\./\1 \2/p' parts.md)" = "$told" ] ||
  { cat err parts.md; fail "the page in Markdown does not have the runtime's share"; }
"$BUILD/bin/clrsnap" report --raw-names -o raw.collapsed parts.clrsnap 2> err || { cat err; fail "report"; }
grep -qF '[GC]' raw.collapsed && fail "--raw-names has classes"
sum() { awk '{ n += $NF } END { printf "%.0f\n", n }' "$1"; }
[ "$(sum raw.collapsed)" = "$(sum parts.collapsed)" ] || fail "samples are lost with the classes"
# The same in the tables of `top`, and in `stack`, of the thread that serves the diagnostics port.
# On a busy machine the program may have got to nothing by then.
for seconds in 2 10 40; do
  "$BUILD/bin/clrsnap" top --json --whole --count 1 --interval $seconds --rows 200 -- dotnet "$APP" 1 > top.json 2> err || { cat err; fail "top"; }
  ! grep -q '"\[GC\]"' top.json || break
done
grep -q '"\[GC\]"' top.json || { cat top.json; fail "top has no classes"; }
dotnet "$APP" 20 > said & CHILD=$!
until compgen -G "${TMPDIR:-/tmp}/dotnet-diagnostic-$CHILD-*-socket" > /dev/null; do kill -0 $CHILD || fail "the program has ended"; sleep 0.1; done
for _ in $(seq 20); do
  "$BUILD/bin/clrsnap" stack $CHILD > stack 2> err && grep -q '^    \[diagnostics\]  (libcoreclr.so+0x' stack && break
  sleep 0.2
done
"$BUILD/bin/clrsnap" stack --json $CHILD > stack.json 2>> err
"$BUILD/bin/clrsnap" stack --raw-names $CHILD > stack.raw 2>> err
kill $CHILD
grep -q '^    \[diagnostics\]  (libcoreclr.so+0x' stack && grep -q '"class":"\[diagnostics\]"' stack.json || { cat err stack; fail "stack has no classes"; }
! grep -F '[diagnostics]' stack.raw || fail "stack --raw-names has classes"
pass "the runtime's frames have the class of what it was made to do"
