#!/bin/bash
# SPDX-License-Identifier: MIT
# --symbols: names from the debug files of servers, of debuginfod's kind and of Microsoft's; what a server may do that
# is no help; what is kept, where, and what a server is told.
tools=$(cd "$(dirname "$0")/../tools" && pwd)
. "$(dirname "$0")/lib.sh"
unset SSL_CERT_FILE http_proxy https_proxy all_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY "${!DEBUGINFOD_@}"
export XDG_CACHE_HOME=$scratch/cache HOME=$scratch/home
servers=()
trap 'kill "${servers[@]}" 2>/dev/null; rm -rf "$scratch"' EXIT

# The recorded program without its symbols, and these alone; and the program as another build.
cp "$FAKE" whole
objcopy --only-keep-debug whole app.debug
strip -s -o app whole
id=$(readelf -n app | sed -n 's/.*Build ID: //p')
objcopy --remove-section .note.gnu.build-id app.debug other.debug
printf 'int other;' | gcc -shared -fPIC -g -Wl,--build-id -x c -o other.so -
NAME=fake_agent_marker

# serve NAME: starts tools/symbol_server.py, and sets $at to its address.
serve() {
  mkdir -p "$1"
  python3 "$tools/symbol_server.py" "$1" &
  servers+=($!)
  until [ -s "$1/port" ]; do kill -0 $! || exit 1; sleep 0.05; done
  at=127.0.0.1:$(cat "$1/port")
}
asked() { cat s/asked 2>/dev/null | wc -l; }
said() { grep -Eqx "clrsnap: $1" err || fail "not said: $1: $(cat err)"; }
# report VALUE...: of the recording, with these --symbols.
report() {
  local options=()
  for value; do options+=(--symbols "$value"); done
  run 0 timeout -k 5 300 "$CLRSNAP" report "${options[@]}" -o out.folded app.clrsnap
}
named() { grep -q "$NAME" out.folded || fail "no name: $*: $(cat err)"; }
unnamed() { ! grep -q "$NAME" out.folded || fail "a name: $*"; }
forget() { rm -rf cache home s/asked; }
serve s
kept=cache/clrsnap/symbols/$id/debuginfo

run 0 "$CLRSNAP" record -o app.clrsnap -- "$scratch/app" golden
report
unnamed "nobody was asked"
[ -e cache ] || [ -e home ] && fail "something is kept without need"

# ---- A debuginfod server ----
report "debuginfod+http://me:secret@$at/debuginfod/app.debug/"
named "debuginfod+URL"
said "fetched the symbols of app \([0-9.]+ kB\) from http://$at/debuginfod/app.debug/"
grep -q "symbols of libcoreclr.so" err && fail "a library without a build id was asked for"
grep -q secret err && fail "the password is shown"
[ "$(cat s/asked)" = "/debuginfod/app.debug/buildid/$id/debuginfo" ] || fail "asked: $(cat s/asked)"
grep -iE '^(cookie|referer|range):' s/heads && fail "a header that says too much"
cmp "$kept" app.debug || fail "not kept as it was"
[ "$(stat -c %a cache/clrsnap "$(dirname "$kept")" "$kept" | tr '\n' ' ')" = "700 700 600 " ] || fail "it is not private"
[ "$(find cache -type f | wc -l)" = 1 ] || fail "more is kept: $(find cache)"
report "debuginfod+http://$at/debuginfod/app.debug"
named "from the cache"
[ "$(asked)" = 1 ] || fail "what is kept was asked for again"
grep -q "fetched the symbols" err && fail "what is kept is fetched"
# A cached file that is not what it should be does not count, and is replaced.
head -c 3000 app.debug >"$kept"
report "debuginfod+http://$at/debuginfod/app.debug"
named "a spoiled cache"
cmp -s "$kept" app.debug || fail "a spoiled file stays"
forget

# ---- DEBUGINFOD_URLS: only if it is asked for; several servers; debuginfod's own cache ----
export DEBUGINFOD_URLS="ima:enforcing http://$at/404  http://$at/debuginfod/app.debug"
report
unnamed "DEBUGINFOD_URLS alone asks nobody"
report debuginfod
named "DEBUGINFOD_URLS"
[ "$(cut -d/ -f2 s/asked | tr '\n' ' ')" = "404 debuginfod " ] || fail "the servers were not asked in turn"
forget
for place in cache/debuginfod_client own; do
  mkdir -p "$place/$id"
  cp app.debug "$place/$id/debuginfo"
  [ $place != own ] || export DEBUGINFOD_CACHE_PATH=$scratch/own
  report debuginfod
  named "$place"
  rm -rf "$place"
done
[ "$(asked)" = 0 ] || fail "what debuginfod has kept was asked for"
forget
DEBUGINFOD_URLS= run 2 "$CLRSNAP" report --symbols debuginfod app.clrsnap
said "--symbols debuginfod takes its servers from DEBUGINFOD_URLS, which names no http:// or https:// URL.*"
unset "${!DEBUGINFOD_@}"

# ---- A symbol server, after a folder that has nothing; transfer with compression; a redirect ----
mkdir empty
report empty "http://$at/symstore/app.debug/"
named "a symbol server"
[ "$(cat s/asked)" = "/symstore/app.debug/_.debug/elf-buildid-sym-$id/_.debug" ] || fail "asked: $(cat s/asked)"
forget
report "http://$at/gzip/app.debug"
named "gzip"
cmp "$kept" app.debug || fail "gzip: not kept as it was"
forget
echo "http://$at/file/app.debug" >elsewhere.url
report "http://$at/to/elsewhere.url"
named "a redirect"
forget

