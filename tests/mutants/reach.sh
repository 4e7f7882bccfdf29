#!/bin/bash
# SPDX-License-Identifier: MIT
# reach.sh SOURCE MATERIAL WORK: lists which functions of the island each oracle enters, with the percentage of their
# lines that gcov has seen executed; docs/oracles.md has a summary. WORK: a folder for a build with --coverage. The
# oracles' own verdicts do not count here: such a build is slow, and these runs are short.
SOURCE=$1 MATERIAL=$2 WORK=$3 BUILD=$3/build
cmake -S "$SOURCE" -B "$BUILD" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo "-DCLRSNAP_MATERIAL=$MATERIAL" \
  -DCMAKE_C_FLAGS="--coverage -fprofile-update=atomic -O1" > /dev/null || exit 1
modules=$(ninja -C "$BUILD" -t targets all | sed -nE 's/^(oracle_[a-z]+):.*/\1/p' | sort -u)
# shellcheck disable=SC2086
cmake --build "$BUILD" --target step stepmark remote_walk clrsnap $modules > "$WORK/build.log" || exit 1
export STEP_MARK_LIB=$BUILD/lib/libstepmark.so

# reach NAME COMMAND...: writes "room function percent" for each function to WORK/NAME.reach.
reach() {
  local name=$1 file
  shift
  find "$BUILD" -name '*.gcda' -delete
  "$@" > "$WORK/$name.log" 2>&1
  find "$BUILD" -path '*/cs_island.dir/*.gcda' | while read -r file; do
    gcov -f -o "$(dirname "$file")" "$file" 2> /dev/null | awk -v room="$(basename "$(dirname "$file")")" -F"[':%]" \
      '/^Function/ { f = $2 } /^Lines executed/ && f { print room, f, $2; f = "" }'
  done | sort -u > "$WORK/$name.reach"
  echo "$name"
}
app() { "$SOURCE/tests/oracle/run.sh" "$BUILD" "$MATERIAL" "$@"; }
names=(step clrmd shadow foreign sync seeds torn)
reach step "$BUILD/bin/step" -q 600 -j 200 -- dotnet "$MATERIAL/apps/Step/Step.dll" 1 ""
reach clrmd "$SOURCE/tests/oracle/clrmd/clrmd.sh" "$BUILD" "$MATERIAL" web 10
ORACLE_SNAPSHOTS=5000 reach shadow app shadow shadow
ORACLE_HANDLER=1 ORACLE_SNAPSHOTS=3000 reach foreign app shadow shadow 3
reach sync app sync variety
ORACLE_SNAPSHOTS=2000 reach seeds app seeds seeds
ORACLE_WALKS=3000 reach torn app torn torn
cd "$WORK" || exit 1
awk -v names="${names[*]}" 'BEGIN { n = split(names, name, " ")
    printf "%-8s %-28s", "room", "function"
    for (i = 1; i <= n; i++) printf " %8s", name[i]
    print "" }
  { oracle = FILENAME; sub(/\.reach$/, "", oracle); seen[$1 " " $2] = 1; share[$1 " " $2, oracle] = $3 }
  END { for (f in seen) { split(f, part, " "); line = sprintf("%-8s %-28s", part[1], part[2])
    for (i = 1; i <= n; i++) line = line sprintf(" %8s", share[f, name[i]] == "" ? "-" : share[f, name[i]])
    print line | "sort" } }' "${names[@]/%/.reach}"
