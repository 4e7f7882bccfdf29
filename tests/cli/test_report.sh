#!/bin/bash
# SPDX-License-Identifier: MIT
# Recording files and the reports of them: a report is the same, byte for byte, as what record writes directly; the file
# of a killed recorder has what had been received; errors are complete sentences.
here=$(cd "$(dirname "$0")" && pwd)
. "$(dirname "$0")/lib.sh"
here=$(cd "$OLDPWD" && cd "$(dirname "$0")" && pwd)

# same_reports NAME OPTIONS...: report makes from NAME.clrsnap the same NAME.SUFFIX as record has written.
formats="html collapsed json txt md pb.gz otlp speedscope.json firefox.json trace.json"
outputs() { for format in $formats; do echo "-o $1.$format"; done; }
same_reports() {
  local name=$1 format
  shift
  # shellcheck disable=SC2046
  run 0 "$CLRSNAP" report "$@" $(outputs reported) "$name.clrsnap"
  for format in $formats; do
    cmp "$name.$format" "reported.$format" >cmp.out 2>&1 || fail "$name: report differs from record: $(cat cmp.out)"
  done
}

# shellcheck disable=SC2046
run 3 "$CLRSNAP" record -o golden.clrsnap $(outputs golden) --top 3 -- "$FAKE" golden 3
grep -v '^clrsnap: wrote' err >summary.recorded
same_reports golden --top 3
grep -v '^clrsnap: wrote' err | diff -u summary.recorded - >difference || fail "another summary: $(cat difference)"
# shellcheck disable=SC2046
run 0 "$CLRSNAP" record --native off --signatures on -o other.clrsnap $(outputs other) -- "$FAKE" golden
same_reports other --native off --signatures on
# shellcheck disable=SC2046
run 137 "$CLRSNAP" record -o killed.clrsnap $(outputs killed) -- "$FAKE" killed
same_reports killed
# shellcheck disable=SC2046
run 0 "$CLRSNAP" record -o broken.clrsnap $(outputs broken) -- "$FAKE" malformed
same_reports broken
# shellcheck disable=SC2046
run 0 "$CLRSNAP" record --buffer 1 -o many.clrsnap $(outputs many) -- "$FAKE" many 3000
same_reports many

# The profiler's own functions are one frame, however deep they are; raw names are unchanged.
cp "$FAKE" libclrsnap.so
run 0 "$CLRSNAP" record -o self.clrsnap -o self.collapsed -- ./libclrsnap.so golden
grep -Fqx 'Shop.Program.Main;[clrsnap] 2000000' self.collapsed || fail "the profiler's own frames: $(cat self.collapsed)"
run 0 "$CLRSNAP" report --raw-names --format collapsed -o - self.clrsnap
grep -Fqx 'Shop.Program.Main;fake_agent_marker;fake_agent_marker 2000000' out || fail "raw names: $(cat out)"

# Names come from the recording: the program's own file may be gone or replaced by now.
cp "$FAKE" own
run 0 "$CLRSNAP" record -o own.clrsnap -o own.collapsed -- ./own golden
grep -q 'fake_agent_marker' own.collapsed || fail "no native symbol to begin with"
# A file without its end, where the names are, takes them from the program's file, if that is unchanged.
python3 - <<'X'
import struct
data = open("own.clrsnap", "rb").read()
at = 16
while struct.unpack_from("<H", data, at + 8)[0] != 12:
    at += struct.unpack_from("<I", data, at)[0]
open("nameless.clrsnap", "wb").write(data[:at])
X
run 0 "$CLRSNAP" report -o nameless.collapsed nameless.clrsnap
cmp -s own.collapsed nameless.collapsed || fail "no names from the program's own file: $(cat nameless.collapsed)"
cp -p own kept && cp "$CLRSNAP" own && touch -r kept own
run 0 "$CLRSNAP" report -o nameless.collapsed nameless.clrsnap
grep -q '^clrsnap: no names from the files of 2 of 2 libraries: .*, own (not the file that was mapped)$' err ||
  fail "another file is not told: $(cat err)"
