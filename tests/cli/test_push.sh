#!/bin/bash
# SPDX-License-Identifier: MIT
# Pushing: what arrives at a server that accepts it, delays it, is overloaded, hangs, closes the connection or is
# absent; that every loss is reported; and that the windows together are the whole recording.
tools=$(cd "$(dirname "$0")/../tools" && pwd)
. "$(dirname "$0")/lib.sh"
unset "${!OTEL_@}" CLRSNAP_PUSH_HEADERS SSL_CERT_FILE http_proxy all_proxy HTTP_PROXY ALL_PROXY
servers=()
trap 'kill "${servers[@]}" 2>/dev/null; rm -rf "$scratch"' EXIT

# collector NAME PLAN...: serves as tools/collector.py describes; sets $at to the server's address.
collector() {
  local name=$1
  shift
  mkdir -p "$name"
  python3 "$tools/collector.py" "$name" "$@" &
  servers+=($!)
  until [ -s "$name/port" ]; do sleep 0.05; done
  at=127.0.0.1:$(cat "$name/port")
}
requests() { find "$1" -name '*.head' | wc -l; }
said() { grep -Eqx "clrsnap: $1" err || fail "not said: $1: $(cat err)"; }
otlp() { python3 "$tools/otlp.py" "$@" || fail "otlp.py $*"; }
# sums FILE...: the weight of each stack of each thread in all of the files.
sums() {
  for file in "$@"; do otlp "$file"; done | grep '|' |
    awk -F'|' '{ n[$1 "|" $2] += $3 } END { for (s in n) printf "%s|%.0f\n", s, n[s] }' | sort
}

# ---- OTLP: the same stacks and sums as pprof's; repeated when the server asks for it ----
run 0 "$CLRSNAP" record -o golden.clrsnap -o golden.otlp -o golden.pb.gz -- "$FAKE" golden
otlp --pprof golden.pb.gz >pprof
otlp golden.otlp | grep -Ev '^(resource|id) ' | same pprof
# Two threads of one name share one entry of the table, as the schema requires.
run 0 "$CLRSNAP" record -o many.otlp -- "$FAKE" many 20
otlp many.otlp >many
[ "$(grep -c 'thread.name=.NET TP Worker' many)" = 10 ] || fail "the pool's threads: $(cat many)"
collector otlp 503 429:2 200
run 0 "$CLRSNAP" report --push "otlp+http://me:secret@$at" golden.clrsnap
said "a push to http://$at/v1development/profiles has failed and will be repeated: HTTP status 503, no: 503"
said "pushes to http://$at/v1development/profiles arrive again"
said "pushed 1 profile \([0-9.]+ kB\) to http://$at/v1development/profiles; lost 0, rejected 0"
grep -q secret err && fail "the password is shown"
[ -e golden.html ] && fail "--push alone writes a file"
[ "$(requests otlp)" = 3 ] || fail "$(requests otlp) requests, not 3"
gzip -dc <otlp/2.body | cmp - golden.otlp || fail "pushed is not what the format's file has"
cmp otlp/0.body otlp/2.body || fail "another body the second time"
for line in 'POST /v1development/profiles HTTP/1.1' 'Content-Type: application/x-protobuf' \
  'Content-Encoding: gzip' 'Authorization: Basic bWU6c2VjcmV0'; do
  grep -Fqx "$line" otlp/2.head || fail "no $line in $(cat otlp/2.head)"
done
# Not before the time that the server has set.
awk '$1 == "time" { t[FILENAME] = $2 } END { exit !(t["otlp/2.head"] - t["otlp/1.head"] >= 2) }' otlp/[12].head ||
  fail "Retry-After: 2 was not waited for"
# The public schema's own decoder, if it is installed, finds no invalid UTF-8 and no truncation.
if have protoc; then
  protoc --decode_raw <golden.otlp >raw || fail "protoc cannot read it"
  grep -q 'service.name' raw || fail "protoc sees no service.name"
fi

# ---- Which program and host a profile belongs to ----
collector named 200
OTEL_SERVICE_NAME=shop OTEL_RESOURCE_ATTRIBUTES="deployment.environment.name=prod%2Ceu, team = a" \
  OTEL_EXPORTER_OTLP_HEADERS="x-tenant=a%20b,x-key=1" \
  run 0 "$CLRSNAP" report --push "otlp+http://$at/own/path" --push-header 'X-More: yes' golden.clrsnap
otlp named/0.body | grep '^resource' | sed -E 's/(pid) [0-9]+/\1 N/' >resource
same resource <<'X'
resource service.name shop
resource deployment.environment.name prod,eu
resource team a
resource process.pid N
resource process.runtime.name .NET
resource process.runtime.version 10.0.12
X
for line in 'POST /own/path HTTP/1.1' 'x-tenant: a b' 'x-key: 1' 'X-More: yes'; do
  grep -Fqx "$line" named/0.head || fail "no $line in $(cat named/0.head)"
