#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# check-layers.sh SOURCE: the rooms of src/ know each other in one direction only, inner to outer. A
# room may include the headers of the rooms that the table gives it, and nothing else of src/.
# check-layers.sh --self-test: shows that an arrow in the wrong direction is found.
set -euo pipefail

# room: the rooms that it may know. `clrsnap` is the public headers (include/clrsnap).
table() {
  cat << 'TABLE'
base:
clr: base clrsnap
contract: base mem clrsnap
mem: base
codemap: base mem contract native
native: base mem codemap
unwind: base mem contract codemap native
walk: base mem contract codemap native unwind
signal: base mem contract codemap native unwind walk
remote: base mem contract codemap native unwind walk
snapshot: base mem contract codemap native unwind walk signal clr clrsnap
names: base mem clr clrsnap
wire: base
agent: base mem contract codemap native unwind walk signal snapshot clr clrsnap names pe wire
dropin: base clr clrsnap snapshot
takeover:
export: base wire
pe: base
target: base
metadata: base pe
demangle:
lines: base pe target metadata
cli: base wire export lines clrsnap pe target metadata demangle contract native codemap walk remote
TABLE
}

# Headers of plain data that any room may know: the reasons why a walk ends, and the registers.
VOCABULARY="walk/stop.h unwind/regs.h"

# arrows SOURCE: "file room header" for every #include "room/..." of src/. A header of the file's own
# room without a folder's name is its own business.
arrows() {
  (cd "$1/src" && grep -rHoE '^ *# *include +["<][a-z]+/[a-z_0-9]+\.h[">]' --include='*.[ch]' .) |
    sed -E 's#^\./([^:]*):.*["<]([^">]*)[">]$#\1 \2#'
}

check() {
  local source=$1 rooms file header room known bad=0 count=0
  rooms=$(ls "$source/src" "$source/include")
  while read -r file header; do
    room=${file%%/*}
    grep -qx "${header%%/*}" <<< "$rooms" || continue # <sys/mman.h> and the like
    count=$((count + 1))
    [ "$room" = "${header%%/*}" ] && continue
    [[ " $VOCABULARY " == *" $header "* ]] && continue
    if ! known=$(table | grep "^$room:"); then
      echo "FAIL: src/$room has no line in the table of tests/check-layers.sh"
      bad=1
    elif [[ " ${known#*:} " != *" ${header%%/*} "* ]]; then
      echo "FAIL: src/$file includes $header: the room $room must not know ${header%%/*}"
      bad=1
    fi
  done < <(arrows "$source")
  [ $count -gt 0 ] || { echo "FAIL: no includes between rooms found under $source/src"; return 1; }
  [ $bad = 0 ] && echo "pass: $count includes, all in the allowed direction"
}

self_test() {
  local output
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  mkdir -p "$work/src/walk" "$work/src/signal" "$work/src/cli" "$work/include"
  echo '#include "walk/walk.h"' > "$work/src/signal/signal.h"
  echo '#include "walk/stop.h"' > "$work/src/cli/report.c"
  check "$work" || { echo "FAIL: allowed arrows are refused"; return 1; }
  echo '#include "signal/signal.h"' > "$work/src/walk/walk.c"
  if output=$(check "$work") || ! grep -q 'walk must not know signal' <<< "$output"; then
    echo "FAIL: an arrow from walk to signal is not found: $output"
    return 1
  fi
  echo "pass: the arrow in the wrong direction was found"
}

if [ "$1" = --self-test ]; then self_test; else check "$1"; fi
