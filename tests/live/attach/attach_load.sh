#!/bin/bash
# SPDX-License-Identifier: MIT
# attach_load.sh BUILD SOURCE MATERIAL [ROUNDS]: a Kestrel server under load is recorded by attach ROUNDS
# times in a row. No request fails, every frame has its name, and afterwards the server has as much memory and as many
# descriptors, mappings and threads as after the first rounds.
BUILD=$1 SOURCE=$2 MATERIAL=$3 ROUNDS=${4:-8}
. "$SOURCE/tests/live/lib.sh"
clrsnap=$BUILD/bin/clrsnap
WARM=4 # rounds until the server and the library have all that they keep
"$SOURCE/scripts/build-apps.sh" "$MATERIAL" "$SOURCE/tests/apps/Web" > "$WORK/build.log" 2>&1 ||
  { cat "$WORK/build.log"; fail "the server does not build"; }
WEB=$MATERIAL/apps/Web/Web.dll

# Both end with their standard input, and so with this script.
mkfifo "$WORK/server" "$WORK/load"
timeout -k 5 1200 dotnet "$WEB" serve < "$WORK/server" > "$WORK/url" 2> "$WORK/server.err" &
SERVER=$!
exec 3> "$WORK/server"
for _ in $(seq 900); do
  [ -s "$WORK/url" ] && break
  sleep 0.1
done
PID=$(pgrep -P $SERVER)
timeout -k 5 1200 dotnet "$WEB" load "$(cat "$WORK/url")" 3>&- < "$WORK/load" > "$WORK/requests" 2>&1 &
LOAD=$!
exec 4> "$WORK/load"
sleep 2

bad() { cat "$WORK/said" "$WORK/server.err" "$WORK/requests"; fail "$*"; }
# The server's KiB in memory, threads, descriptors and mappings.
holds() {
  echo "$(awk '/^VmRSS/ { print $2 }' "/proc/$PID/status") $(ls "/proc/$PID/task" | wc -l)" \
    "$(ls "/proc/$PID/fd" | wc -l) $(wc -l < "/proc/$PID/maps")"
}
round() {
  local mode=cpu seconds
  [ $(($1 % 2)) = 0 ] && mode=wall
  # A loaded machine may give the agent no processor for as long as the shortest recording takes.
  for seconds in 0.25 1 5; do
    timeout 300 "$clrsnap" record --mode $mode -d $seconds --lines -o "$WORK/stacks.folded" "$PID" > "$WORK/said" 2>&1 || {
      sampled_nothing "$WORK/said" || bad "round $1"
      continue
    }
    grep -qE 'without a name|unloaded code' "$WORK/stacks.folded" && bad "round $1: frames without names"
    [ $mode = cpu ] || grep -qF Kestrel "$WORK/stacks.folded" || continue
    return
  done
  bad "round $1: no frame of the server"
}
for i in $(seq $WARM); do round "$i"; done
first=$(holds)
for i in $(seq "$ROUNDS"); do round "$i"; done
# Events, which come through an EventPipe session.
for seconds in 0.5 3 15; do
  lacks=
  timeout 300 "$clrsnap" record --mode cpu,alloc,lock,exception -d $seconds -o "$WORK/all.clrsnap" "$PID" > "$WORK/said" 2>&1 ||
    bad "a recording of events"
  for mode in cpu alloc exception; do
    "$clrsnap" report --mode $mode -o "$WORK/$mode.folded" "$WORK/all.clrsnap" > "$WORK/said" 2>&1 || bad "mode $mode"
    grep -qE 'without a name|unloaded code' "$WORK/$mode.folded" && bad "mode $mode: frames without names"
    grep -q 'Microsoft\.AspNetCore\.\|Program\.' "$WORK/$mode.folded" || lacks="$lacks $mode"
  done
  [ -n "$lacks" ] || break
done
[ -z "$lacks" ] || bad "modes$lacks: no frame of the server"
# The runtime's own threads that each such recording begins must give their alternate stacks back: a page without access,
# and three.
small_stacks() {
  local range rest guard="" small=0
  while read -r range rest; do
    local size=$((0x${range#*-} - 0x${range%-*}))
    [[ $rest == rw-p* && $size = 12288 && $guard = "${range%-*}" ]] && small=$((small + 1))
    guard=
    [[ $rest == ---p* && $size = 4096 ]] && guard=${range#*-}
  done < <(cat "/proc/$PID/maps") # which changes meanwhile: in one read
  echo $small
}
small=$(small_stacks)
for i in $(seq 6); do
  timeout 300 "$clrsnap" record --mode gc,alloc -d 0.1 -o "$WORK/gc.clrsnap" "$PID" > "$WORK/said" 2>&1 ||
    bad "recording $i of events"
done
# Workers that the server's pool begins where processors are short end some 20 s later; a leak stays.
gave_back() { [ $(($(small_stacks) - small)) -le 4 ]; }
until_true 60 gave_back || bad "alternate stacks are left: $small, and then $(small_stacks)"
read -r memory0 threads0 descriptors0 mappings0 <<< "$first"
few_more() {
  read -r memory threads descriptors mappings <<< "$(holds)"
  [ $((threads - threads0)) -le 6 ] && [ $((descriptors - descriptors0)) -le 6 ]
}
until_true 60 few_more || true  # judged below
echo "$ROUNDS rounds: $((memory - memory0)) KiB, $((threads - threads0)) threads," \
  "$((descriptors - descriptors0)) descriptors, $((mappings - mappings0)) mappings more"
gone() { ! recorded_now "$PID"; }
until_true 30 gone || bad "a thread of ours is left"
# The server's own pool and heap change, too. A leak of one in each of 100 rounds is seen.
[ $((memory - memory0)) -le 16384 ] || bad "memory grows"
[ $((threads - threads0)) -le 6 ] || bad "threads grow"
[ $((descriptors - descriptors0)) -le 6 ] || bad "descriptors grow"
[ $((mappings - mappings0)) -le 40 ] || bad "mappings grow"

exec 4>&-
wait $LOAD || bad "a request has failed"
exec 3>&-
wait $SERVER || bad "the server does not end as it should"
[ ! -s "$WORK/server.err" ] || bad "the server says something"
requests=$(sed -n 's/^\([0-9]*\) requests$/\1/p' "$WORK/requests")
[ "${requests:-0}" -ge 1000 ] || bad "there was no load"
pass "$requests requests, none failed"
