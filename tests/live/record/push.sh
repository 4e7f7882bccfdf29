#!/bin/bash
# SPDX-License-Identifier: MIT
# push.sh BUILD SOURCE MATERIAL: a .NET program in three modes, pushed in windows while it is recorded into a
# file. Each mode is a profile of its own in each window that has samples of it, with a unique id, and all
# windows together have the file's stacks and sums, under the same labels.
BUILD=$1 SOURCE=$2 MATERIAL=$3
. "$SOURCE/tests/live/lib.sh"
unset "${!OTEL_@}" CLRSNAP_PUSH_HEADERS http_proxy all_proxy HTTP_PROXY ALL_PROXY
build_app Labels
cd "$WORK" || exit 1
mkdir server
python3 "$SOURCE/tests/tools/collector.py" server 200 &
collector=$!
trap 'kill $collector 2> /dev/null; rm -rf "$WORK"' EXIT
for _ in $(seq 200); do [ -s server/port ] && break; sleep 0.05; done

timeout 300 "$BUILD/bin/clrsnap" record --labels --mode cpu,wall,alloc --push "otlp+http://127.0.0.1:$(cat server/port)" \
  --continuous 400ms -o file.clrsnap -- dotnet "$APP" 20 > truth 2> err || { cat err; fail "the recording"; }
pushed=$(sed -n 's/^clrsnap: pushed \([0-9]*\) profiles .*; lost 0, rejected 0$/\1/p' err)
[ "${pushed:-0}" = "$(find server -name '*.body' | wc -l)" ] && [ "$pushed" -ge 7 ] ||
  { cat err; fail "$pushed profiles"; }

decoded() { python3 "$SOURCE/tests/tools/otlp.py" "$1" || fail "otlp.py $1"; }
# sums: without threads, whose names may arrive later.
sums() {
  awk -F'|' 'NF == 3 { label = match($1, /trace_id=.*/) ? substr($1, RSTART) : ""; n[label "|" $2] += $3 }
    END { for (s in n) printf "%s|%.0f\n", s, n[s] }' | sort
}
for body in server/*.body; do decoded "$body" > "$body.text"; done
for mode in cpu:cpu wall:wall alloc:alloc_space; do
  "$BUILD/bin/clrsnap" report --mode "${mode%:*}" -o whole.otlp file.clrsnap 2> report.err ||
    { cat report.err; fail "report --mode ${mode%:*}"; }
  grep -l "^profile ${mode#*:} " server/*.text > windows || fail "no window of ${mode%:*}"
  decoded whole.otlp | sums > whole
  xargs cat < windows | sums | diff whole - > difference || { cat difference; fail "${mode%:*}: windows and file differ"; }
  [ $mode = alloc:alloc_space ] || grep -q '^trace_id=' whole || fail "${mode%:*}: no labels"
  echo "${mode%:*}: $(wc -l < windows) windows, $(wc -l < whole) stacks"
done
[ "$(cat server/*.text | grep '^id' | sort -u | wc -l)" = "$pushed" ] || fail "two profiles have one id"
[ "$(cat server/*.text | grep '^resource service.name' | sort -u)" = "resource service.name Labels" ] || fail "whose it is"
pass "$pushed profiles"
