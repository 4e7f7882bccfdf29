#!/bin/bash
# SPDX-License-Identifier: MIT
# Input, output, environment, exit codes and signals pass through; a recording can end before its
# program.
. "$(dirname "$0")/lib.sh"
# A shell without job control has its background jobs ignore SIGINT and SIGQUIT; env undoes that.
record=(env --default-signal "$CLRSNAP" record -o page.html --)

run 42 "${record[@]}" sh -c 'exit 42'
run 143 "${record[@]}" sh -c 'kill -TERM $$'
run 139 "${record[@]}" sh -c 'kill -SEGV $$'
echo some input | "${record[@]}" sh -c 'cat; echo to stderr >&2' >out 2>err
echo some input | same out
grep -qx 'to stderr' err || fail "stderr does not pass through"
grep -q 'samples' out && fail "the summary went to stdout"

# The environment that loads the agent, alone and beside another profiler.
# Nothing is recorded of a shell, and the command's exit code says so.
run 1 "${record[@]}" sh -c 'echo $CORECLR_ENABLE_PROFILING $CORECLR_PROFILER $CORECLR_PROFILER_PATH; test -r "$CLRSNAP_SHM"'
echo "1 {8F3E6C1A-5B2D-4E7F-9A41-C6D0E2B7F519} $(realpath "$CLRSNAP_LIB")" | same out
CORECLR_ENABLE_PROFILING=1 CORECLR_PROFILER='{AAAA}' CORECLR_PROFILER_PATH=/their.so \
  CORECLR_NOTIFICATION_PROFILERS='/a.so={BBBB}' run 1 "${record[@]}" sh -c \
  'echo $CORECLR_PROFILER $CORECLR_PROFILER_PATH $CORECLR_ENABLE_NOTIFICATION_PROFILERS $CORECLR_NOTIFICATION_PROFILERS'
echo "{AAAA} /their.so 1 /a.so={BBBB};$(realpath "$CLRSNAP_LIB")={8F3E6C1A-5B2D-4E7F-9A41-C6D0E2B7F519};" | same out

# wait_for FILE: waits until FILE exists; the test's time limit ends a wait for a file that never comes.
wait_for() {
  until [ -e "$1" ]; do sleep 0.02; done
}

# The same profiler by the names that .NET 11 reads as well, and lists that would hide ours there.
all='echo $CORECLR_PROFILER $CORECLR_ENABLE_NOTIFICATION_PROFILERS $CORECLR_NOTIFICATION_PROFILERS; env | grep ^DOTNET_.*PROFIL | sort'
agent="$(realpath "$CLRSNAP_LIB")={8F3E6C1A-5B2D-4E7F-9A41-C6D0E2B7F519};"
DOTNET_ENABLE_PROFILING=1 DOTNET_PROFILER='{AAAA}' DOTNET_PROFILER_PATH=/their.so run 1 "${record[@]}" sh -c "$all"
same out << X
1 $agent
DOTNET_ENABLE_PROFILING=1
DOTNET_PROFILER={AAAA}
DOTNET_PROFILER_PATH=/their.so
X
DOTNET_ENABLE_PROFILING=1 CORECLR_PROFILER='{AAAA}' DOTNET_ENABLE_NOTIFICATION_PROFILERS=0 \
  DOTNET_NOTIFICATION_PROFILERS='/a.so={BBBB};' run 1 "${record[@]}" sh -c "$all"
same out << X
{AAAA} 1 $agent
DOTNET_ENABLE_NOTIFICATION_PROFILERS=1
DOTNET_ENABLE_PROFILING=1
DOTNET_NOTIFICATION_PROFILERS=/a.so={BBBB};$agent
X
# Names that are set, and switched off, would hide the agent's.
DOTNET_ENABLE_PROFILING=0 DOTNET_PROFILER='{AAAA}' DOTNET_PROFILER_PATH=/their.so run 1 "${record[@]}" sh -c "$all"
echo '{8F3E6C1A-5B2D-4E7F-9A41-C6D0E2B7F519}' | same out

# Signals that are sent to the command arrive at the program, once.
for name in INT TERM HUP QUIT USR1 USR2 WINCH; do
  rm -f ready got
  "${record[@]}" bash -c "trap 'echo $name >>got; exit 9' $name; touch ready; while :; do sleep 0.02; done" \
    2>err &
  command=$!
  wait_for ready
  kill -s "$name" "$command"
  wait "$command"
  code=$?
  [ "$code" = 9 ] && [ "$(cat got)" = "$name" ] || fail "SIG$name: exit code $code"
done

# A signal that is sent to the whole process group has reached the program already; but not one that has a group of its own.
for own in '' setsid; do
  for name in INT TERM USR1; do
    rm -f ready got
    setsid "${record[@]}" $own bash -c "trap 'echo $name >>got' $name; trap 'exit 9' USR2; touch ready; while :; do sleep 0.02; done" 2>err &
    command=$!
    wait_for ready
    pgrep -g "$command" -x signal-witness >/dev/null || fail "no witness of signals"
    [ "$(pgrep -g "$command" -f 'clrsnap|record')" = "$command" ] || fail "the witness has the command's name"
    for i in 1 2 3; do
      kill -s "$name" -- "-$command"
      until [ "$(wc -l < got)" -ge $i ]; do sleep 0.02; done
    done 2>/dev/null
    kill -s USR2 "$command"
    wait "$command"
    code=$?
    [ "$code" = 9 ] && [ "$(grep -cx "$name" got)" = 3 ] || fail "3 SIG$name to the group${own:+, $own}: $(wc -l < got) arrive, exit code $code"
    until ! pgrep -g "$command" >/dev/null; do sleep 0.02; done
  done
done

# Stopping and continuing.
rm -f ready
"${record[@]}" bash -c 'trap "exit 11" USR1; touch ready; while :; do sleep 0.02; done' 2>err &
command=$!
wait_for ready
kill -TSTP "$command"
until [ "$(sed 's/.*) //; s/ .*//' "/proc/$command/stat")" = T ]; do sleep 0.02; done
kill -CONT "$command"
kill -USR1 "$command"
wait "$command"
code=$?
[ "$code" = 11 ] || fail "stop and continue: $code"

# The duration is over: the result is written while the program still runs, and the program ends by itself.
run 4 "$CLRSNAP" record -d 0.2 -o early.html -- sh -c '"$0" until-stopped
  until [ -e early.html ]; do sleep 0.02; done; exit 4' "$FAKE"
grep -qx 'after the recording' out || fail "-d ended the program"
grep -q 'samples in' err || fail "-d: $(cat err)"

# A program that is stopped cannot end its recording, and the summary says that it is stopped.
run 4 "$CLRSNAP" record -d 1 -o growing.clrsnap -o stopped.html -- sh -c '"$0" until-stopped & agent=$!
  until [ -e growing.clrsnap ] && [ "$(wc -c <growing.clrsnap)" -gt 1000 ]; do sleep 0.02; done
  kill -STOP $agent; until [ -e stopped.html ]; do sleep 0.02; done; kill -CONT $agent; wait $agent; exit 4' "$FAKE"
grep -q '^clrsnap: the program is stopped, by a signal or a debugger: what was recorded until then is kept' err ||
  fail "stopped: $(cat err)"

done_testing
