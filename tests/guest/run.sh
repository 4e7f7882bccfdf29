#!/bin/bash
# SPDX-License-Identifier: MIT
# run.sh BUILD SOURCE MATERIAL MODE: runs the program tests/apps/Guest under the guest profiler, plainly and
# through the drop-in, and compares what the two runs saw (compare.py). MODE is a GUEST_MODE (guest.hpp), or
# `hole`, which is no test: it counts how often the runtime itself ends the program (tests/apps/Guest/Hostile.cs).
#   GUEST_BESIDE=1         while `clrsnap record` records the same program
#   GUEST_BELOW=1          the same by two commands: clrsnap record -- clrsnap run-profiler -- the program
#   GUEST_RUNTIME=VERSION  on that runtime; on .NET 8 the drop-in leaves walks to the runtime, and says so
#   GUEST_NOTIFIED=1       as a notification profiler, on the runtime's list
#   GUEST_VERSION=NUMBER   the newest ICorProfilerCallback that the guest knows
#   GUEST_PLAIN_ONLY=1     without the drop-in
#   GUEST_KEEP=DIR         leaves the notes, and the core file of a program that crashed, in DIR
#   GUEST_STARTS=NUMBER    hostile: how often each of its kinds is started
#   GUEST_WORK=NUMBER      hostile: how much the program does
#   GUEST_PARTS="1 2 3"    hostile: the GUEST_PART (hostile.cpp) of each start, in turn
#   CLRSNAP_LIB=FILE       another build of the drop-in
BUILD=$1 SOURCE=$2 MATERIAL=$3 MODE=$4
. "$SOURCE/tests/live/lib.sh"
host=(dotnet)
if [ -n "${GUEST_RUNTIME:-}" ]; then
  get_runtimes
  build_app GuestOld
  host=("$SOURCE/scripts/dotnet-with" "$GUEST_RUNTIME")
  export CLRSNAP_RUNTIMES=$MATERIAL/runtimes
else
  build_app Guest
fi
[ -z "${GUEST_KEEP:-}" ] || { trap - EXIT; mkdir -p "$GUEST_KEEP"; WORK=$(realpath "$GUEST_KEEP"); }
export GUEST_LIBRARY=$BUILD/lib/libguest.so
# The code of two runs is the same only if no method is recompiled; tiering would recompile methods at arbitrary times.
export DOTNET_TieredCompilation=0

# report_core PROGRAM: where the threads of the program that left a core file were; the thread that crashed comes last.
report_core() {
  local core gdb=(timeout -k 5 300 gdb -batch -nx -ex "set print frame-arguments none")
  core=$(find "$WORK" -maxdepth 1 -name 'core*' | head -1)
  [ -n "$core" ] && command -v gdb > /dev/null || return 0
  frames() { grep -E '^(Thread|#)' | sed -E 's/0x0*([0-9a-f]+) in /\1 /; s/ from .*\/| at .*\// /' | cut -c1-110; }
  "${gdb[@]}" -ex 'thread apply all bt 9' "$1" "$core" 2> "$WORK/gdb.stderr" | frames | tail -120
  echo "The thread that crashed:"
  "${gdb[@]}" -ex 'bt 30' "$1" "$core" 2> "$WORK/gdb.stderr" | frames
}

clsid='{6D2B1C44-9A57-4F0E-B318-5C7E20D941AF}'
# guest NAME MODE PROGRAM LIBRARY: makes one run, in which the runtime loads LIBRARY; its notes go to WORK/NAME.
guest() {
  local name=$1 mode=$2 program=$3 library=$4 rc=0
  local as=(CORECLR_PROFILER="$clsid" CORECLR_PROFILER_PATH="$library")
  [ -z "${GUEST_NOTIFIED:-}" ] ||
    as=(CORECLR_ENABLE_NOTIFICATION_PROFILERS=1 CORECLR_NOTIFICATION_PROFILERS="$library=$clsid;")
  as+=(CORECLR_ENABLE_PROFILING=1 CLRSNAP_PROFILER_PATH="$GUEST_LIBRARY")
  [ -z "${GUEST_BELOW:-}" ] || [ "$library" = "$GUEST_LIBRARY" ] || as=()
  # A program that hangs is ended by SIGABRT, so that it leaves a core file as well.
  {
    (ulimit -c unlimited && exec timeout -s ABRT -k 20 "${GUEST_TIMEOUT:-300}" env "${as[@]}" GUEST_MODE="$mode" \
      GUEST_OUT="$WORK/$name" "${host[@]}" "$APP" "$program") > "$WORK/$name.stdout" 2> "$WORK/$name.stderr" || rc=$?
  } 2> "$WORK/shell.stderr" # where bash says that it was aborted
  if [ $rc != 0 ]; then
    report_core "$(readlink -f "$(command -v dotnet)")"
    head -c 2000 "$WORK/$name.stderr"
    [ $rc != 124 ] && [ $rc != 137 ] || fail "$name: the program hangs ($rc)"
    fail "$name: the program ended with $rc"
  fi
  [ "$(cat "$WORK/$name.stdout")" = "${RESULT:-done}" ] || fail "$name: the program's output has changed"
  [ "$(grep -vcE "^clrsnap: ${allowed-$}" "$WORK/$name.stderr")" = 0 ] ||
    { cat "$WORK/$name.stderr"; fail "$name: something on stderr"; }
  [ -s "$WORK/$name" ] || fail "$name: the profiler has left no notes"
}
plainly() { guest "plain.$1" "$1" "$2" "$GUEST_LIBRARY"; }
through_us() {
  local host=("${host[@]}") allowed='$'
  case ${GUEST_RUNTIME:-} in 8.*) allowed="the profiler runs on with the runtime's own DoStackSnapshot: " ;; esac
  [ -z "${GUEST_BELOW:-}" ] || host=("$BUILD/bin/clrsnap" run-profiler --profiler "$GUEST_LIBRARY" --clsid "$clsid" -- "${host[@]}")
  [ -z "${GUEST_BESIDE:-}" ] || host=("${record[@]}" -o "$WORK/recording" -- "${host[@]}") allowed=
  guest "drop-in.$1" "$1" "$2" "${CLRSNAP_LIB:-$BUILD/lib/libclrsnap.so}"
  [ -z "${GUEST_BESIDE:-}" ] || check_recording
}
# What clrsnap's own agent, a notification profiler in the same process, has recorded meanwhile.
record=("$BUILD/bin/clrsnap" record --mode wall --format collapsed)
check_recording() {
  local place
  for place in Run Wait Join Lock Generic Catch Finally Dynamic Native Callback Loop Allocate Raise; do
    grep -q "Guest\.Places\.$place[; ]" "$WORK/recording" || fail "the recording has no Guest.Places.$place"
  done
  grep -q '^clrsnap: lost 0$' "$WORK/drop-in.$MODE.stderr" || { cat "$WORK/drop-in.$MODE.stderr"; fail "samples were lost"; }
  grep -E 'samples in|complete walks' "$WORK/drop-in.$MODE.stderr"
}

