#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# check-docs.sh SOURCE BUILD: the documents agree with the tree. docs/stop-reasons.md explains every reason of
# src/core/base/stop.h and no other; links lead to a file and to a heading in it; every test, source file, function
# and ./dev command that is named exists; figures that a test or a program's own constant determines are right; tables are not wrapped.
# check-docs.sh --self-test SOURCE BUILD: each kind of disagreement is noticed when it is put into a copy.
set -euo pipefail

# figure FILE PATTERN WANTED: PATTERN occurs in FILE at least once, and its first group always matches WANTED.
figure() {
  local found
  found=$(grep -oE "$2" "$1" | sed -E "s/$2/\1/" | sort -u)
  [ "$found" = "$3" ] || fail "$1 says '${found:-nothing}' where it is '$3' ($2)"
}

# named PATTERN: "PAGE:TEXT" for each text on the pages that matches.
named() { grep -oPH -- "$1" "${pages[@]}" | sort -u; }

check_reasons() {
  local in_source in_docs
  in_source=$(grep -oE '^ *X\([A-Z_]+, "[a-z-]+"' src/core/base/stop.h | sed 's/.*"\(.*\)"/\1/' | sort)
  in_docs=$(grep -oE '^\| `[a-z-]+` \|' docs/stop-reasons.md | sed 's/[|` ]//g' | sort)
  [ -n "$in_source" ] || fail "no stop reasons found in src/core/base/stop.h"
  [ "$in_source" = "$in_docs" ] ||
    fail "stop reasons and their page differ:" $(comm -3 <(echo "$in_source") <(echo "$in_docs"))
}

