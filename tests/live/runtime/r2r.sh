#!/bin/bash
# SPDX-License-Identifier: MIT
# r2r.sh BUILD SOURCE MATERIAL: a program and a library in one composite ReadyToRun image with hot and cold
# parts. The recording must name methods of the library, and no walk may be cut in ReadyToRun code.
BUILD=$1 SOURCE=$2 MATERIAL=$3
. "$SOURCE/tests/live/lib.sh"
rc=0
"$SOURCE/scripts/fetch-crossgen.sh" "$MATERIAL" > "$WORK/fetch.log" 2>&1 || rc=$?
[ $rc != 77 ] || skip "$(tail -1 "$WORK/fetch.log")"
[ $rc = 0 ] || { cat "$WORK/fetch.log"; fail "crossgen2 could not be fetched"; }
build_app Composite
app=$(dirname "$APP")
framework=$(dirname "$(readlink -f "$(command -v dotnet)")")/shared/Microsoft.NETCore.App
framework=$framework/$(ls "$framework" | grep '^10\.' | sort -V | tail -1)

# compile NAME OPTION...: compiles the program and the library ahead of time.
compile() {
  local out=$WORK/$1
  shift
  mkdir "$out" && cp "$app"/*.json "$out/"
  "$MATERIAL/crossgen/crossgen2" "$app/Composite.dll" "$app/Newtonsoft.Json.dll" -r "$framework/*.dll" \
    --targetos linux --targetarch x64 -O --hot-cold-splitting --synthesize-random-mibc --embed-pgo-data \
    "$@" > "$WORK/crossgen.log" 2>&1 || { cat "$WORK/crossgen.log"; fail "crossgen2 does not compile"; }
}
compile composite --composite -o "$WORK/composite/app.r2r.dll"
[ -f "$WORK/composite/app.r2r.dll" ] || fail "there is no composite image"

# Is the composite image in use? If the runtime refuses an image, it silently jits the program.
dotnet "$WORK/composite/Composite.dll" 20 > /dev/null 2>&1 &
program=$!
for _ in $(seq 100); do
  grep -q 'r-xp.*app\.r2r\.dll' "/proc/$program/maps" 2> /dev/null && break
  sleep 0.1
done
grep -q 'r-xp.*app\.r2r\.dll' "/proc/$program/maps" || fail "the runtime does not use the composite image"
kill "$program"
wait "$program" 2> /dev/null

# record NAME: fails without samples, and if a walk was cut in managed code.
record() {
  DOTNET_TieredCompilation=0 DOTNET_ReadyToRun=1 "$BUILD/bin/clrsnap" record --mode wall -F 1000 \
    --format collapsed -o "$WORK/$1.txt" -- dotnet "$WORK/$1/Composite.dll" 3 > "$WORK/out" 2> "$WORK/err" ||
    { cat "$WORK/err"; fail "$1: the recording ended with $?"; }
  grep -q '^round trips' "$WORK/out" || fail "$1: the program said '$(cat "$WORK/out")'"
  local samples cut
  samples=$(awk '{ms += $NF / 1e6} END {printf "%d", ms}' "$WORK/$1.txt") # at 1000 Hz
  cut=$(grep -c '\[cut' "$WORK/$1.txt")
  [ "$samples" -gt 1000 ] || fail "$1: $samples samples"
  ! grep -E 'bad-unwind|bad-sp|unwind-version|unreadable|cut stub' "$WORK/err" ||
    fail "$1: walks were cut in managed code"
  grep -q 'Newtonsoft\.Json\.JsonTextReader\.' "$WORK/$1.txt" || fail "$1: the reader was never seen"
  grep -q 'Newtonsoft\.Json\.JsonTextWriter\.' "$WORK/$1.txt" || fail "$1: the writer was never seen"
  pass "$1: $samples samples, $cut kinds of stack were cut"
  grep -E 'complete|cut ' "$WORK/err"
}
record composite
