#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# program.sh MATERIAL OUT FILE.cs...: compiles a C# program and puts it into the place of the one that
# scripts/fetch-aarch64-runtime.sh has fetched: OUT is a single-file program for arm64. Its framework is trimmed, so the
# sources are compiled against the very files that they will run with: what is missing there is an error here.
set -euo pipefail
runtime=$1/aarch64-runtime out=$2
shift 2
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
  -define:TRIMMED -target:exe -nowarn:CS0649 "-out:$work/$main" "${references[@]}" "$@"
python3 "$(dirname "${BASH_SOURCE[0]}")/bundle.py" pack "$runtime/program" "$out.new" "${files[@]}" "$main=$work/$main"
mv "$out.new" "$out"
