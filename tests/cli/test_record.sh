#!/bin/bash
# SPDX-License-Identifier: MIT
# Recordings of a program that plays the agent: exact stacks, exact summaries, and what remains of a recording when the
# agent is broken, killed, refuses or never comes.
. "$(dirname "$0")/lib.sh"

run 3 "$CLRSNAP" record -o golden.collapsed --format collapsed --top 3 -- "$FAKE" golden 3
same golden.collapsed <<'X'
Shop.Program.Main;Shop.Cart<System.Int32>.Work;System.Linq.Enumerable.Sum 8000000
Shop.Program.Main;Shop.Cart<System.Int32>.Work;Shop.Cart<System.Int32>.Work;[libcoreclr.so] 2000000
Shop.Program.Main;Odd</script>:"\\x0a.M.lambda#0 2000000
Shop.Program.Main;lambda_method1 2000000
Shop.Program.Main;Shop.Late.Comer 2000000
[cut: unknown-code];[unknown code];System.Linq.Enumerable.Sum 2000000
[cut: depth];Shop.Cart<System.Int32>.Work;Shop.Cart<System.Int32>.Work 2000000
Shop.Program.Main;fake_agent_marker;fake_agent_marker 2000000
X
same_summary <<'X'
clrsnap: 11 samples in T s (cpu, 499 Hz, .NET 10.0.12)
clrsnap: lost 0
clrsnap: complete walks 81.81 %
clrsnap:   cut 1 depth: the depth limit was reached
clrsnap:   cut 1 unknown-code: the ip is in no managed method, stub or loaded ELF image
clrsnap: no names from the files of 1 of 2 libraries: libcoreclr.so (No such file or directory)
clrsnap: threads held p50 3.0 us, p99 8.0 us, max 8.0 us
clrsnap: the runtime was stopped 0 times
clrsnap:    self   total  samples  method, by its share (+-29.5 points) of 22.00 ms of CPU time; what is inlined is its caller's
clrsnap:  45.5 %   45.5 %        5  System.Linq.Enumerable.Sum
clrsnap:   9.1 %   54.5 %        1  Shop.Cart<System.Int32>.Work
clrsnap:   9.1 %    9.1 %        1  [libcoreclr.so]
clrsnap: wrote golden.collapsed
X

run 0 "$CLRSNAP" record --signatures on -o overloads.collapsed --format collapsed -- "$FAKE" golden
grep -q 'System.Linq.Enumerable.Sum(int\[\], ref long)' overloads.collapsed || fail "no signatures with --signatures on"

run 0 "$CLRSNAP" record --native off -o managed.collapsed --format collapsed -- "$FAKE" golden
grep -q 'libcoreclr\|unknown code\|marker' managed.collapsed && fail "native frames with --native off"
[ "$(awk '{n += $NF} END {print n}' managed.collapsed)" = 22000000 ] || fail "--native off loses samples"

# A broken agent costs its broken records and no others.
run 0 "$CLRSNAP" record -o malformed.collapsed --format collapsed -- "$FAKE" malformed
same malformed.collapsed <<'X'
Shop.Program.Main 8000000
Shop.Program.Main;[method without a name] 2000000
X
grep -qx 'clrsnap: lost 5: 0 in the program, 0 on the way, 5 unreadable, 0 beyond the call tree.s limit' err ||
  fail "malformed: $(cat err)"

# Killed: what the agent had committed is there, and the summary does not claim that this is all.
run 137 "$CLRSNAP" record -o killed.collapsed --format collapsed -- "$FAKE" killed
cmp -s killed.collapsed golden.collapsed || fail "killed: not all that was committed"
grep -q 'the program was killed by signal 9 (Killed): what was recorded until then is kept' err || fail "killed: $(cat err)"
grep -q 'runtime was stopped' err && fail "killed: claims to know the suspensions"

# A program that becomes another one ends the recording: one that runs on until the page is there, and ones that end before
# anybody has looked at them. The duration is that of the program, not of the other one.
became() { # EXIT_CODE NAME PROGRAM...
  run "$1" timeout -k 5 120 "$CLRSNAP" record -o became.collapsed -- "$FAKE" exec "${@:3}"
  grep -q "^clrsnap: the program became another one, '$2', by exec: what was recorded until then is kept; " err || fail "exec $3: $(cat err)"
  cmp -s became.collapsed golden.collapsed || fail "exec $3: not all that was committed"
  sed -n 's/.* samples in \([0-9.]*\) s (.*/\1/p' err | cat - recorded_ms | tr '\n' ' ' | awk '{ exit !(NF == 2 && $1 * 1000 <= $2 + 251) }' ||
    fail "exec $3: of $(cat recorded_ms) ms: $(cat err)"
  rm became.collapsed
}
became 7 sh sh -c 'until [ -s became.collapsed ]; do sleep 0.1; done; exit 7'
became 0 sleep sleep 1
became 3 sh sh -c 'exit 3'

