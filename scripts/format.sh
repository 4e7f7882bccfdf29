#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# format.sh [--check | --which]: formats all C and C++ sources; --check only names the files that differ
# (exit 1); --which prints the formatter's name. Exit 77: there is no clang-format 14. Other versions
# format the same code differently, so they cannot be used.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

for tool in clang-format-14 clang-format none; do
  if "$tool" --version 2> /dev/null | grep -q 'version 14\.'; then break; fi
done
if [ "$tool" = none ]; then
  echo "skipped: there is no clang-format 14 on this machine" >&2
  exit 77
fi

mapfile -t files < <(find src include tests examples bench \( -name '*.[ch]' -o -name '*.[ch]pp' \) 2> /dev/null | sort)
case ${1:-} in
  --which) echo "$tool" ;;
  '') "$tool" -i "${files[@]}" ;;
  --check)
    if output=$("$tool" --dry-run -Werror --ferror-limit=1 "${files[@]}" 2>&1); then exit 0; fi
    grep -E '^[^: ]+:[0-9]+:' <<< "$output" | cut -d: -f1 | sort -u | sed 's/^/not formatted: /'
    echo "Run ./dev fmt."
    exit 1
    ;;
  *) echo "usage: format.sh [--check | --which]" >&2; exit 2 ;;
esac
