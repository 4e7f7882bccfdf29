#!/bin/bash
# SPDX-License-Identifier: MIT
# churn.sh BUILD SOURCE MATERIAL: a recording of a program that loads and unloads libraries at each
# other's addresses. Every frame must be attributed to the library that was there when it was walked.
BUILD=$1 SOURCE=$2 MATERIAL=$3
. "$SOURCE/tests/live/lib.sh"
build_app Churn
"$BUILD/bin/clrsnap" record -F 2999 --mode wall --format collapsed -o "$WORK/out" -- \
  dotnet "$APP" "$BUILD/lib" 6 > "$WORK/app" 2> "$WORK/err" || { cat "$WORK/err"; fail "the recording ended with $?"; }
read -r _ loads _ replaced _ < <(grep '^loads' "$WORK/app")
[ "${replaced:-0}" -ge 20 ] || fail "only ${replaced:-0} of ${loads:-0} libraries came where another one had been"
# sums FILE: the samples in the program's methods, those with the complete stack, those in the wrong library. A stack
# without such a method is not counted; one without the library's frames counts in the first number only.
sums() {
  awk '{
  n = $NF / 1e6
  sub(/ [0-9]+$/, "")
  if (!match($0, /InShape[0-7]/)) next
  method = substr($0, RSTART + 7, 1)
  all += n
  rest = $0
  plugs = wrong = 0
  while (match(rest, /(plug|inner)_[0-7]/)) {
    plugs++
    if (substr(rest, RSTART + RLENGTH - 1, 1) != method) wrong = 1
    rest = substr(rest, RSTART + RLENGTH)
  }
  if (wrong) { bad++; print "wrong: " $0 > "/dev/stderr" }
  if (index($0, "plug_" method ";inner_" method ";Churn.Spin")) whole += n
}
END { printf "%d %d %d\n", all, whole, bad }' "$1"
}
sums "$WORK/out" > "$WORK/sums" 2> "$WORK/wrong"
read -r all whole bad < "$WORK/sums"
head -5 "$WORK/wrong"
# A stack of each library in the next one's method must be found.
sed -E 's/InShape0/InShape8/; s/InShape([1-7])/InShape0/; s/InShape8/InShape1/' "$WORK/out" > "$WORK/shifted"
read -r _ _ found < <(sums "$WORK/shifted" 2> /dev/null)
shifted=$(grep -cE 'InShape[0-7].*(plug|inner)_[0-7]' "$WORK/shifted")
[ "$found" = "$shifted" ] && [ "$found" -gt 0 ] || fail "of $shifted stacks in the wrong method $found are found"
echo "$loads loads, $replaced where the last one was; in the methods $all ms, the whole way $whole ms, stacks in the wrong library $bad"
[ "$bad" = 0 ] || fail "frames are given to the wrong library"
[ "$whole" -ge $((all / 10)) ] && [ "$whole" -gt 0 ] ||
  { awk '{ print $NF, $0 }' "$WORK/out" | sort -rn | head -20; fail "too few show the whole way"; }

# A thread is sampled although there is always a library that is new.
for seconds in 3 12 36; do
  "$BUILD/bin/clrsnap" record --format collapsed -o "$WORK/out" -- dotnet "$APP" "$BUILD/lib" $seconds > "$WORK/app" 2> "$WORK/err" ||
    { cat "$WORK/err"; fail "the recording ended with $?"; }
  used=$(sed -n 's/.* cpu //p' "$WORK/app")
  sampled=$(awk '/<Main>|Program.Main/ { ns += $NF } END { printf "%d", ns / 1e6 }' "$WORK/out")
  [ "$sampled" -lt $((used * 7 / 10)) ] || break
done
echo "main thread: $used ms of CPU time, $sampled ms sampled"
[ "$sampled" -ge $((used * 7 / 10)) ] || { cat "$WORK/err"; fail "time is missing"; }
pass "libraries at each other's addresses: every frame is given to the right one"
