#!/bin/bash
# SPDX-License-Identifier: MIT
# names.sh BUILD SOURCE MATERIAL APP [VERSION]: compares shown names with the source. Each method of tests/apps/Names
# (and NamesFs, in F#) burns CPU time in Mark.At, to which it passes the name that it should have: the callers of
# Mark.At must be exactly those. --raw-names has the same stacks under the compiler's names.
BUILD=$1 SOURCE=$2 MATERIAL=$3 NAME=$4
. "$SOURCE/tests/live/lib.sh"
if [ $# = 5 ]; then on_older "$NAME" "$5"; else build_app "$NAME" && target=(dotnet "$APP"); fi
cd "$WORK" || exit 1

# callers FILE: the callers of Mark.At. Its lock ends in a finally block, whose code is a frame of its own: a sample
# that falls into it has Mark.At twice, and the caller is above both.
callers() {
  sed -E 's/ [0-9]+$//' "$1" | awk -F';' '{ at = 0
    for (i = NF; i > 0; i--) { if ($i ~ /(^|[.])Mark[.]At$/) at = 1; else if (at) { print $i; break } } }' |
    LC_ALL=C sort -u
}
# Three threads of one name; each has a sample.
bakers() {
  [ "$NAME" != Names ] ||
    [ "$("$BUILD/bin/clrsnap" report --threads each --format text -o - all.clrsnap 2>> err | grep -cE '[0-9]  Baker \([0-9]+\)$')" = 3 ]
}
by_perf
# The time under each name is 40 ms: some ten samples, where the kernel ticks 250 times a second. On a loaded machine
# samples may be late by that much, and a name may have none: then the test tries again. An extra name fails at once.
for try in 1 2 3; do
  "$BUILD/bin/clrsnap" record "${PERF[@]}" -F 999 --native off -o pretty.collapsed -o all.clrsnap -- "${target[@]}" > truth 2> err ||
    { cat err; fail "the recording ended with $?"; }
  callers pretty.collapsed > found
  LC_ALL=C sort -u truth > expected
  [ "$(wc -l < expected)" -ge 12 ] || fail "the program has said $(wc -l < expected) names only"
  diff expected found > difference && { bakers || [ $try = 3 ]; } && break
  ! grep -q '^>' difference && [ $try != 3 ] ||
    { cat difference; fail "names are wrong: < in the source, > in the recording"; }
done
"$BUILD/bin/clrsnap" report --raw-names --native off -o raw.collapsed all.clrsnap 2>> err || { cat err; fail "report"; }
pass "$(wc -l < expected) names are those of the source"

[ "$(callers raw.collapsed | grep -c '[<@]')" -ge 3 ] || fail "--raw-names: no compiler's names"
[ "$(callers raw.collapsed | wc -l)" -ge "$(wc -l < found)" ] || fail "--raw-names has fewer methods"
sum() { awk '{ n += $NF } END { printf "%.0f\n", n }' "$1"; }
[ "$(sum raw.collapsed)" = "$(sum pretty.collapsed)" ] || fail "samples are lost with the names"

# An async method and the state machine that it starts are one frame, except for the time of the start itself.
if [ "$NAME" = Names ]; then
  grep -F 'Program.<Main>$;' raw.collapsed | grep -F 'Builder.Start<Program.<<Main>$>d__0>;' |
    grep -qF ';Program.<<Main>$>d__0.MoveNext;Mark.At' || fail "--raw-names: Main does not start its state machine"
  grep -q '^Program.Main;Mark.At' pretty.collapsed || fail "Main is not one frame"
  ! grep -q 'Builder.*Start<.*>;Program.Main' pretty.collapsed || fail "the start of Main is shown"

  # Threads of one name are one, threads without a name are not; --threads each keeps all apart.
  for which in grouped each; do
    "$BUILD/bin/clrsnap" report --threads $which --format text -o $which.txt all.clrsnap 2>> err || fail "--threads $which"
    awk '/^ *[0-9.]+ % +[0-9.]+ % +[0-9]+  [^ ]/ { sub(/^[^%]*%[^%]*% +[0-9]+  /, ""); print > "'$which'.threads" }' $which.txt
    # The text leaves out what is below a thousandth.
    "$BUILD/bin/clrsnap" report --threads $which --format json -o $which.json all.clrsnap 2>> err || fail "--threads $which"
    python3 -c 'import json, sys; print(sum(json.load(sys.stdin)["modes"][0]["self"]))' < $which.json > $which.sum
  done
  [ "$(grep -c '^Baker' grouped.threads)" = 1 ] && grep -qx 'Baker, 3 threads' grouped.threads ||
    { cat grouped.threads; fail "the bakers are not one"; }
  [ "$(grep -cE '^Baker \([0-9]+\)$' each.threads)" = 3 ] || { cat each.threads; fail "the bakers are not three"; }
  grep -vE '^(Baker|[.]NET)' grouped.threads > unnamed
  grep -vE '^(Baker|[.]NET)' each.threads | diff - unnamed || fail "threads without a name are grouped"
  [ "$(wc -l < unnamed)" -ge 2 ] || { cat unnamed; fail "there are no threads without a name"; }
  awk '/^ *[0-9.]+ % +[0-9.]+ % +[0-9]+  [^ ]/ { $1 = $2 = $3 = $4 = $5 = ""; thread = $0 }
    /Mark[.]Hire[.]lambda#0/ { sub(/^ +/, "", thread); print thread }' each.txt > hired
  grep -qE '^thread \([0-9]+\)$' hired || { cat hired; fail "a thread without a name has its starter's"; }
  grep -q '^[.]NET TP Worker' each.threads || { cat each.threads; fail "the pool's workers have no name"; }
  cmp -s grouped.sum each.sum || fail "samples are lost between the threads"
fi
pass "raw names, and one frame for an async method"
