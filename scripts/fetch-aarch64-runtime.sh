#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# fetch-aarch64-runtime.sh OUT: fetches a .NET runtime for arm64, only once: CoreCLR 10.0.9, linked into a program that is
# a single file, which npm has (@azure/mcp-linux-arm64, MIT; 106 MB). The program becomes OUT/aarch64-runtime/program, its
# bundled files are unpacked into OUT/aarch64-runtime/files. Exit 77: npm or its registry cannot be reached.
set -euo pipefail
version=2.0.5
package=@azure/mcp-linux-arm64
tests=$(cd "$(dirname "${BASH_SOURCE[0]}")/../tests/aarch64" && pwd)

[ $# -eq 1 ] || { echo "usage: fetch-aarch64-runtime.sh OUT" >&2; exit 2; }
mkdir -p "$1"
out=$(cd "$1" && pwd)/aarch64-runtime
exec 9> "$out.lock"
flock 9
[ "$(cat "$out/.complete" 2> /dev/null)" = $version ] && { echo "there: a runtime for arm64"; exit 0; }
command -v npm > /dev/null || { echo "skipped: there is no npm, which fetches a .NET runtime for arm64"; exit 77; }
work=$(mktemp -d "$out.XXXXXX")
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"
cd "$work"
if ! npm pack --silent $package@$version > log 2>&1; then
  echo "skipped: npm's registry cannot be reached: $(grep -m1 -i err log)"
  exit 77
fi
tar xzf ./*.tgz
mkdir runtime
mv package/dist/azmcp runtime/program
python3 "$tests/bundle.py" unpack runtime/program runtime/files
echo $version > runtime/.complete
rm -rf "$out"
mv runtime "$out"
echo "fetched: a runtime for arm64"
