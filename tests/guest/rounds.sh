#!/bin/bash
# SPDX-License-Identifier: MIT
# rounds.sh BUILD SOURCE MATERIAL WHAT: a guest profiler's rounds over many threads (tests/apps/Guest/Mix.cs).
#   endings   with CLRSNAP_ELIDE_SUSPEND=1 threads end beside a round as they do without one, and what is asked of one
#             that has ended is refused
#   sleeping  a round over 100 threads that sleep: plainly, through the drop-in, and with CLRSNAP_ELIDE_SUSPEND=1
#   running   a round over ten threads that run, with CLRSNAP_ELIDE_SUSPEND=1: the threads are asked together, so it takes
#             less than walks one after the other; and every walk of such a thread is complete
#   late      a callback that outlasts its hold, and a walk in it, with CLRSNAP_HOLD=1 and CLRSNAP_ELIDE_SUSPEND=1
#   circle    two walkers that each want the thread that the other one holds, with CLRSNAP_HOLD=1
# CLRSNAP_LIB=FILE is another build of the drop-in.
BUILD=$1 SOURCE=$2 MATERIAL=$3 WHAT=$4
. "$SOURCE/tests/live/lib.sh"
build_app Guest
export GUEST_LIBRARY=$BUILD/lib/libguest.so CLRSNAP_PROFILER_PATH=$BUILD/lib/libguest.so
ours=${CLRSNAP_LIB:-$BUILD/lib/libclrsnap.so}

# guest NAME LIBRARY MODE PROGRAM...: makes one run, whose notes go to WORK/NAME.
guest() {
  local name=$1 library=$2 mode=$3 rc=0
  timeout -k 5 300 env CORECLR_ENABLE_PROFILING=1 CORECLR_PROFILER='{6D2B1C44-9A57-4F0E-B318-5C7E20D941AF}' \
    CORECLR_PROFILER_PATH="$library" GUEST_MODE="$mode" GUEST_OUT="$WORK/$name" dotnet "$APP" "${@:4}" \
    > "$WORK/$name.stdout" 2> "$WORK/$name.stderr" || rc=$?
  [ $rc = 0 ] && [ ! -s "$WORK/$name.stderr" ] || { cat "$WORK/$name.stderr"; fail "$name: the program ended with $rc"; }
}
# number NAME REGEX: what sed extracts from a run's notes.
number() { sed -nE "s/^say\t$2\$/\1/p" "$WORK/$1"; }

