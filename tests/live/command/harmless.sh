#!/bin/bash
# SPDX-License-Identifier: MIT
# harmless.sh BUILD SOURCE MATERIAL: the names of a program's command line and thread contain control sequences. ps, stack
# and record print them escaped (tests/cli/test_harmless.sh has the rest).
BUILD=$1 SOURCE=$2 MATERIAL=$3
. "$SOURCE/tests/live/lib.sh"
build_app Record
clrsnap=$BUILD/bin/clrsnap
command -v python3 > /dev/null || skip "there is no python3"
cd "$WORK" || exit 1
harmless() { python3 "$SOURCE/tests/tools/harmless.py" "$@" || fail "$2 is not harmless"; }

evil=$'E\e]0;x\a\xc2\x9bm\n'
timeout -k 5 300 dotnet "$APP" names 200000 "$evil" $'owned\x9b\xe2\x80\xae' > out 2> err &
CHILD=$!
find_program
for verb in "stack $PID" ps "doctor $PID" "ps --json" "stack --json $PID"; do
  # shellcheck disable=SC2086
  "$clrsnap" $verb > said 2>&1
  python3 "$SOURCE/tests/tools/harmless.py" owned said || { cat -v said; fail "$verb is not harmless"; }
done
"$clrsnap" stack --each "$PID" > said 2>&1
grep -qF '"E\x1b]0;x\x07\u009bm\x0a"' said || { cat said; fail "the thread's name"; }
grep -qF '"E\x1b]0;x\x07\u009bm\x0a": waiting in ' said || { cat said; fail "a thread's name hides its state"; }
"$clrsnap" record -d 1 --mode wall -o r.clrsnap -o r.txt "$PID" > said 2>&1 || { cat said; fail "record"; }
harmless 'E\x1b]0;x\x07' r.txt
harmless clrsnap said
# On a loaded machine the first seconds may have nothing yet.
"$clrsnap" top --text --threads --mode wall -n 5 "$PID" > said 2>&1
harmless 'E\x1b]0;x\x07' said
kill -9 "$PID"
wait $CHILD 2> /dev/null
pass "harmless names"
