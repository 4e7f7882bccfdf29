# SPDX-License-Identifier: MIT
# What the live tests share. Sourced; wants BUILD (the build directory) and SOURCE (the source tree).
set -u
CLSID='{8F3E6C1A-5B2D-4E7F-9A41-C6D0E2B7F519}'
export DOTNET_NOLOGO=1 DOTNET_CLI_TELEMETRY_OPTOUT=1 DOTNET_GENERATE_ASPNET_CERTIFICATE=false
export MSBUILDDISABLENODEREUSE=1 MSBUILDTERMINALLOGGER=off
# A profiler that the caller's shell has set up is not part of the test.
unset CORECLR_ENABLE_PROFILING CORECLR_PROFILER CORECLR_PROFILER_PATH CORECLR_PROFILER_PATH_64
unset CORECLR_ENABLE_NOTIFICATION_PROFILERS CORECLR_NOTIFICATION_PROFILERS CLRSNAP_LOG CLRSNAP_SHM

fail() { echo "FAIL: $*"; exit 1; }
skip() { echo "skipped: $*"; exit 77; }
pass() { echo "pass: $*"; }

command -v dotnet > /dev/null || skip "there is no dotnet command"
WORK=$(mktemp -d) || exit 1
trap 'rm -rf "$WORK"' EXIT

# build_app NAME: builds tests/apps/NAME once for all tests; APP is its dll.
build_app() {
  local out="$BUILD/apps/$1"
  APP="$out/bin/$1/release/$1.dll"
  mkdir -p "$out"
  (
    flock 9
    dotnet build "$SOURCE/tests/apps/$1" -c Release --artifacts-path "$out" -v q > "$out/log" 2>&1
  ) 9> "$out/lock" || { cat "$out/log"; fail "tests/apps/$1 does not build"; }
}

# get_runtimes: other runtimes than the installed one, from NuGet, once a build directory.
RUNTIMES=$BUILD/runtimes
get_runtimes() {
  mkdir -p "$RUNTIMES"
  (
    flock 9
    [ -f "$RUNTIMES/complete" ] || { fetch_runtimes && touch "$RUNTIMES/complete"; }
  ) 9> "$RUNTIMES/lock" || skip "other runtimes cannot be had from NuGet here"
}
fetch_runtimes() {
  local dotnet v fx pack
  local versions="8.0.33 9.0.22 10.0.14"
  dotnet=$(dirname "$(readlink -f "$(command -v dotnet)")")
  mkdir -p "$WORK/fetch" "$RUNTIMES/host"
  cat > "$WORK/fetch/fetch.csproj" << X
<Project Sdk="Microsoft.NET.Sdk"><PropertyGroup><TargetFramework>net10.0</TargetFramework>
<NuGetAudit>false</NuGetAudit></PropertyGroup><ItemGroup>
<PackageDownload Include="Microsoft.NETCore.App.Runtime.linux-x64" Version="[${versions// /];[}]"/>
</ItemGroup></Project>
X
  NUGET_PACKAGES=$WORK/packages dotnet restore "$WORK/fetch/fetch.csproj" > "$WORK/fetch/log" 2>&1 ||
    { tail -3 "$WORK/fetch/log"; return 1; }
  cp "$dotnet/dotnet" "$RUNTIMES/" && cp -r "$dotnet/host/fxr" "$RUNTIMES/host/" || return 1
  for v in $versions; do
    fx=$RUNTIMES/shared/Microsoft.NETCore.App/$v
    pack=$WORK/packages/microsoft.netcore.app.runtime.linux-x64/$v/runtimes/linux-x64
    mkdir -p "$fx"
    cp -r "$pack/lib/net${v%.*}/." "$pack/native/." "$fx/" || return 1
  done
}
# run_on VERSION DLL ARGS...: a program under one of them.
run_on() {
  local v=$1
  shift
  cat > "$WORK/rc-$v.json" << X
{"runtimeOptions":{"framework":{"name":"Microsoft.NETCore.App","version":"$v"},
"configProperties":{"System.Globalization.Invariant":true}}}
X
  DOTNET_ROOT=$RUNTIMES "$RUNTIMES/dotnet" exec --fx-version "$v" --runtimeconfig "$WORK/rc-$v.json" "$@"
}
