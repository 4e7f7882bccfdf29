#!/bin/bash
# SPDX-License-Identifier: MIT
# rights.sh BUILD SOURCE MATERIAL: which user may record which process: root without all capabilities, hidepid,
# `record -- PROGRAM` where PROGRAM changes its user or its namespace. It works, or one sentence says why not and what to do.
BUILD=$1 SOURCE=$2 MATERIAL=$3
. "$SOURCE/tests/live/lib.sh"
build_app Record
clrsnap=$BUILD/bin/clrsnap
unshare --mount true || skip "no namespaces can be made here"
# A copy of what the other user runs, where that user may read it.
chmod 755 "$WORK"
cp -r "$MATERIAL/apps/Record" "$BUILD/bin/clrsnap" "$BUILD/lib/libclrsnap.so" "$WORK"
chmod -R a+rX "$WORK"
APP=$WORK/Record/Record.dll
export CLRSNAP_LIB=$WORK/libclrsnap.so
other=(setpriv --reuid 65534 --regid 65534 --clear-groups env HOME=/tmp)
"${other[@]}" "$WORK/clrsnap" version > /dev/null || fail "another user cannot run the command"
cd "$WORK" || exit 1

# says CODE TEXT COMMAND...
says() {
  local got=0
  timeout 300 "${@:3}" > said 2>&1 || got=$?
  [ $got = "$1" ] || { cat said; fail "${*:3}: ended with $got"; }
  grep -qF -- "$2" said || { cat said; fail "${*:3}: not said: $2"; }
  pass "$2"
}
of_other() {
  "${other[@]}" timeout -k 5 300 dotnet "$APP" names 60000 > /dev/null 2> err &
  CHILD=$!
  find_program
}

of_other
says 1 "the files of process $PID cannot be accessed: it runs as user 65534, group 65534, and this command as user 0, group 0: \
run it as that user and group, or with CAP_SYS_PTRACE" setpriv --bounding-set -sys_ptrace --inh-caps -sys_ptrace "$clrsnap" record -d 1 -o r.clrsnap "$PID"
says 1 "the memory of process $PID may not be read: it runs as user 65534, group 65534, and this command as user 65534, group \
65533: run it as that user and group, or with CAP_SYS_PTRACE" setpriv --reuid 65534 --regid 65533 --clear-groups \
  "$WORK/clrsnap" stack "$PID"
says 0 "wrote r.clrsnap" "$clrsnap" record --mode wall -d 2 -o r.clrsnap "$PID"
hidden=(unshare --mount sh -c 'mount -t proc -o hidepid=2 proc /proc && exec "$@"' -)
rm -f r.clrsnap
mkdir -m 777 their
says 0 "wrote their/r.clrsnap" "${hidden[@]}" "${other[@]}" "$WORK/clrsnap" record --mode wall -d 2 -o their/r.clrsnap "$PID"
stop
start A=1
says 1 "the memory of process $PID may not be read: it has capabilities that this command lacks: run this command with the \
same ones, or with CAP_SYS_PTRACE" setpriv --bounding-set -sys_ptrace --inh-caps -sys_ptrace "$clrsnap" stack "$PID"
says 1 "process $PID is not shown in /proc, which is mounted with hidepid: only its user and root may attach to it" \
  "${hidden[@]}" "${other[@]}" "$WORK/clrsnap" record -d 1 -o their/r.clrsnap "$PID"
says 1 "process $PID belongs to another user ($(id -u)); only that user and root may attach to it" \
  "${other[@]}" "$WORK/clrsnap" record --mode wall -d 2 -o their/r.clrsnap "$PID"
stop

# The program keeps its own exit code.
says 42 "user 65534 may not open the memory of clrsnap record, which is of another user or user namespace: record it by its \
number instead (clrsnap record PID); the program runs on without being profiled" \
  "$clrsnap" record -o r.clrsnap -- "${other[@]}" dotnet "$APP" hot 300
sed 's/^clrsnap: *//' said | tr '\n' ' ' | grep -q 'another user or in another PID namespace' || { cat said; fail "the command does not say so"; }
says 42 "this process is in another PID namespace than clrsnap record: record it by its number instead (clrsnap record \
PID); the program runs on without being profiled" \
  "$clrsnap" record -o r.clrsnap -- unshare --pid --fork --mount-proc --kill-child dotnet "$APP" hot 300
says 42 "user 0 may not open the memory of clrsnap record, which is of another user or user namespace" \
  "$clrsnap" record -o r.clrsnap -- unshare --mount --user --map-root-user dotnet "$APP" hot 300
says 42 "wrote r.clrsnap" "$clrsnap" record -o r.clrsnap -- unshare --mount dotnet "$APP" hot 1000