grep -q '^Shop.Program.Main;\[own\] 2000000$' nameless.collapsed || fail "names from another file: $(cat nameless.collapsed)"
rm own
run 0 "$CLRSNAP" report -o again.collapsed own.clrsnap
cmp -s own.collapsed again.collapsed || fail "the names went with the program"

# A library without symbols has its names if its debug file is beside it.
cp "$FAKE" bare
objcopy --only-keep-debug bare bare.dbg && strip bare || fail "binutils"
run 0 "$CLRSNAP" record -o bare.collapsed -- ./bare golden
grep -q '^Shop.Program.Main;\[bare\] 2000000$' bare.collapsed || fail "names from nowhere: $(cat bare.collapsed)"
objcopy --add-gnu-debuglink=bare.dbg bare
run 0 "$CLRSNAP" record -o bare.collapsed -- ./bare golden
cmp -s own.collapsed bare.collapsed || fail "no names from the debug file: $(cat bare.collapsed)"

# A folder with debug files, when the program is recorded and afterwards, also if the program's file is gone.
cp "$FAKE" bare && mkdir folder && objcopy --only-keep-debug bare folder/bare.dbg && rm bare.dbg && strip bare || fail "binutils"
run 0 "$CLRSNAP" record -o bare.clrsnap -o bare.collapsed -- ./bare golden
grep -q '^Shop.Program.Main;\[bare\] 2000000$' bare.collapsed || fail "names without --symbols: $(cat bare.collapsed)"
run 0 "$CLRSNAP" record --symbols folder -o bare.collapsed -- ./bare golden
cmp -s own.collapsed bare.collapsed || fail "no names from --symbols: $(cat bare.collapsed)"
rm bare
run 0 "$CLRSNAP" report --symbols folder -o bare.collapsed bare.clrsnap
cmp -s own.collapsed bare.collapsed || fail "no names from --symbols, in a report: $(cat bare.collapsed)"
cp "$CLRSNAP" folder/bare.dbg
run 0 "$CLRSNAP" report --symbols folder -o bare.collapsed bare.clrsnap
grep -q '^Shop.Program.Main;\[bare\] 2000000$' bare.collapsed || fail "names of another program: $(cat bare.collapsed)"
run 2 "$CLRSNAP" report --symbols no/folder -o bare.collapsed bare.clrsnap
grep -q "^clrsnap: --symbols takes a directory, .* and 'no/folder' is none of these" err || fail "a folder that is not there: $(cat err)"

# The reader on the page that describes the format.
sed -n '/^```python$/,/^```$/p' "$here/../../docs/recording-format.md" | grep -v '^```' >reader.py
run 0 python3 reader.py many.clrsnap
echo "3000 samples" | same out

# The destinations of the output.
run 0 "$CLRSNAP" report golden.clrsnap
tail -1 err | grep -qx 'clrsnap: wrote golden.html' || fail "no golden.html: $(cat err)"
run 0 "$CLRSNAP" report --format collapsed -o - golden.clrsnap
cmp -s out golden.collapsed || fail "standard output is not what the file is"
run 0 "$CLRSNAP" report --top 1 golden.clrsnap
grep -q 'System.Linq.Enumerable.Sum$' err || fail "no table"
grep -q wrote err && fail "--top alone writes a file"
run 0 "$CLRSNAP" report --search 'shop.*(work|late)' golden.clrsnap
sed -n '/search for/,$p' err > found
same found <<'X'
clrsnap: search for 'shop.*(work|late)'
clrsnap: cpu mode: 63.6 % in and below what matches, 18.2 % in itself, of 22.00 ms of CPU time
clrsnap:    self   total  samples  method
clrsnap:   9.1 %   54.5 %        1  Shop.Cart<System.Int32>.Work
clrsnap:   9.1 %    9.1 %        1  Shop.Late.Comer
clrsnap: not seen: where a method was inlined, its time is its caller's (record with --inlined)
X
grep -q wrote err && fail "--search alone writes a file"
run 0 "$CLRSNAP" report --search 'Shop.(' golden.clrsnap
grep -qx "clrsnap: search for 'Shop.(' as it is, because it is not a regular expression: Unmatched ( or \\\\(" err &&
  grep -qx 'clrsnap: no frame and no method known to be inlined matches' err || fail "no match: $(cat err)"
