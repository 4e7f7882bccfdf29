#!/bin/bash
# SPDX-License-Identifier: MIT
# Help, version, usage errors, and what is refused before the program starts.
. "$(dirname "$0")/lib.sh"

run 0 "$CLRSNAP" help
same out <<'X'
usage: clrsnap VERB [options]

Record a program, and evaluate recordings:
  record        record where a program spends its time, from its start or by attach
  report        make a flame graph or another format of a recording
  diff          show what grew and what shrank between two recordings

Inspect a running program:
  top           watch where a program spends its time, live
  stack         print the stack of every thread of a process, once
  async         print what every suspended async operation awaits, once
  perfmap       name a running program's managed code for perf, samply and bpftrace

Find processes, and find out what works:
  ps            list the .NET processes that you can see
  doctor        check what works here, or with a process, and explain what does not

For other profilers:
  run-profiler  run another vendor's profiler through clrsnap

About this command:
  version       print the version
  help          print this text, or that of a verb

'clrsnap help VERB' says more. See clrsnap(1).
X
run 0 "$CLRSNAP" --help
run 2 "$CLRSNAP"
run 0 "$CLRSNAP" version
grep -Eqx 'clrsnap [0-9]+\.[0-9]+\.[0-9]+' out || fail "version says $(cat out)"
for verb in async diff doctor perfmap ps record report run-profiler stack top; do
  run 0 "$CLRSNAP" help $verb
  cp out help1
  run 0 "$CLRSNAP" $verb --help
  cmp -s help1 out || fail "help $verb and $verb --help differ"
  awk 'length > 100' out | grep . && fail "$verb --help has long lines"
  grep -q "^usage: clrsnap $verb" out || fail "$verb --help has no usage"
done

run 0 "$CLRSNAP" help record
tr -s " \n" " " <out | grep -q -- "--inlined implies it" || fail "help record does not say what --inlined implies"

# usage_error TEXT ARGUMENTS...
usage_error() {
  local text=$1
  shift
  run 2 "$CLRSNAP" "$@"
  echo "clrsnap: $text" | same err
  [ -s out ] && fail "$*: printed to stdout"
}
formats=$("$CLRSNAP" help record | sed '1,/^Formats/d; /^$/,$d' | awk '{ printf "%s%s", sep, $1; sep = ", " }')
more="; 'clrsnap help record' lists the options"
usage_error "unknown verb 'recrod'; did you mean 'record'?" recrod
usage_error "unknown verb 'profile'; 'clrsnap help' lists them" profile
usage_error "unknown verb 'x'; 'clrsnap help' lists them" help x
usage_error "no program to record, and no process$more" record
usage_error "no program to record, and no process$more" record -d 1 --
usage_error "either a process or a program can be recorded, not both$more" record -p 1 -- true
usage_error "--pid takes the number or the name of a process, not '0'$more" record -p 0
usage_error "no .NET process is called 'no.such'; 'clrsnap ps' lists them$more" record -p no.such
usage_error "unknown option '--budgte'; did you mean '--budget'?${more#;}" record --budgte 1% true
usage_error "unknown option '--duratoin=3'; did you mean '--duration'?${more#;}" record --duratoin=3 true
usage_error "unknown option '--frobnicate'$more" record 1 --frobnicate
usage_error "either a process or a program can be recorded, not both$more" record 1 -d 3 true
usage_error "unknown option '--frobnicate'$more" record --frobnicate -- true
usage_error "unknown option '-x'$more" record -x -- true
usage_error "unknown option '-x'$more" record --lines -xd 1 true
usage_error "unknown option '-é'$more" record --lines -é true
usage_error "unknown option '-é'$more" record -é
usage_error "option '--children' takes no value$more" record --children=3 -- true
usage_error "option '--help' takes no value$more" record --help=3
usage_error "option '-o' takes a value$more" record -o
usage_error "option '--output' takes a value$more" record --output
usage_error "--frequency takes a whole number from 1 to 10000, not '0'$more" record -F 0 true
usage_error "--frequency takes a whole number from 1 to 10000, not '99x'$more" record -F 99x true
usage_error "--frequency takes a whole number from 1 to 10000, not '-5'$more" record -F -5 true
usage_error "--frequency takes a whole number from 1 to 10000, not '10001'$more" record -F 10001 true
usage_error "--duration takes a time like 10s, 500ms or 2m, 0.001 to 604800 seconds, not 'soon'$more" record -d soon true
usage_error "--duration takes a time like 10s, 500ms or 2m, 0.001 to 604800 seconds, not '-1'$more" record -d -1 true
usage_error "--budget takes 0.01% to 100% of a processor, not '0'$more" record --budget 0 true
usage_error "--budget takes 0.01% to 100% of a processor, not '1x'$more" record --budget 1x true
usage_error "--budget takes 0.01% to 100% of a processor, not '101%'$more" record --budget 101% true
usage_error "--alloc takes the bytes between two objects, 100k to 1g, not '99k'$more" record --alloc 99k true
usage_error "--event-rate takes a whole number from 1 to 1000000, not '0'$more" record --event-rate 0 true
usage_error "--engine takes 'auto', 'perf' or 'clock', not 'clcok'; did you mean 'clock'?${more#;}" record --engine clcok true
usage_error "--engine takes 'auto', 'perf' or 'clock', not 'timer'$more" record --engine timer true
none_of="belongs to a mode that is not recorded:"
usage_error "--alloc $none_of alloc$more" record --alloc 1m true
usage_error "--event-rate $none_of lock, exception, wait, holders$more" record --event-rate 9 --mode cpu,alloc,gc true
usage_error "--idle $none_of wall$more" record --idle true
usage_error "two outputs have the name 'a.html'$more" record -o a.html -o b.html -o a.html true
usage_error "--engine belongs to cpu mode, which is not recorded$more" record --engine clock --mode wall true
modes="--mode takes one or more of cpu, wall, alloc, lock, exception, gc, wait, async, holders with commas between them"
usage_error "$modes, not 'walls'; did you mean 'wall'?${more#;}" record --mode walls true
usage_error "$modes, not 'cpu,'$more" record --mode cpu, true
usage_error "$modes, not 'CPU'; did you mean 'cpu'?${more#;}" record --mode CPU true
usage_error "'page-fault' is unknown; did you mean 'page-faults'?${more#;}" record --event page-fault:3 true
usage_error "'a.folded': the format collapsed shows one mode at a time, and these are to be recorded: cpu, alloc; make a recording \
(-o FILE.clrsnap) and choose with 'clrsnap report --mode', or leave that output out$more" record --mode cpu,alloc -o a.folded true
usage_error "--format takes one of $formats, not 'svg'; did you mean 'html'?${more#;}" record --format svg true
usage_error "--format takes one of $formats, not 'speedscop'; did you mean 'speedscope'?${more#;}" record --format speedscop a
usage_error "--format takes one of $formats, not 'else'$more" record --format else true
usage_error "--format applies to one --output; several are told apart by their suffixes$more" \
  record --format html -o a.html -o b.json true
