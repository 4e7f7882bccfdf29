#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# fetch-runtimes.sh OUT [VERSION...]: fetches the .NET runtimes that the tests use beside the SDK's own, or these, from
# NuGet, into one DOTNET_ROOT in OUT/runtimes (about 130 MB each), each only once.
# Exit 77: NuGet cannot be reached. Use: scripts/dotnet-with VERSION app.dll.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/nuget.sh"
versions=(8.0.33 9.0.22 10.0.14)
package=microsoft.netcore.app.runtime.linux-x64

[ $# -ge 1 ] || { echo "usage: fetch-runtimes.sh OUT [VERSION...]" >&2; exit 2; }
[ $# -eq 1 ] || versions=("${@:2}")
nuget_folder "$1/runtimes"
framework=$out/shared/Microsoft.NETCore.App
missing=()
for version in "${versions[@]}"; do
  [ -f "$framework/$version/.complete" ] || missing+=("$version")
done
if [ ${#missing[@]} -eq 0 ]; then
  echo "there: ${versions[*]}"
  exit 0
fi
# The packages are unpacked in the same file system and moved, so that nothing is stored twice.
nuget_get $package "${missing[@]}"

# install VERSION: lays one package out as the host expects it. The mark is written last.
install() {
  local version=$1 from=$packages/$package/$1/runtimes/linux-x64 to=$framework/$1
  rm -rf "$to"
  mkdir -p "$to" "$out/host/fxr/$version"
  mv "$from"/lib/*/* "$from"/native/* "$to/"
  rm -f "$to/Microsoft.NETCore.App.runtimeconfig.json"
  mv "$to/libhostfxr.so" "$out/host/fxr/$version/"
  touch "$to/.complete"
}
cp -f "$(dirname "$(readlink -f "$(command -v dotnet)")")/dotnet" "$out/dotnet"
for version in "${missing[@]}"; do install "$version"; done
echo "fetched: ${missing[*]}"
