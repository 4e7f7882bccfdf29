#!/bin/bash
# SPDX-License-Identifier: MIT
# run.sh TWIN: runs the reference twin (twin.c) over every function of every ReadyToRun image of the newest .NET 10 on
# this machine, including ASP.NET's where it is installed.
command -v dotnet > /dev/null || { echo "skipped: there is no dotnet command"; exit 77; }
folders=$(dotnet --list-runtimes | sed -nE 's/^(\S+) (10\.\S+) \[(.*)\]$/\1 \3\/\2/p' |
  sort -V | awk '{ newest[$1] = $2 } END { for (name in newest) print newest[name] }')
[ -n "$folders" ] || { echo "skipped: there is no .NET 10 runtime"; exit 77; }
mapfile -t images < <(for folder in $folders; do ls "$folder"/*.dll; done)
exec "$1" "${images[@]}"
