#!/bin/bash
# SPDX-License-Identifier: MIT
# starts.sh BUILD SOURCE MATERIAL: a recording that begins with a program has all of it, from the first instruction of
# Main on: as many events as the program itself counts, also on a busy machine. The exit code is the program's,
# however it ends, and whatever becomes of the recording.
BUILD=$1 SOURCE=$2 MATERIAL=$3
. "$SOURCE/tests/live/lib.sh"
build_app Starts
cd "$WORK" || exit 1
clrsnap=$BUILD/bin/clrsnap

by_perf
# record MODES [VARIABLE=VALUE...]
record() {
  # A walk that loses its processor for long would be cut, without the method that is looked for.
  local modes=$1 options=(--walk-limit off)
  shift
  [[ ,$modes, != *,cpu,* ]] || options+=("${PERF[@]}")
  [[ ,$modes, != *,alloc,* ]] || options+=(--alloc 100k)
  [[ ! $modes =~ exception|lock|wait ]] || options+=(--event-rate 1000000)
  env "$@" timeout -k 5 300 "$clrsnap" record --mode "$modes" "${options[@]}" -o all.json -- dotnet "$APP" return > truth 2> err
  [ $? = 7 ] || { cat truth err; fail "mode $modes: another exit code than the program's"; }
  # The program may have to wait for a lock of the runtime's own that a thread of the agent's holds.
  ! sed "s/held by \.clrsnap, the profiler's own thread//g" all.json err | grep -oE '.{0,80}\.clrsnap.{0,80}' ||
    { cat err; fail "mode $modes: a thread of the agent's counts as the program's"; }
  python3 "$SOURCE/tests/live/record/starts.py" all.json ${modes//,/ } < truth > compared || { cat compared err; fail "mode $modes: not all of it"; }
}
everything=cpu,alloc,lock,exception,gc,wait
record $everything
cat compared
record alloc,exception
record gc
# 50 ms that are taken from the machine while a thread starts would be said to be in no sample.
for _ in 1 2 3; do
  record cpu
  cp err cpu.err
  grep -q 'in no sample' cpu.err || break
done
# With threads that take the processors from the agent's; they end with this script.
for _ in $(seq $(($(nproc) + 1))); do
  { while kill -0 $$ 2> /dev/null; do for _ in $(seq 20000); do :; done; done; } &
  busy+=($!)
done
record $everything
record $everything
kill "${busy[@]}"
wait "${busy[@]}" 2> /dev/null
pass "everything is there from the start of Main on"

# Of a thread that runs for a moment, most is its start and its end, in which no sample can be taken. The summary says so.
moments() {
  timeout -k 5 300 "$clrsnap" record --engine "$1" -o moments.clrsnap -- dotnet "$APP" moments > truth 2> err || { cat err; fail "moments, $1: exit code $?"; }
  "$clrsnap" report -o moments.json -o moments.md moments.clrsnap 2> /dev/null || fail "moments: report"
  grep -q '^- cpu: another .* is in no sample' moments.md || { cat moments.md; fail "moments, $1: nothing of it in Markdown"; }
  python3 - "$1" << 'PYTHON' || { cat err; fail "moments, $1: CPU time is missing"; }
import json
import re
import sys

engine = json.load(open("moments.json"))["modes"][0]["facts"]["engine"]
_, threads, used = open("truth").read().split()
known = engine["cpuNs"] + engine["unsampledNs"]
print(f"{sys.argv[1]}: {threads} threads used {int(used) / 1e6:.0f} ms; known {known / 1e6:.0f} ms, of which "
      f"{engine['unsampledNs'] / 1e6:.0f} in no sample")
said = re.search(r"another ([0-9.]+) s of CPU time, \d+ % of the program's, is in no sample", open("err").read())
assert abs(float(said[1]) - engine["unsampledNs"] / 1e9) < 0.006, said
assert known > 0.7 * int(used), "the rest is neither in samples nor said to be in none"
PYTHON
}
[ ${#PERF[@]} = 0 ] || moments perf
moments clock
! grep 'in no sample' cpu.err || fail "CPU time is missing in a program that computes on one thread"
pass "what is in no sample of threads that run for moments is said"

export DOTNET_DbgEnableMiniDump=0
# The runtime loads its compiler only when the program has begun; no stack may be cut for that.
compiled=0 runs=0
while [ $runs -lt 8 ] || [ $compiled -lt 80 ] && [ $runs -lt 40 ]; do
  runs=$((runs + 1))
  timeout -k 5 300 "$clrsnap" record "${PERF[@]}" -F 5000 -o start.folded -- dotnet "$APP" throw > truth 2> err
  compiled=$((compiled + $(grep -c '\[JIT\]' start.folded)))
  ! grep '^\[cut: unknown-code\];\[JIT\]' start.folded || { cat err; fail "stacks are cut in the compiler, which was loaded just before"; }
done
[ $compiled -ge 80 ] || fail "only $compiled stacks in the compiler, in $runs runs"
pass "$compiled different stacks in the compiler, none cut"

for how in nothing exit throw failfast; do
  dotnet "$APP" $how > /dev/null 2>&1
  alone=$?
  timeout -k 5 300 "$clrsnap" record "${PERF[@]}" --mode cpu,exception,gc -o how.json -- dotnet "$APP" $how > truth 2> err
  rc=$?
  [ $rc = $alone ] || { cat truth err; fail "$how: the exit code is $rc instead of $alone"; }
  grep -q '^clrsnap: wrote how.json' err || { cat err; fail "$how: no recording"; }
  # The clock engine has some ten samples of it: too few to compare their sum.
  [ ${#PERF[@]} = 0 ] && timed=() || timed=(cpu)
  [ $how != exit ] || python3 "$SOURCE/tests/live/record/starts.py" how.json "${timed[@]}" exception gc < truth || fail "exit: not all of it"
done
# A program that crashes at its start: what it has thrown is there, unless the agent's thread got no processor.
known=0 runs=0
while [ $known -lt 6 ] && [ $runs -lt 12 ]; do
  runs=$((runs + 1))
  "$clrsnap" record --mode exception -o crash.json -- dotnet "$APP" crash > /dev/null 2> err
  ! grep -q '^clrsnap:   exception: 126 exceptions' err || known=$((known + 1))
done
[ $known -ge 6 ] || { cat err; fail "of $runs crashes at the start, all exceptions are known in $known only"; }
pass "of $runs crashes at the start, all exceptions are known in $known"
# A second .NET process of the program has its own standard error to itself: build tools take a line for a failure.
for mode in cpu wall wait; do
  "$clrsnap" record --mode $mode -o two.json -- sh -c "dotnet $APP nothing; sleep 0.3; dotnet $APP nothing 2> second" > /dev/null 2> err ||
    { cat err; fail "two processes: exit code $?"; }
  [ ! -s second ] || { cat second; fail "mode $mode: something is on the standard error of a process that is not recorded"; }
done
# A program of which there is no recording.
"$clrsnap" record -o none.json -- true 2> err
[ $? = 1 ] && grep -q '^clrsnap: nothing was recorded' err || { cat err; fail "a program without .NET"; }
[ ! -e none.json ] || fail "a file without a recording"
pass "the exit code is the program's, and 0 only if there is a recording"
