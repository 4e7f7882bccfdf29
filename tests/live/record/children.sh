#!/bin/bash
# SPDX-License-Identifier: MIT
# children.sh BUILD SOURCE MATERIAL: `clrsnap record --children`, with a program and by attach: a server that
# starts its load, and a shell that starts one program after the other.
BUILD=$1 SOURCE=$2 MATERIAL=$3
. "$SOURCE/tests/live/lib.sh"
clrsnap=$BUILD/bin/clrsnap
build_app Record
"$SOURCE/scripts/build-apps.sh" "$MATERIAL" "$SOURCE/tests/apps/Web" > "$WORK/build.log" 2>&1 ||
  { cat "$WORK/build.log"; fail "the server does not build"; }
WEB=$MATERIAL/apps/Web/Web.dll
cd "$WORK" || exit 1

bad() { cat said; fail "$*"; }
# both: two files; the server's has the name that was given, the load's has its number.
both() {
  [ "$(ls ./*.folded | wc -l)" = 2 ] || bad "$1: not two files: $(ls ./*.folded)"
  [ "$(ls ./*.clrsnap | wc -l)" = 2 ] || bad "$1: not two recordings"
  local load
  load=$(ls w.[0-9]*.folded)
  grep -q Kestrel w.folded || bad "$1: the server's file has no frame of the server"
  grep -q System.Net.Http "$load" || bad "$1: the load's file has no frame of the load"
  grep -q Kestrel "$load" && bad "$1: the load's file has frames of the server"
  grep -qE "^clrsnap: process [0-9]+: .*Web.dll load http" said || bad "$1: the load is not told of"
  [ "$(grep -c 'complete walks' said)" = 2 ] || bad "$1: not two summaries"
  rm -f w.*
  pass "$1"
}
# seen: both are in their files, which takes longer on a slow machine.
seen() { grep -qs System.Net.Http w.[0-9]*.folded && grep -qs Kestrel w.folded; }
record() { timeout 300 "$clrsnap" record --children -o w.folded -o w.clrsnap "$@" > said 2>&1; }

for seconds in 4 12 36; do
  rm -f w.*
  sleep $seconds | record -- dotnet "$WEB" || bad "exit code $?"
  seen && break
done
both "a program and its child"
for seconds in 2 6 18; do
  rm -f w.*
  sleep $((3 * seconds)) | record -d $seconds -- sh -c "dotnet $WEB; exit 5"
  [ "${PIPESTATUS[1]}" = 5 ] || bad "the shell's exit code is lost"
  seen && break
done
both "for some seconds"

mkfifo in
timeout 300 dotnet "$WEB" < in > out 2>&1 &
exec 3> in
server=$! program=
runs() { program=$(pgrep -P $server) && load=$(pgrep -P "$program") && grep -q libcoreclr "/proc/$load/maps"; } 2> maps.err
until_true 60 runs || fail "the server and its load do not start"
sleep 1.5
# The time counts from the beginning of the recording, however long the attach takes.
record -d 50ms "$program"
! grep "interrupted before process $program" said && [ -s w.clrsnap ] || bad "the time was over before the recording had begun"
# The load is attached to after the server, in what is left of that time.
for seconds in 2 6 18; do
  rm -f w.*
  record -d $seconds "$program" || [ $seconds != 18 ] || bad "exit code $?"
  seen && break
done
both "by attach"
exec 3>&-
wait $server || fail "the server does not end as it should"

# One after the other, and one that is not a .NET program.
for ms in 3000 12000 48000; do
  rm -f r.*
  timeout 300 "$clrsnap" record --children -o r.folded -- \
    sh -c "dotnet $APP names $ms; true; dotnet $APP names $ms; exit 3" > said 2>&1
  [ $? = 3 ] || bad "the shell's exit code is lost"
  [ "$(grep -l Rec.Program.Hot r.folded r.[0-9]*.folded | wc -l)" -lt 2 ] || break
done
[ "$(grep -l Rec.Program.Hot r.folded r.[0-9]*.folded | wc -l)" = 2 ] || bad "not two files of two programs"
pass "one after the other"

# Each process sends its own profiles.
if command -v python3 > /dev/null; then
  mkdir server
  python3 "$SOURCE/tests/tools/collector.py" server 200 &
  collector=$!
  trap 'kill $collector 2> /dev/null; rm -rf "$WORK"' EXIT
  for _ in $(seq 200); do [ -s server/port ] && break; sleep 0.05; done
  env -u OTEL_SERVICE_NAME -u OTEL_RESOURCE_ATTRIBUTES timeout 300 "$clrsnap" record --children \
    --push "otlp+http://127.0.0.1:$(cat server/port)" --continuous 500ms -- \
    sh -c "dotnet $APP names 4000; dotnet $WEB < /dev/null; exit 4" > said 2>&1
  [ $? = 4 ] || bad "the shell's exit code is lost"
  for body in server/*.body; do
    python3 "$SOURCE/tests/tools/otlp.py" "$body" > body.text || bad "otlp.py $body"
    service=$(sed -n 's/^resource service.name //p' body.text)
    sed -n 's/^resource process.pid //p' body.text >> "pids.$service"
    [ "$service" != Record ] || cat body.text >> record.text
  done
  [ "$(ls pids.* | tr '\n' ' ')" = "pids.Record pids.Web " ] || bad "not two services: $(ls pids.*)"
  [ "$(sort -u pids.Record | wc -l) $(sort -u pids.Web | wc -l)" = "1 2" ] || bad "not one process, and two: the server and its load"
  [ "$(wc -l < pids.Record)" -ge 2 ] || bad "one window only"
  grep -q Rec.Program.Hot record.text || bad "the program's profiles do not have it"
  pass "pushed"

  # The program, and so the whole recording, is over while its profile waits for the second try.
  kill $collector
  mkdir busy
  python3 "$SOURCE/tests/tools/collector.py" busy 503:2 200 &
  collector=$!
  for _ in $(seq 200); do [ -s busy/port ] && break; sleep 0.05; done
  timeout 300 "$clrsnap" record --children --push "otlp+http://127.0.0.1:$(cat busy/port)" -- \
    sh -c "dotnet $APP names 2000; sleep 0.5" > said 2>&1
  grep -q 'pushed 1 profile .*; lost 0, rejected 0$' said || bad "a profile is lost at the end"
  pass "pushed after the end"
fi

timeout 300 "$clrsnap" record --children -o none.folded -- true > said 2>&1
[ $? = 1 ] || bad "nothing was recorded, and the command says that it went well"
grep -q '^clrsnap: nothing was recorded: no .NET runtime in true loaded the agent$' said || bad "no program"
[ -z "$(ls -A | grep none)" ] || bad "a file is left"
pass "none"

# A command of the SDK runs the program in another process, so its own recording is not of the program.
"$clrsnap" record -o w.folded -- dotnet build -h > /dev/null 2> said || bad "dotnet build: exit code $?"
tail -1 said | grep -q "^clrsnap: this is 'dotnet build' itself.* --children$" || bad "dotnet build: not said what was recorded"
"$clrsnap" record -o w.folded -- dotnet "$APP" names 100 > /dev/null 2> said
[ $? = 42 ] || bad "a program: exit code"
! grep -q "this is 'dotnet" said || bad "a program is taken for a command of the SDK"
pass "a command of the SDK"