# Below what has happened stands what has caused it: the nearest own code.
run 0 "$CLRSNAP" record --mode lock --holders off --top 3 -- "$FAKE" uneven
sed -n '/by its share/,/^clrsnap: wrote/p' err | grep -v wrote > table
same table <<'X'
clrsnap:    self   total  samples  method, by its share of 92.00 ms of waiting time; what is inlined is its caller's
clrsnap:  60.9 %   65.2 %        4  lambda_method1
clrsnap:           60.9 % by Shop.Program.Main
clrsnap:  26.1 %   26.1 %       24  System.Linq.Enumerable.Sum
clrsnap:           26.1 % by Shop.Cart<System.Int32>.Work
clrsnap:   8.7 %    8.7 %        8  Shop.Late.Comer
X

# The recorder is killed: what it had received is in the file, under its own name.
"$CLRSNAP" record -o growing.clrsnap -- "$FAKE" until-stopped >/dev/null 2>&1 &
recorder=$!
for _ in $(seq 100); do
  [ -s growing.clrsnap ] && [ "$(stat -c %s growing.clrsnap)" -gt 2500 ] && break
  sleep 0.1
done
samples() { sed -n 's/^clrsnap: \([0-9]*\) samples\? in .*/\1/p' err; }
run 0 "$CLRSNAP" report --top 1 growing.clrsnap
grep -qx 'clrsnap: growing.clrsnap has no end: its recorder is still running or was killed' err ||
  fail "growing: $(cat err)"
unknown='losses in the program and stops of the runtime are not known'
grep -qx "clrsnap: the recording has no end: $unknown" err || fail "growing: $(cat err)"
grep -q 'program was killed' err && fail "a program that runs was killed: $(cat err)"
first=$(samples)
sleep 0.5
program=$(cat "/proc/$recorder/task/$recorder/children")
kill -KILL $recorder
wait $recorder 2>/dev/null
kill -KILL $program
run 0 "$CLRSNAP" report -o growing.collapsed growing.clrsnap
[ "${first:-0}" -gt 0 ] && [ "$(samples)" -gt "$first" ] || fail "killed recorder: $first, then $(samples) samples"
grep -q '^Shop.Program.Main;Shop.Cart<System.Int32>.Work [0-9]*$' growing.collapsed || fail "killed recorder: $(cat growing.collapsed)"

# What cannot be written is not kept elsewhere, since it can be made of the recording again.
mkdir elsewhere
ln -s /dev/full full.txt
nowhere_else() { # REASON ARGUMENTS...
  TMPDIR=$PWD/elsewhere run 1 "$CLRSNAP" "${@:2}"
  grep -q "^clrsnap: cannot write $1\$" err && [ -z "$(ls -A elsewhere)" ] || fail "${*:2}: $(ls -A elsewhere) $(cat err)"
}
nowhere_else '\.\.\.0*\.html: File name too long' report -o "$(printf %0300d 0).html" golden.clrsnap
TMPDIR=$PWD/elsewhere "$CLRSNAP" report -o - golden.clrsnap > /dev/full 2> err && fail "report -o - on a full device"
grep -qx 'clrsnap: cannot write the standard output: No space left on device' err && [ -z "$(ls -A elsewhere)" ] || fail "report -o -: $(cat err)"
nowhere_else '/dev/full: No space left on device' report -o full.txt golden.clrsnap
nowhere_else '/dev/full: No space left on device' diff -o full.txt golden.clrsnap golden.clrsnap
nowhere_else '/dev/full: No space left on device' record -o full.txt -o also.clrsnap -- "$FAKE" golden

# Cut and damaged files: the intact beginning is read, and the damage is reported.
head -c $(($(stat -c %s golden.clrsnap) - 100)) golden.clrsnap >cut.clrsnap
run 0 "$CLRSNAP" report -o cut.collapsed cut.clrsnap
grep -q '^clrsnap: cut.clrsnap ends within a record, at byte [0-9]*: what comes before it was read$' err || fail "cut: $(cat err)"
[ "$(awk '{n += $NF} END {print n}' cut.collapsed)" = 22000000 ] || fail "cut: samples are missing"
cp golden.clrsnap damaged.clrsnap
printf '\377' | dd of=damaged.clrsnap bs=1 seek=1500 conv=notrunc status=none
run 0 "$CLRSNAP" report -o damaged.collapsed damaged.clrsnap
grep -q '^clrsnap: damaged.clrsnap is damaged at byte [0-9]*: what comes before it was read$' err || fail "damaged: $(cat err)"

