#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# fetch-crossgen.sh OUT: fetches the ahead-of-time compiler for ReadyToRun images from NuGet, as OUT/crossgen/crossgen2
# (about 100 MB), only once. Exit 77: NuGet cannot be reached.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/nuget.sh"
version=10.0.12
package=microsoft.netcore.app.crossgen2.linux-x64

[ $# -eq 1 ] || { echo "usage: fetch-crossgen.sh OUT" >&2; exit 2; }
nuget_folder "$1/crossgen"
[ "$(cat "$out/.complete" 2> /dev/null)" = $version ] && { echo "there: crossgen2 $version"; exit 0; }
nuget_get $package $version
find "$out" -mindepth 1 -maxdepth 1 ! -name '.*' -exec rm -rf {} +
mv "$packages/$package/$version/tools"/* "$out/"
chmod +x "$out/crossgen2"
echo $version > "$out/.complete"
echo "fetched: crossgen2 $version"