# ---- What is recorded is named at once, and names are in the recording ----
run 0 "$CLRSNAP" record --symbols "http://$at/file/app.debug" -o named.clrsnap -o out.folded -- "$scratch/app" golden
named "record"
[ "$(asked)" = 1 ] || fail "record asks more than once"
run 0 "$CLRSNAP" report -o out.folded named.clrsnap
named "a recording that was named"
# Another machine, which does not have the program.
mv app app.away
forget
report "http://$at/file/app.debug"
named "without the program"
mv app.away app

# ---- Servers that are no help: a sentence, no name, nothing kept, and no harm ----
# useless WHAT FILE SENTENCE
useless() {
  forget
  report "http://$at/$1/$2?key=secret"
  unnamed "$1"
  said "$3"
  [ -z "$(find cache home -type f 2>/dev/null)" ] || fail "$1: something is kept: $(find cache home)"
  LC_ALL=C grep -q $'[\x01-\x08\x0e-\x1f]' err && fail "$1: a terminal would obey"
}
no="no symbols of app from http://127.0.0.1:[0-9]+/[a-z0-9]+/[a-z.]*, which is not asked again:"
useless 404 '' "no server has symbols of app"
useless 403 '' "$no HTTP status 403"
useless 500 '' "$no HTTP status 500"
useless loop '' "$no .*redirect.*"
echo ftp://127.0.0.1/x >ftp.url
useless to ftp.url "$no .*protocol.*"
useless page '' "$no what it sends is not a complete ELF file with the library's build id"
useless file other.so "$no what it sends is not a complete ELF file with the library's build id"
useless file other.debug "$no what it sends is not a complete ELF file with the library's build id"
useless half app.debug "$no what it sends is not a complete ELF file with the library's build id"
useless short app.debug "$no .*partial file.*"
(ulimit -f 4096; useless endless '' "$no it sends more than 4 MB"; exit $failures) || fail "endless"
export DEBUGINFOD_TIMEOUT=1
useless hang '' "$no [Tt]imeout was reached"
useless slow app.debug "$no [Tt]imeout was reached"
unset DEBUGINFOD_TIMEOUT
useless file nothing "$no what it sends is not a complete ELF file with the library's build id"
# The next server is asked, and nobody listens at the first.
forget
good=http://$at/file/app.debug
report http://127.0.0.1:1 "$good"
named "the second server"

# ---- The cache cannot be written, or is not the user's own: the names are there, and a sentence ----
forget
: >cache
report "$good"
named "no cache"
said "fetched symbols are not kept for the next time: .*"
rm cache
mkdir -p elsewhere cache
ln -s "$scratch/elsewhere" cache/clrsnap
report "$good"
named "a cache that leads elsewhere"
said "fetched symbols are not kept for the next time: .*"
[ -z "$(ls elsewhere)" ] || fail "the cache has led elsewhere"
(unset XDG_CACHE_HOME HOME; report "$good"; named "no home"; said "fetched symbols .*"; exit $failures) || fail "no home"

# ---- A signal (SIGINT is ignored here, as a shell's background job): `report` ends, `record` goes on without ----
forget
"$CLRSNAP" report --symbols "http://$at/hang" -o h.folded app.clrsnap 2>err &
pid=$!
until [ -s s/asked ] || ! kill -0 $pid; do sleep 0.05; done
begin=$(date +%s%N)
kill -TERM $pid
wait $pid
[ $? = 143 ] || fail "report did not end by the signal"
[ $(($(date +%s%N) - begin)) -lt 5000000000 ] || fail "it takes long to end"
[ -e h.folded ] && fail "report has gone on"
rm s/asked
"$CLRSNAP" record --symbols "http://$at/hang" -o h.clrsnap -- "$scratch/app" golden 2>err &
pid=$!
until [ -s s/asked ] || ! kill -0 $pid; do sleep 0.05; done
kill -INT $pid
wait $pid || fail "record ended with $?"
said "interrupted: no more symbols are fetched"
run 0 "$CLRSNAP" report -o out.folded h.clrsnap
grep -q Shop out.folded || fail "the recording is lost"
[ -z "$(find cache -type f 2>/dev/null)" ] || fail "a part is kept: $(find cache)"

# ---- TLS, with a certificate of one's own or none ----
forget
if have openssl; then
  mkdir t
  openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=IP:127.0.0.1 \
    -keyout t/key.pem -out t/cert.pem 2>/dev/null
  cat t/cert.pem >>t/key.pem
  serve t
  report "https://$at/file/app.debug"
  unnamed "an untrusted server"
  SSL_CERT_FILE=t/cert.pem report "https://$at/file/app.debug"
  named "TLS"
  # What was asked for over TLS is not fetched without.
  forget
  echo "$good" >plain.url
  SSL_CERT_FILE=t/cert.pem report "https://$at/to/plain.url"
  unnamed "a redirect away from TLS"
  [ "$(asked)" = 0 ] || fail "a redirect away from TLS is followed"
fi

# ---- What is no place ----
run 2 "$CLRSNAP" report --symbols nowhere app.clrsnap
said "--symbols takes a directory, the URL of a symbol server, debuginfod, debuginfod\+URL or microsoft, and 'nowhere' is none of these.*"
run 1 "$CLRSNAP" report --symbols "http://[::1" app.clrsnap
said "--symbols: the URL of a server cannot be used: .*"
done_testing
