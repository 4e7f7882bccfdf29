#!/bin/bash
# SPDX-License-Identifier: MIT
# symptoms.sh BUILD SOURCE MATERIAL WHAT: the commands of docs/symptoms.md find the faults of the service in tests/apps/Soa:
# the line that is marked "cause: FAULT" in its source, and nothing of the endpoint without a fault, which is under load,
# too. WHAT is
#   busy     faults of a service that answers slowly: one recording of all of them
#   stuck    faults of requests that wait, for ever or for long: a deadlock, a lock and who holds it, an await that never
#            completes, an async semaphore, slow awaits
#   starved  a pool whose threads all wait
BUILD=$1 SOURCE=$2 MATERIAL=$3 WHAT=$4
. "$SOURCE/tests/live/lib.sh"
build_app Soa
cd "$WORK" || exit 1
clrsnap=$BUILD/bin/clrsnap
source=$SOURCE/tests/apps/Soa/Faults.cs

# cause METHOD FAULT: METHOD (Faults.cs:LINE) of the line that is marked so; the document has that line, too.
cause() {
  local line
  line=$(grep -n "// cause: $2\$" "$source") || fail "no line is marked with $2"
  grep -qF "Faults.cs:${line%%:*}" "$SOURCE/docs/symptoms.md" || fail "docs/symptoms.md has another line for $2 than ${line%%:*}"
  echo "Soa.$1 (Faults.cs:${line%%:*})"
}
# said TEXT: waits until the service says it.
said() {
  for _ in $(seq 2400); do
    grep -qx "$1" out && return
    [ -e "/proc/$child" ] || break
    sleep 0.05
  done
  cat out err; fail "the service does not say '$1'"
}
# under_load FAULT...
under_load() {
  local fault
  for fault in "$@"; do echo "$fault" >&3; done
  for fault in "$@"; do said "ready $fault"; done
}

mkfifo in
timeout 1200 dotnet "$APP" < in > out 2> err &
child=$!
exec 3> in
said "ready health"
PID=$(pgrep -P $child) || fail "the service has ended"

# own MODE [LEAF]: the lines of the service's own code, each with its share in per cent of what own code has, the largest
# first: of each stack the innermost. With LEAF, of the stacks that end there.
own() {
  "$clrsnap" report --mode "$1" --format collapsed -o - slow.clrsnap 2> report.err > stacks || { cat report.err; fail "report --mode $1"; }
  awk -F';' -v leaf="${2:-}" '{ n = $NF; sub(/.* /, "", n); sub(/ [0-9]+$/, "", $NF) }
    leaf == "" || $NF == leaf { for (i = NF; i > 0; i--) if ($i ~ /^Soa[.]/ && $i !~ /^Soa[.]Load/) { all += n; own[$i] += n; break } }
    END { for (f in own) printf "%.2f %s\n", 100 * own[f] / all, f }' stacks | sort -rn
}
# named FAULT MODE CAUSE [LEAF]: CAUSE has most of MODE's own code, and the healthy endpoint next to nothing.
named() {
  own "$2" "${4:-}" > shares
  [[ $(head -1 shares) == *" $3" ]] || { head -5 shares; fail "$1: mode $2 does not name $3"; }
  ! grep -q '^[0-9][0-9.]* Soa.Health' <(awk '$1 > 5' shares) || { cat shares; fail "$1: mode $2 names the healthy endpoint"; }
  echo "$1: $(head -1 shares)"
}
# beside FAULT CAUSE FRAME: CAUSE is in wall mode, directly or indirectly above FRAME; the healthy endpoint never is.
beside() {
  own wall > shares
  awk -v cause="$2" -v frame="$3" 'BEGIN { FS = ";" } { at = 0; sub(/ [0-9]+$/, "")
    for (i = 1; i <= NF; i++) if ($i == cause) at = 1; else if ($i ~ /^Soa[.]Health/) at = 2; else if ($i == frame && at == 1) found = 1
      else if ($i == frame && at == 2) wrong = 1 } END { exit wrong || !found }' stacks || { head -20 shares; fail "$1: not $3 below $2"; }
  echo "$1: $2 above $3"
}

# Where the lock is held while requests wait for it, and what the lock's object is.
held() {
  local line
  line=$(grep -n "// holder: stock\$" "$source") || fail "no line is marked as the holder"
  line="Soa.Stock.AuditAll (Faults.cs:${line%%:*})"
  own holders "[holds System.Object]" > shares
  awk -v line="$line" 'index($0, line) && $1 >= 90 { found = 1 } END { exit !found }' shares ||
    { head -5 shares; fail "holders mode does not have $line with 90 % or more"; }
  echo "holder: $(head -1 shares)"
}