done
run 0 "$CLRSNAP" record --service web --push "otlp+http://$at" -- "$FAKE" golden
otlp named/1.body >resource
grep -Fqx "resource service.name web" resource || fail "--service"
grep -Fqx "resource host.name $(uname -n)" resource || fail "no host.name"

# ---- Pyroscope ----
collector pyroscope 500 200
run 0 "$CLRSNAP" report --push "pyroscope+http://$at" --service 'my shop' golden.clrsnap
[ "$(requests pyroscope)" = 2 ] || fail "Pyroscope: $(requests pyroscope) requests, not 2"
cmp pyroscope/1.body golden.pb.gz || fail "Pyroscope's body is not the profile"
from='from=1750000000&until=1750000001&format=pprof&spyName=clrsnap&sampleRate=499'
grep -Eqx "POST /ingest\?name=my(%20|\+)shop&$from HTTP/1.1" pyroscope/1.head ||
  fail "Pyroscope: $(cat pyroscope/1.head)"
run 0 "$CLRSNAP" report --push "pyroscope+http://$at?name=shop{env=prod}" golden.clrsnap
grep -Fqx "POST /ingest?name=shop{env=prod}&$from HTTP/1.1" pyroscope/2.head || fail "Pyroscope: $(cat pyroscope/2.head)"

# ---- A web page is not a server's response ----
collector page page
run 1 "$CLRSNAP" report --push "otlp+http://$at" golden.clrsnap
said "profiles for http://$at/v1development/profiles are being lost: HTTP status 200 with a web page, .*"
[ "$(requests page)" = 1 ] || fail "$(requests page) requests, not 1"

# ---- TLS: an untrusted certificate ends the push at once, a known one does not ----
if have openssl; then
  mkdir tls
  openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=IP:127.0.0.1 \
    -keyout tls/private.pem -out tls/certificate.pem 2>/dev/null || fail "openssl makes no certificate"
  cat tls/private.pem tls/certificate.pem >tls/key.pem
  collector tls 200
  run 1 "$CLRSNAP" report --push "otlp+https://$at" golden.clrsnap
  said "profiles for https://$at/v1development/profiles are being lost: SSL peer certificate or SSH remote key was not OK"
  SSL_CERT_FILE=tls/certificate.pem run 0 "$CLRSNAP" report --push "otlp+https://$at" golden.clrsnap
  SSL_CERT_FILE=none OTEL_EXPORTER_OTLP_CERTIFICATE=tls/certificate.pem \
    run 0 "$CLRSNAP" report --push "pyroscope+https://$at" golden.clrsnap
  [ "$(requests tls)" = 2 ] || fail "TLS: $(requests tls) requests, not 2"
fi

# ---- Failures ----
collector refused 500
run 1 "$CLRSNAP" report --push "otlp+http://$at" golden.clrsnap
said "profiles for http://$at/v1development/profiles are being lost: HTTP status 500, no: 500"
said "pushed 0 profiles \(0.0 kB\) to http://$at/v1development/profiles; lost 1, rejected 0"
[ "$(requests refused)" = 1 ] || fail "OTLP forbids to repeat after 500"
collector partial partial
run 1 "$CLRSNAP" report --push "otlp+http://$at" golden.clrsnap
said "http://$at/v1development/profiles has rejected a profile: too old"
said "pushed 1 profile .* lost 0, rejected 1"
collector hang hang cut 200
OTEL_EXPORTER_OTLP_TIMEOUT=1000 run 1 "$CLRSNAP" report --push "otlp+http://$at" golden.clrsnap
said "pushed 0 profiles .* lost 1, rejected 0"
run 0 "$CLRSNAP" report --push "otlp+http://$at" golden.clrsnap
said "pushed 1 profile .* lost 0, rejected 0"
[ "$(requests hang)" = 3 ] || fail "after a cut connection: $(requests hang) requests, not 3"
kill "${servers[@]}"
wait "${servers[@]}" 2>/dev/null
servers=()
OTEL_EXPORTER_OTLP_TIMEOUT=1000 run 1 "$CLRSNAP" report --push "otlp+http://$at" golden.clrsnap
said "profiles for http://$at/v1development/profiles are being lost: Couldn't connect to server"
said "pushed 0 profiles .* lost 1, rejected 0"
# The program's exit code is passed on, and its recording is kept.
OTEL_EXPORTER_OTLP_TIMEOUT=500 run 3 "$CLRSNAP" record -o kept.clrsnap --push "otlp+http://$at" -- "$FAKE" golden 3
said "wrote kept.clrsnap"

