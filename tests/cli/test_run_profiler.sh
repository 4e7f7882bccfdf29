#!/bin/bash
# SPDX-License-Identifier: MIT
# run-profiler without a runtime: what is refused before the program starts, the environment that the program gets, and
# which profilers of its child processes are taken over.
. "$(dirname "$0")/lib.sh"
unset LD_PRELOAD CLRSNAP_PROFILER_PATH CLRSNAP_HOLD CLRSNAP_DYNAMIC CLRSNAP_ELIDE_SUSPEND
CLASS='{12345678-9abc-DEF0-1234-56789ABCDEF0}'
lib=$(dirname "$CLRSNAP_LIB")
takeover=$lib/libclrsnap-takeover.so

# library FILE [CODE]: builds a shared library.
library() { echo "${2:-}" | cc -shared -fPIC -x c -o "$1" - || fail "cannot compile $1"; }
library their.so 'int DllGetClassObject(void) { return 1; }'
library plain.so 'int something_else(void) { return 1; }'
library import.so 'extern int DllGetClassObject(void); int f(void) { return DllGetClassObject(); }'
their=$PWD/their.so

run 0 "$CLRSNAP" help run-profiler
cp out help1
run 0 "$CLRSNAP" run-profiler --help
cmp -s help1 out || fail "help run-profiler and run-profiler --help differ"

# ---- Refused, without starting the program ----
# refused EXIT_CODE TEXT ARGUMENTS...
refused() {
  local code=$1 text=$2
  shift 2
  run "$code" "$CLRSNAP" run-profiler "$@"
  echo "clrsnap: $text" | same err
  [ -s out ] && fail "$*: printed to stdout"
}
more="; 'clrsnap help run-profiler' lists the options"
start=(-- touch started)
named=(--profiler their.so --clsid "$CLASS")
refused 2 "no program to run$more"
refused 2 "no program to run$more" "${named[@]}"
refused 2 "unknown option '--profiles'; did you mean '--profiler'?${more#;}" --profiles x "${start[@]}"
refused 2 "option '--clsid' takes a value$more" --clsid
refused 2 "--profiler needs its class, too: --clsid GUID$more" --profiler their.so "${start[@]}"
refused 2 "--clsid needs the library, too: --profiler FILE$more" --clsid "$CLASS" "${start[@]}"
refused 2 "--data needs --attach$more" "${named[@]}" --data x "${start[@]}"
refused 2 "--attach needs --profiler FILE and --clsid GUID$more" --attach 1
refused 2 "--attach takes no program, and there is 'true'$more" --attach 1 "${named[@]}" true
refused 2 "--attach takes the number or the name of a process, not '0'$more" --attach 0 "${named[@]}"
refused 2 "no .NET process is called '12x'; 'clrsnap ps' lists them$more" --attach 12x "${named[@]}"
form='--clsid takes a class ID such as {12345678-9ABC-DEF0-1234-56789ABCDEF0}, not'
for bad in '' '{}' 12345678 "$CLASS}" "{$CLASS" "${CLASS%?}" "${CLASS/9abc/9abx}" "${CLASS/9abc/ abc}" \
  "${CLASS/9abc-/-9abc}" "${CLASS/12345678/0x345678}"; do
  refused 2 "$form '$bad'$more" --profiler their.so --clsid "$bad" "${start[@]}"
done
refused 2 "--clsid names clrsnap's own agent; it is run by 'clrsnap record'$more" --profiler their.so \
  --clsid '{8f3e6c1a-5b2d-4e7f-9a41-c6d0e2b7f519}' "${start[@]}"

