#!/bin/bash
# SPDX-License-Identifier: MIT
# costs.sh BUILD SOURCE MATERIAL: what the program that is recorded does does not cost a multiple for it (costs.py).
BUILD=$1 SOURCE=$2 MATERIAL=$3
. "$SOURCE/tests/live/lib.sh"
build_app Costs
python3 "$SOURCE/tests/live/costs.py" "$BUILD/bin/clrsnap" "$APP" || fail "recorded, the program costs too much"
pass "no event costs a multiple"