case $WHAT in
  endings)
    CLRSNAP_ELIDE_SUSPEND=1 guest elided "$ours" endings mix 10 0 0 4
    cat "$WORK/elided"
    alone=$(number elided 'ended alone ([0-9]+) beside [0-9]+') beside=$(number elided 'ended alone [0-9]+ beside ([0-9]+)')
    [ "$alone" -gt 0 ] || fail "no thread has ended"
    [ $((beside * 3)) -gt "$alone" ] || fail "beside rounds $beside threads end where $alone do without"
    for call in GetThreadInfo GetHandleFromThread GetThreadAppDomain; do
      grep -q "$call 0x80070057 " "$WORK/elided" || fail "$call was never asked of a thread that had ended"
      [ "$(grep -c "	$call 0x" "$WORK/elided")" -le 2 ] || fail "$call has another answer"
    done
    grep -q "DoStackSnapshot 0x8013135e" "$WORK/elided" || fail "no walk of a thread that had ended"
    pass "threads end beside rounds: $beside a second, $alone without"
    ;;
  sleeping)
    # By turns, each time three programs: other load that slows one of them down slows down one turn. Only a round that costs more
    # does so in all turns.
    export GUEST_SECONDS=2
    for run in plain dropin elided; do declare "$run="; done
    for turn in {1..9}; do
      guest plain "$GUEST_LIBRARY" rounds mix 100 0 0 0
      guest dropin "$ours" rounds mix 100 0 0 0
      CLRSNAP_ELIDE_SUSPEND=1 guest elided "$ours" rounds mix 100 0 0 0
      for run in plain dropin elided; do
        half=$(number $run "rounds .* p50 ([0-9]+) .*")
        sed -n "s/^say\trounds/turn $turn, $run: rounds/p" "$WORK/$run"
        [ "${!run:-$half}" -lt "$half" ] || declare "$run=$half"
        walks=$(number $run 'walks ([0-9]+) .*') good=$(number $run 'answer 0x00000000 ([0-9]+)')
        [ "$good" -gt 0 ] && [ $((good * 10)) -gt $((walks * 9)) ] || fail "$run: $good of $walks walks"
      done
      [ "$turn" -ge 3 ] && [ $((dropin * 2)) -lt $((plain * 3)) ] && [ "$elided" -lt $((plain * 2)) ] && break
    done
    [ $((dropin * 2)) -lt $((plain * 3)) ] || fail "a round takes $dropin ns through the drop-in, $plain plainly"
    [ "$elided" -lt $((plain * 2)) ] || fail "a round takes $elided ns with elided stops, $plain plainly"
    pass "half of the rounds take less than $plain ns plainly, $dropin through the drop-in, $elided with elided stops"
    ;;
  running)
    # By turns, each time two programs of the same library: walks between the two calls, and walks without them.
    export GUEST_SECONDS=3 CLRSNAP_ELIDE_SUSPEND=1
    for run in round single; do declare "$run="; done
    for turn in {1..9}; do
      guest round "$ours" rounds mix 0 10 0 0
      GUEST_STOP=0 guest single "$ours" rounds mix 0 10 0 0
      for run in round single; do
        half=$(number $run "rounds .* p50 ([0-9]+) .*")
        sed -n "s/^say\trounds/turn $turn, $run: rounds/p" "$WORK/$run"
        [ "${!run:-$half}" -lt "$half" ] || declare "$run=$half"
        good=$(number $run 'answer 0x00000000 ([0-9]+)') rounds=$(number $run 'rounds ([0-9]+) .*')
        [ "${rounds:-0}" -gt 0 ] && [ "${good:-0}" -ge $((rounds * 10)) ] || fail "$run: $good walks in $rounds rounds"
        oldest=$(number $run 'oldest methods ([0-9]+)')  # the main thread's, and that of all others
        [ "$oldest" = 2 ] || fail "$run: walks end in $oldest different methods"
      done
      [ "$turn" -ge 3 ] && [ $((round * 2)) -lt "$single" ] && break
    done
    [ $((round * 2)) -lt "$single" ] || fail "a round takes $round ns, and walks one after the other $single"
    pass "half of the rounds take less than $round ns, and of walks one after the other $single"
    ;;
  late)
    CLRSNAP_HOLD=1 CLRSNAP_ELIDE_SUSPEND=1 guest late "$ours" late stacks
    grep late "$WORK/late"
    grep -q 'late 0x80131360 after 1 callbacks, within 0x80131360' "$WORK/late" ||
      fail "a walk goes on after its hold, or one within its callbacks does"
    pass "a walk and those within its callbacks end with the hold"
    ;;
  circle)
    CLRSNAP_HOLD=1 guest circle "$ours" circle stacks
    sed -n 's/^say\t//p' "$WORK/circle"
    ns() { sed -nE "s/^say\t$1 ([0-9]+) ns\$/\1/p" "$WORK/circle" | sort -n; }
    good=$(ns 'circle 0x00000000' | wc -l) refused=$(ns 'circle 0x80131360' | wc -l) all=$(ns 'circle 0x.*' | wc -l)
    [ "$all" = 20 ] && [ $((good + refused)) = 20 ] || fail "$good of $all walks were taken, $refused were refused"
    [ "$good" -gt 0 ] && [ "$refused" -ge 10 ] || fail "$good walks were taken, $refused were refused"
    half=$(ns 'circle 0x.*' | sed -n 10p) time=$(ns 'time 0x80131360')
    [ $((half * 4)) -lt "${time:-0}" ] || fail "half of the walks take $half ns or more; one that only time ends, '$time'"
    pass "of $all walks $refused were refused; half took less than $half ns; one that only time ends takes $time ns"
    ;;
  *) fail "what is $WHAT?" ;;
esac