echo text > text.so
mkfifo fifo.so
mkdir directory.so
cp their.so arm.so && printf '\xb7' | dd of=arm.so bs=1 seek=18 conv=notrunc status=none # EM_AARCH64
file() { refused 1 "$1" --profiler "$2" --clsid "$CLASS" "${start[@]}"; }
file "cannot find the profiler missing.so: No such file or directory" missing.so
file "$PWD/directory.so is not a file: --profiler takes the profiler's library" directory.so
file "$PWD/fifo.so is not a file: --profiler takes the profiler's library" fifo.so
file "$PWD/text.so is not a shared library (ELF): a profiler on Linux is a .so" text.so
file "$PWD/arm.so is not for x86-64, and this clrsnap is" arm.so
file "$PWD/plain.so is not a CLR profiler: it does not export DllGetClassObject" plain.so
file "$PWD/import.so is not a CLR profiler: it does not export DllGetClassObject" import.so
file "$(realpath "$CLRSNAP_LIB") is clrsnap itself: --profiler takes the profiler that is to run through it" \
  "$CLRSNAP_LIB"
mkdir alone "with blank"
cp "$CLRSNAP_LIB" alone
cp "$CLRSNAP_LIB" "$takeover" "with blank"
CLRSNAP_LIB=alone/libclrsnap.so refused 1 "libclrsnap-takeover.so and libclrsnap.so are not side by side in \
$PWD/alone; both belong to clrsnap's installation" "${start[@]}"
CLRSNAP_LIB="with blank/libclrsnap.so" refused 1 "$PWD/with blank/libclrsnap-takeover.so: the loader cannot \
take a path with a blank or a colon (LD_PRELOAD); install clrsnap elsewhere" "${start[@]}"
[ -e started ] && fail "the program was started"

refused 127 "program not found: ./no-such-program" "${named[@]}" ./no-such-program
touch not-executable
refused 126 "cannot execute ./not-executable: Permission denied" ./not-executable
run 7 "$CLRSNAP" run-profiler sh -c 'exit 7'
echo $$ > pid
run 0 "$CLRSNAP" run-profiler sh -c 'echo $PPID' # the command has become the program
[ "$(cat out)" = "$(cat pid)" ] || fail "the program's parent is $(cat out), not the caller"

# Attaching to a process that is not a .NET program.
sleep 60 &
sleeper=$!
refused 1 "process $sleeper has no diagnostics port (in ${TMPDIR:-/tmp}): it is not a .NET program, or its \
runtime has not started" --attach $sleeper "${named[@]}"
kill $sleeper
wait $sleeper 2> /dev/null
refused 1 "there is no process $sleeper" --attach $sleeper "${named[@]}"

