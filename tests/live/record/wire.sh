#!/bin/bash
# SPDX-License-Identifier: MIT
# wire.sh BUILD SOURCE MATERIAL: the memory that command and agent share has no name in any file system,
# cannot be truncated, and does not outlive the two, whichever is killed; and a waiting command can be interrupted.
BUILD=$1 SOURCE=$2 MATERIAL=$3
. "$SOURCE/tests/live/lib.sh"
build_app Record
clrsnap=$BUILD/bin/clrsnap

# memories PID: how many such memories the process has open or mapped.
memories() {
  { ls -l "/proc/$1/fd" 2> /dev/null | grep 'memfd:clrsnap'; grep 'memfd:clrsnap' "/proc/$1/maps"; } | wc -l
}
gone() {  # gone PID WHAT
  for _ in {1..400}; do
    [ "$(memories "$1")" = 0 ] && return
    sleep 0.025
  done
  fail "$2: $(ls -l "/proc/$1/fd" | grep memfd:clrsnap; grep memfd:clrsnap "/proc/$1/maps")"
}
record() {  # record WHAT PREFIX...: of $PID
  local what=$1 rc=0
  shift
  timeout 300 "$@" "$clrsnap" record -d 4 -o "$WORK/stacks.folded" "$PID" > "$WORK/said" 2>&1 || rc=$?
  [ $rc = 0 ] || { cat "$WORK/said" "$WORK/err"; fail "$what: exit code $rc"; }
  grep -qF Rec.Program.Hot "$WORK/stacks.folded" || { cat "$WORK/said"; fail "$what: nothing was seen"; }
}
# works: waits until the program, started by start(), does what is to be seen. On a busy machine that may be seconds after
# its code has been mapped.
is_hot() { grep -qsx 'Hot worker' "/proc/$PID"/task/*/comm; }
works() { until_true 120 is_hot || fail "the program does not work"; }
PID=
trap '[ -z "$PID" ] || kill -9 "$PID" 2> /dev/null; rm -rf "$WORK"' EXIT

# ---- Truncating it during a recording is an error, and both processes survive ----
start
works
"$clrsnap" record -d 4 -o "$WORK/stacks.folded" "$PID" > "$WORK/said" 2>&1 &
command=$!
until [ "$(memories $PID)" -ge 2 ]; do sleep 0.02; done
for owner in $PID $command; do
  for fd in $(ls -l "/proc/$owner/fd" | sed -n 's/.* \([0-9]*\) -> .memfd:clrsnap.*/\1/p'); do
    truncate -s 0 "/proc/$owner/fd/$fd" 2> /dev/null && fail "process $owner's memory can be truncated"
  done
done
grep -h /dev/shm/clrsnap "/proc/$PID/maps" "/proc/$command/maps" && fail "a file in /dev/shm"
wait $command || { cat "$WORK/said"; fail "truncated: exit code $?"; }
grep -qF Rec.Program.Hot "$WORK/stacks.folded" || { cat "$WORK/said"; fail "truncated: nothing was seen"; }
gone $PID "after a recording"
pass "nobody truncates it, nothing stays"

# ---- A command that is killed, at several moments of an attach ----
for after in 0.02 0.05 0.08 0.1 0.15 0.2 0.3 0.6; do
  "$clrsnap" record -o "$WORK/killed.folded" "$PID" > /dev/null 2>&1 &
  command=$!
  sleep $after
  kill -9 $command 2> /dev/null
  wait $command 2> /dev/null
done
gone $PID "after killed commands"
record "after killed commands"
pass "killed commands leave nothing"

# ---- A stopped process: Ctrl-C works at once, and so does the next attach ----
for signal in INT TERM; do
  kill -STOP $PID
  env --default-signal "$clrsnap" record -o "$WORK/stopped.folded" "$PID" > "$WORK/said" 2>&1 &
  command=$!
  for _ in $(seq 400); do grep -q . "$WORK/said" && break; sleep 0.05; done # silent for 30 s before
  grep -q "^clrsnap: process $PID is stopped, by a signal or a debugger: waiting for it, 30 s at most" "$WORK/said" ||
    { cat "$WORK/said"; fail "stopped: it does not say what it waits for"; }
  before=$(date +%s%N)
  kill -$signal $command
  rc=0
  wait $command || rc=$?
  took=$((($(date +%s%N) - before) / 1000000))
  [ $rc = 1 ] && grep -q "interrupted before process $PID had responded" "$WORK/said" ||
    { cat "$WORK/said"; fail "stopped, SIG$signal: exit code $rc"; }
  [ $took -lt 10000 ] || fail "stopped, SIG$signal: obeyed after $took ms"  # 31 s before
  kill -CONT $PID
done
gone $PID "after interrupted commands"
record "after interrupted commands"
stop
pass "a stopped process holds nobody"

# ---- A full /dev/shm, and one that leads elsewhere: neither is used ----
if unshare --mount true 2> /dev/null; then
  mkdir -p "$WORK/elsewhere"
  start unshare --mount sh -c 'mount -t tmpfs none /dev && ln -s "$0" /dev/shm &&
    mknod -m 666 /dev/null c 1 3 && mknod -m 666 /dev/zero c 1 5 && mknod -m 666 /dev/urandom c 1 9 &&
    exec "$@"' "$WORK/elsewhere"
  works
  record "with another /dev/shm"
  stop
  ls -A "$WORK/elsewhere" | grep . && fail "a file where the process has /dev/shm lead to"
  pass "/dev/shm is not used"
fi

# ---- Limits of the process: the command says so, and the process survives ----
start
works
prlimit --pid $PID --fsize=2097152:
rc=0
"$clrsnap" record -d 0.5 -o "$WORK/no.folded" "$PID" > "$WORK/said" 2>&1 || rc=$?
[ $rc = 1 ] && grep -q "RLIMIT_FSIZE" "$WORK/said" || { cat "$WORK/said"; fail "RLIMIT_FSIZE: exit code $rc"; }
timeout 300 "$clrsnap" record --buffer 1 -d 3 -o "$WORK/stacks.folded" "$PID" > "$WORK/said" 2>&1 ||
  { cat "$WORK/said"; fail "RLIMIT_FSIZE with a small buffer"; }
kill -0 $PID || fail "RLIMIT_FSIZE has killed the program"
used=$(($(sed -n 's/^VmSize:[^0-9]*\([0-9]*\).*/\1/p' /proc/$PID/status) * 1024))
prlimit --pid $PID --fsize=unlimited: --as=$((used + 12582912)):
rc=0
"$clrsnap" record -d 0.5 -o "$WORK/no.folded" "$PID" > "$WORK/said" 2>&1 || rc=$?
[ $rc = 1 ] && grep -q "RLIMIT_AS" "$WORK/said" || { cat "$WORK/said"; fail "RLIMIT_AS: exit code $rc"; }
kill -0 $PID || fail "RLIMIT_AS has killed the program"
prlimit --pid $PID --as=unlimited:
record "after limits"
stop
pass "limits are said"

# ---- Root records a program of another user, which need not see root's files or processes ----
[ "$(id -u)" = 0 ] || exit 0
mkdir -p "$WORK/theirs"
chmod 755 "$WORK"
chown 65534:65534 "$WORK/theirs"
mkdir -p "$WORK/app"
cp -r "${APP%/*}/." "$WORK/app"
cp "$BUILD/lib/libclrsnap.so" "$WORK/app"
APP=$WORK/app/${APP##*/}
export CLRSNAP_LIB=$WORK/app/libclrsnap.so
export DOTNET_CLI_HOME=$WORK/theirs HOME=$WORK/theirs
start setpriv --reuid 65534 --regid 65534 --clear-groups
works
record "another user's"
[ "$(stat -c %u "/proc/$PID")" = 65534 ] || fail "the program is not another user's"
gone $PID "another user's"
stop
pass "another user's process"
