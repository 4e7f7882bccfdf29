#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# fetch-dotnet-trace.sh OUT: the .NET tool dotnet-trace from NuGet, as OUT/dotnet-trace/dotnet-trace, to compare with. Once
# there it is not fetched again. Exit 77: NuGet cannot be reached.
set -euo pipefail
version=10.0.750501
[ $# -eq 1 ] || { echo "usage: fetch-dotnet-trace.sh OUT" >&2; exit 2; }
mkdir -p "$1"
out=$(cd "$1" && pwd)/dotnet-trace
exec 9> "$out.lock"
flock 9
[ "$(cat "$out/.complete" 2> /dev/null)" = "$version" ] && { echo "there: dotnet-trace $version"; exit 0; }
command -v dotnet > /dev/null || { echo "skipped: there is no dotnet command"; exit 77; }
rm -rf "$out"
export DOTNET_NOLOGO=1 DOTNET_CLI_TELEMETRY_OPTOUT=1 DOTNET_GENERATE_ASPNET_CERTIFICATE=false
if ! log=$(dotnet tool install dotnet-trace --version "$version" --tool-path "$out" 2>&1); then
  grep -q NU1301 <<< "$log" && { echo "skipped: NuGet cannot be reached"; exit 77; }
  echo "$log" >&2
  exit 1
fi
echo "$version" > "$out/.complete"
