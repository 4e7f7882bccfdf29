#!/bin/bash
# SPDX-License-Identifier: MIT
# descriptors.sh BUILD SOURCE MATERIAL: a program closes the descriptors that clrsnap keeps open in it, again and again, and
# uses their numbers for files of its own: nothing reads, changes or closes these, while it is recorded and at the
# end, and the recording goes on.
BUILD=$1 SOURCE=$2 MATERIAL=$3
. "$SOURCE/tests/live/lib.sh"
build_app Descriptors
cd "$WORK" || exit 1
export CLRSNAP_LOG=$WORK/clrsnap.log

# asked LINE: the program's answer is in `answer`.
asked() {
  echo "$1" >&"${program[1]}"
  read -r -t 120 answer <&"${program[0]}" || fail "the program does not answer '$1'"
}
intact() {
  asked check
  [ "$answer" = intact ] || { cat said; fail "$1: $answer"; }
}
# record NAME KINDS -- OPTIONS...: records the running program; it must find at least descriptors of these kinds.
record() {
  local name=$1 kinds=$2 recorder kind
  shift 3
  rm -f r.clrsnap
  timeout -k 5 300 "$BUILD/bin/clrsnap" record "$@" -o r.clrsnap "$PID" 2> said &
  recorder=$!
  until_true 60 test -s r.clrsnap || { cat said; fail "$name: no recording begins"; }
  asked "take $kinds"
  for kind in $kinds; do
    [[ " $answer " = *" $kind "* ]] || { cat said; fail "$name: there is no descriptor of the kind $kind: $answer"; }
  done
  echo "$name: $answer"
  intact "$name"
  kill -0 $recorder 2> /dev/null || { cat said; fail "$name: the recording has ended by itself"; }
  kill -INT $recorder
  wait $recorder || { cat said; fail "$name: the recording fails"; }
  intact "$name, at its end"
}

mkdir files
coproc program { exec dotnet "$APP" "$WORK/files" 2> err; }
PID=$program_PID
trap 'kill -9 $PID 2> /dev/null; rm -rf "$WORK"' EXIT
read -r -t 60 answer <&"${program[0]}" && [ "$answer" = ready ] || { cat err; fail "the program does not start"; }

record wall "memory schedstat syscall log" -- --mode wall -F 200
"$BUILD/bin/clrsnap" doctor | grep -q 'engine perf: any rate' && record perf "memory event log" -- --mode cpu --engine perf -F 200
record clock "memory stat log" -- --mode cpu --engine clock -F 200
record lock "memory log" -- --mode lock
record all "memory schedstat syscall log" -- --mode cpu,wall,alloc,lock,exception,gc,wait -F 200
echo end >&"${program[1]}"
wait "$PID" || { cat err; fail "the program has not ended as it should"; }
pass "descriptors of the program are left alone"
