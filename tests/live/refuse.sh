#!/bin/bash
# SPDX-License-Identifier: MIT
# refuse.sh BUILD SOURCE: on .NET 8 and 9, which are not supported yet, the program runs unharmed and
# is told so in one line. Fetches the two runtimes from NuGet once; skipped where that cannot be.
BUILD=$1 SOURCE=$2
. "$SOURCE/tests/live/lib.sh"
versions="8.0.33 9.0.22"
root=$BUILD/runtimes

fetch() {
  local dotnet fx v
  dotnet=$(dirname "$(readlink -f "$(command -v dotnet)")")
  mkdir -p "$WORK/fetch" "$root/host/fxr"
  cat > "$WORK/fetch/fetch.csproj" << 'X'
<Project Sdk="Microsoft.NET.Sdk"><PropertyGroup><TargetFramework>net10.0</TargetFramework>
<NuGetAudit>false</NuGetAudit></PropertyGroup><ItemGroup>
<PackageDownload Include="Microsoft.NETCore.App.Runtime.linux-x64" Version="[8.0.33];[9.0.22]"/>
</ItemGroup></Project>
X
  NUGET_PACKAGES=$WORK/packages dotnet restore "$WORK/fetch/fetch.csproj" > "$WORK/log" 2>&1 ||
    { tail -3 "$WORK/log"; return 1; }
  cp "$dotnet/dotnet" "$root/"
  cp -r "$dotnet/host/fxr/." "$root/host/fxr/"
  for v in $versions; do
    fx=$root/shared/Microsoft.NETCore.App/$v
    mkdir -p "$fx.new"
    cp -r "$WORK/packages/microsoft.netcore.app.runtime.linux-x64/$v/runtimes/linux-x64/lib/net${v%.*}/." \
      "$WORK/packages/microsoft.netcore.app.runtime.linux-x64/$v/runtimes/linux-x64/native/." "$fx.new/"
    rm -rf "$fx" && mv "$fx.new" "$fx"
  done
}
have() { for v in $versions; do [ -f "$root/shared/Microsoft.NETCore.App/$v/libcoreclr.so" ] || return 1; done; }
have || fetch || skip "the runtimes $versions cannot be had from NuGet here"
build_app Old

for v in $versions; do
  cat > "$WORK/rc.json" << X
{"runtimeOptions":{"framework":{"name":"Microsoft.NETCore.App","version":"$v"},
"configProperties":{"System.Globalization.Invariant":true}}}
X
  run() { DOTNET_ROOT=$root "$root/dotnet" exec --fx-version "$v" --runtimeconfig "$WORK/rc.json" "$APP"; }
  run > "$WORK/want" 2> "$WORK/stderr"
  [ $? = 7 ] || { cat "$WORK/stderr"; fail "$v: the program does not run by itself"; }
  text="this program runs on .NET $v, which is not supported yet"

  # The contract room's refusal, through a profiler that reports it and fails its Initialize.
  CLRSNAP_TEST_OUT=$WORK/out.$v CORECLR_ENABLE_PROFILING=1 CORECLR_PROFILER=$CLSID \
    CORECLR_PROFILER_PATH=$BUILD/lib/libtest_abi.so run > "$WORK/stdout" 2> "$WORK/stderr"
  [ $? = 7 ] || fail "$v: exit code with a profiler that refuses"
  grep -qF "refused: $text" "$WORK/out.$v" || { cat "$WORK/out.$v"; fail "$v: no refusal"; }
  pass "$v: the contract is refused"
done