python3 - golden.clrsnap unsampled.clrsnap <<'X' || fail "unsampled"
import struct, sys
data = open(sys.argv[1], "rb").read()
(at,) = struct.unpack_from("<I", data, 12)
while struct.unpack_from("<IIH", data, at)[2] != 10: at += struct.unpack_from("<I", data, at)[0]
open(sys.argv[2], "wb").write(data[:at])
X
run 0 "$CLRSNAP" report -o unsampled.collapsed unsampled.clrsnap
grep -qx 'clrsnap: nothing was sampled: the recording breaks off before its first sample' err || fail "unsampled: $(cat err)"

# refused SENTENCE FILE
refused() {
  run 1 "$CLRSNAP" report -o refused.html "$2"
  echo "clrsnap: $1" | same err
}
refused "golden.html is not a recording of clrsnap" golden.html
: >empty.clrsnap
refused "empty.clrsnap is not a recording of clrsnap" empty.clrsnap
refused "cannot read none.clrsnap: No such file or directory" none.clrsnap
mkdir directory
refused "cannot read directory: Is a directory" directory
cp golden.clrsnap newer.clrsnap
printf '\013' | dd of=newer.clrsnap bs=1 seek=8 conv=notrunc status=none
refused "newer.clrsnap was written by a newer clrsnap (file version 11; this one reads 10)" newer.clrsnap
[ -e refused.html ] && fail "a page was written of no recording"

# A file that ends before the description of what was recorded, in every format.
head -c 16 golden.clrsnap >head.clrsnap
for format in html collapsed json text pprof otlp speedscope firefox chromium; do
  run 1 "$CLRSNAP" report --format $format -o refused.out head.clrsnap
  echo "clrsnap: head.clrsnap has nothing to show: it ends before the description of what was recorded" | same err
done
run 1 "$CLRSNAP" diff head.clrsnap golden.clrsnap
grep -q 'head.clrsnap has nothing to show' err || fail "diff of a head: $(cat err)"

# Two megabytes that would be gigabytes when their stacks are written out: the output is either bounded or refused.
command -v python3 >/dev/null || fail "there is no python3"
python3 "$here/deep.py" deep.clrsnap 30000 20000 || fail "deep.py"
size=$(stat -c %s deep.clrsnap)
for format in html json text firefox; do
  run 0 timeout 300 "$CLRSNAP" report --format $format -o deep.out deep.clrsnap
  [ "$(stat -c %s deep.out)" -lt $((size * 100)) ] || fail "$format: $(stat -c %s deep.out) bytes from $size"
done
for format in collapsed pprof otlp speedscope chromium; do
  rm -f deep.out
  run 1 timeout 300 "$CLRSNAP" report --format $format -o deep.out deep.clrsnap
  grep -q 'is not written: its stacks would come to more than' err || fail "$format: $(cat err)"
  [ -e deep.out ] && fail "$format: a file all the same"
done

# bounded FORMAT FILE: the output is at most a gigabyte plus a kilobyte for each byte of FILE, or it is soon refused.
bounded() {
  rm -f deep.out
  timeout 300 prlimit --fsize=1200000000 "$CLRSNAP" report --format "$1" -o deep.out "$2" 2>err && return
  grep -q 'is not written: its stacks would come to more than' err || fail "$1 of $2: $(cat err)"
  [ ! -e deep.out ] || fail "$1 of $2: a file all the same"
}
# The length of the names counts, and not only the number of frames.
python3 "$here/deep.py" names.clrsnap 1000 0 1 60000 || fail "deep.py"
bounded collapsed names.clrsnap
bounded chromium names.clrsnap
# An event's stack is written in full, even if it shares most of its frames with the stack before it.
python3 "$here/deep.py" events.clrsnap 30000 20000 3 0 || fail "deep.py"
bounded chromium events.clrsnap

