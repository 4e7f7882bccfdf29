#!/bin/bash
# SPDX-License-Identifier: MIT
# filters.sh BUILD SOURCE MATERIAL: a program whose seccomp filter kills it for a system call that .NET does not need. Recorded
# from its start or by attach it lives on: without that call, or not recorded, with the call's name.
BUILD=$1 SOURCE=$2 MATERIAL=$3
. "$SOURCE/tests/live/lib.sh"
build_app Record
clrsnap=$BUILD/bin/clrsnap
cd "$WORK" || exit 1
LIMIT=()
"$BUILD/bin/refuse_call" kill clone true 2> said || skip "seccomp filters cannot be set here: $(cat said)"

# attach ACTION CALL OPTION...: records such a program while it runs. Returns the command's exit code.
attach() {
  local filter=("$BUILD/bin/refuse_call" "$1" "$2") rc=0
  shift 2
  timeout 300 "${LIMIT[@]}" "${filter[@]}" dotnet "$APP" names 600000 > out 2>&1 &
  CHILD=$!
  find_program
  timeout 300 "$clrsnap" record -d 2 -o r.clrsnap "$@" "$PID" > said 2>&1 || rc=$?
  kill -0 "$PID" 2> /dev/null || { cat said out; fail "$*: the program is gone"; }
  kill "$PID"
  wait "$CHILD"
  [ $? = 143 ] || { cat said out; fail "$*: the program does not end as it should"; }
  return $rc
}
recorded() { grep -Eq '^clrsnap: [0-9]+ samples? in' said; }

for action in kill trap; do
  for call in process_vm_readv rt_tgsigqueueinfo; do
    attach $action $call --mode cpu,wall,alloc && { cat said; fail "$action $call: it says that all is well"; }
    grep -q "seccomp filter would kill it for the system call $call, which clrsnap needs: allow that call" said || { cat said; fail "$action $call: not said"; }
  done
  attach $action perf_event_open --mode cpu,alloc && recorded || { cat said; fail "$action perf_event_open"; }
  grep -q "not perf: the program's seccomp filter would kill it for perf_event_open" said || { cat said; fail "$action perf_event_open: not said"; }
  attach $action sched_setattr --engine clock --mode cpu,wall,alloc && recorded || { cat said; fail "$action sched_setattr"; }
  pass "$action, by attach"
done
# Where the child must be a copy of the process (seccomp.c).
LIMIT=(prlimit --core=0)
attach kill perf_event_open --mode cpu && recorded && grep -q 'not perf: ' said || { cat said; fail "a copy, perf_event_open"; }
attach trap process_vm_readv --mode cpu && { cat said; fail "a copy, process_vm_readv: it says that all is well"; }
pass "by a copy of the process"
# From the start, also where the calls only fail, and where no child process can be made.
for action in kill 1; do
  timeout 300 "$clrsnap" record -o r.clrsnap -- "$BUILD/bin/refuse_call" $action perf_event_open dotnet "$APP" hot 1500 > said 2>&1
  [ $? = 42 ] && recorded && grep -q 'not perf: ' said || { cat said; fail "$action perf_event_open from the start"; }
done
timeout 300 "$clrsnap" record -o r.clrsnap -- "$BUILD/bin/refuse_call" kill process_vm_readv dotnet "$APP" hot 500 > said 2>&1
[ $? = 42 ] && grep -q 'would kill it for the system call process_vm_readv' said || { cat said; fail "process_vm_readv from the start"; }
timeout 300 "$clrsnap" record -o r.clrsnap -- "$BUILD/bin/refuse_call" 11 clone dotnet "$APP" hot 500 > said 2>&1
[ $? = 42 ] && grep -q 'cannot be tried, because no process can be made' said || { cat said; fail "no child process"; }
pass "from the start"
