#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# fetch-dotnet-trace.sh OUT: fetches the .NET tool dotnet-trace from NuGet, as OUT/dotnet-trace/dotnet-trace, for
# comparisons, only once. Exit 77: NuGet cannot be reached.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/nuget.sh"
version=10.0.750501

[ $# -eq 1 ] || { echo "usage: fetch-dotnet-trace.sh OUT" >&2; exit 2; }
nuget_folder "$1/dotnet-trace"
[ "$(cat "$out/.complete" 2> /dev/null)" = $version ] && { echo "there: dotnet-trace $version"; exit 0; }
nuget_begin
rm -rf "$out/dotnet-trace" "$out/.store"
dotnet tool install dotnet-trace --version $version --tool-path "$out" > "$work/log" 2>&1 || nuget_failed "$work/log"
echo $version > "$out/.complete"
echo "fetched: dotnet-trace $version"