chosen="a format is chosen by .html, .collapsed, .json, .txt, .md, .pb.gz, .otlp, .speedscope.json, .firefox.json, \
.trace.json, .clrsnap, or by --format"
for name in x.svg:.html x.flamegraf:.html my.app.speedscop:.speedscope.json x.HTML:.html x.c/y.jsno:.json x.md.tree.mdd:.md; do
  usage_error "$chosen: '${name%:*}' has none of these; did you mean '${name#*:}'?${more#;}" record -o "${name%:*}" -- touch started
done
for name in b x.json.gz x.nettrace .html; do
  usage_error "$chosen: '$name' has none of these$more" record -o $name -- touch started
  usage_error "$chosen: '$name' has none of these$more" record -o a.html -o $name -- touch started
done
json="there is no OTLP in JSON: .otlp is OTLP (protobuf), and .json is clrsnap's own format"
for name in k.otlp.json .otlp.json; do
  usage_error "'$name': $json$more" record -o a.html -o $name -- touch started
done
usage_error "there can be one recording only$more" record -o a.clrsnap -o b.clrsnap true
usage_error "standard output belongs to the program: --output takes a file$more" record -o - true
usage_error "--native takes 'on' or 'off', not '1'$more" record --native 1 true
usage_error "--depth takes a whole number from 1 to 65536, not '99999999999999999999'$more" \
  record --depth 99999999999999999999 true
