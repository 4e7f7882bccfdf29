#!/bin/bash
# SPDX-License-Identifier: MIT
# A recording whose samples stand for unequal times: every output has the same shares, which are shares of the time, and
# says so. 10 % of the samples (4 of 40) are in lambda_method1, with 60.87 % of the time in itself.
. "$(dirname "$0")/lib.sh"
here=$(cd "$OLDPWD" && cd "$(dirname "$0")" && pwd)
methods="lambda_method1 System.Linq.Enumerable.Sum Shop.Late.Comer"
printf 'truth %s\n' 'lambda_method1 60' 'System.Linq.Enumerable.Sum 24' 'Shop.Late.Comer 8' >truth
formats="html:html collapsed:collapsed json:json text:txt pprof:pb.gz otlp:otlp speedscope:speedscope.json
  firefox:firefox.json chromium:trace.json"

# shellcheck disable=SC2046
run 0 "$CLRSNAP" record -o uneven.clrsnap $(for f in $formats; do echo "-o uneven.${f#*:}"; done) --top 3 -- "$FAKE" uneven
sed -n '/method, by/,/wrote/p' err | sed '$d' >top
same top <<'T'
clrsnap:    self   total  samples  method, by its share (+-30.5 points) of 92.00 ms of CPU time; what is inlined is its caller's
clrsnap:  60.9 %   65.2 %        4  lambda_method1
clrsnap:  26.1 %   26.1 %       24  System.Linq.Enumerable.Sum
clrsnap:   8.7 %    8.7 %        8  Shop.Late.Comer
T
for f in $formats; do
  # shellcheck disable=SC2086
  python3 "$here/../formats/shares.py" --check --within 0.02 "${f%:*}" "uneven.${f#*:}" $methods <truth >shares ||
    { cat shares; fail "${f%:*} has other shares"; }
done
grep -q '92.00 ms of CPU time' uneven.txt && grep -q 'frame (shares of CPU time;' uneven.txt || fail "text has no unit: $(cat uneven.txt)"
grep -q '^ 78.26 %    0.00 %        20  thread (101)$' uneven.txt || fail "a thread's share: $(cat uneven.txt)"
run 0 "$CLRSNAP" report -o - uneven.clrsnap
cmp -s out <("$CLRSNAP" report --format text --threads grouped -o - uneven.clrsnap 2>/dev/null) ||
  fail "standard output is not text"

# Compared with itself, nothing has changed: both sides have the shares.
run 0 "$CLRSNAP" diff --format json -o diff.json uneven.clrsnap uneven.clrsnap
run 0 "$CLRSNAP" diff -o diff.collapsed uneven.clrsnap uneven.clrsnap
run 0 "$CLRSNAP" record -o golden.clrsnap -- "$FAKE" golden
run 0 "$CLRSNAP" diff golden.clrsnap uneven.clrsnap
grep -q "^numbers are percent of each recording's CPU time$" out || fail "diff says no unit: $(cat out)"
grep -Eq '^ +\+[0-9.]+ +9.09 +60.87 +\+[0-9.]+ +9.09 +65.22  lambda_method1$' out || fail "diff: $(cat out)"
for when in before after; do
  column=$([ $when = before ] && echo 2 || echo 1)
  awk -v c=$column '{ value = $(NF - c + 1); sub(/ [0-9]+ [0-9]+$/, ""); print $0, value }' diff.collapsed >side.collapsed
  # shellcheck disable=SC2086
  python3 "$here/../formats/shares.py" --check --within 0.02 collapsed side.collapsed $methods <truth >shares ||
    { cat shares; fail "diff's stacks have other shares $when"; }
done
# shellcheck disable=SC2086
python3 "$here/../formats/shares.py" --check --within 0.02 json diff.json $methods <truth >shares ||
  { cat shares; fail "diff's JSON has other shares"; }

# Live: the window is as long as the recording.
run 0 timeout 300 "$CLRSNAP" top --json --interval 1 --window 60 -n 1 -- "$FAKE" uneven-lingers
python3 - <<'P' out || fail "top: $(cat out err)"
import json, sys
moment = json.loads(open("out").readline())
shares = {m["name"]: (m["self_percent"], m["total_percent"]) for m in moment["methods"]}
assert shares["lambda_method1"] == (60.87, 65.22) and shares["System.Linq.Enumerable.Sum"] == (26.09, 26.09), shares
assert moment["shares_of"] == "CPU time", moment
P
run 0 timeout 300 "$CLRSNAP" top --text --interval 1 --window 60 -n 1 -- "$FAKE" uneven-lingers
grep -q 'by self, % of CPU time$' out && grep -Eq '^ +60.9 +65.2  lambda_method1' out || fail "top: $(cat out)"
done_testing