cd "$WORK" || exit 1
# Everything at once, from the first instruction on. The program's result must be the one that it has without a
# profiler. Without clrsnap, such a profiler ends the program.
hostile() { # START KIND
  local as parts status=0
  read -ra as <<< "$2"
  parts=(${GUEST_PARTS:-1 2 3})
  export GUEST_PART=${parts[($1 - 1) % ${#parts[@]}]}
  case $2 in DETACH=1) export GUEST_DETACH=1 ;; *) export "${as[@]/#/CLRSNAP_}" ;; esac
  # With real stops, the program stands still for as long as a walk waits for a thread that has no processor.
  case $2 in *ELIDE*) ;; *) export GUEST_SUSPENDS=${GUEST_SUSPENDS:-0} ;; esac
  [ "$GUEST_PART $2" = "2 DETACH=1" ] && GUEST_PART=1 # the thread that sends the signals requests the detach
  (
    through_us hostile hostile
    python3 "$SOURCE/tests/guest/compare.py" hostile - drop-in.hostile > judged || { cat judged; exit 1; }
  ) || status=1
  [ $status = 0 ] || fail "hostile: $2, start $1, part $GUEST_PART"
}
if [ "$MODE" = hostile ]; then
  export GUEST_WORK=${GUEST_WORK:-100}
  RESULT=$("${host[@]}" "$APP" hostile) || fail "the program alone ended with $?"
  case $RESULT in "done "?*) ;; *) fail "the program alone says '$RESULT'" ;; esac
  for start in $(seq "${GUEST_STARTS:-3}"); do
    for kind in HOLD=0 HOLD=1 ELIDE_SUSPEND=1 "HOLD=1 ELIDE_SUSPEND=1" DETACH=1; do
      (hostile "$start" "$kind") || exit 1
    done
  done
  pass "$((start * 5)) starts, each with the program's own result"
  exit
fi
if [ "$MODE" = hole ]; then
  export GUEST_PART=0 GUEST_WORK=100
  RESULT=$("${host[@]}" "$APP" hostile) || fail "the program alone ended with $?"
  for moves in 0 1; do
    ended=0
    for start in $(seq "${GUEST_STARTS:-20}"); do
      rm -f core*
      (GUEST_MOVES=$moves guest hole hostile hostile "$GUEST_LIBRARY") > hole.log || ended=$((ended + 1))
    done
    echo "GUEST_MOVES=$moves: $ended of $start programs ended without their result"
  done
  exit
fi
program=stacks
case $MODE in
  sites | calls) program=sites ;;
  leave) program=alone ;;
esac
# Without clrsnap, a walk in a signal handler is neither allowed nor safe: one of 5 runs hung.
if [ "$MODE" = handler ]; then files=(-); else plainly "$MODE" $program; files=(plain."$MODE"); fi
if [ -z "${GUEST_PLAIN_ONLY:-}" ]; then
  # One stop of the whole machine while Initialize runs counts as its CPU time.
  prompt() { sed -nE 's/^say\tCPU time before Initialize: ([0-9]+) of ([0-9]+) us$/\1 \2/p' "$WORK/drop-in.handler" | awk '{ ok = $1 * 25 <= $2 } END { exit !ok }'; }
  for _ in 1 2 3 4; do
    through_us "$MODE" $program
    [ "$MODE" = handler ] && ! prompt || break
  done
  files+=(drop-in."$MODE")
  case $MODE in
    cross | recipe | handler | crowd)
      # The stacks of the parked threads as the runtime itself reports them.
      (unset GUEST_ROUNDS && plainly suspend stacks) || exit 1
      files+=(plain.suspend)
      ;;
  esac
fi
python3 "$SOURCE/tests/guest/compare.py" "$MODE" "${files[@]}"
