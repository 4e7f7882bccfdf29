#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# build-labels.sh OUT.dll: compiles src/agent/labels, which `clrsnap record --labels` loads into the program, with
# the compiler of the .NET SDK, if OUT.dll is older than its sources. Without an SDK it is not built, which
# `record --labels` reports.
#
# This is not a project, because its references would be to the SDK's own version of .NET, and a runtime refuses an assembly
# that refers to a later version. A reference to System.Private.CoreLib works with any version, and that to
# System.Diagnostics.DiagnosticSource is made of src/agent/labels/reference. So one file serves .NET 9 and later.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
[ $# = 1 ] || { echo "usage: build-labels.sh OUT.dll" >&2; exit 2; }
[ -z "$(find "$root/src/agent/labels" "${BASH_SOURCE[0]}" -newer "$1" -print -quit 2> /dev/null || echo no)" ] && exit
export DOTNET_NOLOGO=1 DOTNET_CLI_TELEMETRY_OPTOUT=1
unset CORECLR_ENABLE_PROFILING CORECLR_ENABLE_NOTIFICATION_PROFILERS DOTNET_ENABLE_PROFILING DOTNET_ENABLE_NOTIFICATION_PROFILERS DOTNET_STARTUP_HOOKS
command -v dotnet > /dev/null || { echo "not built: labels (there is no dotnet command)"; exit 0; }
cd "$root" # where a global.json may be
sdk=$(dotnet --list-sdks | sed -n '$s/^\([^ ]*\) \[\(.*\)\]$/\2\/\1/p')
framework=$(dotnet --list-runtimes | sed -n 's/^Microsoft.NETCore.App \(10[^ ]*\) \[\(.*\)\]$/\2\/\1/p' | tail -n 1)
if [ ! -f "$sdk/Roslyn/bincore/csc.dll" ] || [ ! -f "$framework/System.Private.CoreLib.dll" ]; then
  echo "not built: labels (there is no SDK with .NET 10)"
  exit 0
fi
temporary=$(mktemp -d) # the file's name is the assembly's
trap 'rm -rf "$temporary"' EXIT
# compile NAME OPTIONS... SOURCE...
compile() {
  local name=$1
  shift
  dotnet exec "$sdk/Roslyn/bincore/csc.dll" -nologo -noconfig -nostdlib -target:library -optimize -unsafe -deterministic \
    -debug- -warnaserror -langversion:latest "-pathmap:$root=." "-out:$temporary/$name.dll" \
    "-r:$framework/System.Private.CoreLib.dll" "$@"
}
compile System.Diagnostics.DiagnosticSource src/agent/labels/reference/*.cs
compile ClrsnapLabels "-r:$temporary/System.Diagnostics.DiagnosticSource.dll" src/agent/labels/*.cs
mv "$temporary/ClrsnapLabels.dll" "$1"