# ---- The environment that the program gets ----
# A command built with the address sanitizer requires the sanitizer first in LD_PRELOAD, and says so.
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0
ours() { grep -E '^(CORECLR_|DOTNET_.*PROFIL|CLRSNAP_(PROFILER|HOLD|DYN|ELIDE)|LD_PRELOAD=)' out | sort > mine; }
run 0 "$CLRSNAP" run-profiler "${named[@]}" env
ours
same mine << X
CLRSNAP_PROFILER_PATH=$their
CORECLR_ENABLE_PROFILING=1
CORECLR_PROFILER=$CLASS
CORECLR_PROFILER_PATH=$CLRSNAP_LIB
LD_PRELOAD=$takeover
X
braces=${CLASS#?}
CORECLR_PROFILER_PATH_64=/gone LD_PRELOAD=$PWD/plain.so run 0 "$CLRSNAP" run-profiler --hold --dynamic \
  --elide-suspend --profiler "$their" --clsid "${braces%?}" "$CLRSNAP" run-profiler env
ours
same mine << X
CLRSNAP_DYNAMIC=1
CLRSNAP_ELIDE_SUSPEND=1
CLRSNAP_HOLD=1
CLRSNAP_PROFILER_PATH=$their
CORECLR_ENABLE_PROFILING=1
CORECLR_PROFILER=$CLASS
CORECLR_PROFILER_PATH=$CLRSNAP_LIB
LD_PRELOAD=$takeover:$PWD/plain.so
X
CORECLR_ENABLE_PROFILING=1 CORECLR_PROFILER='{other}' run 0 "$CLRSNAP" run-profiler "${named[@]}" true
echo "clrsnap: the profiler {other} in the environment is replaced by $their" | same err
# By the names that .NET 11 reads as well. Only one form is left, so every runtime loads the same profiler.
DOTNET_ENABLE_PROFILING=1 DOTNET_PROFILER='{other}' DOTNET_PROFILER_PATH=/o.so DOTNET_PROFILER_PATH_64=/64.so \
  run 0 "$CLRSNAP" run-profiler "${named[@]}" env
echo "clrsnap: the profiler {other} in the environment is replaced by $their" | same err
ours
same mine << X
CLRSNAP_PROFILER_PATH=$their
CORECLR_ENABLE_PROFILING=1
CORECLR_PROFILER=$CLASS
CORECLR_PROFILER_PATH=$CLRSNAP_LIB
LD_PRELOAD=$takeover
X

# Below `clrsnap record`: both profilers, the agent as a notification profiler.
notified() {
  CLRSNAP_SHM=$PWD/ring CORECLR_ENABLE_PROFILING=1 CORECLR_PROFILER='{8F3E6C1A-5B2D-4E7F-9A41-C6D0E2B7F519}' \
    CORECLR_PROFILER_PATH=$1 run "$2" "$CLRSNAP" run-profiler "${named[@]}" env
}
notified "$CLRSNAP_LIB" 0
[ -s err ] && fail "below record: $(cat err)"
ours
same mine << X
CLRSNAP_PROFILER_PATH=$their
CORECLR_ENABLE_NOTIFICATION_PROFILERS=1
CORECLR_ENABLE_PROFILING=1
CORECLR_NOTIFICATION_PROFILERS=$CLRSNAP_LIB={8F3E6C1A-5B2D-4E7F-9A41-C6D0E2B7F519};
CORECLR_PROFILER=$CLASS
CORECLR_PROFILER_PATH=$CLRSNAP_LIB
LD_PRELOAD=$takeover
X
notified '/odd;path.so' 1
echo "clrsnap: /odd;path.so: a path with ';' cannot be in a list of profilers" | same err

# ---- Which profilers are taken over ----
# below VARIABLE=VALUE...: the environment of a program that a program below run-profiler starts with these variables.
below() {
  run 0 "$CLRSNAP" run-profiler env "$@" env
  [ -s err ] && { fail "$*: something on stderr"; cat err; }
  ours
  sed -i '/^LD_PRELOAD/d' mine
}
below
same mine < /dev/null
below CORECLR_ENABLE_PROFILING=0 CORECLR_PROFILER_PATH=/their.so
printf '%s\n' CORECLR_ENABLE_PROFILING=0 CORECLR_PROFILER_PATH=/their.so | same mine
below CORECLR_ENABLE_PROFILING=yes CORECLR_PROFILER_PATH=/their.so
printf '%s\n' CORECLR_ENABLE_PROFILING=yes CORECLR_PROFILER_PATH=/their.so | same mine
below CORECLR_ENABLE_PROFILING=1
echo CORECLR_ENABLE_PROFILING=1 | same mine
for on in 1 0x1 a0; do
  below CORECLR_ENABLE_PROFILING=$on CORECLR_PROFILER=X CORECLR_PROFILER_PATH=/their.so
  same mine << X
CLRSNAP_PROFILER_PATH=/their.so
CORECLR_ENABLE_PROFILING=$on
CORECLR_PROFILER=X
CORECLR_PROFILER_PATH=$CLRSNAP_LIB
X
done
# The variable that the runtime would use, and no other.
below CORECLR_ENABLE_PROFILING=1 CORECLR_PROFILER_PATH_64=/64.so CORECLR_PROFILER_PATH=/other.so
same mine << X
CLRSNAP_PROFILER_PATH=/64.so
CORECLR_ENABLE_PROFILING=1
CORECLR_PROFILER_PATH=/other.so
CORECLR_PROFILER_PATH_64=$CLRSNAP_LIB
X
below CORECLR_ENABLE_PROFILING=1 CORECLR_PROFILER_PATH_64= CORECLR_PROFILER_PATH=/other.so
same mine << X
CLRSNAP_PROFILER_PATH=/other.so
CORECLR_ENABLE_PROFILING=1
CORECLR_PROFILER_PATH=$CLRSNAP_LIB
CORECLR_PROFILER_PATH_64=
X
# .NET 11's names: alone, beside the others, and for another profiler than theirs.
below DOTNET_ENABLE_PROFILING=1 DOTNET_PROFILER_PATH_64=/64.so DOTNET_PROFILER_PATH=/other.so
same mine << X
CLRSNAP_PROFILER_PATH=/64.so
DOTNET_ENABLE_PROFILING=1
DOTNET_PROFILER_PATH=/other.so
DOTNET_PROFILER_PATH_64=$CLRSNAP_LIB
X
below DOTNET_ENABLE_PROFILING=1 DOTNET_PROFILER_PATH=/their.so CORECLR_PROFILER_PATH=/their.so
same mine << X
CLRSNAP_PROFILER_PATH=/their.so
CORECLR_PROFILER_PATH=$CLRSNAP_LIB
DOTNET_ENABLE_PROFILING=1
DOTNET_PROFILER_PATH=$CLRSNAP_LIB
X
below CORECLR_ENABLE_PROFILING=1 DOTNET_PROFILER_PATH=/2nd.so CORECLR_PROFILER_PATH=/their.so
same mine << X
CLRSNAP_PROFILER_PATH=/their.so
CORECLR_ENABLE_PROFILING=1
CORECLR_PROFILER_PATH=$CLRSNAP_LIB
DOTNET_PROFILER_PATH=/2nd.so
X
# Grandchildren: the same as for the child, and with another profiler that a process in between has set.
below CORECLR_ENABLE_PROFILING=1 CORECLR_PROFILER_PATH=/their.so
cp mine first
below CORECLR_ENABLE_PROFILING=1 CORECLR_PROFILER_PATH=/their.so sh -c 'sh -c "env; true"; true'
cmp -s first mine || { fail "a grandchild is taken over differently"; cat mine; }
below CORECLR_ENABLE_PROFILING=1 CORECLR_PROFILER_PATH=/their.so env CORECLR_PROFILER_PATH=/2nd.so
grep -qx CLRSNAP_PROFILER_PATH=/2nd.so mine || { fail "a second profiler is not taken over"; cat mine; }
grep -qx "CORECLR_PROFILER_PATH=$CLRSNAP_LIB" mine || { fail "a second profiler stands"; cat mine; }
# A profiler on the command line does not keep others from being taken over.
run 0 "$CLRSNAP" run-profiler "${named[@]}" env CORECLR_PROFILER=X CORECLR_PROFILER_PATH_64=/2nd.so env
ours
same mine << X
CLRSNAP_PROFILER_PATH=/2nd.so
CORECLR_ENABLE_PROFILING=1
CORECLR_PROFILER=X
CORECLR_PROFILER_PATH=$CLRSNAP_LIB
CORECLR_PROFILER_PATH_64=$CLRSNAP_LIB
LD_PRELOAD=$takeover
X
# The recorder's agent is not taken over.
below CORECLR_ENABLE_PROFILING=1 CORECLR_PROFILER_PATH="$CLRSNAP_LIB"
grep -q CLRSNAP_PROFILER_PATH mine && fail "clrsnap's own agent is taken over"

# Without libclrsnap.so beside it, the take-over library says so, and the profiler runs as it would otherwise.
cp "$takeover" torn.so
LD_PRELOAD=$PWD/torn.so CORECLR_ENABLE_PROFILING=1 CORECLR_PROFILER_PATH=/their.so run 0 "$(command -v env)"
echo "clrsnap: there is no libclrsnap.so beside the library that LD_PRELOAD names; CORECLR_PROFILER_PATH \
stays as it is" | same err
grep -qx CORECLR_PROFILER_PATH=/their.so out || fail "the profiler does not run as without us"

# The take-over library is in every process: it links to libc only, and exports no name of its own.
needed=$(readelf -d "$takeover" | grep -oE 'NEEDED.*\[.*' | grep -oE '\[.*\]')
[ "$needed" = '[libc.so.6]' ] || fail "the take-over needs $needed"
names=$(nm -D --defined-only "$takeover")
[ -z "$names" ] || fail "the take-over exports $names"
done_testing
