#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# fetch-coverage.sh OUT: fetches Microsoft's CLR profiler for the tests of the drop-in:
# Microsoft.CodeCoverage from NuGet, unpacked into OUT/coverage (41 MB). The profiler is
# OUT/coverage/ubuntu/x64/libInstrumentationEngine.so. It is fetched only once.
# Exit 77: NuGet cannot be reached.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/nuget.sh"
version=18.11.0
package=microsoft.codecoverage

[ $# -eq 1 ] || { echo "usage: fetch-coverage.sh OUT" >&2; exit 2; }
nuget_folder "$1/coverage"
[ "$(cat "$out/.complete" 2> /dev/null)" = $version ] && { echo "there: $version"; exit 0; }
nuget_get $package $version
# The mark comes last.
find "$out" -mindepth 1 -maxdepth 1 ! -name '.*' -exec rm -rf {} +
mv "$packages/$package/$version/build/netstandard2.0"/* "$out/"
echo $version > "$out/.complete"
echo "fetched: $version"