# The lock's endpoint by name, in place of the delegate's, and alone.
routes() {
  local line
  line="[endpoint] GET /stock/{id:int};$(cause Stock.Reserve stock);"
  own lock > shares
  "$clrsnap" report --mode lock --format collapsed -o all.stacks slow.clrsnap 2> /dev/null
  grep -qF "$line" stacks || { head -5 stacks; fail "lock mode has no $line"; }
  # What the JIT inlines into a delegate is the endpoint's own code.
  "$clrsnap" report --mode lock -o lock.json slow.clrsnap 2> report.err || { cat report.err; fail "report -o lock.json"; }
  python3 -c 'import json, sys; m = json.load(open("lock.json"))["modes"][0]
assert "user" in {m["kinds"][k][0] for n, _, k in zip(*[iter(m["frames"])] * 3) if m["strings"][n] == sys.argv[1]}' "${line%%;*}" ||
    fail "${line%%;*} is not own code"
  "$clrsnap" report --mode cpu,wall,lock --route '/stock/{id:int}' -o route.txt slow.clrsnap 2> report.err || { cat report.err; fail "--route"; }
  grep -qF "$(cause Stock.Reserve stock)" route.txt || fail "--route leaves its own samples out"
  ! grep -E 'Soa[.](Health|Search|Audit)|lambda_method' route.txt || fail "--route has samples of others"
  "$clrsnap" report --mode lock --by-route -o by.collapsed slow.clrsnap 2> report.err || { cat report.err; fail "--by-route"; }
  grep -qF "^${line#* }" <(sed "s/^/^/" by.collapsed) || { head -5 by.collapsed; fail "--by-route has no ${line#* }"; }
  [ "$(awk '{ n += $NF } END { printf "%.0f", n }' by.collapsed)" = "$(awk '{ n += $NF } END { printf "%.0f", n }' all.stacks)" ] ||
    fail "--by-route changes the sum"
  echo "route: $line"
}

# Requests of one route by their status.
statuses() {
  "$clrsnap" report --mode cpu --route '/pay/{id:int}' --status 5xx --format collapsed -o failed slow.clrsnap 2> report.err || { cat report.err; fail "--status 5xx"; }
  "$clrsnap" report --mode cpu --route '/pay/{id:int}' --status 200 --format collapsed -o paid slow.clrsnap 2> report.err || { cat report.err; fail "--status 200"; }
  grep -q 'Soa.Payment.Refuse' failed && ! grep -q 'Soa.Payment.Accept' failed || { head -5 failed; fail "--status 5xx"; }
  grep -q 'Soa.Payment.Accept' paid && ! grep -q 'Soa.Payment.Refuse' paid || { head -5 paid; fail "--status 200"; }
  "$clrsnap" report --mode cpu --by-route --format collapsed -o by slow.clrsnap 2> report.err || { cat report.err; fail "--by-route"; }
  # What has not ended when the recording does has no status.
  awk '/^.*Soa[.]Payment[.]Refuse/ { all += $NF; if (/;?GET [/]pay[/]{id:int} \[503\];/) told += $NF } END { exit !(all > 0 && told >= 0.9 * all) }' by ||
    { grep Payment by | head; fail "--by-route does not tell failed requests apart"; }
  ! grep -F '[503]' by | grep -q 'Soa.Payment.Accept' || fail "a request that succeeded has the status 503"
  ! "$clrsnap" report --status 418 -o none.txt slow.clrsnap 2> report.err || fail "a status that is not there"
  grep -q 'has no sample of a request that has ended with such a status$' report.err || { cat report.err; fail "--status 418"; }
  echo "status: $(grep -m1 -o 'GET /pay/{id:int} \[503\]' by)"
}

