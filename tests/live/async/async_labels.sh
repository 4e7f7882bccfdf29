#!/bin/bash
# SPDX-License-Identifier: MIT
# async_labels.sh BUILD SOURCE MATERIAL: record --mode wall --async --labels of tests/apps/Awaited, a Kestrel service that counts
# for how long the requests of each of its routes, and its jobs, await. Every sample of a route's methods has that route, also where
# requests of two routes await one method, and whatever else is in their contexts; and each route has the share of the
# time that the service itself has counted.
BUILD=$1 SOURCE=$2 MATERIAL=$3
. "$SOURCE/tests/live/lib.sh"
CLRSNAP=$BUILD/bin/clrsnap
[ -f "$BUILD/lib/ClrsnapLabels.dll" ] || skip "src/agent/labels is not built: there is no SDK of .NET 10"
build_app Awaited
cd "$WORK" || exit 1
mkfifo in

# said TEXT: waits until the service says it.
said() {
  for _ in $(seq 1200); do
    grep -qx "$1" out && return
    [ -e "/proc/$launcher" ] || break
    sleep 0.05
  done
  cat out app.err; fail "the service does not say '$1'"
}

# The requests begin after the recording has: labels of others are not known.
record() {
  timeout -k 5 200 dotnet "$APP" < in > out 2> app.err &
  launcher=$!
  exec 3> in
  said listening
  PID=$(pgrep -P $launcher) || fail "the service has ended"
  "$CLRSNAP" record --mode wall --async --labels --lines -F 20 -o r.clrsnap "$PID" > /dev/null 2> err &
  local command=$!
  echo begin >&3
  said ready
  sleep "$1"
  echo count >&3
  said counted
  kill -INT $command
  wait $command || { cat err; fail "record"; }
  exec 3>&-
  wait $launcher || { cat app.err; fail "the service ended with $?"; }
}

for duration in 6 30 60; do
  record $duration
  scans=$(sed -nE 's/.*async mode: ([0-9]+) scans? for .*/\1/p' err)
  [ "${scans:-0}" -ge 16 ] && break
done
[ "${scans:-0}" -ge 8 ] || { cat err; fail "$scans scans in $duration s"; }
! grep -q "could not be read" err || { cat err; fail "a context has a form that is not known"; }

"$CLRSNAP" report --mode async --by-route --format collapsed -o by.txt r.clrsnap 2> report.err || { cat report.err; fail "report --by-route"; }
"$CLRSNAP" report --mode async --route '/second/{id:int}' --format collapsed -o second.txt r.clrsnap 2> report.err || { cat report.err; fail "report --route"; }
grep -q Second.GetAsync second.txt && ! grep -vq Second.GetAsync second.txt || { cat second.txt; fail "--route has something else"; }
# Each route is named once, however many requests there were.
"$CLRSNAP" report --route /nothing -o none.txt r.clrsnap 2> report.err && fail "a route that is not there"
[ "$(grep -oF 'GET /left/{id:int}' report.err | wc -l)" = 1 ] || { cat report.err; fail "a route is not named once"; }

cat > shares.py << 'END'
import sys

ROUTES = {"GET /first": "First.GetAsync", "GET /second/{id:int}": "Second.GetAsync", "GET /span/{id:int}": "Child.GetAsync",
          "job": "Job.RunAsync", "GET /left/{id:int}": "Left.GetAsync", "PUT /right/{name}": "Right.GetAsync"}
truth = {}
for line in open("out"):
    if line.startswith("counted "):
        route, ms = line[len("counted "):].rsplit(" ", 1)
        truth[route] = int(ms)
# A route that awaits only part of the time is met by chance: of so many requests, with probability p in each scan.
CLIENTS, SCANS = {"GET /left/{id:int}": 5, "PUT /right/{name}": 4}, int(sys.argv[2])
margins = {}
for route in truth:
    p, clients = 1, CLIENTS.get(route, 1)
    if route in CLIENTS:
        p = min(truth[route] / (clients * truth["GET /first"]), 1)
    margins[route] = max(0.2, 4 * ((1 - p) / (p * clients) / (SCANS / 2)) ** 0.5)
if sys.argv[3:] == ["swapped"]:
    truth["GET /left/{id:int}"], truth["GET /first"] = truth["GET /first"], truth["GET /left/{id:int}"]
found = dict.fromkeys(ROUTES, 0)
for line in open(sys.argv[1]):
    stack, weight = line.rstrip("\n").rsplit(" ", 1)
    for route, method in ROUTES.items():
        if method in stack:
            assert stack.startswith(route + ";"), f"not {route}: {stack}"
            found[route] += int(weight)
assert truth.keys() == found.keys(), truth
for route, ns in found.items():
    share, counted = ns / sum(found.values()), truth[route] / sum(truth.values())
    print(f"{route}: {100 * share:.1f} %, the service counts {100 * counted:.1f} %")
    assert abs(share - counted) < margins[route] * counted, f"{route} has a wrong share"
END
python3 shares.py by.txt "$scans" || { cat err; fail "routes and shares"; }
# The check notices a wrong share, a label that is missing, and one that is another request's.
python3 shares.py by.txt "$scans" swapped > /dev/null 2>&1 && fail "wrong shares are not noticed"
sed 's/^job;//' by.txt > without.txt
python3 shares.py without.txt "$scans" > /dev/null 2>&1 && fail "missing labels are not noticed"
sed 's/^GET .second[^;]*;/GET \/first;/' by.txt > other.txt
python3 shares.py other.txt "$scans" > /dev/null 2>&1 && fail "wrong labels are not noticed"
pass "$scans scans"