run 0 "$CLRSNAP" record -o lost.collapsed --format collapsed -- "$FAKE" lost
same_summary <<'X'
clrsnap: 1 sample in T s (cpu, 499 Hz, .NET 10.0.12)
clrsnap: lost 12: 5 in the program, 7 on the way, 0 unreadable, 0 beyond the call tree's limit
clrsnap:   a larger --buffer loses less
clrsnap: complete walks 100.00 %
clrsnap: threads held p50 1.0 us, p99 1.0 us, max 1.0 us
clrsnap: 1 sample was put off (the next has its weight): walks of a thread took up to 250 us of CPU time
clrsnap: 3 events have no stack: walks for so many took a tenth of the time of thread 'Main'
clrsnap: the runtime was stopped 0 times
clrsnap: wrote lost.collapsed
X

# A library that is being copied would end the program that loads it.
head -c 400000 "$CLRSNAP_LIB" > half.so
CLRSNAP_LIB=$PWD/half.so run 1 "$CLRSNAP" record -o half.html -- "$FAKE" empty 5
grep -qx "clrsnap: $PWD/half.so is not whole: it is being replaced, or was copied in part" err || fail "half a library: $(cat err)"

run 5 "$CLRSNAP" record -o empty.html -- "$FAKE" empty 5
grep -qx 'clrsnap: nothing was sampled: the program used too little CPU time; a sample is due every 2.00 ms of it' err || fail "empty"
run 5 "$CLRSNAP" record -F 1 --mode wall -o empty.html -- "$FAKE" empty 5
grep -qx 'clrsnap: nothing was sampled: the recording was too short ([0-9]* ms); threads are sampled every 1.00 s' err || fail "empty, wall: $(cat err)"
run 5 "$CLRSNAP" record -o missed.html -- "$FAKE" missed 5
grep -qx 'clrsnap: nothing was sampled: the program used 0.31 s of CPU time, but no scan found a thread running' err ||
  fail "missed: $(cat err)"
said='the recorder waited for a processor for 1.40 s of 1.60 s'
run 5 "$CLRSNAP" record -o starved.md -- "$FAKE" starved 5
grep -qx "clrsnap: nothing was sampled: the program used 0.70 s of CPU time, but $said" err && grep -q -- "^- cpu: no samples; .*$said\.$" starved.md ||
  fail "starved: $(cat err starved.md)"
run 5 "$CLRSNAP" record --mode cpu,wall -o starved.md -- "$FAKE" starved 5
grep -qx "clrsnap:   wall: 0 samples: $said" err && grep -q "^clrsnap:   cpu: 0 samples: the program used" err || fail "starved, two modes: $(cat err)"
# Without a scan nothing is known of suspended operations.
run 5 "$CLRSNAP" record --mode wall --async -o empty.md -- "$FAKE" empty 5
grep -q '^- async: no scan for suspended operations succeeded' empty.md && ! grep 'async: .*used too little' empty.md || fail "no scan: $(cat empty.md)"
grep -q '</html>' empty.html || fail "empty: no valid page"

# A reader of a FIFO may come later; until then, the command says what it waits for.
mkfifo fifo
"$CLRSNAP" record --format collapsed -o fifo -- "$FAKE" compiles > fifo.out 2> fifo.err &
for _ in $(seq 600); do ! grep -q reader fifo.err || break; sleep 0.1; done
[ "$(cat fifo.err)" = "clrsnap: fifo: waiting for a reader" ] || fail "a FIFO without a reader: $(cat fifo.err)"
cat fifo > read
wait $! || fail "a FIFO: exit code $?"
[ -s read ] || fail "nothing was written to a FIFO"

# Few samples make no rate; a thread may lose its processor in the handler; a class is one frame.
run 0 "$CLRSNAP" record -F 1 --top 9 -o compiles.collapsed -- "$FAKE" compiles
grep -qx 'clrsnap: engine perf: 3 samples in 3.00 s of CPU time; one is due every 1.00 s of it on average' err || fail "few: $(cat err)"
grep -q '^clrsnap:   few samples: 19 of 20 shares are within 50 points; for 3 points record some [0-9]* s$' err || fail "few, perf: $(cat err)"
grep -qx 'clrsnap: threads held p50 1.0 us, p99 140.0 ms, max 140.0 ms (in real time, waits for a processor included)' err ||
  fail "held: $(cat err)"
[ "$(grep -c ' \[JIT\]$' err)" = 1 ] && grep -q '^clrsnap: 100.0 %  100.0 %        3  \[JIT\]$' err || fail "JIT: $(cat err)"

