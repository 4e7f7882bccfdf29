#!/bin/bash
# SPDX-License-Identifier: MIT
# share.sh BUILD MATERIAL: measures how much of a busy loop's time is in its leaf. perf measures it from outside (or the
# program's own clock, where perf cannot record); the recording must agree to within 2 points. The result of a profiler
# that suspends the runtime and then walks is printed beside them, but not judged.
BUILD=$1 APP=$2/apps/Proofs/Proofs.dll HERE=$(dirname "${BASH_SOURCE[0]}")
fail() { echo "FAIL: $*"; exit 1; }
command -v dotnet > /dev/null || { echo "skipped: there is no dotnet command"; exit 77; }
WORK=$(mktemp -d) || exit 1
trap 'rm -rf "$WORK"; rm -f "/tmp/perf-${pid:-none}.map" "/tmp/perfinfo-${pid:-none}.map"' EXIT

# truth_by_perf: "SHARE SAMPLES", or nothing where perf cannot record; WORK/perf.log then says why.
truth_by_perf() {
  # Samples in the kernel (ffff...) are left out: they are interrupts, 3 % of all samples on a loaded machine, and
  # without a stack it is unknown what they have interrupted.
  # perf needs code at one address only (no W^X), and the JIT's map of the code.
  DOTNET_PerfMapEnabled=3 DOTNET_EnableWriteXorExecute=0 dotnet "$APP" busy 8 > /dev/null &
  pid=$!
  sleep 1.5
  perf record -F 999 -p $pid -o "$WORK/perf" > "$WORK/perf.log" 2>&1 &&
    perf script -i "$WORK/perf" -F tid,ip,sym 2>> "$WORK/perf.log" |
    awk -v tid=$pid '$1 == tid && $2 !~ /^ffff/ { all++; if (index($0, "Busy::Work")) work++ }
      END { if (all > 500) printf "%.1f %d\n", 100 * work / all, all }' > "$WORK/truth"
  wait $pid
}

truth_by_perf
if read -r truth samples 2> /dev/null < "$WORK/truth"; then
  echo "perf: Work $truth % of $samples samples"
else
  echo "perf has not recorded enough here: $(tail -1 "$WORK/perf.log")"
fi
dotnet "$APP" busy construct > "$WORK/construct" || fail "the program cannot time its own loop"
read -r constructed _ < "$WORK/construct"
echo "the loop's own clock, with and without: Work $constructed %"
truth=${truth:-$constructed}

# By the number of samples: weights contain time that was taken from the machine. The clock engine may need longer for enough.
for seconds in 8 40; do
  "$BUILD/bin/clrsnap" record -F 999 --native off -o "$WORK/out.json" -- \
    dotnet "$APP" busy $seconds 2> "$WORK/log" || { cat "$WORK/log"; fail "the recording failed"; }
  cat "$WORK/log"
  PYTHONPATH=$HERE/../../tools python3 - "$WORK/out.json" << 'PYTHON' > "$WORK/ours"
import json
import sys

import jsontree

loop = [(frames, n) for frames, n, _ in jsontree.stacks(json.load(open(sys.argv[1]))["modes"][0])
        if any(frame.startswith("Proofs.Busy.Run") for frame in frames)]
all_ = sum(n for _, n in loop)
if all_ > 1500:
    print(f"{100 * sum(n for frames, n in loop if 'Work' in frames[-1]) / all_:.1f} {all_}")
PYTHON
  [ ! -s "$WORK/ours" ] || break
done
read -r ours samples < "$WORK/ours" || fail "the recording has too few samples of the loop"

"$HERE/../run.sh" "$BUILD" "$2" suspend busy 5 > "$WORK/suspend" ||
  { cat "$WORK/suspend"; fail "the program fails when its runtime is suspended every 10 ms"; }
grep -v '^done' "$WORK/suspend"
grep -q '^FAIL' "$WORK/suspend" && fail "suspending the runtime went wrong (above)"
grep -q '^SuspendRuntime .* of [1-9][0-9]* leaves' "$WORK/suspend" ||
  fail "not one stack of the loop was read while the runtime was suspended"

echo "clrsnap: Work $ours % of $samples samples"
awk -v a="$truth" -v b="$ours" 'BEGIN { d = a - b; exit !(d <= 2 && d >= -2) }' ||
  fail "the recording says $ours %, the truth is $truth %: more than 2 points off"
