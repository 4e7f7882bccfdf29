#!/bin/bash
# SPDX-License-Identifier: MIT
# share.sh BUILD MATERIAL: how much of a busy loop's time is in its leaf? perf says, from outside; the
# recording must say the same within 2 points.
BUILD=$1 APP=$2/apps/Proofs/Proofs.dll
fail() { echo "FAIL: $*"; exit 1; }
command -v dotnet > /dev/null || { echo "skipped: there is no dotnet command"; exit 77; }
WORK=$(mktemp -d) || exit 1
trap 'rm -rf "$WORK"; rm -f "/tmp/perf-${pid:-none}.map" "/tmp/perfinfo-${pid:-none}.map"' EXIT

# perf needs code at one address only (no W^X), and the JIT's map of it.
DOTNET_PerfMapEnabled=3 DOTNET_EnableWriteXorExecute=0 dotnet "$APP" busy 7 > /dev/null &
pid=$!
sleep 1.5
perf record -F 999 -p $pid -o "$WORK/perf" -- sleep 4 > "$WORK/log" 2>&1 ||
  { kill $pid; cat "$WORK/log"; echo "skipped: perf cannot record here"; exit 77; }
perf script -i "$WORK/perf" -F tid,ip,sym 2> /dev/null |
  awk -v tid=$pid '$1 == tid { all++; if (index($0, "Busy::Work")) work++ }
    END { if (all > 500) printf "%.1f %d\n", 100 * work / all, all }' > "$WORK/truth"
wait $pid
read -r truth samples < "$WORK/truth" || { echo "skipped: perf has recorded too little"; exit 77; }
echo "perf: $truth % of $samples samples in Work"

"$BUILD/bin/clrsnap" record -F 999 --format collapsed --native off -o "$WORK/out" -- \
  dotnet "$APP" busy 6 2> "$WORK/log" || { cat "$WORK/log"; fail "the recording failed"; }
cat "$WORK/log"
awk '/Proofs.Busy.Run/ { all += $NF; stack = $0; sub(/ [0-9]+$/, "", stack); if (stack ~ /Work[^;]*$/) work += $NF }
  END { if (all > 500) printf "%.1f %d\n", 100 * work / all, all }' "$WORK/out" > "$WORK/ours"
read -r ours samples < "$WORK/ours" || fail "the recording has too few samples of the loop"
echo "clrsnap: $ours % of $samples samples in Work"
awk -v a="$truth" -v b="$ours" 'BEGIN { d = a - b; exit !(d <= 2 && d >= -2) }' ||
  fail "the recording is more than 2 points off"
