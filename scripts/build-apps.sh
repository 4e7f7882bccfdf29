#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# build-apps.sh OUT [PROJECT_DIR...]: builds C# programs (default: all of tests/apps) into
# OUT/apps/NAME/NAME.dll, all that are out of date at once. A project with
# <NeedsNuGet>true</NeedsNuGet> is left out where NuGet cannot be reached, and the reason is written to
# OUT/apps/NAME.unavailable; a test that needs it exits with 77 and that text. Any other failure is an error.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
[ $# -ge 1 ] || { echo "usage: build-apps.sh OUT [PROJECT_DIR...]" >&2; exit 2; }
mkdir -p "$1/apps"
out=$(cd "$1" && pwd)
shift
if [ $# -gt 0 ]; then projects=("$@"); else projects=("$root"/tests/apps/*/); fi
shared=("$root/tests/apps/Directory.Build.props" "$root/tests/apps/apps.proj" "${BASH_SOURCE[0]}")

export DOTNET_NOLOGO=1 DOTNET_CLI_TELEMETRY_OPTOUT=1 DOTNET_GENERATE_ASPNET_CERTIFICATE=false
unset CORECLR_ENABLE_PROFILING CORECLR_ENABLE_NOTIFICATION_PROFILERS DOTNET_ENABLE_PROFILING DOTNET_ENABLE_NOTIFICATION_PROFILERS # the caller's settings are not meant for the SDK
command -v dotnet > /dev/null || { echo "skipped: there is no dotnet command"; exit 77; }
sdk=$(dotnet --version)

# One build at a time in one output folder.
exec 9> "$out/apps/.lock"
flock 9

# up_to_date DIR NAME: it was built by this SDK, and nothing of the project, including the folders whose
# sources it uses, is newer (adding or removing a file makes a folder newer).
up_to_date() {
  local stamp=$out/apps/$2/.built used
  mapfile -t used < <(sed -n "s#.*Include=\"\(\.\./[A-Za-z]*\)/.*#$1/\1#p" "$1/$2".*proj)
  [ -f "$out/apps/$2/$2.dll" ] && [ "$(cat "$stamp" 2> /dev/null)" = "$sdk" ] &&
    [ -z "$(find "$1" "${used[@]}" "${shared[@]}" -newer "$stamp" -print -quit)" ]
}

# msbuild TARGET PROJECT...: leaves no build server running, and shows the log only on failure.
msbuild() {
  local target=$1 list
  shift
  list=$(IFS=';'; echo "$*")
  dotnet msbuild "$root/tests/apps/apps.proj" "-t:$target" "-p:Apps=\"${list}\"" "-p:ClrsnapOut=$out" \
    -p:UseSharedCompilation=false -nodeReuse:false -m:2 -nologo -v:minimal -tl:off > "$out/apps/.log" 2>&1
}

todo=()
for dir in "${projects[@]}"; do
  dir=$(cd "$dir" && pwd)
  name=$(basename "$dir")
  project=$(echo "$dir/$name".*proj)
  [ -f "$project" ] || { echo "there is no $project" >&2; exit 1; }
  up_to_date "$dir" "$name" && continue
  rm -f "$out/apps/$name.unavailable" "$out/apps/$name/.built"
  if grep -q '<NeedsNuGet>true' "$project" && ! msbuild Restore "$project"; then
    if ! grep -q NU1301 "$out/apps/.log"; then
      cat "$out/apps/.log" >&2
      exit 1
    fi
    echo "NuGet cannot be reached, and $name needs a package from it" > "$out/apps/$name.unavailable"
    echo "not built: $(cat "$out/apps/$name.unavailable")"
    continue
  fi
  todo+=("$project")
done

if [ ${#todo[@]} -gt 0 ]; then
  if ! msbuild Build "${todo[@]}"; then
    cat "$out/apps/.log" >&2
    exit 1
  fi
  for project in "${todo[@]}"; do
    name=$(basename "$project" | sed "s/\.[a-z]*proj$//")
    echo "$sdk" > "$out/apps/$name/.built"
    echo "built: $name"
  done
fi
