# SPDX-License-Identifier: MIT
# Packages from NuGet, for the scripts fetch-*.sh, which source this. They fetch what only tests need, once, and exit
# with 77 where NuGet cannot be reached.
#
#   nuget_folder OUT    creates the folder, and waits while another script fetches into it; sets `out` to its path
#   nuget_get PACKAGE VERSION...    fetches the packages into $packages/PACKAGE/VERSION, until the script ends

export DOTNET_NOLOGO=1 DOTNET_CLI_TELEMETRY_OPTOUT=1 DOTNET_GENERATE_ASPNET_CERTIFICATE=false

nuget_folder() {
  mkdir -p "$1"
  out=$(cd "$1" && pwd)
  exec 9> "$out/.lock"
  flock 9
}

# Ends the script with 77 if its log says that NuGet cannot be reached; otherwise shows the log and fails.
nuget_failed() {
  if grep -q NU1301 "$1"; then
    echo "skipped: NuGet cannot be reached: $(grep -m1 -o 'NU1301.*' "$1")"
    exit 77
  fi
  cat "$1" >&2
  exit 1
}

# Finds dotnet, and creates a temporary folder that is removed with the script.
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
  touch "$work/Directory.Build.props" # no settings from parent folders
  echo "fetching $* of $package from NuGet"
  NUGET_PACKAGES=$packages dotnet restore "$work/fetch.csproj" -nodeReuse:false > "$work/log" 2>&1 ||
    nuget_failed "$work/log"
}
