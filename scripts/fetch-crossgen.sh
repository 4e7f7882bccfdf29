#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# fetch-crossgen.sh OUT: the ahead-of-time compiler for ReadyToRun images, from NuGet, as OUT/crossgen/crossgen2
# (about 100 MB). Once there it is not fetched again. Exit 77: NuGet cannot be reached.
set -euo pipefail
version=10.0.12
package=microsoft.netcore.app.crossgen2.linux-x64
[ $# -eq 1 ] || { echo "usage: fetch-crossgen.sh OUT" >&2; exit 2; }
mkdir -p "$1"
out=$(cd "$1" && pwd)
exec 9> "$out/.crossgen.lock"
flock 9
[ "$(cat "$out/crossgen/.complete" 2> /dev/null)" = "$version" ] && { echo "there: crossgen2 $version"; exit 0; }
command -v dotnet > /dev/null || { echo "skipped: there is no dotnet command"; exit 77; }

work=$(mktemp -d "$out/.crossgen.XXXXXX")
trap 'rm -rf "$work"' EXIT
cat > "$work/fetch.csproj" << XML
<Project Sdk="Microsoft.NET.Sdk">
  <PropertyGroup>
    <TargetFramework>net10.0</TargetFramework>
    <NuGetAudit>false</NuGetAudit>
  </PropertyGroup>
  <ItemGroup>
    <PackageDownload Include="$package" Version="[$version]" />
  </ItemGroup>
</Project>
XML
touch "$work/Directory.Build.props" # nobody else's settings
export DOTNET_NOLOGO=1 DOTNET_CLI_TELEMETRY_OPTOUT=1 DOTNET_GENERATE_ASPNET_CERTIFICATE=false
if ! NUGET_PACKAGES=$work/packages dotnet restore "$work/fetch.csproj" -nodeReuse:false > "$work/log" 2>&1; then
  if grep -q NU1301 "$work/log"; then
    echo "skipped: NuGet cannot be reached: $(grep -m1 -o 'NU1301.*' "$work/log")"
    exit 77
  fi
  cat "$work/log" >&2
  exit 1
fi
rm -rf "$out/crossgen"
mv "$work/packages/$package/$version/tools" "$out/crossgen"
chmod +x "$out/crossgen/crossgen2"
echo "$version" > "$out/crossgen/.complete"
