#!/bin/bash
# SPDX-License-Identifier: MIT
# readers.sh MATERIAL WHAT: opens a recording of known content in the programs that people use to read these files, and
# checks what they show. Skipped (77) where the reader is not available.
. "$(dirname "$0")/../cli/lib.sh"
here=$(cd "$OLDPWD" && cd "$(dirname "$0")" && pwd)
MATERIAL=$1 WHAT=$2
skip() { echo "skipped: $*"; exit 77; }
record() { run 0 "$CLRSNAP" record -o "$1" -- "$FAKE" golden; }

# speedscope is installed from npm once; the package contains its schema and its page.
get_speedscope() {
  command -v npm >/dev/null || skip "there is no npm, by which speedscope comes"
  mkdir -p "$MATERIAL/speedscope"
  exec 9>"$MATERIAL/speedscope/.lock"
  flock 9
  if [ ! -f "$MATERIAL/speedscope/package/.complete" ]; then
    (cd "$MATERIAL/speedscope" && timeout 300 npm pack --silent speedscope@1.25.0 && tar xzf speedscope-1.25.0.tgz) \
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
  # Locations are resolved in the raw text, because sample lines have their IDs.
  sed -n '/^Samples:/,/^Locations/p' out | grep -cE '^ +[0-9]+ +[0-9]+: ' >count
  [ "$(cat count)" = 9 ] || fail "not 9 distinct samples: $(cat out)"
  grep -q '^samples/count cpu/nanoseconds\[dflt\]' out || fail "sample types: $(head -8 out)"
  grep -q 'M=[0-9]* Shop.Cart<System.Int32>.Work' out || fail "no such function: $(cat out)"
  grep -q 'thread:\[Main\]' out || fail "no thread label"
  run 0 go tool pprof -top -sample_index=samples golden.pb.gz
  sed -n '/flat%/,$p' out | awk 'NR > 1 { print $1, $4, $6, $7 }' >top
  same top <<'X'
5 5 System.Linq.Enumerable.Sum 
1 1 Odd</script>;"\\x0a.M.lambda#0 
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

# shows FILE TEXT...: speedscope's page has all of the texts in its table of functions.
shows() {
  local file=$1
  shift
  echo "speedscope.loadFileFromBase64('$file', '$(base64 -w0 "$file")')" >"$file.js"
  timeout 300 node "$here/speedscope.js" "$chromium" "$speedscope/index.html" "$scratch/$file.js" "$@" >page.log 2>&1 ||
    fail "$file: $(cat page.log)"
}

speedscope_page() {
  get_speedscope
  command -v node >/dev/null || skip "there is no node"
  chromium=$(command -v chromium || command -v chromium-browser || command -v google-chrome) ||
    skip "there is no Chromium"
  record golden.speedscope.json
  shows golden.speedscope.json 'Main (100)' 'thread (101)' Shop.Program.Main System.Linq.Enumerable.Sum \
    'Shop.Cart<System.Int32>.Work' '6.00ms'
  # speedscope also reads trace events: the same functions, the same times.
  record golden.trace.json
  shows golden.trace.json Shop.Program.Main System.Linq.Enumerable.Sum 'Shop.Cart<System.Int32>.Work' '6.00ms'
}

case $WHAT in
  pprof) pprof ;;
  schema) schema ;;
  page) speedscope_page ;;
  *) fail "there is no test '$WHAT'" ;;
esac
done_testing
