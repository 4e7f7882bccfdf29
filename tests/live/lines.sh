#!/bin/bash
# SPDX-License-Identifier: MIT
# lines.sh BUILD SOURCE MATERIAL tiered|optimized|embedded: the sampled line against the truth. tests/apps/Lines has methods whose hot
# line is marked in the source; of all samples with such a method on the stack, 95 of 100 must be on it.
BUILD=$1 SOURCE=$2 MATERIAL=$3 WHAT=$4
. "$SOURCE/tests/live/lib.sh"

# The truth, from the sources: "FILE:LINE PATTERN", where the marker has no place of its own.
sed -s -nE '/\/\/ hot: /{F;=;p}' "$SOURCE"/tests/apps/Lines/*.cs | paste - - - |
  sed -E 's#^.*/([^/\t]*)\t([0-9]*)\t.*// hot: (([^ ]*:[0-9]+) )?(.*)$#\4 \1:\2 \5#; s/^([^ ]+) [^ ]+ /\1 /; s/^ //' > "$WORK/truth"
[ "$(wc -l < "$WORK/truth")" -ge 13 ] || fail "the sources have $(wc -l < "$WORK/truth") markers"

# check NAME: every method of the truth in the recording $WORK/NAME.txt.
check() {
  awk -v name="$1" '
    FNR == NR { line[$2] = $1; pattern[$2] = $2; gsub(/[.$]/, "[&]", pattern[$2])
      gsub(/\[\.\]\*/, ".*", pattern[$2]); next }
    { weight = $NF; sub(/ [0-9]+$/, ""); n = split($0, frames, ";")
      for (method in pattern) {
        place = ""
        for (i = n; i > 0 && place == ""; i--)  # the youngest of its frames
          if (frames[i] ~ "^" pattern[method] "( |$)") place = frames[i]
        if (place == "") continue
        all[method] += weight
        if (index(place, " (" line[method] ")")) right[method] += weight
        else { sub(/^[^(]* ?/, "", place); wrong[method] = wrong[method] " " place "=" weight } } }
    END { for (method in pattern) {
        printf "%s %-40s %-22s %5d of %5d%s\n", name, method, line[method], right[method], all[method], wrong[method]
        if (all[method] < 20 || right[method] < 0.95 * all[method]) bad = 1 }
      exit bad }' "$WORK/truth" "$WORK/$1.txt" || { cat "$WORK/$1.err"; fail "$1: lines are wrong (above)"; }
}

# record NAME ENVIRONMENT DLL. A null reference at a method's first instruction must not cut the walk.
record() {
  env $2 "$BUILD/bin/clrsnap" record --lines --native off -F 999 --format collapsed -o "$WORK/$1.txt" -- \
    dotnet "$3" 800 > /dev/null 2> "$WORK/$1.err"
  [ $? = 42 ] || { cat "$WORK/$1.err"; fail "$1: the recording ended otherwise"; }
  check "$1"
  awk '{ all += $NF; if (/\[cut: /) cut += $NF } END { exit !(cut <= 0.005 * all) }' "$WORK/$1.txt" ||
    { cat "$WORK/$1.err"; fail "$1: more than 5 of 1000 walks are cut"; }
}
case $WHAT in
  tiered) build_app Lines && record tiered "DOTNET_TieredPGO=1" "$APP" ;;
  optimized) build_app Lines && record optimized "DOTNET_TieredCompilation=0" "$APP" ;;
  embedded) build_app LinesEmbedded && record embedded "DOTNET_TieredPGO=1" "$APP" ;;
  *) fail "there is no test '$WHAT'" ;;
esac
pass "$WHAT: all methods are on their hot lines"
