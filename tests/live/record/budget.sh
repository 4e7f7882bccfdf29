#!/bin/bash
# SPDX-License-Identifier: MIT
# budget.sh BUILD SOURCE MATERIAL: with a budget that is too small the rate is lowered, which the summary says;
# with one that is never reached the rate stays. At any rate a sample stands for the right amount of time:
# the program's methods have their time, each and in total.
BUILD=$1 SOURCE=$2 MATERIAL=$3
. "$SOURCE/tests/live/lib.sh"
build_app Split
cd "$WORK" || exit 1
bad() { cat err truth; fail "$*"; }
by_perf
engine=("${PERF[@]}")
# record OPTIONS...
record() {
  timeout 300 "$BUILD/bin/clrsnap" record -F 999 "${engine[@]}" "$@" -o live.clrsnap -o live.pb.gz -- dotnet "$APP" "$seconds" \
    > truth 2> err || bad "record $*"
  read -r least last changes < <(sed -nE \
    's/^clrsnap:   rate 999 Hz, at least ([0-9]+), at last ([0-9]+); changed ([0-9]+) times?$/\1 \2 \3/p' err)
  [ -n "$changes" ] || bad "nothing is said of the rate"
}

seconds=1
record --budget 100%
[ "$least $last $changes" = "999 999 0" ] || bad "100 % is too little: $least, $last, $changes"
grep -Eqx 'clrsnap: budget 100 %: used [0-9.e-]+ % of a processor \(agent [0-9.e-]+, handlers [0-9.e-]+, command [0-9.e-]+\)' err ||
  bad "nothing is said of the budget"

# The rate comes down within a few seconds; until then there are samples enough to be exact.
seconds=6
record --budget 0.15%
[ "$least" -lt 500 ] && [ "$changes" -gt 1 ] || bad "0.15 %: the rate stays at $least, changed $changes times"
"$BUILD/bin/clrsnap" report -o live.json live.clrsnap 2> report.err || bad "report as JSON"
python3 "$SOURCE/tests/tools/otlp.py" --pprof live.pb.gz > stacks || bad "the profile"
LAST=$last python3 - << 'PY' || bad "the weights are not those of the rates"
import json
import os
import sys
truth = {line.split()[1]: int(line.split()[2]) for line in open("truth") if line.startswith("truth")}
found = dict.fromkeys(truth, 0)
for line in open("stacks"):
    if "|" not in line:
        continue
    _, stack, weight = line.split("|")
    for method in truth:
        if method in stack:
            found[method] += int(weight)
whole, true = sum(found.values()), sum(truth.values())
# A share's standard deviation is at most 0.5 / sqrt(n) for n samples of equal weight; these are worth fewer.
weights = json.load(open("live.json"))["modes"][0]["timeWeight"]
worth = sum(weights) ** 2 / sum(w * w for w in weights)
margin = max(0.05, 4 * 0.5 / worth ** 0.5)
print(f"{len(weights)} samples, worth {worth:.0f}, within {100 * margin:.1f} points: {100 * whole / true:.2f} % of the time;",
      *(f"{m} {100 * found[m] / whole:.2f} % (truly {100 * truth[m] / true:.2f})" for m in truth))
# What follows the last sample, of a period and a half at most, has none.
tail = 1.6e9 / int(os.environ["LAST"])
sys.exit(not 0.9 * true - tail <= whole <= 1.1 * true or any(abs(found[m] / whole - truth[m] / true) > margin for m in truth))
PY
"$BUILD/bin/clrsnap" report --top 1 live.clrsnap 2> report.err || bad "report"
diff <(grep -A1 budget err) <(grep -A1 budget report.err) || bad "the recording has another budget"

# Wall mode: a thread has as many samples as the rate allows, and they stand for its time.
seconds=2
engine=()
record --budget 0.15% --mode wall
[ "$least" -lt 500 ] || bad "wall: the rate stays at $least"
# Over several modes: exceptions, waits and objects by the ten thousand, each walk of which would cost ten times what is allowed,
# and CPU samples, which keep their share.
wall=$(sed -n 's/^clrsnap: \(budget.*\)/\1/p' err) walls=$least
build_app Costs
timeout 300 "$BUILD/bin/clrsnap" record -d 6 --mode cpu,exception,wait,alloc --budget 3% -o modes.clrsnap -- dotnet "$APP" \
  < <(sleep 8) > truth 2> err || bad "several modes"
read -r used least < <(sed -nE 's/^clrsnap: budget 3 %: used ([0-9.]+) .*/\1/p; s/^clrsnap:   rate 499 Hz, at least ([0-9]+), .*/\1/p' err | tr '\n' ' ')
awk -v used="$used" 'BEGIN { exit !(used != "" && used < 7.5) }' || bad "several modes used $used % of a processor, 3 are allowed"
[ "$least" -ge 20 ] || bad "events have taken what CPU samples may use: $least Hz"
for mode in exceptions waits "sampled objects"; do
  grep -Eq "[0-9]{4,} $mode.* of them walked" err || bad "not all $mode were counted, or all were walked"
done
least=$walls
pass "several modes used $used % of 3; the rate came down to $least in wall mode, $wall"
