# SPDX-License-Identifier: MIT
# Packages from NuGet, for the scripts fetch-*.sh, which source this. Each of them fetches for tests only, once, and ends
# with 77 where NuGet cannot be reached.
#
#   nuget_folder OUT    makes the folder, goes no further while another fetch into it is at work; its path in `out`
#   nuget_get PACKAGE VERSION...    fetches the packages; they are in $packages/PACKAGE/VERSION until the script ends

export DOTNET_NOLOGO=1 DOTNET_CLI_TELEMETRY_OPTOUT=1 DOTNET_GENERATE_ASPNET_CERTIFICATE=false

nuget_folder() {
  mkdir -p "$1"
  out=$(cd "$1" && pwd)
  exec 9> "$out/.lock"
  flock 9
}

# Ends the script if its log says that there was no way to NuGet, else shows it and fails.
nuget_failed() {
  if grep -q NU1301 "$1"; then
    echo "skipped: NuGet cannot be reached: $(grep -m1 -o 'NU1301.*' "$1")"
    exit 77
  fi
  cat "$1" >&2
  exit 1
}

# A dotnet, and a folder for what is on its way that goes with the script.
nuget_begin() {
  command -v dotnet > /dev/null || { echo "skipped: there is no dotnet command"; exit 77; }
  work=$(mktemp -d "$out/.fetch.XXXXXX")
  trap 'rm -rf "$work"' EXIT
}

nuget_get() {
  local package=$1
  shift
  nuget_begin
  packages=$work/packages
  cat > "$work/fetch.csproj" << XML
<Project Sdk="Microsoft.NET.Sdk">
  <PropertyGroup>
    <TargetFramework>net10.0</TargetFramework>
    <NuGetAudit>false</NuGetAudit>
  </PropertyGroup>
  <ItemGroup>
    <PackageDownload Include="$package" Version="$(printf '[%s];' "$@")" />
  </ItemGroup>
</Project>
XML
  touch "$work/Directory.Build.props" # nobody else's settings
  echo "fetching $* of $package from NuGet"
  NUGET_PACKAGES=$packages dotnet restore "$work/fetch.csproj" -nodeReuse:false > "$work/log" 2>&1 ||
    nuget_failed "$work/log"
}
