#!/bin/bash
# SPDX-License-Identifier: MIT
# mapped.sh BUILD SOURCE MATERIAL WHAT: names come from the file that a process has mapped, whatever its path means
# to the command or has come to mean. The mapped file is "right", another file under its path is "wrong".
#   namespace   a bind mount in a mount namespace of its own      container   a root directory of its own
#   replaced    renamed over after it was loaded                  deleted     removed after it was loaded
#   unlabelled  as namespace, and no build id                     fifo        its debug link names a FIFO
#   later       a recording without its end, reported after the file was replaced
BUILD=$1 SOURCE=$2 MATERIAL=$3 WHAT=$4
. "$SOURCE/tests/live/lib.sh"
build_app Mapped
right=$BUILD/lib/libtest_mapped_right.so wrong=$BUILD/lib/libtest_mapped_wrong.so
library=$WORK/libmapped.so
bad() { cat "$WORK"/*.err "$WORK"/said "$WORK/app" 2> /dev/null; head -5 "$WORK/out.folded"; fail "$WHAT: $*"; }

# begin COMMAND...: starts the program as PID, and waits until it is in the library.
begin() {
  "$@" > "$WORK/app" 2> "$WORK/app.err" 3>&- &
  CHILD=$!
  for _ in $(seq 300); do
    grep -qs ready "$WORK/app" && break
    sleep 0.1
  done
  PID=$CHILD
  while [ "$(cat "/proc/$PID/comm" 2> /dev/null)" != dotnet ]; do PID=$(pgrep -P "$PID") || bad "the program does not start"; done
}
end() {
  kill "$PID" 2> /dev/null
  wait $CHILD 2> /dev/null
}
# look NAME [SENTENCE]: checks the three ways to a name. NAME "": there is no name, and SENTENCE says why.
# Only root may open the file of a mapping; FEW runs a command without that right.
FEW=()
[ "$(id -u)" != 0 ] || FEW=(setpriv --bounding-set=-sys_admin,-checkpoint_restore --inh-caps=-sys_admin,-checkpoint_restore)
look() { clrsnap=("$BUILD/bin/clrsnap"); look_once "$@"; }
look_with_few_rights() { clrsnap=("${FEW[@]}" "$BUILD/bin/clrsnap"); look_once "$@"; }
look_once() {
  for _ in $(seq 10); do # on a busy machine a second may not be enough
    timeout 300 "${clrsnap[@]}" record -d 1 -o "$WORK/out.folded" "$PID" > "$WORK/said" 2> "$WORK/record.err" ||
      sampled_nothing "$WORK/record.err" || bad "record"
    grep -q 'libmapped\|_NAME' "$WORK/out.folded" && break
  done
  timeout 300 "${clrsnap[@]}" stack "$PID" > "$WORK/stack" 2> "$WORK/stack.err" || bad "stack"
  timeout 300 "${clrsnap[@]}" top --count 1 --native on "$PID" > "$WORK/top" 2> "$WORK/top.err" || bad "top"
  ! grep -h WRONG "$WORK/out.folded" "$WORK/stack" "$WORK/top" || bad "a wrong name"
  grep -q 'libmapped\|_NAME' "$WORK/out.folded" || bad "nothing of the library was recorded"
  if [ -n "$1" ]; then
    grep -q "$1" "$WORK/out.folded" && grep -q "$1" "$WORK/stack" || bad "not the right name"
  else
    ! grep -h RIGHT "$WORK/out.folded" "$WORK/stack" || bad "a name that cannot be known"
    grep -q "libmapped.so.*($2)" "$WORK/record.err" && grep -q "libmapped.so.*($2)" "$WORK/stack.err" || bad "the reason is not said"
  fi
}
run() { timeout -k 5 300 dotnet "$APP" "$library" 250; }
# unshared SCRIPT: runs it in namespaces of its own, as the current user.
unshared() {
  local user=()
  [ "$(id -u)" = 0 ] || user=(--user --map-root-user)
  unshare --mount --propagation private "${user[@]}" bash -c "$1"
}
export -f run
export APP library

case $WHAT in
  namespace | unlabelled)
    unshared true 2> /dev/null || skip "no mount namespaces here: unshare is refused"
    if [ "$WHAT" = unlabelled ]; then
      objcopy --remove-section=.note.gnu.build-id "$right" "$WORK/right.so" && right=$WORK/right.so
    fi
    cp "$wrong" "$library"
    begin unshared "mount --bind '$right' '$library' && exec timeout -k 5 300 dotnet '$APP' '$library' 250"
    look RIGHT_NAME
    [ "$WHAT" = unlabelled ] || look_with_few_rights RIGHT_NAME
    end
    ;;
  replaced)
    cp "$right" "$library"
    begin run
    cp "$wrong" "$WORK/new" && mv "$WORK/new" "$library"
    [ "$(id -u)" != 0 ] || look RIGHT_NAME
    look_with_few_rights "" "deleted or replaced since it was mapped.*"
    end
    ;;
  deleted)
    cp "$right" "$library"
    begin run
    rm "$library"
    [ "$(id -u)" != 0 ] || look RIGHT_NAME
    look_with_few_rights "" "deleted or replaced since it was mapped.*"
    end
    ;;
  container)
    # Everything that the program needs is under other mounts, except the library: its path has another build outside.
    unshared true 2> /dev/null || skip "no mount namespaces here: unshare is refused"
    cp "$wrong" "$library"
    dotnet=$(readlink -f "$(command -v dotnet)")
    mkdir -p "$WORK/root"
    begin unshared "mount -t tmpfs none '$WORK/root' && cd '$WORK/root' && mkdir -p usr lib lib64 proc tmp dev '.$WORK' '.$(dirname "$APP")' old etc &&
      mount --bind /usr usr && mount --bind /lib lib && mount --bind /lib64 lib64 && mount --bind /dev dev && mount --rbind /proc proc &&
      mkdir -p '.$(dirname "$dotnet")' && mount --bind '$(dirname "$dotnet")' '.$(dirname "$dotnet")' &&
      mkdir -p '.$BUILD' && mount --bind '$BUILD' '.$BUILD' &&
      mount --bind '$(dirname "$APP")' '.$(dirname "$APP")' && cp '$right' '.$library' &&
      pivot_root . old && cd / && umount -l old &&
      exec timeout -k 5 300 '$dotnet' '$APP' '$library' 250"
    look RIGHT_NAME
    look_with_few_rights RIGHT_NAME
    end
    ;;
  fifo)
    # In place of the debug file that the library names there is a FIFO, which must not block the command.
    cp "$right" "$library"
    objcopy --only-keep-debug "$library" "$WORK/libmapped.debug"
    objcopy --strip-all --remove-section=.note.gnu.build-id --add-gnu-debuglink="$WORK/libmapped.debug" "$library" "$WORK/linked"
    mv "$WORK/linked" "$library"
    begin run
    look RIGHT_NAME # its dynamic symbols
    mv "$WORK/libmapped.debug" "$WORK/kept" && mkfifo "$WORK/libmapped.debug"
    look RIGHT_NAME
    end
    ;;
  later)
    # The recorder is killed, so that names must come from files when the recording is read.
    cp "$right" "$library"
    begin run
    "$BUILD/bin/clrsnap" record -o "$WORK/cut.clrsnap" "$PID" > "$WORK/said" 2> "$WORK/record.err" &
    recorder=$!
    report() { timeout 300 "$BUILD/bin/clrsnap" report -o "$WORK/out.folded" "$WORK/cut.clrsnap" 2> "$WORK/report.err"; }
    has_name() { report && grep -q RIGHT_NAME "$WORK/out.folded"; }
    until_true 60 has_name || bad "no stacks to cut"
    kill -9 $recorder
    wait $recorder 2> /dev/null
    end
    report || bad "report"
    grep -q RIGHT_NAME "$WORK/out.folded" || bad "no name though the file is there"
    touch -r "$library" "$WORK/time"
    cp "$wrong" "$library" && touch -r "$WORK/time" "$library"
    [ "$(stat -c %s "$right")" = "$(stat -c %s "$wrong")" ] || bad "the two builds differ in size"
    report || bad "report"
    ! grep _NAME "$WORK/out.folded" || bad "a name of another build"
    grep -q 'libmapped.so (not the file that was mapped)' "$WORK/report.err" || bad "the reason is not said"
    ;;
  *) fail "there is no test '$WHAT'" ;;
esac
pass "$WHAT: no name but from the file that was mapped"
