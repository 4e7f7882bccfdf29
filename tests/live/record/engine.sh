#!/bin/bash
# SPDX-License-Identifier: MIT
# engine.sh BUILD SOURCE MATERIAL: CPU mode's engines on a real program: the rate that they reach, shares of a
# program in step with the kernel's tick, and the other engine, with its reason, where perf events are refused.
BUILD=$1 SOURCE=$2 MATERIAL=$3
. "$SOURCE/tests/live/lib.sh"
build_app Engine
clrsnap=$BUILD/bin/clrsnap
cd "$WORK" || exit 1
perf_works() { "$clrsnap" doctor | grep -q 'engine perf: any rate'; }

# record OPTIONS... -- ARGS...: records the program; out has its output, err the command's.
record() {
  local options=()
  while [ "$1" != -- ]; do options+=("$1"); shift; done
  shift
  "${WITH[@]}" "$clrsnap" record "${options[@]}" -o rec.clrsnap -- dotnet "$APP" "$@" > out 2> err
}
says() { grep -qE -- "$1" err || { cat err; fail "not said: $1"; }; }
# is_so MEASURED METHODS OTHERS MOST: the recorded ratio of METHODS to all of these is the measured one, within MOST.
is_so() {
  "$clrsnap" report rec.clrsnap -o rec.folded 2> report || { cat report; fail "report"; }
  awk -v measured="$1" -v methods="Program\\.$2[; ]" -v others="Program\\.$3[; ]" -v most="$4" '
    $0 ~ methods { found += $NF; next } $0 ~ others { other += $NF }
    END {
      share = found / (found + other)
      printf "recorded %.3f, measured %.3f\n", share, measured
      exit share < measured - most || share > measured + most
    }' rec.folded
}
# shares WHAT OTHER: the recorded ratio of Seven to OTHER is the one that the program has measured.
shares() {
  record --engine perf -F 999 -- "$1" 2500 || { cat err; fail "the program failed"; }
  is_so "$(sed 's/seven //' out)" Seven "$2" 0.05 || fail "the shares of $1"
}
WITH=()

# ---- The rate and the shares ----
if perf_works; then
  for hz in 499 1000 9999; do
    # A thread that loses its processor in a handler misses some samples, so on a busy machine a try may fail.
    for try in 1 2 3 4; do
      # auto leaves the perf engine where losing a processor costs too much, as on a busy virtual machine.
      record --engine perf -F $hz -- burn 1500 || fail "the program failed at $hz Hz"
      says '^clrsnap: engine perf: '
      had=$(sed -n 's/^clrsnap: engine perf: \([0-9]*\) of .*/\1/p' err)
      # Every 100 us, a virtual machine whose processors are taken away misses some: as many as it is
      # without them. The samples it does take must stand for all of the time (below).
      least=9
      [ $hz != 9999 ] || least=4
      # The thread's clock runs on while a hypervisor has the processor.
      read -r _ burnt _ skipped < out
      [ $((had * 10)) -ge $((hz * least * (burnt - skipped) / burnt)) ] && [ $((had * 10)) -le $((hz * 11)) ] && break
      [ $try -lt 4 ] || { cat err; fail "$had Hz, not $hz"; }
    done
  done
  "$clrsnap" report rec.clrsnap -o rec.json 2> report || { cat report; fail "report"; }
  diff <(grep -A3 engine err) <(grep -A3 engine report) || fail "the recording has another engine"
  python3 - rec.json << 'X' || fail "the facts in JSON"
import json, sys
facts = json.load(open(sys.argv[1]))["modes"][0]["facts"]
engine = facts["engine"]
assert engine["used"] == "perf" and engine["requested"] == "perf" and engine["rate"] > 3999, engine
assert 0.99 < facts["weight"] / engine["cpuNs"] < 1.01, facts
X
  pass "the rate at 499, 1,000 and 9,999 Hz"

  shares shares Three
  pass "the shares of a program in step with the tick"
  shares kernel Reads
  pass "time in the kernel is its caller's"

  record -F 9999 -- signal 1000 || fail "the program failed"
  [ "$(cat out)" = "signals 0" ] || fail "it was sent signals that it uses itself: $(cat out)"
  says 'not perf: the program has begun to use SIGURG'
  says '^clrsnap: engine clock'
  pass "a program that begins to use SIGURG"
  record --engine perf -- signal 1000 || fail "the program failed"
  says '^clrsnap: some threads are not sampled: perf: the program has begun to use SIGURG'
  says '^clrsnap: engine perf: [0-9]+ '
  says 'not always perf: the program has begun to use SIGURG'
  says '[0-9]+ threads? (was|were) not sampled: no engine was available'
  pass "no engine is left, and what was had before is said"
fi

# Bursts of 60 us between system calls. Where signals to another processor take longer, the clock engine must look at the threads
# on its own, else these bursts have a third of their share.
record --engine clock -F 999 -- bursts 4000 || { cat err; fail "the program failed"; }
is_so "$(sed 's/bursts //' out)" '(NsOf)?Burst' Bursts 0.15 || { cat err; fail "the share of bursts by the clock engine"; }
pass "bursts between system calls have their share by the clock engine"

# ---- Where it is refused ----
for error in 1 38; do # EPERM, ENOSYS
  WITH=("$BUILD/bin/refuse_call" $error perf_event_open)
  record -- burn 400 || fail "the program failed under a filter ($error)"
  says 'not perf: .*seccomp filter'
  says '^clrsnap: engine clock'
  says '[0-9]+ samples in'
  record --engine perf -- burn 50
  [ $? = 1 ] || fail "nothing was recorded, and the command says that it went well"
  says 'nothing was recorded: .*seccomp filter'
done
pass "a filter that refuses perf events is told, and another engine samples"
