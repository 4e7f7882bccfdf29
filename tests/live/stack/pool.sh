#!/bin/bash
# SPDX-License-Identifier: MIT
# pool.sh BUILD SOURCE MATERIAL [VERSION]: what `clrsnap stack`, `clrsnap top` and a recording say of the thread pool: one that is starved, with the method and
# the line that its workers wait in and the exact number of queued items; and that an idle one, one under full load and
# one whose workers wait for a moment each are not called starved.
BUILD=$1 SOURCE=$2 MATERIAL=$3
. "$SOURCE/tests/live/lib.sh"
CLRSNAP=$BUILD/bin/clrsnap
if [ $# = 4 ]; then on_older PoolOld "$4"; else build_app Pool && target=(dotnet "$APP"); fi

# launch_app STATE: PID is the program, and its pool is in that state.
end() {
  kill "$PID"
  wait $LAUNCHER 2> /dev/null
}
# pool CHECK: CHECK, in Python, holds for `pool`, the thread pool as JSON.
pool() {
  "$CLRSNAP" stack --json "$PID" > "$WORK/json" || fail "stack --json"
  python3 -c 'import json, sys; pool = json.load(open(sys.argv[1]))["thread_pool"]
assert eval(sys.argv[2]), pool' "$WORK/json" "$1"
}

# top CHECK [COUNT]: CHECK holds for `pool`, the thread pool in one of COUNT lines of `top --json`.
top() {
  timeout 300 "$CLRSNAP" top --json --interval 1 -n "${2:-90}" "$PID" 2> "$WORK/err" |
    python3 -c 'import json, sys
for line in sys.stdin:
    pool = json.loads(line)["thread_pool"]
    if pool and eval(sys.argv[1]): sys.exit(0)
sys.exit("no such line, the last one was " + line)' "$1"
}

# recorded REGEX: so says the summary of a recording in wall mode. It lasts until there have been three scans, however slow
# the machine is.
# With CAUSE, it also says that as the cause of a starved pool.
recorded() {
  local duration scans cause=${2:-}
  for duration in 3 20 60; do
    timeout 300 "$CLRSNAP" record --mode wall --lines -F 20 -d $duration -o "$WORK/r.clrsnap" "$PID" > "$WORK/err" 2>&1 || { cat "$WORK/err"; fail "record"; }
    scans=$(sed -nE 's/^clrsnap: pool: .* ([0-9]+) scans?.*/\1/p' "$WORK/err")
    [ "${scans:-0}" -ge 3 ] && break
  done
  [ -z "$cause" ] || grep -qE "^clrsnap: the pool is starved: $cause [(]at [0-9.]+ s[)]\$" "$WORK/err" || { cat "$WORK/err"; fail "the recording does not say the cause: $cause"; }
  grep -qE "^clrsnap: pool: $1\$" "$WORK/err" || { cat "$WORK/err"; fail "the recording does not say: $1"; }
  "$CLRSNAP" report -o "$WORK/r.md" "$WORK/r.clrsnap" 2> "$WORK/report.err" || { cat "$WORK/report.err"; fail "report"; }
  grep -qxF "$(grep '^clrsnap: pool: ' "$WORK/err")" "$WORK/report.err" || { cat "$WORK/report.err"; fail "report does not say the same"; }
  grep -qE "^Thread pool: $1[.]\$" "$WORK/r.md" || { cat "$WORK/r.md"; fail "the page does not say: $1"; }
  [ -n "$cause" ] || return
  diff <(grep 'pool is starved' "$WORK/err") <(grep 'pool is starved' "$WORK/report.err") || fail "report does not say the same cause"
  grep -qE "^[*][*]the pool is starved: $cause [(]at [0-9.]+ s[)][.][*][*]\$" "$WORK/r.md" || { cat "$WORK/r.md"; fail "the page does not say the cause: $cause"; }
}

launch_app starved
line() { grep -n "$1" "$SOURCE/tests/apps/Pool/Program.cs" | cut -d: -f1; }
line=$(line "it waits here") held=$(line "it is held here")
at=" (Program.cs:$line)" pattern=" [(]Program.cs:$line[)]" recorded=" [(]Program.cs:$line[)]"
[ $# = 3 ] || line=None held=None at= pattern=  # a recording has them
settled() { pool '(pool["workers"], pool["waiting"], pool["running"], pool["idle"]) == (8, 8, 0, 0)' 2> /dev/null; }
until_true 20 settled || fail "the workers"
pool '(pool["min"], pool["max"], pool["queued"], pool["queued_local"]) == (8, 8, 32, 7)' || fail "the queues"
pool "pool['starved'] and pool['completed'] == $(cut -d' ' -f3 "$WORK/said")" || fail "completed"
pool "[(w['workers'], w['in'], w['at'], w.get('line')) for w in pool['waits']] == [
  (7, 'Task.Wait', 'Program.Blocking', $line), (1, 'ManualResetEventSlim.Wait', 'Program.Held', $held)]" || fail "the places"
"$CLRSNAP" stack "$PID" > "$WORK/text" || fail "stack"
grep -qxF "The pool is starved: 7 of 8 workers wait in Task.Wait at Program.Blocking$at; 32 items queued" \
  "$WORK/text" || { head -8 "$WORK/text"; fail "the sentence"; }
# Those that wait at one place are one group, with the numbers of all; or one after the other.
grep -A1 -x '7 threads ".NET TP Worker": waiting in futex for a task' "$WORK/text" | grep -qE '^  tids [0-9]+(, [0-9]+){6}$' ||
  { cat "$WORK/text"; fail "the group"; }
"$CLRSNAP" stack --each "$PID" > "$WORK/each" || fail "stack --each"
[ "$(grep -cE '^Thread [0-9]+ ".NET TP Worker": waiting in futex for a task$' "$WORK/each")" = 7 ] || { cat "$WORK/each"; fail "--each"; }
top '(pool["starved"], pool["workers"], pool["asleep"], pool["queued"]) == (True, 8, 8, 32)' || fail "top: a starved pool"
top "pool['starved'] and [pool.get('wait', {}).get(k) for k in ('place', 'waiting', 'workers', 'queued')] == [
  'Task.Wait at Program.Blocking$at', 7, 8, 32]" || fail "top: where its workers wait"