# Threads that spin while they wait for work run, but are idle.
run 0 "$CLRSNAP" record --mode wall --top 9 -o spins.html -- "$FAKE" spins
grep -qx 'clrsnap:   waiting 4.00 ms, running or ready to run 8.00 ms, of which 6.00 ms idle, spinning for work: tables leave that out' err &&
  grep -q '10.00 ms of idle threads' err || fail "spinning: $(cat err)"

# Types have C#'s names.
run 0 "$CLRSNAP" record --mode alloc -o types.collapsed -- "$FAKE" types
sed 's/.*;//; s/ [0-9]*$//' types.collapsed | sort >types
LC_ALL=C sort <<'X' | same <(LC_ALL=C sort types)
byte[]
string
System.Collections.Generic.List<int>[,]
System.Int32Converter
[holds System.Object]
X

# No agent, or one that refuses: no file is written, an old file is unchanged, and the exit code is the program's,
# except that it is never 0.
echo old >kept.html
run 6 "$CLRSNAP" record -o kept.html -- "$FAKE" refuse 6
echo "clrsnap: nothing was recorded: this is .NET 8, which is for later" | same err
run 7 "$CLRSNAP" record -o kept.html -- "$FAKE" absent 7
grep -q 'no .NET runtime in FAKE loaded the agent' <(sed "s#$FAKE#FAKE#" err) || fail "absent: $(cat err)"
run 1 "$CLRSNAP" record -o kept.html -- "$FAKE" absent 0
# An agent that was loaded, and ended with its program before it recorded, is no program without a runtime.
for code in 8 0; do
  run $((code > 0 ? code : 1)) "$CLRSNAP" record -o kept.html -- "$FAKE" early $code
  grep -qE "^clrsnap: nothing was recorded: process [0-9]+ ended with exit code $code before it began$" err || fail "early: $(cat err)"
done
run 137 "$CLRSNAP" record -o kept.html -- sh -c 'kill -9 $$'
grep -qx 'clrsnap:   it was killed by signal 9 (Killed)' err || fail "killed before it began: $(cat err)"
run 1 "$CLRSNAP" top --text -- "$FAKE" early 8
grep -qE '^clrsnap: nothing to show: process [0-9]+ has ended before it began to record$' err || fail "early, top: $(cat err)"
DOTNET_EnableDiagnostics=0 run 7 "$CLRSNAP" record -o kept.html -- "$FAKE" absent 7
grep -q 'DOTNET_EnableDiagnostics=0 is set: it forbids profilers' err || fail "diagnostics off: $(cat err)"
DOTNET_EnableDiagnostics_Profiler=0 run 7 "$CLRSNAP" record -o kept.html -- "$FAKE" absent 7
grep -q 'DOTNET_EnableDiagnostics_Profiler=0 is set: it forbids profilers' err || fail "profilers off: $(cat err)"
echo old | same kept.html

# The ring wraps many times and every stack is one of its own.
run 0 "$CLRSNAP" record --buffer 1 -o many.collapsed --format collapsed -- "$FAKE" many 100000
[ "$(wc -l <many.collapsed)" = 100000 ] || fail "many: $(wc -l <many.collapsed) distinct stacks"
[ "$(awk '{n += $NF} END {printf "%.0f", n}' many.collapsed)" = 200000000000 ] || fail "many: samples missing"

# A device is written to directly; an existing file keeps its mode, and a link stays a link.
run 0 "$CLRSNAP" record -o /dev/null --format collapsed -- "$FAKE" golden
touch target.html && chmod 640 target.html && ln -s target.html link.html
run 0 "$CLRSNAP" record -o link.html -- "$FAKE" golden
[ -L link.html ] && [ "$(stat -c %a target.html)" = 640 ] && [ -s target.html ] || fail "link or mode lost"

# The device is full: the recording is kept elsewhere, and the exit code is still the program's, except that it is never 0:
# what was wanted is not where it was wanted.
for code in 3 0; do
  TMPDIR=$scratch run $((code > 0 ? code : 1)) "$CLRSNAP" record -o /dev/full --format collapsed -- "$FAKE" golden $code
  kept=$(sed -n 's/.*what was to be written is in //p' err)
  cmp -s "$kept" golden.collapsed || fail "/dev/full: $(cat err)"
done
ln -s /dev/full full.collapsed
TMPDIR=/nowhere run 1 "$CLRSNAP" record -o full.collapsed -o beside.collapsed -- "$FAKE" golden 0
grep -q 'cannot write /dev/full: No space left on device; nor a file in /nowhere: the recording is lost$' err || fail "lost: $(cat err)"
cmp -s beside.collapsed golden.collapsed || fail "the output beside one that cannot be written"
run 1 "$CLRSNAP" record --format recording -o /dev/full -- "$FAKE" golden 0

left=$(ls -A | grep '^\.clrsnap')
[ -z "$left" ] || fail "temporary files were left: $left"
done_testing
