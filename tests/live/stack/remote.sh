#!/bin/bash
# SPDX-License-Identifier: MIT
# remote.sh BUILD SOURCE MATERIAL: processes without any agent are walked from outside: every thread of a
# .NET 10 program, again and again while it runs, down to its stack's base. If a process cannot be walked, the command
# says why.
BUILD=$1 SOURCE=$2 MATERIAL=$3
. "$SOURCE/tests/live/lib.sh"
WALK=$BUILD/bin/remote_walk
build_app Proofs

# refused TEXT PID: remote_walk says TEXT, and ends with 1.
refused() {
  "$WALK" "$2" > "$WORK/out" 2> "$WORK/err"
  [ $? = 1 ] && grep -qF "$1" "$WORK/err" || { cat "$WORK/err"; fail "not refused: $1"; }
  [ "$(wc -l < "$WORK/err")" = 1 ] || { cat "$WORK/err"; fail "more than one line"; }
}

sleep 300 &
other=$!
timeout 300 dotnet "$APP" busy 8 > "$WORK/stdout" 2>&1 &
program=$!
for _ in $(seq 300); do
  pid=$(pgrep -P $program) && grep -q libcoreclr.so "/proc/$pid/maps" 2> /dev/null && break
  sleep 0.1
done
[ -n "$pid" ] || fail "the program does not start"
refused "there is no CoreCLR in process $other" $other
kill $other
wait $other 2> /dev/null
refused "there is no process $other" $other
pass "a process without CoreCLR, and none at all"

# Sixty stops while it runs: at each all threads, all complete, and the first one in Main.
sleep 1
{
  for _ in $(seq 60); do
    printf 'stop\nwalk\ngo\n'
    sleep 0.03
  done
} | "$WALK" "$pid" --commands > "$WORK/walks" || fail "remote_walk ended with $?"
grep -q '"error"' "$WORK/walks" && { grep '"error"' "$WORK/walks"; fail "a command failed"; }
grep '"handler":' "$WORK/walks" && fail "the handler's own walk differs from the exact one (above)"
stops=$(grep -c '{"done":"walk"}' "$WORK/walks")
first=$(grep -c "^{\"tid\":$pid,\"clr\":\"0x[1-9a-f]" "$WORK/walks")
complete=$(grep -c '"stop":"base"' "$WORK/walks")
all=$(grep -c '^{"tid":' "$WORK/walks")
[ "$stops" = 60 ] && [ "$first" = 60 ] || fail "$stops stops, the first thread in $first of them"
[ "$all" -ge 360 ] || fail "only $all walks of threads"
[ "$complete" = "$all" ] || { grep -v '"stop":"base"' "$WORK/walks" | grep tid; fail "$complete of $all"; }
# The outermost managed frame is the same method each time: Main.
mains=$(grep "^{\"tid\":$pid," "$WORK/walks" | grep -oE '"method":"0x[1-9a-f][0-9a-f]*"' | sort | uniq -c | sort -rn)
[ "$(awk '$1 >= 60' <<< "$mains" | wc -l)" -ge 1 ] || fail "no method is in all stacks: $mains"
wait $program && grep -q '^done True' "$WORK/stdout" || fail "the program was harmed"
pass "$all walks at $stops stops, all complete, and the program has not noticed"
