#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# program.sh MATERIAL jitted|ready OUT FILE.cs...: compiles a C# program and puts it into the place of the one that
# scripts/fetch-aarch64-runtime.sh has fetched: OUT is a single-file program for arm64. Its framework is trimmed, so the
# sources are compiled against the very files that they will run with: what is missing there is an error here. ready: the
# program and the framework's core are compiled ahead of time (ReadyToRun), by scripts/fetch-crossgen.sh's crossgen2.
set -euo pipefail
material=$1 runtime=$1/aarch64-runtime mode=$2 out=$3
shift 3
command -v dotnet > /dev/null || { echo "skipped: there is no dotnet command"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
sdk=$(dirname "$(readlink -f "$(command -v dotnet)")")/sdk/$(dotnet --version)
cd "$runtime/files"
# What the program itself brought along stays behind.
mapfile -t files < <(printf '%s\n' System.*.dll Microsoft.Win32.*.dll ./*.json | sed 's#^\./##')
mapfile -t references < <(printf '%s\n' System.*.dll | sed "s#^#-r:$runtime/files/#")
cd - > /dev/null
main=$(basename "$runtime"/files/*.runtimeconfig.json .runtimeconfig.json).dll
dotnet "$sdk/Roslyn/bincore/csc.dll" -nologo -noconfig -nostdlib -unsafe -optimize+ -langversion:latest \
  -debug:portable "-pdb:$out.pdb" \
  -define:TRIMMED -target:exe -nowarn:CS0649,CS8632 "-out:$work/$main" "${references[@]}" "$@"
replaced=("$main=$work/$main")
if [ "$mode" = ready ]; then
  replaced=()
  for file in "$work/$main" "$runtime"/files/System.{Private.CoreLib,Linq,Collections}.dll; do
    "$material/crossgen/crossgen2" --targetos linux --targetarch arm64 -O --parallelism 2 -r "$runtime/files/*.dll" "$file" \
      -o "$work/ready.$(basename "$file")" > /dev/null
    replaced+=("$(basename "$file")=$work/ready.$(basename "$file")")
  done
fi
python3 "$(dirname "${BASH_SOURCE[0]}")/bundle.py" pack "$runtime/program" "$out.new" "${files[@]}" "${replaced[@]}"
mv "$out.new" "$out"