usage_error "--buffer takes a whole number from 1 to 1024, not '0'$more" record --buffer 0 true
more="; 'clrsnap help diff' lists the options"
usage_error "--mode takes the name of a mode, not 'aloc'; did you mean 'alloc'?${more#;}" diff --mode aloc a b
usage_error "--format takes 'text', 'html', 'json', 'collapsed' or 'md', not 'txt'; did you mean 'text'?${more#;}" diff --format txt a b
compared="a comparison's format is chosen by .txt, .html, .json, .collapsed, .md, or by --format"
usage_error "$compared: 'x.htlm' has none of these; did you mean '.html'?${more#;}" diff -o x.htlm a b
usage_error "$compared: 'x.pb.gz' has none of these$more" diff -o x.pb.gz a b
usage_error "'x.otlp.json': $json$more" diff -o x.otlp.json a b
more="; 'clrsnap help report' lists the options"
usage_error "$modes, not 'page-fautls'; did you mean 'page-faults'?${more#;}" report --mode page-fautls a
usage_error "no recording to report$more" report
usage_error "one recording at a time: 'b'$more" report a b
usage_error "unknown option '--lines'$more" report --lines a
usage_error "$chosen: 'x.svg' has none of these; did you mean '.html'?${more#;}" report -o x.svg a
ids="--trace takes a trace id of 32 hexadecimal digits, or that, ':' and a span id of 16, not"
for id in '' 4bf92f3577b34da6 4bf92f3577b34da6a3ce929d0e0e473g 4bf92f3577b34da6a3ce929d0e0e4736:00f067aa 00000000000000000000000000000000; do
  usage_error "$ids '$id'$more" report --trace "$id" a
done
usage_error "'a' is a recording already: no output can be one$more" report -o b.clrsnap a
more="; 'clrsnap help top' lists the options"
usage_error "no program to record, and no process$more" top
usage_error "either a process or a program can be recorded, not both$more" top -p 1 true
usage_error "--interval takes a time like 10s, 500ms or 2m, 0.1 to 3600 seconds, not '0'$more" top --interval 0 true
usage_error "--window takes a time like 10s, 500ms or 2m, 0.1 to 3600 seconds, not 'nan'$more" top --window nan true
usage_error "--sort takes 'self', 'total' or 'name', not 'cpu'$more" top --sort cpu true
usage_error "--filter takes 63 bytes at most$more" top --filter "$(printf %064d 0)" true
usage_error "--count takes a whole number from 1 to 1000000000, not '0'$more" top -n 0 true
usage_error "--json and --text exclude each other$more" top --json --text true

# Output that is lost, as on a full disk, is a failure.
for verb in version help "help record" "record --help" "ps --json" doctor "doctor --json"; do
  rc=0
  "$CLRSNAP" $verb > /dev/full 2> err || rc=$?
  [ $rc = 1 ] || fail "$verb on a full disk ended with $rc"
  grep -qx "clrsnap: the output could not be written: No space left on device" err || { cat err; fail "$verb on a full disk"; }
done

# A command that fails before it starts the program does not start it.
run 1 "$CLRSNAP" record -o /nowhere/at/all.html -- touch started
echo "clrsnap: cannot write /nowhere/at/all.html: No such file or directory" | same err
long=$(printf 'a%.0s' $(seq 260)).html
run 1 "$CLRSNAP" record -o "$long" sh -c 'echo started'
[ ! -s out ] && grep -q 'File name too long' err || fail "a name that is too long: $(cat out err)"
mkdir directory
run 1 "$CLRSNAP" record --format html -o directory -- touch started
echo "clrsnap: cannot write directory: Is a directory" | same err
CLRSNAP_LIB=/nowhere/libclrsnap.so run 1 "$CLRSNAP" record -- touch started
echo "clrsnap: CLRSNAP_LIB=/nowhere/libclrsnap.so: No such file or directory" | same err
mkdir lib
touch lib/libclrsnap.so
CLRSNAP_LIB=$PWD/lib/libclrsnap.so run 1 "$CLRSNAP" record --labels -- touch started
echo "clrsnap: --labels needs $PWD/lib/ClrsnapLabels.dll, which does not exist: it is built if the SDK of .NET 10 is installed; \
install that and build clrsnap again" | same err
rm -r lib
[ -e started ] && fail "the program was started"

run 127 "$CLRSNAP" record -- ./no-such-program
echo "clrsnap: program not found: ./no-such-program" | same err
run 127 "$CLRSNAP" record no-such-name-of-any
echo "clrsnap: program not found: no-such-name-of-any; no .NET process has that name either" | same err
run 127 "$CLRSNAP" record 1234567 1234567
echo "clrsnap: program not found: 1234567; to attach to the process of that number, give nothing after it" | same err
touch not-executable
run 126 "$CLRSNAP" record -- ./not-executable
echo "clrsnap: cannot execute ./not-executable: Permission denied" | same err
rmdir directory
left=$(ls -A | grep -Evx 'out|err|help1|difference|not-executable')
[ -z "$left" ] || fail "files were left: $left"
done_testing
