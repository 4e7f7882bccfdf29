#!/bin/bash
# SPDX-License-Identifier: MIT
# container.sh BUILD SOURCE MATERIAL: programs in other namespaces, which do not see the agent's library. They get a
# copy, as their user, which no other user can replace, and nothing stays. Where that is impossible, the command says so. Links are not followed.
BUILD=$1 SOURCE=$2 MATERIAL=$3
. "$SOURCE/tests/live/lib.sh"
build_app Record
clrsnap=$BUILD/bin/clrsnap
unshare --mount true || skip "no namespaces can be made here"
unset TMPDIR
LIB=$(mktemp -d /tmp/agent.XXXXXX)
PID=
trap '[ -z "$PID" ] || kill -9 "$PID" 2> /dev/null; rm -rf "$WORK" "$LIB"' EXIT
chmod 755 "$LIB"
cp "$BUILD"/lib/libclrsnap.so "$LIB"
[ ! -f "$BUILD/lib/ClrsnapLabels.dll" ] || cp "$BUILD/lib/ClrsnapLabels.dll" "$LIB"
export CLRSNAP_LIB=$LIB/libclrsnap.so
cd "$WORK" || exit 1

within() { # PID: a child of ours, however far below
  local p=$1
  while [ "${p:-0}" -gt 1 ] && [ "$p" != $CHILD ]; do p=$(awk '/^PPid:/ { print $2 }' "/proc/$p/status" 2> /dev/null); done
  [ "$p" = $CHILD ]
}
# contained COMMAND [UNSHARE-OPTION...] [-- PROGRAM...]: starts the program as PID, with its own /tmp, /var/tmp and
# /dev/shm, after running COMMAND there; PROGRAM starts it.
contained() {
  local first=$1 options=()
  shift
  while [ $# -gt 0 ] && [ "$1" != -- ]; do options+=("$1"); shift; done
  shift
  # shellcheck disable=SC2016
  timeout -k 5 300 unshare --mount "${options[@]}" bash -c 'mount --bind "$1" /mnt || exit 1; shift; for d in /tmp /var/tmp /dev/shm; do
      mount -t tmpfs -o mode=1777 none $d || exit 1; done
    cd / && eval "$0" && exec "$@"' "$first" "${APP%/*}" "$@" dotnet /mnt/Record.dll names 90000 > out 2> err &
  CHILD=$!
  PID=
  for _ in $(seq 900); do
    for p in $(pgrep -x dotnet); do grep -qsF Record.dll "/proc/$p/maps" && within "$p" && PID=$p; done
    [ -n "$PID" ] && break
    sleep 0.05
  done
  [ -n "$PID" ] || { cat err; fail "no program: $first"; }
  sleep 0.7
}
inside() { nsenter --mount="/proc/$PID/ns/mnt" "$@"; }
left() { find "/proc/$PID/root/tmp" "/proc/$PID/root/var/tmp" "/proc/$PID/root/dev/shm" -type d -name 'clrsnap-????????????????-*'; }
loaded() { sed -n 's#^[^/]*\(/.*libclrsnap.so\).*#\1#p' "/proc/$PID/maps" | sort -u; }
recorded() {
  "$clrsnap" record -d 2 --mode wall "${@:2}" -o r.txt "$PID" > said 2>&1 || { cat said; fail "$1"; }
  grep -q Rec.Program r.txt || { cat said; fail "$1: no names"; }
  [ -z "$(left)" ] || fail "$1: $(left) stays"
  pass "$1"
}
refused() {
  "$clrsnap" record -d 1 -o r.clrsnap "$PID" > said 2>&1 && fail "$1: it is recorded"
  grep -qF -- "$2" said || { cat said; fail "$1: not said: $2"; }
  [ -z "$(left)" ] || fail "$1: $(left) stays"
  pass "$1"
}

contained true
"$clrsnap" doctor "$PID" > said 2>&1
grep -q "agent's file  *the process does not see it; an attach copies it into /tmp" said || { cat said; fail doctor; }
[ -z "$(left)" ] || fail "doctor has left $(left)"
recorded "a mount namespace"
first=$(loaded)
[[ "$first" == /tmp/clrsnap-*/libclrsnap.so ]] || fail "loaded from '$first'"
recorded "and once more"
[ "$(loaded)" = "$first" ] || fail "a second library is loaded: $(loaded)"
"$clrsnap" top --text -n 1 "$PID" > said 2>&1 || { cat said; fail top; }
if [ -f "$LIB/ClrsnapLabels.dll" ]; then recorded "with the labels' startup hook" --labels; fi

# Nothing stays after the command is killed. The process is stopped, so its runtime does not respond.
kill -STOP "$PID"
"$clrsnap" record --mode wall -d 2 -o r.clrsnap "$PID" > said 2>&1 &
recorder=$!
for _ in $(seq 200); do [ -n "$(left)" ] && break; sleep 0.05; done
[ -n "$(left)" ] || { cat said; fail "nothing is handed over to a stopped process"; }
[ "$(stat -c '%a' "$(left)")" = 700 ] || fail "others may look into the folder"
kill -KILL $recorder
wait $recorder 2> /dev/null || true
for _ in $(seq 200); do [ -z "$(left)" ] && break; sleep 0.05; done
[ -z "$(left)" ] || fail "after SIGKILL $(left) stays"
pass "a command that is killed"
stop

# Links and files in the way are neither followed nor used.
contained true
name=$(basename "$(dirname "$first")") # of the other process: its number and its start are other ones
hash=${name#clrsnap-}
started=$(sed 's/.*) //' "/proc/$PID/stat" | cut -d' ' -f20)
mine=clrsnap-${hash%%-*}-$PID-$started
inside mkdir -m 700 /var/tmp/victim
inside ln -s /var/tmp/victim "/tmp/$mine"
recorded "a link in the way"
[ "$(loaded)" = "/var/tmp/$mine/libclrsnap.so" ] || fail "loaded from $(loaded)"
[ -z "$(inside ls /var/tmp/victim)" ] && inside test -L "/tmp/$mine" || fail "the link was followed"
stop
contained 'mount -o remount,noexec /tmp'
recorded "a /tmp without execution"
[[ "$(loaded)" == /var/tmp/* ]] || fail "loaded from $(loaded)"
stop
contained true
inside chmod 777 /tmp /var/tmp
inside mount -o remount,ro /dev/shm
refused "folders in which others could exchange it" "no directory accepts a copy (/tmp: others could exchange files in it; \
/var/tmp: others could exchange files in it; /dev/shm: it is mounted read-only): make the file visible there"
inside chmod 1777 /tmp
inside mount -o remount,ro /tmp
inside mount -o remount,ro /var/tmp
refused "no folder that can be written" "no directory accepts a copy (/tmp: it is mounted read-only; /var/tmp: it is mounted \
read-only; /dev/shm: it is mounted read-only): make the file visible there, for example by docker run -v"
"$clrsnap" doctor "$PID" > said 2>&1 && fail "doctor finds no fault"
grep -q "^FAIL *agent's file .*no directory accepts a copy" said || { cat said; fail "doctor"; }
stop

# The copy belongs to the process's user: 65534 may not read the library, and could not read a copy of root's.
chmod 700 "$LIB"
contained true -- setpriv --reuid 65534 --regid 65534 --clear-groups env HOME=/tmp
kill -STOP "$PID"
"$clrsnap" record --mode wall -d 2 -o r.clrsnap "$PID" > said 2>&1 &
recorder=$!
for _ in $(seq 200); do [ -n "$(left)" ] && break; sleep 0.05; done
[ "$(stat -c '%u %g' "$(left)")" = "65534 65534" ] || { cat said; fail "it is not its user's: $(stat -c '%u %g' "$(left)")"; }
kill -CONT "$PID"
wait $recorder || { cat said; fail "another user's program"; }
[ -z "$(left)" ] || fail "$(left) stays"
stop
chmod 755 "$WORK"
cp -r "${APP%/*}" "$WORK/app"
env HOME=/tmp setpriv --reuid 65534 --regid 65534 --clear-groups dotnet "$WORK/app/Record.dll" names 90000 > out 2> err &
CHILD=$! PID=$!
until_true 60 grep -qsF Record.dll "/proc/$PID/maps" || { cat err; fail "the program does not start"; }
sleep 0.7
recorded "a user who may not read the library"
stop
contained 'mount -t proc none /proc' --user --map-root-user --pid --fork --kill-child
recorded "user, PID and mount namespaces"
stop

# The port: neither a link nor another process's socket is used.
contained true
port=$(inside sh -c 'ls /tmp/dotnet-diagnostic-*-socket')
inside mv "$port" /tmp/real
inside ln -s "$WORK/bait" "$port"
python3 - "$WORK/bait" > bitten << 'PYTHON' &
import socket, sys
server = socket.socket(socket.AF_UNIX)
server.bind(sys.argv[1])
server.listen()
server.accept()
print("connected")
PYTHON
bait=$!
until [ -S bait ]; do sleep 0.05; done
refused "a link in the port's place" "process $PID is a .NET program, but its diagnostics port is not in /tmp"
inside ln -sf /tmp/real "$port"
refused "a link to the port" "process $PID is a .NET program, but its diagnostics port is not in /tmp"
inside rm "$port"
nsenter --mount="/proc/$PID/ns/mnt" python3 -c '
import os, socket, sys, time
server = socket.socket(socket.AF_UNIX)
server.bind(sys.argv[1])
server.listen()
open("/tmp/ready", "w").close()
time.sleep(300)' "$port" &
other=$!
for _ in $(seq 900); do inside test -e /tmp/ready && break; sleep 0.05; done
refused "another process' port" "the diagnostics port of process $PID in /tmp is another process'"
kill $bait $other 2> /dev/null
[ -s bitten ] && fail "a socket outside was spoken to"
stop
PID=
pass "namespaces, users and links"
