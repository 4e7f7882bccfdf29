#!/bin/bash
# SPDX-License-Identifier: MIT
# cfi.sh REF_CFI: runs the reference twin of .eh_frame (cfi_twin.c) over every ELF file of the newest .NET 10 on this
# machine (runtime, hosts, apphost, SDK), and over the system's libraries that a .NET process loads.
system=()
for name in ld-linux-x86-64.so.2 libc.so.6 libm.so.6 libgcc_s.so.1 libstdc++.so.6 libdl.so.2 \
  libpthread.so.0 librt.so.1 libssl.so.3 libcrypto.so.3 libz.so.1 libgssapi_krb5.so.2 \
  libicuuc.so.72 libicui18n.so.72 liblttng-ust.so.1; do
  path=$(ldconfig -p | sed -nE "s/^\s+$name \(.*x86-64.*\) => (.*)/\1/p" | head -1)
  [ -z "$path" ] || system+=("$(realpath "$path")")
done
[ ${#system[@]} -ge 5 ] || { echo "ldconfig names no libc, libm, libgcc_s, libstdc++"; exit 1; }
dotnet=$(command -v dotnet) || { echo "skipped: there is no dotnet command"; exit 77; }
root=$(dirname "$(realpath "$dotnet")")
version=$(dotnet --list-runtimes | sed -nE 's/^Microsoft.NETCore.App (10\.\S+) .*/\1/p' | sort -V |
  tail -1)
[ -n "$version" ] || { echo "skipped: there is no .NET 10 runtime"; exit 77; }
# Executables have no suffix (a few scripts have none either), libraries end in .so.
mapfile -t shipped < <(find "$root" -type f \( -name '*.so' -o ! -name '*.*' -perm /100 \) \
  \( ! -path '*/shared/*' -o -path "*/$version/*" \) |
  while read -r file; do
    [ "$(head -c 4 "$file" | tr -d '\0')" != $'\177ELF' ] || echo "$file"
  done)
[ ${#shipped[@]} -ge 10 ] || { echo "only ${#shipped[@]} ELF files in $root"; exit 1; }
# The first file should be small.
mapfile -t shipped < <(ls -Sr "${shipped[@]}")
exec "$1" ${V:+-v} "${shipped[@]}" "${system[@]}"
