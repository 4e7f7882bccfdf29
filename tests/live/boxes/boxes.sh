#!/bin/bash
# SPDX-License-Identifier: MIT
# boxes.sh BUILD SOURCE MATERIAL RECIPE: the recipes of docs/containers.md, with boxes made as a container engine makes
# them: namespaces, a root of its own that is read-only, docker's default capabilities, the default seccomp profile, a small
# /dev/shm. The command in a box is the one of clrsnap's image, in a root with nothing else.
#   host      from the machine           sidecar   shares the PID namespace, same user
#   debug     as kubectl debug: root with SYS_PTRACE, shares the PID namespace
#   refused   rights that do not suffice, and what is said
#   no-tmp    nowhere to write           within    the program is started by the command, in its box
#   rootless  in a user namespace, by the owner of that
BUILD=$1 SOURCE=$2 MATERIAL=$3 RECIPE=$4
. "$SOURCE/tests/live/lib.sh"
build_app Record
unshare --mount --pid --fork true || skip "no namespaces can be made here"
files=$BUILD/package/files
[ -x "$files/clrsnap-static" ] || skip "there are no package files: run this by ctest"
export DOTNET APPS ROOT=$WORK/root SIDE=$WORK/side BOX=$SOURCE/tests/live/boxes/box.py
DOTNET=$(dirname "$(readlink -f "$(command -v dotnet)")") APPS=${APP%/*}
chmod 755 "$WORK"
mkdir -p "$ROOT" "$SIDE/usr/bin" "$SIDE/usr/lib/clrsnap" "$SIDE/proc" "$SIDE/tmp" "$WORK/out"
chmod 1777 "$SIDE/tmp" "$WORK/out"
cp "$files/clrsnap-static" "$SIDE/usr/lib/clrsnap/clrsnap"
cp "$files/libclrsnap.so" "$BUILD"/lib/ClrsnapLabels.dll "$SIDE/usr/lib/clrsnap"
ln -s ../lib/clrsnap/clrsnap "$SIDE/usr/bin/clrsnap"
clrsnap=$SIDE/usr/bin/clrsnap
unset TMPDIR
cd "$WORK" || exit 1
/usr/bin/python3 "$BOX" /bin/true > said || skip "$(cut -d' ' -f2- said)"
trap '[ -z "${PID:-}" ] || kill -9 "$PID" 2> /dev/null; rm -rf "$WORK"' EXIT

# What runs in the new namespaces: makes the root, enters it, and runs box.py with the arguments. TMP=no: nothing can be written.
inside='set -e
  mount --make-rprivate / && mount -t tmpfs -o mode=755 none "$ROOT" && cd "$ROOT"
  mkdir usr dev proc tmp old dotnet app side out etc
  for name in bin lib lib64 sbin; do ln -s usr/$name $name; done
  mount --rbind /usr usr && mount -o remount,bind,ro usr
  mount --rbind "$DOTNET" dotnet && mount --bind "$APPS" app && mount --bind "$SIDE" side && mount --bind "${SIDE%/*}/out" out
  for name in null zero full random urandom; do touch dev/$name && mount --bind /dev/$name dev/$name; done
  mkdir dev/shm && mount -t tmpfs -o mode=1777,size=64k,noexec none dev/shm
  [ "$TMP" = no ] || mount -t tmpfs -o mode=1777 none tmp
  mount -t proc proc proc && cp "$BOX" box.py
  mount -o remount,ro "$ROOT" && pivot_root . old && umount -l /old && cd /
  exec /usr/bin/python3 /box.py "$@"'
# app [OPTION-OF-BOX...]: starts the program in a box of its own, as PID; it is number 1 there.
app() {
  TMP=${TMP:-yes} timeout -k 5 300 unshare --mount --pid --fork --kill-child --ipc --uts --net bash -c "$inside" box "$@" \
    /dotnet/dotnet /app/Record.dll names 600000 > app.out 2>&1 &
  CHILD=$!
  find_inside
}
# find_inside: PID becomes the program's process, once it runs: a grandchild of CHILD, which is timeout's.
find_inside() {
  for _ in $(seq 600); do
    PID=$(pgrep -P "$(pgrep -P $CHILD)" 2> /dev/null) && grep -qsF Record.dll "/proc/$PID/maps" && sleep 0.5 && return
    kill -0 $CHILD 2> /dev/null || break
    sleep 0.05
  done
  cat app.out
  fail "the program does not start in its box"
}
# side OPTION-OF-BOX... -- ARGUMENT...: the command of the image, in a box that shares the program's PID namespace.
# shellcheck disable=SC2016
side() {
  local options=()
  while [ "$1" != -- ]; do options+=("$1"); shift; done
  shift
  timeout 300 nsenter --pid="/proc/$PID/ns/pid" unshare --mount --ipc --uts --net bash -c 'mount --make-rprivate / &&
    mount -t proc proc "$SIDE/proc" && exec /usr/bin/python3 "$BOX" --root "$SIDE" "$@"' box "${options[@]}" /usr/bin/clrsnap "$@"
}
# shows WHAT TEXT COMMAND...: it succeeds, and prints the text.
shows() {
  "${@:3}" > said 2>&1 || { cat said app.out; fail "$RECIPE: $1"; }
  grep -qF -- "$2" said || { cat said; fail "$RECIPE: $1: no '$2'"; }
  pass "$RECIPE: $1"
}
# refuses WHAT TEXT COMMAND...: it ends with 1, and says the text.
refuses() {
  local rc=0
  "${@:3}" > said 2>&1 || rc=$?
  [ $rc = 1 ] || { cat said; fail "$RECIPE: $1: ended with $rc"; }
  grep -qF -- "$2" said || { cat said; fail "$RECIPE: $1: not said: $2"; }
  pass "$RECIPE: $1"
}
# all NUMBER COMMAND...: record, stack, async and top of the process with that number.
all() {
  local seconds
  for seconds in 1 5 20; do
    "${@:2}" record -d $seconds --top 3 -o - --format text "$1" > recorded 2>&1 && grep -qF Rec.Program recorded && break
  done
  shows record "Rec.Program" cat recorded
  shows stack "Rec.Program" "${@:2}" stack "$1"
  shows async "suspended async methods" "${@:2}" async "$1"
  for seconds in 2 10 40; do
    "${@:2}" top --text -n $seconds "$1" > shown 2>&1 && grep -qF Rec.Program shown && break
  done
  shows top "Rec.Program" cat shown
  [ -z "$(find "/proc/$PID/root/tmp" -name 'clrsnap-*')" ] || fail "$RECIPE: something stays in the program's /tmp"
}

case $RECIPE in
  host)
    app --user 1654:1654
    all "$PID" "$clrsnap"
    ;;
  sidecar)
    app --user 1654:1654
    all 1 side --user 1654:1654 --
    ;;
  debug)
    app --user 1654:1654
    all 1 side --cap SYS_PTRACE --
    ;;
  refused)
    app --user 1654:1654
    both="1654, group 1654, and this command as user"
    refuses "record by root" "it runs as user $both 0, group 0: run it as that user and group, or with CAP_SYS_PTRACE" side -- record -d 1 -o - --format text 1
    refuses "stack by root" "it runs as user $both 0, group 0: run it as that user and group, or with CAP_SYS_PTRACE" side -- stack 1
    refuses "another group" "it runs as user $both 1654, group 0: run" side --user 1654:0 -- record -d 1 -o - --format text 1
    refuses "another user" "process 1 belongs to another user (1654)" side --user 1000:1000 -- record -d 1 -o - --format text 1
    for seconds in 1 5 20; do
      side --user 1654:1654 -- record -d $seconds --top 3 -o - --format text 1 > recorded 2>&1
      rc=$?
      [ $rc = 1 ] && sampled_nothing recorded || break
    done
    [ $rc = 0 ] || { cat recorded; fail "the engine: ended with $rc"; }
    shows "the engine" "not perf: a seccomp filter refuses perf_event_open" cat recorded
    ;;
  no-tmp)
    TMP=no app --user 1654:1654
    refuses record "process 1 could not make its diagnostics port, because /tmp is mounted read-only" side --user 1654:1654 -- record -d 1 -o - --format text 1
    shows stack "Rec.Program" side --user 1654:1654 -- stack 1
    shows async "suspended async methods" side --user 1654:1654 -- async 1
    ;;
  within)
    TMP=no timeout -k 5 300 unshare --mount --pid --fork --kill-child --ipc --uts --net bash -c "$inside" box --user 1654:1654 \
      /side/usr/bin/clrsnap record -o /out/r.txt -- /dotnet/dotnet /app/Record.dll hot 4000 > said 2>&1
    rc=$?
    [ $rc = 42 ] && grep -qF Rec.Program out/r.txt || { cat said; fail "$RECIPE: ended with $rc"; }
    pass "$RECIPE: record"
    ;;
  rootless)
    owner=(setpriv --reuid 65534 --regid 65534 --clear-groups env HOME=/tmp)
    "${owner[@]}" unshare --user --map-root-user true || skip "users cannot make user namespaces here"
    cp -r "$APPS" own && chmod -R a+rX own "$SIDE"
    "${owner[@]}" timeout -k 5 300 unshare --user --map-root-user --mount --pid --fork --kill-child --mount-proc bash -c \
      'mount --bind "$0/own" /mnt && mount -t tmpfs none /tmp && cd / && exec "$DOTNET/dotnet" /mnt/Record.dll names 600000' "$WORK" > app.out 2>&1 &
    CHILD=$!
    find_inside
    all "$PID" "${owner[@]}" "$clrsnap"
    all "$PID" "${owner[@]}" nsenter --preserve-credentials --user="/proc/$PID/ns/user" "$clrsnap"
    ;;
  *) fail "there is no recipe '$RECIPE'" ;;
esac