# The disk is full: the file is kept, the other outputs are written, the exit code is the program's.
run 4 "$CLRSNAP" record --format recording -o /dev/full -- "$FAKE" golden 4
grep -qx 'clrsnap: cannot write /dev/full: No space left on device; it has what was recorded up to then' err ||
  fail "/dev/full: $(cat err)"

# A limit of file sizes: a message, no signal, and no partial file; an old file is unchanged.
echo old >limited.html
run 1 prlimit --fsize=4096 "$CLRSNAP" report -o limited.html golden.clrsnap
grep -q '^clrsnap: cannot write .*limited.html: File too large (ulimit -f)$' err ||
  fail "ulimit -f: $(cat err)"
echo old | same limited.html
run 1 prlimit --fsize=4096 "$CLRSNAP" report -o new.html golden.clrsnap
[ -e new.html ] && fail "a part of a file"
run 4 prlimit --fsize=20971520 "$CLRSNAP" record -o limited.clrsnap -- sh -c 'trap | grep -q XFSZ; "$0" golden 4' "$FAKE"
# A full file system: the same.
if unshare --mount true 2>/dev/null; then
  mkdir small
  run 1 unshare --mount sh -c 'mount -t tmpfs -o size=16k none small && cd small && TMPDIR=/nowhere "$0" report -o full.html ../golden.clrsnap; code=$?
    ls -A; exit $code' "$CLRSNAP"
  grep -q '^clrsnap: cannot write .*full.html: No space left on device$' err ||
    fail "a full file system: $(cat err)"
  : | same out
fi
# However the command ends, no partial file remains beside the output.
mkdir killed
for _ in 1 2 3 4 5 6 7 8; do
  "$CLRSNAP" report --format html -o killed/x.html deep.clrsnap 2>/dev/null &
  sleep 0.0$((RANDOM % 10))
  kill -9 $! 2>/dev/null
  wait $! 2>/dev/null
done
"$CLRSNAP" record -o killed/y.html -- "$FAKE" until-stopped >/dev/null 2>&1 &
command=$!
sleep 0.3
kill -9 $command $(pgrep -P $command)
wait $command 2>/dev/null
ls -A killed | grep -v '^x.html$' && fail "parts of files: $(ls -A killed)"

# Nothing recorded: an old file is unchanged.
echo old >kept.clrsnap
run 6 "$CLRSNAP" record -o kept.clrsnap -- "$FAKE" refuse 6
run 7 "$CLRSNAP" record -o kept.clrsnap -- "$FAKE" absent 7
echo old | same kept.clrsnap
left=$(ls -A | grep '^\.clrsnap')
[ -z "$left" ] || fail "temporary files were left: $left"
# Refused before anything is written: which output, why, and what to do.
run 0 "$CLRSNAP" record --mode cpu,wall -o both.clrsnap -- "$FAKE" uneven
run 1 "$CLRSNAP" report both.clrsnap -o both.html -o both.firefox.json
[ ! -e both.html ] || fail "an output is written, another one is refused"
same err <<'X'
clrsnap: 'both.firefox.json': the format firefox shows one of cpu and wall, and these are to be shown: cpu, wall; choose with --mode
X
run 0 "$CLRSNAP" report both.clrsnap --mode wall -o both.html -o both.firefox.json
run 2 "$CLRSNAP" record --mode cpu,wall -o two.clrsnap -o two.firefox.json -- touch begun
grep -q "^clrsnap: 'two.firefox.json': the format firefox shows one of cpu and wall, and these are to be recorded: cpu, wall;" err &&
  [ ! -e begun ] && [ ! -e two.clrsnap ] || fail "refused late: $(cat err)"
# A closed standard error: the file that is written does not take its place.
for closed in '2>&-' '>&- 2>&-' '<&- >&- 2>&-'; do
  rm -f closed.html
  eval "'$CLRSNAP' report both.clrsnap --mode wall -o closed.html $closed" || fail "report with $closed"
  head -c 15 closed.html | grep -q '^<!doctype html>' || fail "with $closed the page begins with: $(head -c 80 closed.html)"
done
run 2 "$CLRSNAP" record -o - --format recording $$
grep -q '^clrsnap: a recording is a file, not standard output: ' err && [ ! -e ./- ] || fail "a recording to standard output: $(cat err)"
done_testing
