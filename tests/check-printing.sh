#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# check-printing.sh OBJECTS: text for people is written through src/core/base/print.c, which makes it harmless. No other
# code of the command calls libc's functions for printing or writing, except for the writers of formats for programs and
# of bytes, each of which is named here with what it writes.
# check-printing.sh --self-test CC: an offender is found.
set -euo pipefail

PRINTERS='v?f?printf|v?dprintf|f?puts|f?putc|putchar|putw|fwrite|perror|psignal|psiginfo|write|writev|pwrite|v?errx?|v?warnx?|error|error_at_line'
PRINTERS="^(_IO_)?(__)?($PRINTERS)(_unlocked)?(_chk)?(@.*)?\$"

writers() {
  cat << 'TABLE'
base/log: one line with one write, escaped by print.c
base/print: the function itself
cli/top_workers: what a scan has found, to the command, through a pipe
formats/markdown_fit: text that cs_print has written to memory
formats/otlp: protobuf
formats/pprof: protobuf
formats/service: a name for formats into a string
page/html: the page
page/pack: the page's data, compressed
page/page_data: numbers for the page
process/copies: copies of files; a report to its parent
process/launch: words into a string; an errno to its parent
process/proc: a file of /proc into a string
process/target: copies of files
recording/recfile_write: recordings
session/observer: records to its parent
session/pool_scans: records to its parent
symbols/fetch: files from servers, in memory
top/top_screen: the terminal's own sequences for the way out
util/gzip: bytes
util/json: JSON
TABLE
}

check() {
  local build=$1 objects object name bad=0 count=0 found
  objects=$(find "$build/command" "$build/core" "$build/wire" -name '*.c.o' | grep -v '\.pb-c\.c\.o$')
  for object in $objects; do
    name=${object##*.dir/}
    name=${name%.c.o}
    # A deleted source leaves its object behind in an existing build folder.
    [ -z "$SOURCES" ] || compgen -G "$SOURCES/*/$name.c" > /dev/null || continue
    count=$((count + 1))
    writers | grep -q "^$name:" && continue
    found=$(nm --undefined-only --format=posix "$object" | awk '{ print $1 }' | grep -E "$PRINTERS" | tr '\n' ' ') || continue
    echo "FAIL: $name.c prints by itself ($found): cs_print and cs_say make text harmless (base/print.h)"
    bad=1
  done
  [ $count -gt 0 ] || { echo "FAIL: no objects of the command under $build"; return 1; }
  [ $bad = 0 ] && echo "pass: $count objects, $(writers | wc -l) of which write"
}

self_test() {
  local work output
  work=$(mktemp -d)
  trap 'rm -rf "$work"' RETURN
  mkdir -p "$work/command/cs_cli.dir/cli" "$work/core" "$work/wire"
  "$CC" -c -O2 -x c -o "$work/command/cs_cli.dir/cli/honest.c.o" - <<< \
    'void cs_print(void *out, const char *format, ...); void honest(void *f) { cs_print(f, "%s", "x"); }'
  check "$work" || { echo "FAIL: an honest object is refused"; return 1; }
  for body in 'printf("%s", s);' 'puts(s);' 'fprintf(stderr, "%d\n", s[0]);' 'putc(s[0], stderr);' 'perror(s);' \
    'dprintf(2, "%s", s);' 'fputs(s, stdout);' 'if (write(2, s, 1) < 0) return;' 'warn("%s", s);'; do
    "$CC" -c -O2 -D_GNU_SOURCE -x c -o "$work/command/cs_cli.dir/cli/offender.c.o" - << C
#include <err.h>
#include <stdio.h>
#include <unistd.h>
void offender(const char *s) { $body }
C
    if output=$(check "$work") || ! grep -q 'cli/offender.c prints by itself' <<< "$output"; then
      echo "FAIL: $body is not found: $output"
      return 1
    fi
  done
  echo "pass: every offender was found"
}

if [ "$1" = --self-test ]; then
  CC=$2 SOURCES='' self_test
else
  SOURCES=$(dirname "$0")/../src check "$1"
fi
