#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# check-docs.sh SOURCE: docs/stop-reasons.md explains every reason of src/walk/stop.h and no other, and links
# between the documents lead somewhere.
set -euo pipefail
cd "$1"
failed=0
fail() { echo "FAIL: $*"; failed=1; }

in_source=$(grep -oE '^ *X\([A-Z_]+, "[a-z-]+"' src/walk/stop.h | sed 's/.*"\(.*\)"/\1/' | sort)
in_docs=$(grep -oE '^\| `[a-z-]+` \|' docs/stop-reasons.md | sed 's/[|` ]//g' | sort)
[ -n "$in_source" ] || fail "no stop reasons found in src/walk/stop.h"
[ "$in_source" = "$in_docs" ] ||
  fail "stop reasons and their page differ:" $(comm -3 <(echo "$in_source") <(echo "$in_docs"))

for page in README.md CONTRIBUTING.md docs/*.md; do
  for link in $(grep -oE '\]\([^)#]+' "$page" | sed 's/](//' | grep -vE '^https?:'); do
    [ -e "$(dirname "$page")/$link" ] || fail "$page: the link to $link leads nowhere"
  done
done
[ $failed = 0 ] && echo "pass: $(echo "$in_source" | wc -l) stop reasons are explained"
exit $failed
