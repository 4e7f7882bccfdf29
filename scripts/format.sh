#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# format.sh [--check | --which]: formats all C sources; --check only names the files that differ
# (exit 1); --which prints the formatter's name. Exit 77: there is no clang-format 14. Other versions
# of it lay out the same code differently, so no other one will do.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

for tool in clang-format-14 clang-format none; do
  if "$tool" --version 2> /dev/null | grep -q 'version 14\.'; then break; fi
done
if [ "$tool" = none ]; then
  echo "skipped: there is no clang-format 14 on this machine" >&2
  exit 77
fi

mapfile -t files < <(find src include tests examples bench -name '*.[ch]' 2> /dev/null | sort)
case ${1:-} in
  --which) echo "$tool" ;;
  '') "$tool" -i "${files[@]}" ;;
  --check)
    bad=0
    for file in "${files[@]}"; do
      if ! "$tool" "$file" | cmp -s - "$file"; then
        echo "not formatted: $file"
        bad=1
      fi
    done
    [ $bad = 0 ] || echo "Run ./dev fmt."
    exit $bad
    ;;
  *) echo "usage: format.sh [--check | --which]" >&2; exit 2 ;;
esac
