#!/bin/bash
# SPDX-License-Identifier: MIT
# The names that a program gives its threads and methods, and the texts of its agent, a server or a file, are shown, but
# a terminal must not obey them: neither standard error nor any text output has a control character other than the line
# end, a character that changes the writing direction, or invalid UTF-8. Formats for programs have the names unchanged.
tools=$(cd "$(dirname "$0")/../tools" && pwd)
. "$(dirname "$0")/lib.sh"
have python3 || done_testing
servers=()
trap 'kill "${servers[@]}" 2>/dev/null; rm -rf "$scratch"' EXIT
unset "${!OTEL_@}"

python3 "$tools/harmless.py" --self-test || fail "the check finds nothing"
harmless() { python3 "$tools/harmless.py" "$@" || fail "a text is not harmless"; }
evil=$'\e]0;owned\a\xc2\x9b31m\x9b2J\xe2\x80\xae\xe2\x81\xa6\xe2\x80\xa8\r\n\x7f'

# A recording of such a program, in every format for people; the summary; and the program's own texts.
run 0 "$CLRSNAP" record -o h.clrsnap -o h.html -o h.json -o h.txt -o h.collapsed -o h.pb.gz -- "$FAKE" hostile 0 "$evil"
harmless owned h.txt h.collapsed
harmless clrsnap: err
for shown in '\x1b]0;owned\x07' '\x9b31m' '\u009b2J' '\u202e' '\u2066' '\u2028' '\x0d\x0a\x7f'; do
  grep -qF -- "$shown" h.txt || fail "$shown is not in the text"
done
run 0 "$CLRSNAP" report -o - --format text h.clrsnap
harmless owned out
run 0 "$CLRSNAP" record -o g.clrsnap -- "$FAKE" hostile 0 "other$evil"
run 0 "$CLRSNAP" diff -o - --format text h.clrsnap g.clrsnap
harmless owned out
run 0 "$CLRSNAP" diff -o - --format collapsed h.clrsnap g.clrsnap
harmless owned out
run 0 "$CLRSNAP" top --text --no-counters --interval 0.3 -- "$FAKE" hostile 0 "$evil"
harmless '' out err
run 1 "$CLRSNAP" record -o r.clrsnap -- "$FAKE" hostile-refusal 0 "$evil"
harmless owned err

# Formats for programs: all characters are there, by JSON's own escapes, and the page's script ends where it should.
python3 - h.json h.html <<'PYTHON' || fail "the JSON or the page"
import json
import sys
text = open(sys.argv[1], encoding="utf-8").read()
assert "\x1b" not in text and "\u2028" not in text and "<" not in text
assert not any(0x7f <= ord(c) < 0xa0 or ord(c) == 0x202e for c in text)
names = json.dumps(json.loads(text), ensure_ascii=False)
assert "t\\u001b]0;owned\\u0007\ufffd31m\x9b2J\u202e\u2066\u2028\\r\\n\x7f</script>" in names, names
page = open(sys.argv[2], encoding="utf-8").read()
assert "owned</script>" not in page and "\x1b" not in page and page.count("</script>") == page.count("<script")
PYTHON
# Readers of pprof's format print names unchanged, so these are made harmless.
gzip -dc h.pb.gz >h.pb
grep -qF '\x1b]0;owned\x07' h.pb && ! grep -q $'\e' h.pb || fail "pprof: a name is not harmless"

# Command lines, paths and options.
run 1 "$CLRSNAP" report "nothing$evil"
harmless owned err
run 2 "$CLRSNAP" "verb$evil"
harmless owned err
run 2 "$CLRSNAP" record --mode "$evil" -- "$FAKE" golden
harmless owned err
run 127 "$CLRSNAP" record -o x.clrsnap -- "./program$evil"
harmless owned err
printf 'CLRSNAP\n%s' "$evil" >bad.clrsnap
run 1 "$CLRSNAP" report -o "o$evil.html" bad.clrsnap
harmless clrsnap: err

# A server's texts.
collector() {
  mkdir -p "$1"
  python3 "$tools/collector.py" "$@" &
  servers+=($!)
  until [ -s "$1/port" ]; do sleep 0.05; done
  at=127.0.0.1:$(cat "$1/port")
}
collector evil evil
run 1 "$CLRSNAP" report --push "otlp+http://$at" h.clrsnap
harmless 'HTTP status 500' err
collector evilpartial evilpartial
run 1 "$CLRSNAP" report --push "otlp+http://$at" h.clrsnap
harmless 'has rejected a profile' err
harmless '\x1b]0;owned\x07' err
done_testing