timeout 300 "$CLRSNAP" top --text --interval 1 -n 90 "$PID" 2> "$WORK/err" |
  grep -qE "^the pool is starved: 7 of 8 workers wait in Task.Wait at Program.Blocking$pattern; 32 items queued \([0-9]+ s ago\)\$" ||
  fail "top does not say where the workers wait"
recorded '8 workers, at most 32 items queued [(]at [0-9.]+ s[)]; starved in [0-9]+ of [0-9]+ scans( .*)?' \
  "7 of 8 workers wait in Task.Wait at Program.Blocking$recorded; 32 items queued"
end
pass "a starved pool"

launch_app idle
pool 'not pool["starved"] and pool["queued"] == 0 and pool["completed"] >= 100 and pool["waiting"] == 0' || fail "an idle pool"
end
launch_app busy
for _ in 1 2 3; do pool 'not pool["starved"] and pool["completed"] > 0' || fail "a pool under load"; done
end
launch_app brief
recorded '.*; not starved in [0-9]+ scans.*'
for _ in 1 2 3; do pool 'not pool["starved"] and pool["completed"] > 0' || fail "a pool whose workers wait for a moment"; done
top 'pool["completed_per_s"] > 0' || fail "top: a pool that works"
! top 'pool["starved"]' 4 2> "$WORK/top" || fail "top: a pool whose workers wait for a moment"
grep -q "no such line" "$WORK/top" || { cat "$WORK/top"; fail "top: nothing was seen"; }
end
pass "pools that are not starved"
