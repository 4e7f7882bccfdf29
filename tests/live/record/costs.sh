#!/bin/bash
# SPDX-License-Identifier: MIT
# costs.sh BUILD SOURCE MATERIAL: recording does not multiply the CPU time of the program's own operations (costs.py).
BUILD=$1 SOURCE=$2 MATERIAL=$3
. "$SOURCE/tests/live/lib.sh"
build_app Costs
python3 "$SOURCE/tests/live/record/costs.py" "$BUILD/bin/clrsnap" "$APP" || fail "recorded, the program costs too much"
pass "no event costs a multiple"
