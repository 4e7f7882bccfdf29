#!/bin/bash
# SPDX-License-Identifier: MIT
# signals.sh BUILD SOURCE MATERIAL WHAT: signals that ask threads for samples, in wall mode and with the clock engine.
#   blocked  a thread that blocks them has one pending, not one for each second, and the summary says so
#   limit    where no signal can be queued, running threads have their samples all the same
#   exec     a process that calls exec is not killed by a pending signal
BUILD=$1 SOURCE=$2 MATERIAL=$3 WHAT=$4
. "$SOURCE/tests/live/lib.sh"
build_app Record

# record MODE MS OPTIONS...: records the program from its start, so that no signal is needed before samples can be taken.
record() {
  timeout -k 5 300 "${by[@]}" "$BUILD/bin/clrsnap" record "${@:3}" -F 200 -o "$WORK/out.collapsed" -- dotnet "$APP" "$1" "$2" \
    > /dev/null 2> "$WORK/summary"
  rc=$?
}
bad() { cat "$WORK/summary"; fail "$*"; }

blocked() {
  # Signals are counted by user: in a namespace of its own it is the only one.
  local by=(unshare --user --map-root-user) seen=() lasting most=0 now pid rc
  "${by[@]}" true 2> /dev/null || skip "there are no user namespaces here"
  record blocked 7000 -d 4 "$@" &
  local recorder=$!
  find_blocked() { pid=$(below $recorder | xargs -I{} grep -lsx Blocked -r /proc/{}/task --include=comm | head -1); [ -n "$pid" ]; }
  until_true 50 find_blocked || { cat "$WORK/summary"; fail "the program does not start"; }
  while now=$(sed -n 's#^SigQ:[[:space:]]*\([0-9]*\)/.*#\1#p' "${pid%/*}/status" 2> /dev/null) && [ -n "$now" ]; do
    [ "$now" -gt "$most" ] && most=$now
    seen+=("$now")
    sleep 0.1
  done
  wait $recorder
  grep -q 'without stacks: threads ran with their signals blocked (Blocked ' "$WORK/summary" ||
    bad "$*: nothing is said of the thread that blocks signals"
  # Other threads' signals are pending for a moment; those of the thread that blocks them are for the rest of the program, which outlives the
  # recording.
  lasting=$(printf '%s\n' "${seen[@]: -10}" | sort -n | head -1)
  [ $most -gt 0 ] && [ "$lasting" -le 2 ] || bad "$*: more and more signals are pending: ${seen[*]}"
  pass "$*: at most $most signals are pending, $lasting at the end"
}

limit() {
  local by=(prlimit --sigpending=0) rc
  record hot 2500 "$@"
  [ $rc = 42 ] || bad "$*: the program ended with $rc"
  grep -q 'not sent: too many are pending' "$WORK/summary" && bad "$*: signals could not be sent"
  grep -q 'Rec.Program.Hot' "$WORK/out.collapsed" || bad "$*: the thread that runs has no samples"
  pass "$*: the thread that runs is there"
}

# A program that has replaced itself was not killed.
exec_said() {
  timeout -k 5 60 "$BUILD/bin/clrsnap" record -o "$WORK/out.txt" -- dotnet "$APP" exec-long 2> "$WORK/summary"
  [ $? = 7 ] || bad "exec: not the program's exit code"
  grep -q "^clrsnap: the program became another one, 'sh', by exec: what was recorded until then is kept" "$WORK/summary" ||
    { cat "$WORK/summary"; bad "exec: the summary does not say what happened"; }
}
# exec ROUNDS OPTIONS...: rounds in which samples were taken; where other programs have the processors, some have none.
exec_() {
  local rounds=$1 i=0 empty=0 rc
  shift
  while [ $i -lt "$rounds" ]; do
    timeout -k 5 300 "$BUILD/bin/clrsnap" record "$@" -F 10000 -o "$WORK/out.txt" -- dotnet "$APP" exec 2> "$WORK/summary"
    rc=$?
    [ $rc = 7 ] || { cat "$WORK/summary"; fail "$*: the new program ended with $rc, round $i"; }
    if grep -Eq '^clrsnap: [1-9][0-9]* samples? in' "$WORK/summary"; then i=$((i + 1)); else empty=$((empty + 1)); fi
    [ $empty -le "$rounds" ] || bad "$*: nothing was recorded in $empty rounds, something in $i"
    # The agent's totals never arrive.
    grep -Eq '^clrsnap: +[01] scans a second' "$WORK/summary" && bad "$*: a rate of scans that is not known"
  done
  pass "$*: $rounds new programs lived"
}

case $WHAT in
  blocked) blocked --mode wall; blocked --engine clock ;;
  limit) limit --mode wall; limit --engine clock ;;
  exec) exec_said; exec_ "${5:-15}" --mode wall; exec_ "${5:-15}" --engine clock ;;
esac
