#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# check-exports.sh LIBRARY CC SOURCE: the library's dynamic symbols are exactly the declared ones: the names that
# src/clrsnap.map lists in full, and the functions of include/clrsnap/clrsnap.h. A missing symbol is a broken promise to
# a profiler's author, and an additional one is a promise that was never intended.
set -euo pipefail
library=$1 cc=$2 source=$3
map=$source/src/clrsnap.map header=$source/include/clrsnap/clrsnap.h

listed_in_map() {
  sed -n '/global:/,/local:/p' "$map" | grep -oE '\b[A-Za-z_][A-Za-z0-9_]*;' | tr -d ';'
}

# Every declaration of the header itself (preprocessed: no comments, one declaration per line) that names a function:
# `clrsnap_x(` outside of typedefs and inline functions.
declared_in_header() {
  [ -f "$header" ] || return 0
  "$cc" -E -I"$source/include" "$header" | grep -v '^#' | tr '\n' ' ' | tr ';}' '\n\n' |
    { grep -vE '\b(typedef|static)\b' || true; } |
    { grep -oE '\bclrsnap_[a-z0-9_]+ *\(' || true; } | tr -d ' ('
}

exported() {
  nm -D --defined-only --format=posix "$library" | awk '$2 != "A" { sub(/@.*/, "", $1); print $1 }'
}

want=$({ listed_in_map; declared_in_header; } | sort -u)
have=$(exported | sort -u)
[ -n "$want" ] && [ -n "$have" ] || { echo "FAIL: nothing is declared, or nothing exported"; exit 1; }
if difference=$(diff <(echo "$want") <(echo "$have")); then
  echo "pass: $(wc -l <<< "$want") symbols, as declared"
else
  echo "FAIL: declared (<) and exported (>) symbols differ:"
  grep '^[<>]' <<< "$difference"
  exit 1
fi
