#!/bin/bash
# SPDX-License-Identifier: MIT
# sigwait.sh BUILD SOURCE MATERIAL: threads that block all signals and wait for them (sigtimedwait, signalfd) are not given
# clrsnap's. Those that compute in between may get some, until it is known of them, because the kernel reports the signals
# that a thread waits for as unblocked; their time is recorded as that of threads which block their signals.
BUILD=$1 SOURCE=$2 MATERIAL=$3
. "$SOURCE/tests/live/lib.sh"
build_app Masked
export LD_LIBRARY_PATH=$BUILD/lib

# record COMPUTES MOST OPTIONS: fails if a thread was asked in vain.
record() {
  local options=$3
  launch_app wait 8000 "$1"
  read -ra words <<< "$options"
  timeout 300 "$BUILD/bin/clrsnap" record "${words[@]}" -F 499 -d 3 -o "$WORK/x.clrsnap" "$PID" > "$WORK/summary" 2>&1 ||
    { cat "$WORK/summary"; fail "$options: the recording"; }
  wait $LAUNCHER
  [ $? = 42 ] || fail "$options: the program has ended otherwise"
  LAUNCHER=
  signals=$(sed -n 's/^signals //p' "$WORK/said")
  [ "$signals" -le "$2" ] || { cat "$WORK/said" "$WORK/summary"; echo "$options: threads were given $signals signals"; return 1; }
  ! grep 'did not take' "$WORK/summary"
}

for options in "--engine perf" "--engine clock" "--mode wall" "--mode exception,gc,lock"; do
  # One may have been sent to a thread that was about to wait, or, on a busy machine, waited for a processor after its wait.
  record 0 1 "$options" || record 0 1 "$options" || record 0 1 "$options" || fail "$options: threads were asked in vain"
  pass "$options: $signals"
done
for options in "--engine perf" "--engine clock" "--mode wall"; do
  # On a busy machine, each scan may find such a thread waiting; then it is not known within the 3 s.
  known() { record 1 20 "$options" && grep -q 'threads ran with their signals blocked (.*m-waits' "$WORK/summary"; }
  known || known || known || { cat "$WORK/summary"; fail "$options: threads were asked in vain, or nothing is said of their time"; }
  pass "$options: $signals while they compute"
done