check_links() {
  local page link target
  while IFS=: read -r page link; do
    target=$page
    [ "${link%%#*}" = "" ] || target=$(dirname "$page")/${link%%#*}
    [ -e "$target" ] || { fail "$page: the link to $link leads nowhere"; continue; }
    [[ $link != *'#'* ]] || headings "$target" | grep -xF "${link#*#}" > /dev/null ||
      fail "$page: there is no heading for the link to $link"
  done < <(named '\]\(\K(?!https?:)[^)]+')
}

check_names() {
  local page name known commands
  while IFS=: read -r page name; do
    [[ $name == *NAME* || $name == *LAYER* || -e $name ]] || fail "$page: there is no $name"
  done < <(named '(?<![\w/.])(src|tests|scripts|bench|examples|include|docs)/[\w/-]+(\.[A-Za-z0-9]+)?(?!\w*\*)')
  # A component and a file of it: `walk/run.c`.
  while IFS=: read -r page name; do
    [ -e "$name" ] || compgen -G "src/*/$name" > /dev/null || compgen -G "src/*/arch/*/$name" > /dev/null || fail "$page: there is no $name in src"
  done < <(named '(?<![\w/.])[a-z_]+/[a-z0-9_]+\.[chS](?=\W)')
  # Functions, structures and variables by their names.
  known=$(grep -rohwE '(cs|clrsnap|CS|CLRSNAP)_[A-Za-z0-9_]+' src include cmake CMakeLists.txt | sort -u)
  known=$'\n'$known$'\n'
  while IFS=: read -r page name; do
    [[ $name == *NAME* || $known == *$'\n'$name$'\n'* ]] || fail "$page: there is no $name"
  done < <(named '(?<!\w)(cs|clrsnap|CS|CLRSNAP)_\w+')
  commands=$'\n'$(./dev help)
  while IFS=: read -r page name; do
    [[ $commands == *$'\n'"  ${name#./dev }"[$' \n']* ]] || fail "$page: there is no command $name"
  done < <(named '\./dev [a-z]+( (sync|clrmd|cost|modes|shares))?')
}

# `live.stubs-*` stands for all of them; a name after -R is a regular expression, as ctest has it.
check_tests() {
  local page name tests
  tests=$(ctest --test-dir "$build" -N | sed -n 's/^ *Test *#[0-9]*: //p')
  [ "$(wc -l <<< "$tests")" -gt 50 ] || fail "ctest lists no tests in $build"
  tests=$'\n'$tests$'\n'
  while IFS=: read -r page name; do
    [[ $tests == *$'\n'$name$'\n'* ]] || fail "$page: there is no test $name"
  done < <(named '`\K(unit|oracle|live|guest|ref|step|island|record|torture|formats|cli|fuzz|layers|header)\.[a-z0-9_.-]+\*?(?=`)')
  while IFS=: read -r page name; do
    grep -E -- "$name" <<< "$tests" > /dev/null || fail "$page: no test is called $name"
  done < <(named "(test|build) -R '?\K[^ '\`]+")
}

check_figures() {
  local kinds scenes instructions limit
  kinds=$(sed -nE 's/.*ORACLE_KINDS=([0-9]+).*/\1/p' tests/oracle/coreclr/CMakeLists.txt)
  scenes=$(sed -nE 's/.*known known "ORACLE_SCENES=([0-9]+)".*/\1/p' tests/oracle/known/CMakeLists.txt)
  limit=$(sed -nE 's/^LIMIT = ([0-9]+)$/\1/p' tests/check_stack.py)
  figure README.md 'in ([0-9]+) kinds of callback' "$kinds"
  figure docs/oracles.md 'in ([0-9]+) kinds of callback' "$kinds"
  figure README.md 'places, in ([0-9]+) scenes' "$scenes"
  figure README.md 'each of ([0-9,]+) snapshots' "$(grouped "$(setting tests/oracle/shadow/shadow.c ORACLE_SNAPSHOTS)")"
  figure docs/signal-safety.md 'at most ([0-9,]+) bytes of stack' "$(grouped "$limit")"
  figure docs/oracles.md '([0-9]+) faults in copies' "$(grep -cE '^    \("' tests/mutants/run.py)"
  figure README.md 'at ([0-9,]+) stops' "$(sed -nE 's/.*oracle clrmd *([0-9,]+) stops.*/\1/p' dev)"
  figure README.md 'each of ([0-9]+) is noticed' "$(grep -cE '^    \("' tests/mutants/run.py)"
  figure docs/wire-format.md '`version` in the header is ([0-9]+)' "$(defined CS_WIRE_VERSION src/wire/wire.h)"
  figure docs/recording-format.md '\| version: ([0-9]+)' "$(defined CS_FILE_VERSION src/command/recording/recfile.h)"
  # The table of the every-instruction oracle adds up, and is what the README says.
  instructions=$(awk -F'|' '/instructions walked at/ { on = 1 } on && /^\| all/ { exit }
    on { gsub(/[ ,]/, "", $3); n += $3 } END { print n }' docs/oracles.md)
  figure docs/oracles.md '^\| all \| ([0-9,]+) \| 0 \| 0 \|' "$(grouped "$instructions")"
  figure README.md 'at every instruction: ([0-9.]+) million' "$(awk "BEGIN { printf \"%.1f\", $instructions / 1e6 }")"
}

# check KIND...: these kinds of statements, in the tree $source.
check() {
  local kind
  cd "$source"
  pages=(README.md CONTRIBUTING.md CHANGELOG.md docs/*.md)
  for kind in "$@"; do "check_$kind"; done
}
# A row of a table that was wrapped is one no longer.
check_tables() {
  local page text
  while IFS=: read -r page text; do
    fail "$page: a table within a line: $text"
  done < <(named '^(?! *\|).*\| -{3,} \|.{0,20}')
}
kinds_of_checks=(reasons links names tests figures tables)

# headings FILE: the anchors of its headings, as a Markdown viewer makes them.
headings() {
  sed -n 's/^#\{1,6\} //p' "$1" | tr '[:upper:]' '[:lower:]' | sed -E 's/[^a-z0-9 _-]//g; s/ /-/g'
}
# defined NAME FILE: the number that NAME is defined as in FILE.
defined() { sed -nE "s/^#define $1 ([0-9]+)u$/\1/p" "$2"; }
# setting FILE NAME: the default of a test's setting.
setting() { sed -nE "s/.*oracle_env\(\"$2\", ([0-9]+)\).*/\1/p" "$1" | sort -u; }
grouped() { sed -E ':a; s/^([0-9]+)([0-9]{3})/\1,\2/; ta' <<< "$1"; }

# holds KIND...: the check passes on the copy.
holds() { (source=$copy; check "$@" > /dev/null); }

# spoil KIND FILE OLD NEW: the check must fail after this one change in the copy.
spoil() {
  sed -i -E "0,/$3/s//$4/" "$copy/$2"
  ! cmp -s "$source/$2" "$copy/$2" || { echo "FAIL: '$3' is not in $2"; exit 1; }
  ! holds "$1" || { echo "FAIL: not noticed: $2 with '$4'"; exit 1; }
  cp "$source/$2" "$copy/$2"
}

if [ "$1" = --self-test ]; then
  source=$2 build=$3
  fail() { exit 1; } # of the subshell of holds
  copy=$(mktemp -d)
  trap 'rm -rf "$copy"' EXIT
  (cd "$source" && tar cf - --exclude=./build --exclude=./.git .) | tar xf - -C "$copy"
  holds "${kinds_of_checks[@]}" || { echo "FAIL: the check fails on an unchanged copy"; exit 1; }
  spoil reasons docs/stop-reasons.md '^\| `bad-sp`' '| `bad-sq`'
  spoil links README.md '\(docs\/design\.md\)' '(docs\/desine.md)'
  spoil names docs/design.md 'src\/core\/walk\/walk\.c' 'src\/walk\/walk.c'
  spoil names docs/design.md '`native\/quirks\.c`' '`native\/querks.c`'
  spoil names docs/design.md 'cs_epoch_enter' 'cs_epoch_entered'
  spoil tests docs/contract.md '`oracle\.foreign-handler`' '`oracle.foreign`'
  spoil figures README.md 'in [0-9]+ kinds of callback' 'in 17 kinds of callback'
  spoil figures docs/signal-safety.md 'at most [0-9,]+ bytes of stack' 'at most 4,096 bytes of stack'
  spoil links README.md 'signal-safety\.md#after-an-attach' 'signal-safety.md#after-the-attach'
  spoil tests docs/oracles.md '-R ref\.cfi' '-R ref.cfg'
  spoil tests docs/security.md '`fuzz\.ring`' '`fuzz.rung`'
  spoil names docs/oracles.md 'tests\/mutants\/run\.py' 'tests\/mutants\/runs.py'
  spoil names docs/oracles.md 'dev oracle clrmd' 'dev orakle clrmd'
  spoil figures docs/wire-format.md 'in the header is [0-9]+' 'in the header is 17'
  spoil figures docs/oracles.md '^\| all \| [0-9]+' '| all | 99'
  spoil tables docs/debug-a-cut-walk.md '^ *\| --- \|' 'code | --- |'
  echo "pass: each of sixteen disagreements is noticed"
  exit 0
fi
source=$1 build=$2 failed=0
fail() { echo "FAIL: $*"; failed=1; }
check "${kinds_of_checks[@]}"
[ $failed = 0 ] && echo "pass: the documents agree with the tree"
exit $failed
