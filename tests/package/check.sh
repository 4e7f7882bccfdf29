#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# check.sh BUILD ROOT APP: the packages are made, twice with the same bytes; their files need no library of the machine
# but glibc's, and no symbol that glibc 2.27 lacks; and each package, installed as its users install it, records a
# program. The .NET tool is installed from a local folder, into a home of its own.
set -euo pipefail
build=$1 root=$2 app=$3
floor=2.27
for tool in zip objdump dpkg-deb; do
  command -v $tool > /dev/null || { echo "skipped: there is no $tool"; exit 77; }
done
[ -f "$(cc -print-file-name=liblzma.a)" ] || { echo "skipped: there is no static liblzma"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "FAIL: $*"; exit 1; }

cmake --build "$build" --target package_files > "$work/build.log" 2>&1 || { cat "$work/build.log"; fail "package_files"; }
"$root/scripts/package.sh" "$build" > "$work/first"
"$root/scripts/package.sh" "$build" > "$work/second"
cmp "$work/first" "$work/second" || fail "two packages of one build differ"
packages=$build/package
[ "$(wc -l < "$work/first")" = 4 ] || fail "there are not four packages: $(cat "$work/first")"

# needs FILE: the shared libraries of FILE that glibc and libgcc_s do not have.
needs() { objdump -p "$1" | awk '$1 == "NEEDED" { print $2 }' | grep -vE '^(lib(c|m|dl|pthread|gcc_s)\.so\.[0-9]+|ld-linux-x86-64\.so\.2)$' || true; }
# newest FILE: the latest version of glibc that FILE asks for.
newest() { objdump -T "$1" | grep -oE 'GLIBC_[0-9.]+' | sort -Vu | tail -n 1 | cut -d_ -f2; }
# too_new VERSION: it is later than the floor.
too_new() { [ "$(printf '%s\n' "$1" $floor | sort -V | tail -n 1)" != $floor ]; }

too_new 2.28 || fail "the test itself: 2.28 is not noticed"
too_new "$(newest "$build/bin/clrsnap")" || fail "the test itself: the ordinary command does not ask for more than $floor"
[ -n "$(needs "$build/bin/clrsnap")" ] || fail "the test itself: the ordinary command needs no library"
for file in clrsnap libclrsnap.so libclrsnap-takeover.so; do
  path=$packages/files/$file
  [ -z "$(needs "$path")" ] || fail "$file needs $(needs "$path")"
  ! too_new "$(newest "$path")" || fail "$file needs glibc $(newest "$path"): package/glibc.c has to define what is new in it"
  ! strings -a "$path" | grep -qF "$root/" || fail "$file has the path of the build in it"
done

# records COMMAND...: it is the right version, and records a program, of which it names the hottest method.
records() {
  "$@" --version | grep -qx "clrsnap [0-9.]*" || fail "$* --version"
  "$@" record --top 3 -o "$work/x.html" -- dotnet "$app" hot 500 > "$work/log" 2>&1 || [ $? = 42 ] || { cat "$work/log"; fail "$* record"; }
  grep -q 'Rec\.' "$work/log" || { cat "$work/log"; fail "$* names no method of the program"; }
  [ -s "$work/x.html" ] || fail "$* has written no page"
  "$@" doctor > "$work/log" || { cat "$work/log"; fail "$* doctor"; }
  grep -q '^ok *labels' "$work/log" || { cat "$work/log"; fail "$* does not find the labels"; }
}

export DOTNET_CLI_HOME=$work/home NUGET_PACKAGES=$work/nuget DOTNET_NOLOGO=1 DOTNET_CLI_TELEMETRY_OPTOUT=1
mkdir "$work/home" "$work/source"
cp "$packages"/*.nupkg "$work/source/"
cat > "$work/nuget.config" << XML
<configuration><packageSources><clear /><add key="local" value="$work/source" /></packageSources></configuration>
XML
dotnet tool install --tool-path "$work/tools" --configfile "$work/nuget.config" clrsnap > "$work/log" 2>&1 ||
  { cat "$work/log"; fail "dotnet tool install"; }
records "$work/tools/clrsnap"

mkdir "$work/tarball"
tar -C "$work/tarball" -xzf "$packages"/clrsnap-*.tar.gz
records "$work"/tarball/*/clrsnap

dpkg-deb -x "$packages"/*.deb "$work/deb"
records "$work/deb/usr/bin/clrsnap"
python3 -m json.tool "$work/deb/usr/lib/clrsnap/clrsnap.spdx.json" > /dev/null || fail "the SBOM is not JSON"
echo "ok: packages for glibc $floor, installed in three ways"
