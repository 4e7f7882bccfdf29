#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# check-island.sh ARCHIVE: the signal-safe island calls nothing. Its archive's undefined symbols must be
# none but its own, and its code must not touch thread-local memory: no TLS and no stack protector
# (both are an access relative to %fs), no call that the compiler makes up.
# check-island.sh --self-test CC: each kind of offender is refused, and a correct archive is not.
# NM and OBJDUMP: the programs of those names for another architecture.
set -euo pipefail
NM=${NM:-nm} OBJDUMP=${OBJDUMP:-objdump}

# foreign_symbols ARCHIVE: "object: symbol" for every undefined symbol that no member defines.
# _GLOBAL_OFFSET_TABLE_ is provided by the linker: an address, not a call.
foreign_symbols() {
  local own
  own=$("$NM" --defined-only --extern-only --format=posix "$1" 2> /dev/null | awk 'NF > 1 { print $1 }')
  "$NM" -A --undefined-only --format=posix "$1" 2> /dev/null |
    awk -v own="$own" '
      BEGIN { n = split(own, names, "\n"); for (i = 1; i <= n; i++) defined[names[i]] = 1 }
      !($2 in defined) && $2 != "_GLOBAL_OFFSET_TABLE_" { print $1, $2 }'
}

# thread_local_access ARCHIVE: relocations against TLS, and instructions that address by %fs or %gs. The only load
# allowed is that of %fs:0, the thread pointer itself, which every thread created by libc has from its first instruction
# on. Where the compiler uses that load to reach a variable, there is a relocation, too.
thread_local_access() {
  "$OBJDUMP" -dr "$1" | awk '
    /file format/ { object = $1 }
    /^[0-9a-f]+ <.*>:$/ { function_name = $2 }
    /[ \t]mov +%fs:0x0,%/ { next }
    /R_X86_64_(TLS|GOTTPOFF|TPOFF|DTPOFF|GOTPC32_TLSDESC)|R_AARCH64_TLS/ || /%[fg]s:/ {
      sub(/^[ \t]+/, ""); gsub(/[ \t]+/, " "); print object, function_name, $0 }'
}

check() {
  local archive=$1 bad=0 found
  [ -f "$archive" ] || { echo "FAIL: there is no archive $archive"; return 1; }
  [ -n "$("$NM" --defined-only --extern-only "$archive" 2> /dev/null | grep ' T ')" ] ||
    { echo "FAIL: $archive defines no function: nothing to check"; return 1; }
  found=$(foreign_symbols "$archive")
  if [ -n "$found" ]; then
    echo "FAIL: the island calls or reads what is not its own:"
    echo "$found"
    bad=1
  fi
  found=$(thread_local_access "$archive")
  if [ -n "$found" ]; then
    echo "FAIL: the island touches thread-local memory (TLS or a stack protector):"
    echo "$found"
    bad=1
  fi
  return $bad
}

# refuses NAME TEXT FLAGS...: compiles the program on stdin together with a correct object; the check must fail, and its
# output must contain TEXT.
refuses() {
  local name=$1 text=$2 output
  shift 2
  "$CC" -c -O2 -fPIC -x c -o "$work/$name.o" "$@" - || return 1
  rm -f "$work/$name.a"
  ar rcs "$work/$name.a" "$work/honest.o" "$work/$name.o"
  if output=$(check "$work/$name.a"); then
    echo "FAIL: the check lets an offender pass: $name"
    return 1
  fi
  grep -qF -- "$text" <<< "$output" || { echo "FAIL: $name: no '$text' in: $output"; return 1; }
  echo "refused as it should be: $name"
}

self_test() {
  CC=$1 work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  "$CC" -c -O2 -fPIC -fno-stack-protector -x c -o "$work/honest.o" - << 'C'
int shared = 3;
int other(int);
int honest(int x) { return x < 1 ? shared : other(x - 1); }
C
  "$CC" -c -O2 -fPIC -fno-stack-protector -x c -o "$work/other.o" - <<< \
    'int honest(int); int other(int x) { return honest(x) + 1; }'
  ar rcs "$work/pair.a" "$work/honest.o" "$work/other.o"
  check "$work/pair.a" || { echo "FAIL: the check refuses an honest archive"; return 1; }

  refuses libc getpid -fno-stack-protector <<< \
    'int getpid(void); int other(int x) { return x + getpid(); }' &&
  refuses made_up memcpy -fno-stack-protector <<< \
    'struct big { char b[9000]; }; void other(struct big *a, struct big *b) { *a = *b; }' &&
  refuses variable errno_of_mine -fno-stack-protector <<< \
    'extern int errno_of_mine; int other(int x) { return x + errno_of_mine; }' &&
  refuses tls 'thread-local' -fno-stack-protector -ftls-model=initial-exec <<< \
    '__thread int t; int other(int x) { return x + t++; }' &&
  refuses tls_address GOTTPOFF -fno-stack-protector -ftls-model=initial-exec <<< \
    '__thread int t; int *other(void) { return &t; }' &&
  refuses tls_call __tls_get_addr -fno-stack-protector -ftls-model=global-dynamic -mtls-dialect=gnu <<< \
    '__thread int t; int other(int x) { return x + t++; }' &&
  refuses protector __stack_chk_fail -fstack-protector-all <<< \
    'int other(int x) { return x; }'
}

usage() {
  echo "usage: check-island.sh ARCHIVE | --self-test CC" >&2
  exit 2
}

case $# in
  1)
    check "$1"
    echo "pass: $(basename "$1") needs nothing but itself"
    ;;
  2)
    [ "$1" = --self-test ] || usage
    self_test "$2"
    echo "pass: every offender was refused"
    ;;
  *) usage ;;
esac
