#!/bin/bash
# SPDX-License-Identifier: MIT
# record_attach.sh BUILD SOURCE MATERIAL: `clrsnap record PID`: a running program is recorded again and
# again, as completely as from its start, and nothing is left in the program afterwards.
BUILD=$1 SOURCE=$2 MATERIAL=$3
. "$SOURCE/tests/live/lib.sh"
build_app Record
clrsnap=$BUILD/bin/clrsnap

bad() { cat "$WORK/said" "$WORK/err"; fail "$*"; }
# start ARGS...: starts the program as process PID, and waits until its threads run.
start() {
  timeout -k 5 600 dotnet "$APP" "$@" > "$WORK/out" 2> "$WORK/err" &
  CHILD=$!
  for _ in $(seq 300); do
    PID=$(pgrep -P $CHILD) && grep -qsx 'Hot worker' /proc/"$PID"/task/*/comm && return
    sleep 0.1
  done
  fail "the program does not start"
}
# finish CODE: the program exits with CODE and has printed nothing.
finish() {
  local rc=0
  wait $CHILD || rc=$?
  [ $rc = "$1" ] || bad "the program ends with $rc, not $1"
  [ ! -s "$WORK/err" ] || bad "the program says something"
}
record() {
  local rc=0
  timeout 300 "$clrsnap" record --top 20 -o "$WORK/stacks.folded" "$@" > "$WORK/said" 2>&1 || rc=$?
  # Nothing was sampled: a failure, which says so.
  [ $rc = "$(grep -c '^clrsnap: nothing was sampled: ' "$WORK/said")" ] || bad "record $*: exit code $rc"
}
# In so short a time there is mostly no sample.
recorded_nothing() {
  for _ in {1..20}; do
    record -d 1ms -F 1 "$PID"
    ! sampled_nothing "$WORK/said" || return 0
  done
  bad "there is a sample in each of 20 recordings"
}
# unseen FILE: the first of the methods that burn which the file does not have; fails if it has all of them.
unseen() {
  for method in Rec.Program.Hot 'Rec.Box<T>.Churn<double>' 'Rec.Box<Pair>.Churn<U>' \
    System.Threading.Thread.StartCallback; do
    grep -qF "$method" "$1" || { echo "$method"; return; }
  done
  false
}
# named WHAT: every frame has a name, and the burning methods are seen.
named() {
  grep -qE 'without a name|unloaded code' "$WORK/stacks.folded" && bad "$1: frames without names"
  ! unseen "$WORK/stacks.folded" > "$WORK/unseen" || bad "$1: no $(cat "$WORK/unseen")"
  pass "$1: $(sed -n 's/^clrsnap: \([0-9]* samples\).*/\1/p' "$WORK/said")"
}
not_recorded() { ! recorded_now "$PID"; }
# record_named WHAT OPTIONS...: a recording by attach is so. A loaded machine may have no processor for a thread within a second.
record_named() {
  local what=$1 seconds
  shift
  for seconds in 1 5 20; do
    record -d $seconds "$@"
    unseen "$WORK/stacks.folded" > /dev/null || break
  done
  named "$what"
}
descriptors() { ls "/proc/$PID/fd" | wc -l; }
# of our own: the thread that records, the shared memory.
left_over() {
  grep -qsx .clrsnap /proc/"$PID"/task/*/comm && return 0
  grep -q clrsnap- "/proc/$PID/maps"
}
clean() {
  nothing_left() { ! left_over; }
  until_true 30 nothing_left || bad "$1: something is left in the program"
}

start names 600000
record_named "the first recording" "$PID"
clean "the first recording"
before=$(descriptors)
record_named "a second one, of the clock" -p "$PID" --mode wall -F 200 -o "$WORK/threads.speedscope.json"
grep -qF 'Rec.Program.Sleep' "$WORK/stacks.folded" || bad "the sleeper is not seen"
# The kernel keeps 15 bytes of a thread's name.
for name in 'Hot worker' Generisch-Ü Sleeper 'Ein Schläfer, der länger heißt'; do
  grep -qF "$name" "$WORK/threads.speedscope.json" || bad "there is no thread $name"
done
clean "the second recording"
[ "$(descriptors)" -le "$before" ] || bad "descriptors are left: $before, then $(descriptors)"
recorded_nothing

# Two recordings at a time.
timeout 300 "$clrsnap" record -o "$WORK/one.folded" "$PID" > "$WORK/one" 2>&1 &
first=$!
until_true 30 recorded_now "$PID" || bad "the first of two recordings does not begin"
timeout 300 "$clrsnap" record -d 1 -o "$WORK/two.folded" "$PID" > "$WORK/said" 2>&1 && bad "two recordings at a time"
grep -qE "^clrsnap: process $PID is being recorded already, by another clrsnap \(process [0-9]+\)$" "$WORK/said" ||
  bad "the second command is not told why"
[ -e "$WORK/two.folded" ] && bad "a file is left of the refused recording"
kill -INT "$(pgrep -P $first)"
wait $first || sampled_nothing "$WORK/one" || bad "the first of two recordings"

# The command is killed: the file is valid up to there, the program does not notice, and the next recording works.
timeout 300 "$clrsnap" record -o "$WORK/cut.clrsnap" "$PID" > "$WORK/said" 2>&1 &
recorder=$!
has_stacks() {
  "$clrsnap" report -o "$WORK/cut.folded" "$WORK/cut.clrsnap" > "$WORK/report" 2>&1 && grep -qF Rec.Program.Hot "$WORK/cut.folded"
}
until_true 60 has_stacks || bad "there is no recording with stacks to cut"
kill -9 "$(pgrep -P $recorder)"
wait $recorder 2> /dev/null
# The next one takes over at once, before the agent has noticed by itself.
record_named "after a killed command, at once" "$PID"
clean "a killed command"
"$clrsnap" report --top 5 -o "$WORK/cut.folded" "$WORK/cut.clrsnap" > "$WORK/said" 2>&1 || bad "the cut file"
grep -qF Rec.Program.Hot "$WORK/cut.folded" || bad "the cut file has no stacks"
pass "a killed command leaves a file and a program"

# A recording that Ctrl-C ends, and one up to the program's own end.
for seconds in 1.5 5 20; do
  timeout 300 "$clrsnap" record -o "$WORK/stacks.folded" "$PID" > "$WORK/said" 2>&1 &
  recorder=$!
  until_true 30 recorded_now "$PID" || bad "the recording to interrupt does not begin"
  sleep $seconds
  kill -INT "$(pgrep -P $recorder)"
  wait $recorder || sampled_nothing "$WORK/said" || bad "interrupted: exit code $?"
  unseen "$WORK/stacks.folded" > /dev/null || break
done
named "interrupted"
kill "$PID"
finish 143

for life in 3000 12000 48000; do
  start names $life
  timeout 300 "$clrsnap" record -o "$WORK/stacks.folded" "$PID" > "$WORK/said" 2>&1 && ! unseen "$WORK/stacks.folded" > /dev/null && break
  [ $life = 48000 ] || wait $CHILD
done
named "until the program's end"
finish 42

# A program with too little address space: the command says so before anything is done to it, and it runs on.
start names 600000
size=$(awk '/^VmSize/ { print $2 }' "/proc/$PID/status")
left="address space"
refused() {
  timeout 300 "$clrsnap" record -d 1 -o "$WORK/none.html" "$@" "$PID" > "$WORK/said" 2>&1 && bad "a recording without $left"
  grep -qE "^clrsnap: process $PID has [0-9]+ MiB of $left left" "$WORK/said" || bad "the command gives another reason"
  ! grep -q libclrsnap "/proc/$PID/maps" || bad "the library was loaded nevertheless"
}
prlimit --pid "$PID" --as=$(((size + 180 * 1024) * 1024)): || fail "prlimit"
refused
prlimit --pid "$PID" --as=$(((size + 230 * 1024) * 1024)): || fail "prlimit"
refused --mode alloc
rc=0
"$clrsnap" doctor "$PID" > "$WORK/said" 2>&1 || rc=$?
[ $rc = 0 ] && grep -q '^note  its shared memory .*in the modes cpu and wall only' "$WORK/said" || bad "doctor does not say it: $rc"
prlimit --pid "$PID" --as=unlimited: || fail "prlimit"
left="private memory"
data=$(awk '/^VmData/ { print $2 }' "/proc/$PID/status")
prlimit --pid "$PID" --data=$(((data + 180 * 1024) * 1024)): || fail "prlimit"
refused
prlimit --pid "$PID" --data=$(((data + 230 * 1024) * 1024)): || fail "prlimit"
refused --mode alloc
record -d 1 "$PID"
kill "$PID"
finish 143
pass "limits of the address space and of private memory"

# What stays is what the next recording needs: no more than this of memory of the process's own.
start names 600000
own_kib() { awk '/^RssAnon/ { print $2 }' "/proc/$PID/status"; }
# The runtime compiles its hot methods again meanwhile, later on a busy machine: first its memory has to stand still.
settled() {
  before=$(own_kib)
  sleep 1
  [ "$(own_kib)" = "$before" ]
}
until_true 30 settled || true
record -d 1 "$PID"
until_true 30 not_recorded || bad "the agent's thread stays"
stays=$(($(own_kib) - before))
[ $stays -lt 4608 ] || bad "$stays KiB stay in the program"
kill "$PID"
finish 143
pass "what stays: $stays KiB"
