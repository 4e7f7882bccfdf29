#!/bin/bash
# SPDX-License-Identifier: MIT
# Tests results.py, by which CI decides whether a run is whole, on results as CTest writes them.
here=$(dirname "${BASH_SOURCE[0]}")
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT
failed=0
cat > "$work/results.xml" << 'XML'
<?xml version="1.0" encoding="UTF-8"?>
<testsuite name="(empty)" tests="4" failures="1" disabled="0" skipped="1">
  <testcase name="cli.whole" classname="cli.whole" time="1" status="run"><system-out>skipped: says nothing</system-out></testcase>
  <testcase name="cli.page" classname="cli.page" time="1" status="notrun">
    <skipped message="SKIP_RETURN_CODE=77"/><system-out>first
skipped: no Chromium here
</system-out></testcase>
  <testcase name="unit.test_a" classname="unit.test_a" time="1" status="run">
    <system-out>[ RUN      ] one
[  SKIPPED ] one
</system-out></testcase>
  <testcase name="live.wrong" classname="live.wrong" time="1" status="fail">
    <failure message=""/><system-out>FAIL: 1 &lt; 2
</system-out></testcase>
</testsuite>
XML
echo '# nothing' > "$work/none"
printf 'cli.page  there is no browser\nunit.test_a:one  no such kernel\n' > "$work/both"
printf 'cli.page  there is no browser\n' > "$work/page"
# expect CODE CI LIST
expect() {
  CI=$2 python3 "$here/results.py" "$work/results.xml" "$work/$3" > "$work/out" 2>&1
  [ $? = "$1" ] || { echo "FAIL: CI=$2 with $3: not $1"; cat "$work/out"; failed=1; }
}
expect 0 '' none
diff - "$work/out" << 'EOF' || { echo "FAIL: it prints something else"; failed=1; }
failed: live.wrong:
  FAIL: 1 < 2
skipped: cli.page: no Chromium here
skipped: unit.test_a:one: the case has skipped itself
EOF
expect 1 true none
expect 1 true page
expect 0 true both
exit $failed
