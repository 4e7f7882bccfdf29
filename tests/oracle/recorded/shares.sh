#!/bin/bash
# SPDX-License-Identifier: MIT
# shares.sh BUILD SOURCE MATERIAL: the recorded share of a method is the one that the program itself measures
# (shares.py).
BUILD=$1 SOURCE=$2 MATERIAL=$3
command -v dotnet > /dev/null || { echo "skipped: there is no dotnet command"; exit 77; }
"$SOURCE/scripts/build-apps.sh" "$MATERIAL" "$SOURCE/tests/apps/Shares" || exit 1
exec timeout 560 python3 "$SOURCE/tests/oracle/recorded/shares.py" "$BUILD" "$MATERIAL/apps/Shares/Shares.dll" --engines perf,clock
