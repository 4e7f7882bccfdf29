#!/bin/bash
# SPDX-License-Identifier: MIT
# attach.sh BUILD SOURCE MATERIAL: `clrsnap run-profiler --attach` to programs that it cannot reach, or whose
# runtime or profiler refuses: it says why, and the program never notices. coverage.sh attach shows that an
# attached profiler works.
BUILD=$1 SOURCE=$2 MATERIAL=$3
. "$SOURCE/tests/live/lib.sh"
unset LD_PRELOAD CLRSNAP_PROFILER_PATH
build_app Abi
CLASS='{12345678-9ABC-DEF0-1234-56789ABCDEF0}'
dotnet "$APP" > "$WORK/want" || [ $? = 42 ] || fail "the program does not run by itself"

# Profilers that refuse, each in a different way.
profiler() {
  echo "$2" | cc -shared -fPIC -o "$WORK/$1.so" -x c - -x none "${@:3}" || fail "cannot compile $1"
}
profiler class 'int DllGetClassObject(void) { return (int)0x80040111; }'
profiler odd 'int DllGetClassObject(void) { return (int)0x8ABC1234; }'
profiler gone 'int gone(void) { return 1; }'
profiler needs 'int gone(void); int DllGetClassObject(void) { return gone(); }' "$WORK/gone.so"
rm "$WORK/gone.so"

# start VARIABLE=VALUE... [COMMAND...]: starts the program as process PID.
start() {
  rm -f "$WORK/until" "$WORK/out"
  timeout -k 5 300 env "$@" sh -c 'echo $$ > "$0"; exec "$@"' "$WORK/pid" dotnet "$APP" until "$WORK/until" \
    > "$WORK/out" 2> "$WORK/err" &
  CHILD=$!
  for _ in $(seq 300); do
    grep -qs caught "$WORK/out" && break
    sleep 0.1
  done
  PID=$(cat "$WORK/pid")
}
# finish: the program ends as it would have ended without the attach; WORK/err has its stderr.
finish() {
  touch "$WORK/until"
  wait $CHILD || [ $? = 42 ] || fail "the program does not end as it should"
  diff "$WORK/want" "$WORK/out" || fail "the program's output has changed"
}
# refused NAME TEXT [PROFILER [WITH...]]: the attach fails with this text.
refused() {
  local name=$1 text=$2 library=${3:-class} rc=0
  timeout 300 "${@:4}" "$BUILD/bin/clrsnap" run-profiler --attach "$PID" --profiler "$WORK/$library.so" \
    --clsid "$CLASS" ${DATA:+--data "$DATA"} > "$WORK/said" 2>&1 || rc=$?
  [ $rc = 1 ] || { cat "$WORK/said"; fail "$name: ended with $rc, not 1"; }
  diff <(echo "clrsnap: $text") "$WORK/said" || fail "$name"
  pass "$name"
}

start
refused "a class refused" "process $PID refuses the profiler (0x80040111): the profiler has no such class: \
--clsid is not the profiler's"
refused "a dependency missing" "process $PID refuses the profiler (0x8007007e): a library cannot be loaded; its \
standard error says which and why" needs
refused "an error that nobody knows" "process $PID refuses the profiler (0x8abc1234): the profiler or the runtime \
gives no other reason" odd
head -c 70000 /dev/zero > "$WORK/data"
DATA=$WORK/data refused "too much client data" "the client data is too long: with the names of the files, the \
runtime takes 65535 bytes"
DATA=$WORK/none refused "no such data" "cannot read $WORK/none: No such file or directory"
mkdir "$WORK/grün €😀"
cp "$BUILD/lib/libclrsnap.so" "$WORK/grün €😀/"
refused "a path beyond ASCII" "process $PID refuses the profiler (0x80040111): the profiler has no such class: \
--clsid is not the profiler's" class env CLRSNAP_LIB="$WORK/grün €😀/libclrsnap.so"
chmod 755 "$WORK"
if setpriv --reuid 65534 --clear-groups test -x "$BUILD/bin/clrsnap" 2> "$WORK/setpriv"; then
  refused "another user" "process $PID belongs to another user ($(id -u)); only that user and root may attach to it" \
    class setpriv --reuid 65534 --clear-groups
fi
grep -q "grün €😀/libclrsnap.so" "/proc/$PID/maps" || fail "the library was not loaded from its path"
finish
grep -q "class.so refuses the class $CLASS (0x80040111)" "$WORK/err" || fail "the program does not say what was refused"
grep -q "needs.so cannot be loaded: $WORK/gone.so" "$WORK/err" || fail "the program does not say what is missing"

mkdir "$WORK/tmp"
start TMPDIR="$WORK/tmp"
refused "its own temporary folder" "process $PID refuses the profiler (0x80040111): the profiler has no such \
class: --clsid is not the profiler's"
rm "$WORK"/tmp/dotnet-diagnostic-*
refused "no socket" "process $PID is a .NET program, but its diagnostics port is not in $WORK/tmp: is it switched \
off, or has its TMPDIR been changed?"
finish

for switch in DOTNET_EnableDiagnostics DOTNET_EnableDiagnostics_IPC; do
  start $switch=0
  refused "$switch=0" "process $PID was started with $switch=0: it has no diagnostics port"
  finish
done
# In a namespace of its own the process has another number there, and other files.
unshare --pid --fork --mount-proc true 2> "$WORK/unshare" || exit 0
start unshare --pid --fork --kill-child --mount-proc
for PID in $(pgrep -f "dotnet $APP until $WORK/until"); do
  [ "$(awk '/^NSpid/ { print NF }' "/proc/$PID/status")" = 3 ] && [ "$(cat "/proc/$PID/comm")" = dotnet ] && break
done
refused "a container's numbers" "process $PID refuses the profiler (0x80040111): the profiler has no such class: \
--clsid is not the profiler's"
finish
mkdir "$WORK/hidden"
start unshare --mount sh -c 'mount -t tmpfs none "$0" && exec "$@"' "$WORK/hidden"
cp "$WORK/class.so" "$WORK/hidden/"
refused "a container's files" "process $PID cannot open $WORK/hidden/class.so (No such file or directory): it sees other \
files than this command, as in a container; put it there, too, with what it needs (docker cp)" hidden/class
finish
