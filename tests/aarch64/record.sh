# SPDX-License-Identifier: MIT
# record.sh: runs in the emulated machine of machine.sh: clrsnap for arm64 records a program that counts what it does
# (program/Recorded.cs), from its start and by attach. /tmp/made gets what was recorded, said and printed, for record.py, which
# judges it. TIMES: how many times as long as usual. Busybox's shell runs it.
export LD_LIBRARY_PATH=/app DOTNET_SYSTEM_GLOBALIZATION_INVARIANT=1 PATH=$PATH:/app
ln -s libc.so.6 /lib/aarch64-linux-gnu/libc.so
cd /tmp/made

# record NAME ARGUMENTS...: walks may take as long as they like, because here it depends on the emulator how long that is.
record() {
  local name=$1
  shift
  clrsnap record --walk-limit off -o $name.clrsnap "$@" > $name.out 2> $name.said
  echo $? > $name.code
  clrsnap report -o $name.json $name.clrsnap 2> $name.report || cat $name.said $name.report
  echo "recorded: $name, after $(cut -d. -f1 /proc/uptime) s"
}

record perf --engine perf -- proofs recorded shares $((4000 * TIMES)) 7
record clock --engine clock -- proofs recorded shares $((8000 * TIMES)) 7

proofs recorded shares /tmp/end 7 > attached.out 2> attached.said &
while ! grep -q 'so far' attached.out; do sleep 1; done
record attach-cpu -d $((6 * TIMES)) $!
record attach-wall --mode wall -d $((6 * TIMES)) $!
touch /tmp/end
wait $!
echo $? > attached.code

# The program begins with its events when the recording has begun.
modes=alloc,exception,lock,wait,gc
record events --mode $modes --alloc 100k --event-rate 1000000 -- proofs recorded events 40 7
proofs recorded events 40 7 /tmp/begin > attached-events.out 2> attached-events.said &
program=$!
until grep -q ready attached-events.out; do sleep 1; done
(until grep -qx .clrsnap /proc/$program/task/*/comm; do sleep 1; done; sleep $((3 * TIMES)); touch /tmp/begin) &
record attach-events --mode $modes --alloc 100k --event-rate 1000000 $program
wait $program
echo $? > attached-events.code

record kernel --engine perf --kernel -- proofs recorded shares $((2000 * TIMES)) 7
record faults --engine perf --event page-faults:50 -- proofs recorded faults 20000 7
record lines --mode exception --lines -o lines.folded -- proofs recorded events 5 7
