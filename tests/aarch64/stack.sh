# SPDX-License-Identifier: MIT
# stack.sh: runs in the emulated machine of machine.sh: clrsnap stack for arm64 looks at threads that stand at known places
# (program/Recorded.cs), also while the agent is loaded; so do perfmap, doctor
# and top. The exit code is 1 if anything is wrong. Busybox's shell runs it.
export LD_LIBRARY_PATH=/app DOTNET_SYSTEM_GLOBALIZATION_INVARIANT=1
ln -s libc.so.6 /lib/aarch64-linux-gnu/libc.so
wrong=0
bad() { echo "FAIL: $*"; wrong=1; }

# thread NAME: its lines in the output of clrsnap stack.
thread() { awk -v name="\"$1\"" '/^Thread/ { on = index($0, name) } on' /tmp/stack; }
# has THREAD PATTERN...: the lines of a thread have these patterns, in this order.
has() {
  local name=$1 text
  shift
  text=$(thread "$name" | tr '\n' '~')
  echo "$text" | grep -qE "$(printf '%s.*' "$@")" || { bad "$name"; thread "$name"; }
}

look() {
  ./clrsnap stack --each "$1" > /tmp/stack || bad "$2: stack"
  has Sleeper 'waiting in .* for time to pass' 'Thread\.Sleep' 'Recorded\.Sleeps' 'Thread\.StartCallback'
  has Spinner 'running' 'Recorded\.Spins' 'Thread\.StartCallback'
  has Holder 'waiting in .* for time to pass' 'Recorded\.Sleeps' 'Recorded\.Stand\.lambda#0'
  has Waiter 'waiting in .* for a lock' 'held by "Holder"' 'Monitor\.Enter' 'Recorded\.WaitsForGate' 'Recorded\.Stand\.lambda#1'
  has proofs 'for a thread to end' 'Thread\.Join' 'Recorded\.Stand' 'Recorded\.Run' 'Program\.Main' '__libc_start_main'
  ! grep -n 'cut here' /tmp/stack || bad "$2: a stack was cut"
}

./proofs recorded stand > /tmp/stand &
while ! grep -q ready /tmp/stand; do sleep 1; done
for round in 1 2 3 4 5 6 7 8; do look $! "round $round"; done
cat /tmp/stack
./clrsnap perfmap -o /tmp/map $! || bad "perfmap"
grep -q 'Proofs.Recorded.Spins' /tmp/map || bad "perfmap has no jitted method"
./clrsnap doctor $! || bad "doctor"
./clrsnap record -d 2 -o /tmp/after.clrsnap $! 2> /tmp/after.err || { cat /tmp/after.err; bad "recording after stack"; }
look $! "while the agent is loaded"
# One thread works all the time; what the runtime compiles and reports meanwhile takes a part of the first seconds.
./clrsnap top --native off --rows 1000 --interval 8s -n 1 $! > /tmp/top 2>&1 || bad "top"
head -12 /tmp/top
grep -q ', lost 0, complete' /tmp/top || bad "top: samples were lost"
grep -qE '^CPU +[0-9.]+ %, memory .* GC' /tmp/top || bad "top: no line of the process"
hottest=$(awk 'table { print $3; exit } /^ self %/ { table = 1 }' /tmp/top)
[ "$hottest" = Proofs.Recorded.Work ] || bad "top: the hottest method is $hottest"
awk '$3 == "Proofs.Recorded.Spins" && $2 > 20 && $2 <= 100 { found = 1 } END { exit !found }' /tmp/top || bad "top: the caller of Work"
look $! "after top"
kill $! || bad "the program has not survived"

exit $wrong
