#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# fetch-coverage.sh OUT: a CLR profiler that somebody else built, for the tests of the drop-in:
# Microsoft.CodeCoverage from NuGet, unpacked into OUT/coverage (41 MB). The profiler is
# OUT/coverage/ubuntu/x64/libInstrumentationEngine.so. What is there already is not fetched again.
# Exit 77: NuGet cannot be reached.
set -euo pipefail
version=18.11.0
package=microsoft.codecoverage

[ $# -eq 1 ] || { echo "usage: fetch-coverage.sh OUT" >&2; exit 2; }
mkdir -p "$1/coverage"
out=$(cd "$1/coverage" && pwd)
exec 9> "$out/.lock"
flock 9
if [ "$(cat "$out/.complete" 2> /dev/null)" = $version ]; then
  echo "there: $version"
  exit 0
fi
command -v dotnet > /dev/null || { echo "skipped: there is no dotnet command"; exit 77; }

work=$(mktemp -d "$out/.fetch.XXXXXX")
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
echo "fetching $version of $package from NuGet"
if ! NUGET_PACKAGES=$work/packages dotnet restore "$work/fetch.csproj" -nodeReuse:false > "$work/log" 2>&1; then
  if grep -q NU1301 "$work/log"; then
    echo "skipped: NuGet cannot be reached: $(grep -m1 -o 'NU1301.*' "$work/log")"
    exit 77
  fi
  cat "$work/log" >&2
  exit 1
fi

# The mark comes last.
find "$out" -mindepth 1 -maxdepth 1 ! -name '.*' -exec rm -rf {} +
mv "$work/packages/$package/$version/build/netstandard2.0"/* "$out/"
echo $version > "$out/.complete"
echo "fetched: $version"
