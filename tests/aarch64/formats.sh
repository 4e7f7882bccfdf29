#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# formats.sh BUILD MATERIAL: in every format, the command for arm64, under qemu-user, writes and says what the command for x86-64
# writes and says of the same recordings. Other tests hold the latter against the formats' own readers.
set -euo pipefail
build=$1 material=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "FAIL: $*"; exit 1; }

# record NAME OPTIONS...: the program returns 42.
record() {
  local name=$1
  shift
  "$build/bin/clrsnap" record -o "$work/$name.clrsnap" "$@" -- dotnet "$material/apps/Record/Record.dll" hot 500 > "$work/log" 2>&1 ||
    [ $? = 42 ] || { cat "$work/log"; fail "no recording"; }
}
record modes --mode cpu,alloc,exception,lock,gc,wait --labels
record before --mode cpu
record after --mode cpu

"$build/bin/clrsnap" report -o "$work/x.unknown" "$work/after.clrsnap" 2> "$work/log" && fail "there is a format .unknown"
mapfile -t suffixes < <(grep -oE '(\.[a-z]+)+[,:]' "$work/log" | tr -d ',:' | sort -u | grep -vx .clrsnap)
[ ${#suffixes[@]} -gt 9 ] || { cat "$work/log"; fail "the list of formats was not understood"; }

# all FOLDER COMMAND...: all outputs of that command, what it says, and its exit codes.
all() {
  local folder=$work/$1 suffix case verb inputs output
  shift
  mkdir "$folder"
  cd "$folder"
  cp "$work"/*.clrsnap .
  for suffix in "${suffixes[@]}"; do
    for case in "report modes.clrsnap" "report after.clrsnap" "diff before.clrsnap after.clrsnap"; do
      read -r verb inputs <<< "$case"
      output=${case// /-}$suffix
      # shellcheck disable=SC2086
      "$@" $verb -o "$output" $inputs 2> "$output.said" || echo "exit code $?" >> "$output.said"
    done
  done
}
all x86-64 "$build/bin/clrsnap"
all arm64 qemu-aarch64 -L "$material/aarch64-root" "$build/aarch64/bin/clrsnap"
diff -r "$work/x86-64" "$work/arm64" || fail "the command for arm64 differs"
for suffix in "${suffixes[@]}"; do [ -s "report-after.clrsnap$suffix" ] || { cat "report-after.clrsnap$suffix.said"; fail "$suffix was not written"; }; done
[ "$(wc -c < report-modes.clrsnap.html)" -gt 100000 ] || fail "the page is too small"
echo "ok: ${#suffixes[@]} formats are the same on arm64: ${suffixes[*]}"
