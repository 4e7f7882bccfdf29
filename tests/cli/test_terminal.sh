#!/bin/bash
# SPDX-License-Identifier: MIT
# Ctrl-C and the progress line, on a terminal. Skipped (77) where there is no python3 to create one.
. "$(dirname "$0")/lib.sh"
here=$(cd "$OLDPWD" && cd "$(dirname "$0")" && pwd)
command -v python3 >/dev/null || { echo "no python3 here"; exit 77; }
python3 "$here/terminal.py" "$CLRSNAP" "$FAKE" || fail "terminal.py"
done_testing
