#!/bin/bash
# SPDX-License-Identifier: MIT
# small_stacks.sh BUILD SOURCE MATERIAL: a program with a Go library, whose goroutines' stacks have no room for a
# signal, survives being recorded: from its start, with the library there at once or later, and by attach. The
# recording says what it cannot see, and has everything else.
BUILD=$1 SOURCE=$2 MATERIAL=$3
. "$SOURCE/tests/live/lib.sh"
command -v go > /dev/null || skip "there is no go command"
build_app SmallStacks
clrsnap=$BUILD/bin/clrsnap
cp "$SOURCE"/tests/support/go/* "$WORK"
# With and without the note that identifies a Go library.
for flags in '' '-ldflags=-buildid='; do
  (cd "$WORK" && GOCACHE=$WORK/cache GOFLAGS=-mod=mod GOTOOLCHAIN=local go build -buildmode=c-shared $flags \
    -o "libsmall$flags.so" .) > "$WORK/build.log" 2>&1 || { cat "$WORK/build.log"; fail "the Go library does not build"; }
done

check() {
  [ "$2" = 42 ] || { cat "$WORK/said"; fail "$1: the program ended with $2"; }
  grep -q 'is a Go library, on whose stacks' "$WORK/said" || { cat "$WORK/said"; fail "$1: no word of the library"; }
  pass "$1"
}
launch() {
  local rc=0 calm=
  # Until the library is found CPU mode may send signals, and an earlier signal of wall mode may be pending for a thread
  # without a processor: docs/signal-safety.md, "Small stacks".
  [ "$1 $2" = "wall 0" ] || calm=calm
  timeout -k 5 300 "$clrsnap" record --mode "$1" -F 1000 --format collapsed -o "$WORK/stacks" -- \
    dotnet "$APP" "$3" 3 "$2" $calm > "$WORK/said" 2>&1 || rc=$?
  check "launched, $1, the library after $2 s" $rc
}
attach() {
  local rc=0 command=0
  : > "$WORK/out" # by this shell: the last program's line must not be taken for this one's
  timeout -k 5 300 dotnet "$APP" "$WORK/libsmall.so" 6 0 > "$WORK/out" 2>&1 &
  local child=$!
  for _ in $(seq 200); do grep -qs ready "$WORK/out" && break; sleep 0.05; done
  timeout 300 "$clrsnap" record --mode "$1" -F 1000 -d 2 --format collapsed -o "$WORK/stacks" \
    "$(pgrep -P $child)" > "$WORK/said" 2>&1 || command=$?
  wait $child || rc=$?
  [ $command = "$(grep -c '^clrsnap: nothing was sampled: ' "$WORK/said")" ] || { cat "$WORK/said"; fail "attached, $1: the command ended with $command"; }
  check "attached, $1" $rc
}
for mode in cpu wall; do
  launch $mode 0 "$WORK/libsmall.so"
  launch $mode 1 "$WORK/libsmall.so"
  attach $mode
done
grep -q 'Program.Sleep' "$WORK/stacks" || fail "a thread that sleeps is not there"
launch cpu 0 "$WORK/libsmall-ldflags=-buildid=.so"
attach exception
grep -q 'NullReferenceException' "$WORK/stacks" || fail "exceptions are not there"
