#!/bin/bash
# SPDX-License-Identifier: MIT
# chroot.sh BUILD SOURCE MATERIAL: a program in a chroot, whose mappings have other paths outside than inside: files are
# looked for where the program sees them.
BUILD=$1 SOURCE=$2 MATERIAL=$3
# In a mount namespace of its own, the mounts below end with the test.
if [ -z "${OF_ITS_OWN:-}" ]; then
  unshare --mount true 2> /dev/null || { echo "skipped: no namespaces can be made here"; exit 77; }
  OF_ITS_OWN=yes exec unshare --mount "$0" "$@"
fi
. "$SOURCE/tests/live/lib.sh"
build_app Record
clrsnap=$BUILD/bin/clrsnap
unset TMPDIR
# The root is not below WORK, whose content is removed at the end: there are mounts in it.
root=/mnt/root
mount --make-rprivate / && mount -t tmpfs -o mode=755 none /mnt || skip "nothing can be mounted here"
mkdir "$root" "$root"/{usr,dev,proc,tmp,dotnet,app}
for name in bin lib lib64 sbin; do ln -s usr/$name "$root/$name"; done
bind() { mount --bind "$1" "$2" && mount -o remount,bind,ro "$2" || fail "$1 cannot be mounted"; }
bind /usr "$root/usr"
bind "$(dirname "$(readlink -f "$(command -v dotnet)")")" "$root/dotnet"
bind "${APP%/*}" "$root/app"
mount -t proc proc "$root/proc" || fail "no /proc"
for name in null zero urandom random; do touch "$root/dev/$name" && mount --bind /dev/$name "$root/dev/$name"; done

timeout -k 5 300 chroot "$root" /dotnet/dotnet /app/Record.dll names 600000 > "$WORK/out" 2>&1 &
CHILD=$!
trap 'kill -9 ${PID:-} 2> /dev/null; wait $CHILD 2> /dev/null; rm -rf "$WORK"' EXIT
find_program
grep -q "$root/app/Record.dll" "/proc/$PID/maps" || fail "the paths are the same inside and outside"

"$clrsnap" doctor "$PID" > "$WORK/said" || { cat "$WORK/said"; fail "doctor"; }
grep -qE '^ok +symbols +PDBs of 1 of the 1 assemblies' "$WORK/said" || { cat "$WORK/said"; fail "the PDB is not found"; }
pass "doctor"
for seconds in 1 5 20; do
  record_process -d $seconds --lines -o - --format text "$PID"
  grep -q 'Program.cs:' "$WORK/said" && break
done
grep -q 'Program.cs:' "$WORK/said" || { cat "$WORK/said"; fail "no lines"; }
pass "record --lines"
# Without the right to open what is mapped, by its path.
few=(setpriv --bounding-set -sys_admin,-checkpoint_restore)
"${few[@]}" cat "/proc/$PID/map_files/"* > /dev/null 2>&1 && fail "map_files can be read nevertheless"
"${few[@]}" "$clrsnap" stack "$PID" > "$WORK/said" 2>&1 || { cat "$WORK/said"; fail "stack"; }
grep -q 'libcoreclr.so.*No such file' "$WORK/said" && { cat "$WORK/said"; fail "files are looked for outside of the root"; }
pass "stack"
