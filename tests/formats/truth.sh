#!/bin/bash
# SPDX-License-Identifier: MIT
# truth.sh BUILD SOURCE MATERIAL: records, once, a program whose methods take 60, 30 and 10 % of its CPU time. Every
# format, written from the file and directly by record, must have these shares to within 2 points, as an independent
# reader reads them (shares.py). readers.sh tests the programs that people use to read the formats.
BUILD=$1 SOURCE=$2 MATERIAL=$3
. "$SOURCE/tests/live/lib.sh"
build_app Split
cd "$WORK" || exit 1

formats="html:html collapsed:collapsed json:json text:txt pprof:pb.gz otlp:otlp speedscope:speedscope.json
  firefox:firefox.json chromium:trace.json"
outputs() { for f in $formats; do echo "-o $1.${f#*:}"; done; }

by_perf
# shellcheck disable=SC2046
timeout 300 "$BUILD/bin/clrsnap" record "${PERF[@]}" -F 999 -o live.clrsnap $(outputs live) -- dotnet "$APP" 3 > truth 2> err ||
  { cat err; fail "the recording"; }
# shellcheck disable=SC2046
"$BUILD/bin/clrsnap" report $(outputs file) live.clrsnap 2> err || { cat err; fail "the report"; }
[ "$(grep -c ^truth truth)" = 3 ] || fail "no truth: $(cat truth)"
methods="Split.Program.Sixty Split.Program.Thirty Split.Program.Ten"
judge() { # FORMAT FILE
  # shellcheck disable=SC2086
  python3 "$SOURCE/tests/formats/shares.py" --check "$1" "$2" $methods < truth
}
for f in $formats; do
  cmp "live.${f#*:}" "file.${f#*:}" || fail "${f%:*}: report and record differ"
  judge "${f%:*}" "file.${f#*:}" || { cat err; fail "${f%:*}: the shares are wrong"; }
done

# With lines: other frames, the same methods.
timeout 300 "$BUILD/bin/clrsnap" record "${PERF[@]}" --lines -F 999 -o lines.clrsnap -o lines.pb.gz -o lines.collapsed -- \
  dotnet "$APP" 2 > truth 2> lines.err || { cat lines.err; fail "the recording with lines"; }
"$BUILD/bin/clrsnap" report -o lines2.pb.gz -o lines2.collapsed -o lines.firefox.json lines.clrsnap 2> report.err ||
  { cat report.err; fail "the report with lines"; }
diff <(grep -v wrote lines.err) <(grep -v wrote report.err) || fail "another summary with lines"
cmp lines.pb.gz lines2.pb.gz && cmp lines.collapsed lines2.collapsed || fail "report and record differ with lines"
grep -q ';Split.Program.Sixty (Program.cs:[0-9]*);Split.Program.Burn (Program.cs:[0-9]*) ' lines.collapsed ||
  { head lines.collapsed; fail "no lines"; }
"$BUILD/bin/clrsnap" report --no-lines -o whole.collapsed -o whole.html lines.clrsnap 2> /dev/null
grep -q ';Split.Program.Sixty;Split.Program.Burn ' whole.collapsed || fail "lines with --no-lines"
for f in pprof:lines.pb.gz firefox:lines.firefox.json collapsed:whole.collapsed; do
  judge "${f%:*}" "${f#*:}" || { cat lines.err; fail "${f%:*}: the shares are wrong with lines"; }
done
ls -l file.* live.clrsnap | awk '{ print $5, $9 }'
pass "9 formats, $(sed -n 's/^clrsnap: \([0-9]* samples.*\)/\1/p' err)"
