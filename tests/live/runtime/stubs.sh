#!/bin/bash
# SPDX-License-Identifier: MIT
# stubs.sh BUILD SOURCE MATERIAL VERSION|names: code without unwind data, as it is in a running process.
#   VERSION  every kind in docs/code-without-unwind-data.md exists on that runtime, and its first
#            instructions are those of the document. Prints the disassembly.
#   names    stubs that are in no map of the runtime have names in a recording.
BUILD=$1 SOURCE=$2 MATERIAL=$3 WHAT=$4
. "$SOURCE/tests/live/lib.sh"
DOC=$SOURCE/docs/code-without-unwind-data.md

# disassemble ADDRESS BYTES...: one instruction a line, operands as they are.
disassemble() {
  local address=$1
  shift
  printf '%b' "$(printf '\\x%s' "$@")" > "$WORK/code"
  objdump -D -b binary -m i386:x86-64 --no-show-raw-insn --adjust-vma="0x$address" "$WORK/code" |
    sed -n 's/^ *[0-9a-f]*:\t//p' | sed -E 's/ +/ /g; s/ *#.*//; s/ $//'
}

# mask: removes operands that differ from run to run.
mask() { sed -E 's/0x[0-9a-f]{5,}/N/g; s/0x3f[0-9a-f]{2}\(/N(/g; s/^(j[a-z]+) .*N$/\1 N/'; }

check_version() {
  command -v objdump > /dev/null || skip "there is no objdump"
  get_runtimes
  run_on "$WHAT" "$APP" > "$WORK/stubs" || fail "Stubs ended with $?"
  local name address bytes want first missing=0 rows=0
  while read -r name address bytes; do
    # shellcheck disable=SC2086 # bytes are words
    disassemble "$address" $bytes | mask > "$WORK/$name"
    first=$(head -3 "$WORK/$name" | paste -sd'|' | sed 's/|/; /g')
    echo "$name: $first"
  done < "$WORK/stubs"
  # The document's rows: | `name` | versions | `instructions` | ...
  while IFS='|' read -r _ name versions want _; do
    name=$(tr -d ' `' <<< "$name")
    want=$(sed -E 's/^ *`//; s/`.*//' <<< "$want")
    [[ " $versions " == *" ${WHAT%%.*} "* ]] || continue
    rows=$((rows + 1))
    [ -f "$WORK/$name" ] || { echo "FAIL: no $name on $WHAT"; missing=1; continue; }
    first=$(head -"$(tr -cd ';' <<< "$want;" | wc -c)" "$WORK/$name" | paste -sd'|' | sed 's/|/; /g')
    [ "$first" = "$want" ] || { echo "FAIL: $name on $WHAT is '$first', the document says '$want'"; missing=1; }
  done < <(grep -E '^\| `[a-z-]+` \| [0-9 ]+ \|' "$DOC")
  [ $missing = 0 ] || fail "the document does not fit $WHAT"
  [ $rows -ge 11 ] || fail "the document has $rows kinds for $WHAT"
  pass "$WHAT: $rows kinds of code without unwind data, as the document has them"
}

# leaves NAME: the samples with NAME as the youngest frame.
leaves() { PYTHONPATH=$SOURCE/tests/tools python3 -c 'import json, sys, jsontree
print(sum(n for frames, n, _ in jsontree.stacks(json.load(open(sys.argv[1]))["modes"][0]) if frames and frames[-1] == sys.argv[2]))' \
  "$WORK/out.json" "$1"; }

check_names() {
  local name ms found
  by_perf
  for ms in 3000 12000 48000; do
    "$BUILD/bin/clrsnap" record "${PERF[@]}" -F 1999 -o "$WORK/out.json" -- \
      dotnet exec --roll-forward Major --runtimeconfig "$SOURCE/scripts/any.runtimeconfig.json" "$APP" spin $ms 2> "$WORK/err" ||
      { cat "$WORK/err"; fail "the recording ended with $?"; }
    [ "$(leaves '[unknown code]')" -le 2 ] || fail "$(leaves '[unknown code]') samples of unknown code"
    found=0
    for name in '[write barrier]' '[delegate shuffle thunk]'; do
      echo "$name: $(leaves "$name") samples"
      [ "$(leaves "$name")" -lt 5 ] || found=$((found + 1))
    done
    [ $found -lt 2 ] || break
  done
  [ $found = 2 ] || { cat "$WORK/err"; fail "stubs are not named"; }
  pass "stubs have names"
}
build_app Stubs
case $WHAT in
  names) check_names ;;
  *) check_version ;;
esac