# ---- Windows: each sample is in exactly one of them, and there is no gap between them ----
collector windows 200
run 0 "$CLRSNAP" record -d 2 --continuous 300ms --push "otlp+http://$at" -o whole.pb.gz -- "$FAKE" until-stopped
otlp --pprof whole.pb.gz >whole
bodies() { ls "$1"/*.body | sort -t/ -k2n; }
mapfile -t files < <(bodies windows)
[ "${#files[@]}" -ge 4 ] || fail "${#files[@]} windows of 300 ms in 2 s"
sums "${files[@]}" >windows.sums
grep '|' whole | sort | same windows.sums
for file in "${files[@]}"; do otlp "$file"; done | grep '^profile' >times
python3 - <<'PY' || fail "windows have gaps: $(cat times)"
times = [line.split() for line in open("times")]
assert all(int(a[3]) + int(a[4]) == int(b[3]) for a, b in zip(times, times[1:]))
PY
# Without an output nothing is kept, and nothing is counted twice.
collector forgotten 200
run 0 "$CLRSNAP" record -d 1.5 --continuous 0.2 --push "otlp+http://$at" -- "$FAKE" until-stopped
taken=$(sed -n 's/^clrsnap: \([0-9]*\) samples in .*/\1/p' err)
mapfile -t files < <(bodies forgotten)
[ "$(sums "${files[@]}" | awk -F'|' '{ n += $3 } END { printf "%.0f", n / 2000000 }')" = "$taken" ] ||
  fail "$taken samples, but the windows have $(sums "${files[@]}")"
ls ./*.html 2>/dev/null && fail "a page nobody asked for"
# A thread that sleeps throughout is in every window, with its stack.
collector asleep 200
run 0 "$CLRSNAP" record --mode wall -d 2 --continuous 0.2 --push "otlp+http://$at" -- "$FAKE" asleep
taken=$(sed -n 's/^clrsnap: \([0-9]*\) samples in .*/\1/p' err)
mapfile -t files < <(bodies asleep)
[ "${#files[@]}" -ge 4 ] || fail "${#files[@]} windows of 200 ms in 2 s"
[ "$(sums "${files[@]}" | awk -F'|' '{ n += $3 } END { printf "%.0f", n / 2000000 }')" = "$taken" ] ||
  fail "$taken samples, but the windows have $(sums "${files[@]}")"
for file in "${files[@]::${#files[@]}-1}"; do # the last one may be of a few ms
  otlp "$file" | grep -q 'lambda_method1' || fail "$file lacks the sleeping thread: $(otlp "$file")"
done
# A server that is away for longer than the queue lasts: the oldest windows are lost, reported and counted.
collector away 503:1 503:1 503:1 503:1 503:1 503:1 503:1 503:1 200
run 0 "$CLRSNAP" record -d 10 --continuous 100ms --push "otlp+http://$at" -- "$FAKE" until-stopped
said "profiles for http://$at/v1development/profiles are being lost: HTTP status 503, no: 503"
said "pushes to http://$at/v1development/profiles arrive again"
read -r arrived lost < <(sed -nE 's/^clrsnap: pushed ([0-9]+) profiles .* lost ([0-9]+), .*/\1 \2/p' err)
[ "$lost" -gt 0 ] && [ "$arrived" = $(($(requests away) - 8)) ] || fail "arrived $arrived, lost $lost: $(cat err)"

# ---- Nothing to push ----
run 5 "$CLRSNAP" record --push "otlp+http://$at" -- "$FAKE" absent 5
grep -q "so nothing was pushed$" err || fail "absent: $(cat err)"

# ---- Command lines ----
refused() {
  local text=$1 more="; 'clrsnap help record' lists the options"
  shift
  run 2 "$CLRSNAP" record "$@" -- touch started
  echo "clrsnap: $text$more" | same err
}
refused "--continuous sends profiles: it needs --push" --continuous 10s
refused "--continuous takes a time like 10s, from 100ms to 24h, not 'soon'" --continuous soon --push x
refused "--continuous takes a time like 10s, from 100ms to 24h, not '5ms'" --continuous 5ms --push x
run 2 "$CLRSNAP" record --push http://host -- touch started
echo "clrsnap: --push takes otlp+http://HOST:4318 or pyroscope+http://HOST:4040 (or https), not 'http://host'; 'clrsnap help record' lists the options" | same err
run 2 "$CLRSNAP" record --push otlp+http://host --push-header secret -- touch started
echo "clrsnap: --push-header takes 'NAME: VALUE'; 'clrsnap help record' lists the options" | same err
run 2 "$CLRSNAP" report --push x golden.clrsnap
grep -q "^clrsnap: --push takes otlp+http" err || fail "report --push x: $(cat err)"
OTEL_EXPORTER_OTLP_TIMEOUT=soon run 1 "$CLRSNAP" record --push otlp+http://host -- touch started
echo "clrsnap: OTEL_EXPORTER_OTLP_TIMEOUT takes milliseconds, not 'soon'" | same err
[ -e started ] && fail "the program was started"
done_testing
