#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# publish-app.sh OUT PROJECT_DIR KIND: publishes a program that contains the runtime (`dotnet publish`). Prints the
# program's path, which is below OUT/published/NAME/KIND. A program that this SDK has published from these sources is
# not published again. Exit 77: NuGet cannot be reached.
set -euo pipefail
[ $# = 3 ] || { echo "usage: publish-app.sh OUT PROJECT_DIR KIND" >&2; exit 2; }
project=$(cd "$2" && pwd)
name=$(basename "$project")
rid=linux-x64
single=-p:PublishSingleFile=true ready=-p:PublishReadyToRun=true trimmed=-p:PublishTrimmed=true
# A composite is trimmed, because compiling the whole framework takes minutes.
composite=("$ready" -p:PublishReadyToRunComposite=true "$trimmed")
case $3 in
  self-contained) options=() ;;
  musl) options=() rid=linux-musl-x64 ;;
  trimmed) options=("$trimmed") ;;
  single-file) options=("$single") ;;
  compressed) options=("$single" -p:EnableCompressionInSingleFile=true) ;;
  extracted) options=("$single" -p:IncludeAllContentForSelfExtract=true) ;;
  ready) options=("$single" "$ready") ;;
  composite) options=("${composite[@]}") ;;
  composite-single) options=("$single" "${composite[@]}") ;;
  *) echo "there is no kind '$3'" >&2; exit 2 ;;
esac

export DOTNET_NOLOGO=1 DOTNET_CLI_TELEMETRY_OPTOUT=1 DOTNET_GENERATE_ASPNET_CERTIFICATE=false
unset CORECLR_ENABLE_PROFILING CORECLR_ENABLE_NOTIFICATION_PROFILERS DOTNET_ENABLE_PROFILING DOTNET_ENABLE_NOTIFICATION_PROFILERS # the caller's settings are not meant for the SDK
mkdir -p "$1/published/$name/$3"
out=$(cd "$1/published/$name/$3" && pwd)
exec 9> "$out/.lock"
flock 9
sdk=$(dotnet --version)
if [ "$(cat "$out/.done" 2> /dev/null)" != "$sdk" ] ||
  [ -n "$(find "$project" "${BASH_SOURCE[0]}" -newer "$out/.done" -print -quit)" ]; then
  rm -rf "$out/artifacts" "$out/.done"
  rc=0
  dotnet publish "$project" -c Release -r $rid --self-contained -v q -nodeReuse:false \
    -p:UseSharedCompilation=false -p:UseAppHost=true --artifacts-path "$out/artifacts" "${options[@]}" \
    > "$out/log" 2>&1 9>&- || rc=$?
  if [ $rc != 0 ]; then
    ! grep -q NU1301 "$out/log" || { echo "NuGet cannot be reached" >&2; exit 77; }
    tail -5 "$out/log" >&2
    echo "$name cannot be published as '$3'" >&2
    exit 1
  fi
  # Removes the compiler's own PDB, which clrsnap would find.
  rm -rf "$out/artifacts/obj" "$out/artifacts/bin"
  echo "$sdk" > "$out/.done"
fi
echo "$out/artifacts/publish/$name/release_$rid/$name"
