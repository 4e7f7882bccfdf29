#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# fetch-runtimes.sh OUT: the .NET runtimes that the tests run on beside the SDK's own, from NuGet, as one
# DOTNET_ROOT in OUT/runtimes (about 400 MB). What is there already is not fetched again.
# Exit 77: NuGet cannot be reached. Use: scripts/dotnet-with VERSION app.dll.
set -euo pipefail
versions=(8.0.33 9.0.22 10.0.14)
package=microsoft.netcore.app.runtime.linux-x64

[ $# -eq 1 ] || { echo "usage: fetch-runtimes.sh OUT" >&2; exit 2; }
mkdir -p "$1/runtimes"
runtimes=$(cd "$1/runtimes" && pwd)
framework=$runtimes/shared/Microsoft.NETCore.App
exec 9> "$runtimes/.lock"
flock 9

missing=()
for version in "${versions[@]}"; do
  [ -f "$framework/$version/.complete" ] || missing+=("$version")
done
if [ ${#missing[@]} -eq 0 ]; then
  echo "there: ${versions[*]}"
  exit 0
fi
command -v dotnet > /dev/null || { echo "skipped: there is no dotnet command"; exit 77; }

# The packages are unpacked here and moved into the root, so that nothing is kept twice.
work=$(mktemp -d "$runtimes/.fetch.XXXXXX")
trap 'rm -rf "$work"' EXIT
cat > "$work/fetch.csproj" << XML
<Project Sdk="Microsoft.NET.Sdk">
  <PropertyGroup>
    <TargetFramework>net10.0</TargetFramework>
    <NuGetAudit>false</NuGetAudit>
  </PropertyGroup>
  <ItemGroup>
    <PackageDownload Include="$package" Version="$(printf '[%s];' "${missing[@]}")" />
  </ItemGroup>
</Project>
XML
touch "$work/Directory.Build.props" # nobody else's settings
export DOTNET_NOLOGO=1 DOTNET_CLI_TELEMETRY_OPTOUT=1 DOTNET_GENERATE_ASPNET_CERTIFICATE=false
echo "fetching ${missing[*]} of $package from NuGet"
if ! NUGET_PACKAGES=$work/packages dotnet restore "$work/fetch.csproj" -nodeReuse:false > "$work/log" 2>&1; then
  if grep -q NU1301 "$work/log"; then
    echo "skipped: NuGet cannot be reached: $(grep -m1 -o 'NU1301.*' "$work/log")"
    exit 77
  fi
  cat "$work/log" >&2
  exit 1
fi

# install VERSION: lays one package out as the host wants to find it. The mark comes last.
install() {
  local version=$1 from=$work/packages/$package/$1/runtimes/linux-x64 to=$framework/$1
  rm -rf "$to"
  mkdir -p "$to" "$runtimes/host/fxr/$version"
  mv "$from"/lib/*/* "$from"/native/* "$to/"
  rm -f "$to/Microsoft.NETCore.App.runtimeconfig.json"
  mv "$to/libhostfxr.so" "$runtimes/host/fxr/$version/"
  touch "$to/.complete"
}
cp "$(dirname "$(readlink -f "$(command -v dotnet)")")/dotnet" "$runtimes/dotnet"
for version in "${missing[@]}"; do install "$version"; done
echo "fetched: ${missing[*]}"
