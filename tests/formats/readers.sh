#!/bin/bash
# SPDX-License-Identifier: MIT
# readers.sh MATERIAL WHAT: the programs that people read these files with are asked what they see in
# a recording whose content is known. Skipped (77) where the reader cannot be had.
. "$(dirname "$0")/../cli/lib.sh"
here=$(cd "$OLDPWD" && cd "$(dirname "$0")" && pwd)
MATERIAL=$1 WHAT=$2
skip() { echo "skipped: $*"; exit 77; }
record() { run 0 "$CLRSNAP" record -o "$1" -- "$FAKE" golden; }

# speedscope, from npm, once: the package has its schema and its page.
get_speedscope() {
  command -v npm >/dev/null || skip "there is no npm, by which speedscope comes"
  mkdir -p "$MATERIAL/speedscope"
  exec 9>"$MATERIAL/speedscope/.lock"
  flock 9
  if [ ! -f "$MATERIAL/speedscope/package/.complete" ]; then
    (cd "$MATERIAL/speedscope" && timeout 120 npm pack --silent speedscope@1.25.0 && tar xzf speedscope-1.25.0.tgz) \
      >npm.log 2>&1 || skip "speedscope cannot be fetched: $(tail -1 npm.log)"
    touch "$MATERIAL/speedscope/package/.complete"
  fi
  exec 9>&-
  speedscope=$(cd "$MATERIAL/speedscope/package/dist/release" && pwd)
}

pprof() {
  command -v go >/dev/null || skip "there is no go"
  record golden.pb.gz
  run 0 go tool pprof -raw golden.pb.gz
  # Locations are resolved in the raw text: sample lines have their ids.
  sed -n '/^Samples:/,/^Locations/p' out | grep -cE '^ +[0-9]+ +[0-9]+: ' >count
  [ "$(cat count)" = 9 ] || fail "not 9 distinct samples: $(cat out)"
  grep -q '^samples/count cpu/nanoseconds\[dflt\]' out || fail "sample types: $(head -8 out)"
  grep -q 'M=[0-9]* Shop.Cart<System.Int32>.Work' out || fail "no such function: $(cat out)"
  grep -q 'thread:\[Main\]' out || fail "no thread label"
  run 0 go tool pprof -top -sample_index=samples golden.pb.gz
  sed -n '/flat%/,$p' out | awk 'NR > 1 { print $1, $4, $6, $7 }' >top
  same top <<'X'
5 5 System.Linq.Enumerable.Sum 
1 1 Odd</script>;"\ .M.lambda#0
1 6 Shop.Cart<System.Int32>.Work 
1 1 Shop.Late.Comer 
1 1 [libcoreclr.so] 
1 1 fake_agent_marker 
1 1 lambda_method1 
0 9 Shop.Program.Main 
0 1 [cut: depth]
0 1 [cut: unknown-code]
0 1 [unknown code]
X
  run 0 "$CLRSNAP" record -o empty.pb.gz -- "$FAKE" empty
  run 0 go tool pprof -raw empty.pb.gz
}

schema() {
  local python
  get_speedscope
  for python in python3 /usr/bin/python3 none; do
    "$python" -c 'import jsonschema' 2>/dev/null && break
  done
  [ "$python" != none ] || skip "Python has no jsonschema"
  record golden.speedscope.json
  run 0 "$CLRSNAP" record -o empty.speedscope.json -- "$FAKE" empty
  for file in golden empty; do
    run 0 "$python" -c '
import json, jsonschema, sys
schema, data = (json.load(open(p)) for p in sys.argv[1:])
jsonschema.validate(data, schema)
data["profiles"][0]["unit"] = "parsecs"
try:
    jsonschema.validate(data, schema)
except jsonschema.ValidationError:
    sys.exit(0)
sys.exit("the schema lets everything through")' "$speedscope/file-format-schema.json" $file.speedscope.json
  done
}

# page FILE: what speedscope's page shows of it, as text, in its table of functions.
page() {
  echo "speedscope.loadFileFromBase64('$1', '$(base64 -w0 "$1")')" >"$1.js"
  timeout 60 "$chromium" --headless --no-sandbox --disable-quic --use-angle=swiftshader \
    --enable-unsafe-swiftshader --disable-background-networking --user-data-dir="$scratch/browser" \
    --virtual-time-budget=8000 --window-size=1400,900 --dump-dom \
    "file://$speedscope/index.html#localProfilePath=$scratch/$1.js&view=sandwich" >"$1.dom" 2>chromium.err ||
    fail "$1: the browser ended otherwise: $(tail -3 chromium.err)"
}
# shows FILE TEXT...: all of them.
shows() {
  local file=$1 text
  shift
  for text in "$@"; do
    grep -qF -- "$text" "$file.dom" || fail "$file: the page does not show $text"
  done
}

speedscope_page() {
  get_speedscope
  chromium=$(command -v chromium || command -v chromium-browser || command -v google-chrome) ||
    skip "there is no Chromium"
  record golden.speedscope.json
  page golden.speedscope.json
  shows golden.speedscope.json 'Main (100)' 'thread (101)' Shop.Program.Main System.Linq.Enumerable.Sum \
    'Shop.Cart&lt;System.Int32&gt;.Work' '6.00ms'
  # It also reads trace events: the same functions, the same times.
  record golden.trace.json
  page golden.trace.json
  shows golden.trace.json Shop.Program.Main System.Linq.Enumerable.Sum 'Shop.Cart&lt;System.Int32&gt;.Work' '6.00ms'
}

case $WHAT in
  pprof) pprof ;;
  schema) schema ;;
  page) speedscope_page ;;
  *) fail "there is no test '$WHAT'" ;;
esac
done_testing
