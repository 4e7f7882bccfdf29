#!/bin/bash
# SPDX-License-Identifier: MIT
# musl.sh BUILD SOURCE MATERIAL: a program on the .NET runtime for musl, with this machine's musl: recorded from its start in
# the cpu and wall modes, named rightly, ended with its own exit code; stack and async of one that runs; and what is said of an
# attach. The runtime comes from NuGet, libstdc++ and libgcc_s from this machine (tools/musl_cxx.c). Run by ctest.
BUILD=$1 SOURCE=$2 MATERIAL=$3
. "$SOURCE/tests/live/lib.sh"
command -v musl-gcc > /dev/null || skip "there is no musl-gcc"
clrsnap=$BUILD/package/files/clrsnap-static
[ -x "$clrsnap" ] || skip "there are no package files: run this by ctest"
rc=0
program=$("$SOURCE/scripts/publish-app.sh" "$MATERIAL" "$SOURCE/tests/apps/Record" musl 2> "$WORK/said") || rc=$?
[ $rc != 77 ] || skip "$(cat "$WORK/said")"
[ $rc = 0 ] || { cat "$WORK/said"; fail "the program is not published"; }
PID=
trap '[ -z "$PID" ] || kill -9 "$PID" 2> /dev/null; rm -rf "$WORK"' EXIT
cd "$WORK" || exit 1

mkdir lib
for name in libstdc++.so.6 libgcc_s.so.1; do cp "$(realpath "$(cc -print-file-name=$name)")" lib/$name; done
ln -s /lib/ld-musl-x86_64.so.1 lib/libc.musl-x86_64.so.1
musl-gcc -shared -fPIC -O1 -o lib/musl_cxx.so "$SOURCE/tests/tools/musl_cxx.c" || fail "tools/musl_cxx.c"
cc -shared -nostdlib -o lib/ld-linux-x86-64.so.2 -x c /dev/null
printf '#!/bin/sh\nexport LD_PRELOAD=%s/lib/musl_cxx.so LD_LIBRARY_PATH=%s/lib\nexec %s "$@"\n' "$WORK" "$WORK" "$program" > run
chmod +x run
rc=0
timeout 300 ./run hot 100 > out 2>&1 || rc=$?
[ $rc = 42 ] || { cat out; fail "the runtime for musl does not run here: $rc"; }

# shown TEXT FILE
shown() { grep -qE -- "$1" "$2" || { cat "$2"; fail "no '$1'"; }; }
for ms in 1500 6000 24000; do  # the start takes longer on a busy machine
  rc=0
  timeout 300 "$clrsnap" record -o r.txt --top 3 -- ./run hot $ms > out 2>&1 || rc=$?
  [ $rc = 42 ] || { cat out; fail "hot ended with $rc"; }
  ! grep -qE '^clrsnap: +[5-9][0-9]\.[0-9] %.* Rec\.Program\.Hot$' out || break
done
shown '^clrsnap: +[5-9][0-9]\.[0-9] %.* Rec\.Program\.Hot$' out
shown 'System.Threading.Thread.StartCallback' r.txt
pass "from its start"
rc=0
timeout 300 "$clrsnap" record --mode cpu,wall -o r.txt --top 20 -- ./run rough 1500 > out 2>&1 || rc=$?
[ $rc = 42 ] || { cat out; fail "rough ended with $rc"; }
shown 'Rec\.Program\.Hot$' out
! grep -q 'unknown-code.*[0-9]\{3\}' out || { cat out; fail "walks end in unknown code"; }
pass "both modes"
rc=0
timeout 300 "$clrsnap" record --mode cpu,exception -o no.txt -- ./run rough 500 > out 2>&1 || rc=$?
[ $rc = 42 ] || { cat out; fail "a refused recording's program ended with $rc"; }
shown '^clrsnap: nothing was recorded: with musl only the cpu and wall modes are recorded' out
pass "modes of events are refused"

./run names 60000 > app 2>&1 &
CHILD=$!
PID=$CHILD
for _ in $(seq 200); do grep -qs Record.dll "/proc/$PID/maps" && break; sleep 0.05; done
sleep 1
"$clrsnap" stack "$PID" > out 2>&1 || { cat out; fail stack; }
shown 'Rec\.Program\.BurnHot  \(Record\.dll\)  Program\.cs:' out
shown 'Rec\.Program\.Main' out
"$clrsnap" async "$PID" > out 2>&1 || { cat out; fail async; }
shown 'suspended async methods' out
rc=0
"$clrsnap" record -d 1 -o r.clrsnap "$PID" > out 2>&1 || rc=$?
[ $rc = "$(grep -c '^clrsnap: nothing was sampled: ' out)" ] || { cat out; fail "attach"; }
shown 'musl has no unwind data' out
! grep -q 'too little' out || { cat out; fail "a wrong reason"; }
kill -0 "$PID" || fail "the program has died"
stop
PID=
pass "stack, async, attach"
