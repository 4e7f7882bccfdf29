#!/bin/bash
# SPDX-License-Identifier: MIT
# The flame graph page in a real browser. Skipped (77) where there is no Chromium or no node.
. "$(dirname "$0")/lib.sh"
here=$(cd "$OLDPWD" && cd "$(dirname "$0")" && pwd)
chromium=$(command -v chromium || command -v chromium-browser || command -v google-chrome) ||
  { echo "no Chromium here"; exit 77; }
command -v node >/dev/null || { echo "no node here"; exit 77; }

run 0 "$CLRSNAP" record -o page.html -- "$FAKE" golden
run 0 "$CLRSNAP" record -o many.html -- "$FAKE" many 100000
# Only an end tag can end a <script> element; the page has two scripts and no more.
[ "$(grep -c '</script' page.html)" = 2 ] || fail "a name has broken out of the page's data"
grep -Eq '(src|href)=|https?:|eval\(' page.html && fail "the page refers to something outside of it"
run 0 "$CLRSNAP" record -o requests.clrsnap -o requests.html -o requests.json -- "$FAKE" requests
python3 "$here/../tools/pagedata.py" requests.html requests.json || fail "the page of requests has other numbers"
run 0 "$CLRSNAP" report --by-route -o by-route.html requests.clrsnap
run 0 "$CLRSNAP" report --by-trace -o by-trace.html requests.clrsnap
run 0 "$CLRSNAP" record -o before.clrsnap -- "$FAKE" golden
run 0 "$CLRSNAP" record -o after.clrsnap -- "$FAKE" later
run 0 "$CLRSNAP" diff -o diff.html before.clrsnap after.clrsnap
run 0 "$CLRSNAP" diff --normalize rate -o rate.html before.clrsnap after.clrsnap
run 0 "$CLRSNAP" record --mode wall -o busy.clrsnap -- "$FAKE" golden
run 0 "$CLRSNAP" record --mode wall -o served.clrsnap -o served.html -- "$FAKE" served
run 0 "$CLRSNAP" diff -o idle.html busy.clrsnap served.clrsnap
run 0 "$CLRSNAP" record --mode cpu,alloc -o two.clrsnap -- "$FAKE" golden
run 0 "$CLRSNAP" record --mode cpu,alloc,wall -o three.clrsnap -- "$FAKE" later
run 0 "$CLRSNAP" diff -o modes.html two.clrsnap three.clrsnap
for tower in "thin 1" "wider 20"; do
  python3 "$here/tower.py" tower.clrsnap 150 "${tower#* }" 2000 || fail "tower.py"
  run 0 "$CLRSNAP" report -o "${tower% *}.html" tower.clrsnap
done
[ "$(stat -c %s many.html)" -lt 10000000 ] || fail "100,000 stacks are $(stat -c %s many.html) bytes"
node "$here/page.js" "$chromium" "$scratch/page.html" "$scratch/many.html" "$scratch/diff.html" \
  "$scratch/modes.html" "$scratch/served.html" "$scratch/requests.html" "$scratch/by-route.html" \
  "$scratch/by-trace.html" "$scratch/idle.html" "$scratch/rate.html" "$scratch/thin.html" \
  "$scratch/wider.html" || fail "page.js"

# Every box, row and cell in every mode and view; the frames' numbers have another meaning in each mode.
run 0 "$CLRSNAP" record --mode cpu,wall,alloc,lock,exception,gc --holders off -o uneven.clrsnap -o uneven.html -o uneven.json -- \
  "$FAKE" uneven
run 0 "$CLRSNAP" record -o served-cpu.html -o served-cpu.json -- "$FAKE" served
run 0 "$CLRSNAP" diff -o uneven-diff.html two.clrsnap uneven.clrsnap
run 0 "$CLRSNAP" diff -o uneven-diff.json two.clrsnap uneven.clrsnap
node "$here/page_drawn.js" "$chromium" "$scratch/uneven.html" "$scratch/uneven.json" "$scratch/uneven-diff.html" \
  "$scratch/uneven-diff.json" "$scratch/served-cpu.html" "$scratch/served-cpu.json" || fail "page_drawn.js"
done_testing
