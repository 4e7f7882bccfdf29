#!/bin/bash
# SPDX-License-Identifier: MIT
# labels.sh BUILD SOURCE MATERIAL WHAT [VERSION]: compares labels from Activities with a program that knows which one is current
# where. WHAT is start: recorded from its start, in modes cpu, wall and exception; attach: recorded twice while it runs,
# with an unrecorded time in between; switch: thousands of changes per second, awake and asleep; others: programs for
# which the hook is useless, which must be unharmed by it; requests: routes and statuses of a service's requests, also
# where an exception leaves them through asynchronous middleware; members: every method of the hook can be compiled.
# VERSION: on that older runtime.
BUILD=$1 SOURCE=$2 MATERIAL=$3 WHAT=$4
. "$SOURCE/tests/live/lib.sh"
clrsnap=$BUILD/bin/clrsnap
[ -f "$BUILD/lib/ClrsnapLabels.dll" ] || skip "src/agent/labels is not built: there is no SDK of .NET 10"
if [ $# = 5 ]; then on_older LabelsOld "$5"; else build_app Labels && target=(dotnet "$APP"); fi
cd "$WORK" || exit 1
by_perf

# holds TRUTH RECORDING MODE CHECK: checks pprof and OTLP output of one mode, as an independent reader reads them.
holds() {
  "$clrsnap" report --mode "$3" -o "$3.pb.gz" -o "$3.otlp" "$2" 2> report.err || { cat report.err; fail "report $2"; }
  python3 "$SOURCE/tests/tools/otlp.py" --pprof "$3.pb.gz" > "$3.pprof.text" || fail "pprof cannot be read"
  python3 "$SOURCE/tests/tools/otlp.py" "$3.otlp" > "$3.otlp.text" || fail "OTLP cannot be read"
  python3 "$SOURCE/tests/formats/labels.py" "$1" "$3.pprof.text" "$4" || fail "$2: $3: pprof: wrong labels"
  python3 "$SOURCE/tests/formats/labels.py" "$1" "$3.otlp.text" "$4" > /dev/null || fail "$2: $3: OTLP: wrong labels"
}
long_names() {
  timeout 300 "$clrsnap" record "${PERF[@]}" --labels -F 999 -o long.clrsnap -- "${target[@]}" long > out 2> err
  [ $? = 42 ] || { cat out err; fail "a program with long names of Activities"; }
  for letters in 'L{700,800}' '(漢){200,300}'; do
    [ "$(LC_ALL=C grep -aoE "$letters…~[0-9a-f]{6}" long.clrsnap | sort -u | wc -l)" -ge 3 ] || fail "names are not cut, with a mark"
  done
}
# A name is one name however often it is built; beyond the thousand that are kept, the rest has one of its own.
many_names() {
  timeout 300 "$clrsnap" record "${PERF[@]}" --labels -F 999 -o many.clrsnap -- "${target[@]}" many > out 2> err
  [ $? = 42 ] || { cat out err; fail "a program with many names of Activities"; }
  "$clrsnap" report --by-route -o many.folded many.clrsnap 2> report.err || { cat report.err; fail "report --by-route"; }
  awk '{ all += $NF } /job 0/ { jobs[0] += $NF } /job 1/ { jobs[1] += $NF } /job 2/ { jobs[2] += $NF }
    /name [0-9]/ { named += $NF } /\[Activities beyond the first 1,000 names\]/ { beyond += $NF }
    END {
      for (i = 0; i < 3; i++) { printf "job %d %.3f ", i, jobs[i] / all; wrong += jobs[i] < 0.15 * all }
      printf "named %.3f, beyond %.3f\n", named / all, beyond / all
      exit wrong > 0 || named < 0.05 * all || beyond < 0.05 * all
    }' many.folded || fail "the names of Activities"
}
trace_of() { awk -v m="$1" '$1 == "label" && $2 == m { print $3 }' truth; }

from_start() {
  DOTNET_STARTUP_HOOKS=$APP timeout 300 "$clrsnap" record "${PERF[@]}" --labels --mode cpu,wall,exception -F 199 -o l.clrsnap -o live.pb.gz \
    -- "${target[@]}" 15 > truth 2> err || { cat err; fail "the recording"; }
  cat err
  # Where most samples have none, the summary says why.
  awk '/^clrsnap: labels: / { any = 1; few = 2 * $3 < $5; said = /no Activity was current$/; wrong = few != said }
    END { exit !any || wrong }' err || fail "the summary's labels"
  [ "$(grep -c '^hook of the program$' truth)" = 1 ] || fail "the program's own startup hook did not run"
  for mode in cpu wall exception; do holds truth l.clrsnap $mode $mode; done
  "$clrsnap" report -o file.pb.gz l.clrsnap 2> /dev/null && cmp live.pb.gz file.pb.gz || fail "report and record differ"

  # The reader that people use.
  if have go; then
    for method in First Second; do
      go tool pprof -sample_index=cpu -tagfocus="trace_id=$(trace_of $method)" -traces cpu.pb.gz > traces 2> /dev/null ||
        fail "go tool pprof"
      [ "$(grep -oE 'Program\.(First|Second|Third|Nested|Outside|Early)\b' traces | sort -u)" = "Program.$method" ] ||
        { head -40 traces; fail "go tool pprof: not only $method under its trace"; }
    done
  fi
  # OTLP's links as protobuf itself has them: the dictionary's field 4, trace id 1.
  if have protoc; then
    protoc --decode_raw < cpu.otlp > raw || fail "protoc cannot read it"
    [ "$(grep -c '^  4 {' raw)" -gt 4 ] || fail "protoc sees $(grep -c '^  4 {' raw) links"
  fi

  # A single trace: all of what is under it, and nothing else.
  "$clrsnap" report --trace "$(trace_of Third)" --mode cpu -o third.collapsed -o third.txt l.clrsnap 2> err || { cat err; fail "--trace"; }
  grep -qE 'Program\.(First|Second|Outside)' third.collapsed && fail "others under the trace of Third"
  grep -q 'Program.Third' third.collapsed && grep -q 'Program.Nested' third.collapsed || fail "no Third or no Nested"
  span=$(awk '$2 == "Third" { print $4 }' truth)
  "$clrsnap" report --trace "$(trace_of Third):$span" --mode cpu -o span.collapsed l.clrsnap 2> /dev/null || fail "--trace with a span"
  grep -q 'Program.Third' span.collapsed || fail "no Third under its span"
  grep -q 'Program.Nested' span.collapsed && fail "Nested under the span of Third"
  grep -qE ' ([0-9]+) samples.*, \1 with a label$|^([0-9]+) samples .*, \2 with a label$' third.txt || { head -4 third.txt; fail "the text's head"; }
  # The endpoint of an Activity without a parent is its name; Nested runs within Third.
  "$clrsnap" report --route Third --mode cpu -o route.collapsed l.clrsnap 2> err || { cat err; fail "--route"; }
  cmp third.collapsed route.collapsed || fail "--route Third is not --trace of Third"
  # The agent's counts are of all, and say nothing about a part.
  "$clrsnap" report --route First -o first.md l.clrsnap 2> err || { cat err; fail "--route First"; }
  grep -qE 'stand for|samples per second' err first.md && { cat err first.md; fail "a part is compared with the whole"; }
  grep -q '^- Only samples of the chosen trace or route are shown' first.md && grep -q '^clrsnap: only samples of the chosen' err &&
    grep -qE '^clrsnap:   exception: [0-9]+ samples?, [0-9]+ exceptions$' err && ! grep -q 'every one was recorded' first.md ||
    { cat err first.md; fail "a part is not called one"; }
  # The hook is nobody's own code.
  "$clrsnap" report --mode cpu -o l.json l.clrsnap 2> /dev/null || fail "json"
  python3 - << 'PYTHON' || fail "the hook is own code"
import json

mode = json.load(open("l.json"))["modes"][0]
triples = list(zip(*[iter(mode["frames"])] * 3))
own = {mode["strings"][name] for name, _, kind in triples if mode["kinds"][kind][0] == "user"}
assert any(name.startswith("Program.") or ".Program." in name for name in own), own
assert not [name for name in own if name.startswith("Clrsnap.")], own
PYTHON
  "$clrsnap" report --route Nested -o none.txt l.clrsnap 2> err && fail "an endpoint that is not there"
  grep -q 'has no sample of that route; it has: .*Third' err || { cat err; fail "no endpoints are named"; }
  "$clrsnap" report --by-trace --mode cpu -o by.collapsed -o by.txt -o by.html -o by.trace.json -o by.pb.gz l.clrsnap 2> err ||
    { cat err; fail "--by-trace"; }
  awk -v t="$(trace_of Third)" '{ n = $NF; own = index($0, "trace " t ";") == 1; meant = /Program\.(Third|Nested);/ }
    own != meant && (meant || /Program\.(First|Second|Outside);/) { bad = 1; print } own && meant { sum += n }
    END { exit bad || sum < 1 }' by.collapsed || fail "not all of Third below its trace, or others"
  for counted in by.collapsed third.collapsed; do awk '/Program\.(Third|Nested);/ { n += $NF } END { print n }' $counted; done |
    uniq | wc -l | grep -qx 1 || fail "--by-trace and --trace count differently"
  grep -q '"name":"trace ' by.trace.json || fail "no trace in the Chromium trace"
  "$clrsnap" report --trace 00000000000000000000000000000001 -o none.txt l.clrsnap 2> err && fail "a trace that is not there"
  grep -q 'has no sample with that label' err || { cat err; fail "no reason"; }

  # Without the option there are no labels.
  timeout 300 "$clrsnap" record -o off.pb.gz -o off.txt -- "${target[@]}" 3 > /dev/null 2> err || { cat err; fail "without labels"; }
  grep -qE '^clrsnap: (no )?labels|with a label' err off.txt && fail "labels without --labels"
  gzip -dc off.pb.gz | grep -q trace_id && fail "trace_id without --labels"
  grep -q ClrsnapLabels off.txt && fail "the hook without --labels"
  pass "$(sed -n 's/^clrsnap: \(labels: .*\)/\1/p' report.err)"
}

# line TEXT: requests the next batch, whose truth goes to truth.TEXT.
run_batch() {
  echo "$1" >&3
  for _ in $(seq 600); do
    [ "$(grep -c ^batch said)" -gt "$(cat batches)" ] || [ ! -e /proc/$child ] && break
    sleep 0.05
  done
  awk -v n="$(cat batches)" '/^batch/ { b++ } b == n' said > "truth.$1"
  echo $(($(cat batches) + 1)) > batches
  [ "$(grep -c ^label "truth.$1")" = 7 ] || { cat said; fail "batch $1 is not whole"; }
}

attached() {
  mkfifo in
  timeout 300 "${target[@]}" 10 3 < in > said 2> said.err &
  exec 3> in
  for _ in $(seq 200); do grep -q ^batch said && break; sleep 0.05; done
  child=$!
  pid=$(pgrep -P $child) || fail "the program does not start"
  echo 1 > batches
  for turn in first unseen last; do
    if [ $turn != unseen ]; then
      timeout 300 "$clrsnap" record "${PERF[@]}" --labels --mode cpu,wall -o $turn.clrsnap "$pid" 2> $turn.err &
      recorder=$!
      for _ in $(seq 200); do [ -s $turn.clrsnap ] && break; sleep 0.05; done
      sleep 0.5
    fi
    run_batch $turn
    [ $turn = unseen ] && continue
    kill -INT $recorder 2> /dev/null # the last one may have ended with the program
    wait $recorder || { cat $turn.err; fail "the recording $turn"; }
    holds truth.$turn $turn.clrsnap cpu early
  done
  exec 3>&-
  wait $child || { cat said.err; fail "the program's end"; }
  [ ! -s said.err ] || { cat said.err; fail "the program says something"; }
  pass "two recordings of one process"
}

# Thousands of changes per second, observed from outside in wall mode.
switching() {
  timeout 300 "$clrsnap" record --labels --mode wall -F 2000 --buffer 64 -o s.clrsnap -- "${target[@]}" switch 3 > truth 2> err ||
    { cat err; fail "the recording"; }
  holds truth s.clrsnap wall wall
  pass "$(sed -n 's/^clrsnap: \(labels: .*\)/\1/p' err)"
}

# Programs for which the hook is useless: without an agent, on an older runtime, without startup hooks.
others() {
  DOTNET_STARTUP_HOOKS=$BUILD/lib/ClrsnapLabels.dll timeout 300 "${target[@]}" 1 > out 2>&1 || { cat out; fail "the hook alone"; }
  [ "$(grep -c ^label out)" = 6 ] && [ "$(wc -l < out)" = 6 ] || { cat out; fail "the hook alone"; }
  cp "$MATERIAL"/apps/Labels/* . && sed -i 's/"configProperties": {/&"System.StartupHookProvider.IsSupported": false,/' Labels.runtimeconfig.json
  grep -q StartupHookProvider Labels.runtimeconfig.json || fail "no configProperties: $(cat Labels.runtimeconfig.json)"
  timeout 300 "$clrsnap" record --labels -o off.txt -- dotnet Labels.dll 2 > out 2> err || { cat err; fail "without startup hooks"; }
  grep -q '^clrsnap: no labels: the program did not run the startup hook' err || { cat err; fail "no word about hooks"; }
  # Another build of clrsnap has recorded the process before: its hook is the only one that it can have.
  mkdir -p other/bin other/lib && cp "$clrsnap" other/bin && cp "$BUILD"/lib/{ClrsnapLabels.dll,libclrsnap.so} other/lib
  mkfifo lines
  timeout 300 "${target[@]}" 10 3 < lines > said 2> said.err &
  exec 3> lines
  for _ in $(seq 600); do grep -q ^batch said && break; sleep 0.05; done
  pid=$(pgrep -P $!) || fail "the program does not start"
  timeout 300 other/bin/clrsnap record --labels -d 0.3 -o first.txt "$pid" 2> err || grep -q "nothing was sampled" err || { cat err; fail "the other build"; }
  grep -q '^clrsnap: no labels: no sample was taken while' err || { cat err; fail "the other build has no hook"; }
  timeout 300 "$clrsnap" record --labels -d 0.3 -o second.txt "$pid" 2> err || grep -q "nothing was sampled" err || { cat err; fail "after the other build"; }
  grep -q '^clrsnap: no labels: the process runs the startup hook of another build .*/other/lib/ClrsnapLabels.dll, and' err ||
    { cat err; fail "no word about the other build's hook"; }
  kill "$pid"
  exec 3>&-
  get_runtimes
  build_app Old
  for v in 8.0.33; do
    run_on $v "$APP" > want
    timeout 300 env CLRSNAP_RUNTIMES="$MATERIAL/runtimes" "$clrsnap" record --labels -o old.html -- "$SOURCE/scripts/dotnet-with" $v "$APP" > out 2> err
    [ $? = 7 ] && cmp want out || { cat out err; fail "$v: the program is harmed"; }
    grep -q 'nothing was recorded: this program runs on' err || { cat err; fail "$v: no reason"; }
  done
  pass "four kinds of programs are unharmed"
}

# sums WANTED FILE: of the stacks in FILE (tests/tools/otlp.py) that WANTED matches, the sum by what they say of the request.
sums() {
  WANTED=$1 python3 - "$2" << 'PYTHON'
import collections, os, re, sys

sums = collections.Counter()
for line in open(sys.argv[1]):
    attributes, bar, rest = line.rstrip("\n").partition("|")
    stack, _, value = rest.rpartition("|")
    if bar and re.search(os.environ["WANTED"], stack):
        said = dict(a.split("=", 1) for a in re.findall(r"(?:http[.][a-z._]+|http_status|endpoint)=[^,]*", attributes))
        method, route = said.get("http.request.method"), said.get("http.route")
        endpoint = said.get("endpoint", f"{method} {route}" if route else "-")
        sums[endpoint + " " + said.get("http.response.status_code", said.get("http_status", "-"))] += int(value)
for name, value in sorted(sums.items()):
    print(name, value)
PYTHON
}

requests() {
  build_app Middleware
  timeout 300 "$clrsnap" record "${PERF[@]}" --labels --mode cpu,exception --event-rate 1000000 -F 499 -o r.clrsnap -- dotnet "$APP" 40 > truth 2> err ||
    { cat err; fail "the recording"; }
  [ "$(grep -c '^answered .* 40$' truth)" = 3 ] && [ "$(grep -c ^thrown truth)" = 2 ] || { cat truth; fail "the service"; }
  sed -n 's/^thrown \(.*\) \([0-9]*\)$/GET \1 500 \2/p' truth | sort > want
  for mode in cpu exception; do
    "$clrsnap" report --mode $mode -o $mode.pb.gz -o $mode.otlp r.clrsnap 2> report.err || { cat report.err; fail "report"; }
    python3 "$SOURCE/tests/tools/otlp.py" --pprof $mode.pb.gz > $mode.pprof.text || fail "pprof cannot be read"
    python3 "$SOURCE/tests/tools/otlp.py" $mode.otlp > $mode.otlp.text || fail "OTLP cannot be read"
  done
  for form in pprof otlp; do
    # Each throw and rethrow of each request, with its own route and status.
    sums 'Broken' exception.$form.text > exceptions
    cmp exceptions want || { echo "wanted:"; cat want; echo "$form has:"; cat exceptions; fail "exceptions have other routes"; }
    sums Burn cpu.$form.text > burns
    [ "$(sed 's/ [0-9]*$//' burns | tr '\n' ';')" = "GET /fine/{id:int} 200;GET /late/{id:int} 500;GET /sudden/{id:int} 500;" ] ||
      { cat burns; fail "$form: what the endpoints use has other routes"; }
  done
  # The readers that people use.
  if have go; then
    go tool pprof -sample_index=exceptions -tagfocus='http_status=500' -tagfocus='endpoint=late' -tags exception.pb.gz > tags 2> /dev/null ||
      fail "go tool pprof"
    grep -A3 '^ *endpoint:' tags | grep -q 'GET /late/{id:int}' && grep -q '^ *http_status:' tags || { cat tags; fail "go tool pprof has no such tags"; }
  fi
  if have protoc; then
    protoc --decode_raw < exception.otlp > raw || fail "protoc cannot read it"
    for word in http.request.method http.route http.response.status_code /late/{id:int}; do
      [ "$(grep -cF "\"$word\"" raw)" -ge 1 ] || fail "protoc sees no $word"
    done
  fi
  pass "$(tr '\n' ';' < want)"
}

# The hook is compiled against .NET 10: what it uses of the core library and of ASP.NET Core's events exists here, too.
members() {
  "${target[@]}" members "$BUILD/lib/ClrsnapLabels.dll" > out 2>&1 || { cat out; fail "a method of the hook cannot be compiled"; }
  [ "$(sed -n 's/^compiled //p' out)" -gt 40 ] || { cat out; fail "too few methods"; }
  pass "$(cat out)"
}

case $WHAT in
  requests) requests ;;
  members) members ;;
  start) from_start && long_names && many_names ;;
  attach) attached ;;
  switch) switching ;;
  others) others ;;
esac