busy() {
  under_load search quotes stock profile export parse cache audit limited pay
  by_perf
  "$clrsnap" record --mode cpu,wall,alloc,lock,wait,exception,gc "${PERF[@]}" -F 199 --lines --labels -o slow.clrsnap "$PID" 2> rec.err &
  recorder=$!
  for _ in $(seq 1200); do [ -s slow.clrsnap ] && break; sleep 0.05; done
  echo more >&3
  said done
  kill -INT $recorder
  wait $recorder || { cat rec.err; fail "the recording"; }
  named cpu cpu "$(cause Search.Score search)"
  named lock lock "$(cause Stock.Reserve stock)"
  held
  named "sync over async" wait "$(cause Profile.Load profile)" Task
  named allocation alloc "$(cause Export.Append export)"
  named exceptions exception "$(cause Parser.Number parse)" System.FormatException
  routes
  statuses
  beside gc "$(cause Cache.Trim cache)" System.GC.Collect
  "$clrsnap" report --mode gc --format collapsed -o pauses slow.clrsnap 2> report.err || { cat report.err; fail "report --mode gc"; }
  grep -qF '[GC gen 2, induced, blocking]' pauses || { cat pauses; fail "gc: no induced collection"; }
  ! grep '\[runtime stopped: reason' pauses || fail "gc: a pause has a number for a reason"
  if [ "$(stat -f -c %T "${APP%/*}")" != tmpfs ]; then beside disk "$(cause Audit.Write audit)" fsync; fi # it needs a disk
}

# until_stack CONDITION: what `clrsnap stack` prints is in the file stack, once it fulfils the condition.
until_stack() {
  local condition=$1
  for _ in $(seq 600); do
    "$clrsnap" stack --each "$PID" > stack || fail "stack ends with $?"
    "$condition" && return
    sleep 0.1
  done
  cat stack; fail "stack does not show it: $condition"
}
# at WAIT CAUSE: how many of the threads that wait for this stand in that line.
at() {
  local frame=${2% (*} place=${2##*(}
  awk -v state="$1" -v frame="    $frame  (Soa.dll)  ${place%)}" '/^Thread/ { waits = index($0, state) > 0 }
    waits && $0 == frame { n++ } END { print n + 0 }' stack
}
nothing_wrong() {
  "$clrsnap" stack --each "$PID" > stack || fail "stack ends with $?"
  ! grep -E '^[^ ].*(deadlock|starved)' stack || fail "the healthy service is said to have a fault"
  ! awk '/^Thread/ { waits = / for a (lock|task)/ } waits' stack | grep 'Soa[.].*(Soa.dll)' || fail "the healthy service waits"
}

deadlocked() {
  local left right
  left=$(cause Transfer.LeftToRight "transfer left") right=$(cause Transfer.RightToLeft "transfer right")
  grep -qE '^deadlock: ".NET TP Worker" \(tid [0-9]+\) waits for a System.Object .* held by ".NET TP Worker" .* held by' stack &&
    grep -qE "^  waits for a System.Object .*, held by .*, which is in ${left//[().]/\\&}" stack &&
    grep -qE "^  waits for a System.Object .*, held by .*, which is in ${right//[().]/\\&}" stack &&
    [ "$(at "for a lock" "$(cause Transfer.LeftToRight "transfer left")")" = 1 ] &&
    [ "$(at "for a lock" "$(cause Transfer.RightToLeft "transfer right")")" = 1 ]
}
# Requests wait for a lock that the auditor's thread holds.
audited() {
  local line
  line=$(grep -n "// holder: stock\$" "$source") || fail "no line is marked as the holder"
  grep -E 'held by "auditor" \(tid [0-9]+\), which is in ' stack | grep -qF "Soa.Stock.AuditAll (Faults.cs:${line%%:*})"
}
# until_async TEXT...: what `clrsnap async` prints is in the file async, once it has each text in a line, or a line that
# matches it.
until_async() {
  local text missing
  for _ in $(seq 600); do
    "$clrsnap" async "$PID" > async || fail "async ends with $?"
    missing=
    for text in "$@"; do grep -qF -- "$text" async || grep -qE -- "$text" async || missing=$text; done
    [ -n "$missing" ] || return 0
    sleep 0.1
  done
  cat async; fail "async does not show: $missing"
}
stuck() {
  nothing_wrong
  "$clrsnap" async "$PID" > async || fail "async ends with $?"
  ! grep 'Soa[.][A-Z]' async || fail "async names the healthy endpoint"
  under_load transfer order
  until_stack deadlocked
  grep ^deadlock stack
  until_async "$(cause Order.WaitForPaymentAsync order) > TaskCompletionSource"
  until_async '4 x .*Soa[.]Order[.]WaitForPaymentAsync'
  # Said in the first lines, once the requests have lasted for 10 s.
  until_async '^4 Activities [(]requests[)] began more than [0-9]+ s ago and await: Soa[.]Order[.]ConfirmAsync .* > TaskCompletionSource'
  ! grep 'began more than' async | grep -q Health || { cat async; fail "async calls the healthy endpoint's requests old"; }
  under_load limited quotes stock
  until_async "$(cause Limited.GetAsync limited) > SemaphoreSlim.WaitAsync" \
    "$(cause Quotes.FetchAsync quotes) > Soa.Remote.CallAsync (Faults.cs:"
  grep 'Soa[.][A-Z]' async
  until_stack audited
  grep -m 1 'held by "auditor"' stack
}

all_wait() { [ "$(at "for a task" "$(cause Profile.Load profile)")" -ge 3 ]; }
pool_said() {
  grep '^The pool is starved: ' stack | grep -qF " at $(cause Profile.Load profile); "
}
starved() {
  nothing_wrong
  under_load starved
  until_stack all_wait
  until_stack pool_said
  echo "starved: $(at "for a task" "$(cause Profile.Load profile)") threads"
}

$WHAT
exec 3>&-
wait $child || { cat err; fail "the service ends with $?"; }
pass "$WHAT"
