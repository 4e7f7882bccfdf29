#!/bin/bash
# SPDX-License-Identifier: MIT
# run.sh BUILD SOURCE MATERIAL MODE: the program tests/apps/Guest under the guest profiler, plainly and
# through the drop-in, and what the two runs saw compared (compare.py). MODE is a GUEST_MODE (guest.hpp).
# GUEST_PLAIN_ONLY=1: without the drop-in. CLRSNAP_LIB: another build of it. GUEST_KEEP=DIR: the notes are left there.
BUILD=$1 SOURCE=$2 MATERIAL=$3 MODE=$4
. "$SOURCE/tests/live/lib.sh"
build_app Guest
[ -z "${GUEST_KEEP:-}" ] || { trap - EXIT; mkdir -p "$GUEST_KEEP"; WORK=$(realpath "$GUEST_KEEP"); }
export GUEST_LIBRARY=$BUILD/lib/libguest.so
# The code of two runs is the same only where nothing is compiled twice, at a time that nobody knows.
export DOTNET_TieredCompilation=0

# guest NAME MODE PROGRAM [VARIABLE=VALUE...]: one run; its notes are in WORK/NAME.
guest() {
  local name=$1 mode=$2 program=$3 rc=0
  shift 3
  timeout -k 5 60 env CORECLR_ENABLE_PROFILING=1 CORECLR_PROFILER='{6D2B1C44-9A57-4F0E-B318-5C7E20D941AF}' \
    GUEST_MODE="$mode" GUEST_OUT="$WORK/$name" "$@" dotnet "$APP" "$program" \
    > "$WORK/$name.stdout" 2> "$WORK/$name.stderr" || rc=$?
  [ $rc = 124 ] || [ $rc = 137 ] && fail "$name: the program hangs"
  [ $rc = 0 ] || { cat "$WORK/$name.stderr"; fail "$name: the program ended with $rc"; }
  [ "$(cat "$WORK/$name.stdout")" = done ] || fail "$name: the program's output has changed"
  [ -s "$WORK/$name.stderr" ] && { cat "$WORK/$name.stderr"; fail "$name: something on stderr"; }
  [ -s "$WORK/$name" ] || fail "$name: the profiler has left no notes"
}
plainly() { guest "plain.$1" "$1" "$2" CORECLR_PROFILER_PATH="$GUEST_LIBRARY"; }
through_us() {
  guest "drop-in.$1" "$1" "$2" CORECLR_PROFILER_PATH="${CLRSNAP_LIB:-$BUILD/lib/libclrsnap.so}" \
    CLRSNAP_PROFILER_PATH="$GUEST_LIBRARY"
}

cd "$WORK" || exit 1
program=stacks
case $MODE in
  sites | calls) program=sites ;;
  leave) program=alone ;;
esac
# Plainly a walk in a signal handler is neither allowed nor safe: of 5 runs one hung.
if [ "$MODE" = handler ]; then files=(-); else plainly "$MODE" $program; files=(plain."$MODE"); fi
if [ -z "${GUEST_PLAIN_ONLY:-}" ]; then
  through_us "$MODE" $program
  files+=(drop-in."$MODE")
  case $MODE in
    cross | recipe | handler | crowd)
      # The runtime's own word for the stacks of the parked threads.
      (unset GUEST_ROUNDS && plainly suspend stacks) || exit 1
      files+=(plain.suspend)
      ;;
  esac
fi
python3 "$SOURCE/tests/guest/compare.py" "$MODE" "${files[@]}"
