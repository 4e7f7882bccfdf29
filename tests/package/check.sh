#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# check.sh BUILD ROOT APP: the packages are made, twice with the same bytes; their files need no library of the machine
# but glibc's, and no symbol that glibc 2.27 lacks; the libraries need nothing that musl lacks, and the command for musl
# needs no library at all; and each package of this architecture, installed as its users install it, records a program. The
# .NET tool is installed from a local folder, into a home of its own, or run without being installed. The packages of arm64
# have the same files as its tarballs, which arm64.package runs.
set -euo pipefail
build=$1 root=$2 app=$3
floor=2.27
for tool in zip objdump dpkg-deb; do
  command -v $tool > /dev/null || { echo "skipped: there is no $tool"; exit 77; }
done
[ -x "$build/package/files/clrsnap-static" ] || { echo "skipped: there are no package files: run this by ctest"; exit 77; }
[ -x "$build/aarch64/package/files/clrsnap-static" ] || { echo "skipped: there are no package files for arm64: run this by ctest"; exit 77; }
musl=/lib/ld-musl-x86_64.so.1
[ -e $musl ] || { echo "skipped: there is no musl"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "FAIL: $*"; exit 1; }

"$root/scripts/package.sh" "$build" > "$work/first"
"$root/scripts/package.sh" "$build" > "$work/second"
cmp "$work/first" "$work/second" || fail "two packages of one build differ"
packages=$build/package
[ "$(wc -l < "$work/first")" = 13 ] || fail "there are not thirteen packages: $(cat "$work/first")"

objdump=objdump
# needs FILE: the shared libraries of FILE that glibc and libgcc_s do not have.
needs() { "$objdump" -p "$1" | awk '$1 == "NEEDED" { print $2 }' | grep -vE '^(lib(c|m|dl|pthread|gcc_s)\.so\.[0-9]+|ld-linux-(x86-64\.so\.2|aarch64\.so\.1))$' || true; }
# defined FILE, undefined FILE: the dynamic symbols; those that may be missing are not undefined.
defined() { nm -D --defined-only "$1" | awk '{ sub(/@.*/, "", $3); print $3 }'; }
undefined() { nm -D --undefined-only "$1" | awk '$1 != "w" { sub(/@.*/, "", $2); print $2 }'; }
# lacking FILE: what musl and libgcc_s have not. musl's loader takes the names of glibc's libraries for its own. musl has the
# same symbols on all architectures.
lacking() { undefined "$1" | grep -vxFf <(defined $musl; defined "$(cc -print-file-name=libgcc_s.so.1)") || true; }
# newest FILE: the latest version of glibc that FILE asks for.
newest() { "$objdump" -T "$1" | grep -oE 'GLIBC_[0-9.]+' | sort -Vu | tail -n 1 | cut -d_ -f2; }
# too_new VERSION: it is later than the floor.
too_new() { [ "$(printf '%s\n' "$1" $floor | sort -V | tail -n 1)" != $floor ]; }

too_new 2.28 || fail "the test itself: 2.28 is not noticed"
# check_files BUILD: what is in the packages, and that an ordinary build would not do.
check_files() {
  local files=$1/package/files file path
  too_new "$(newest "$1/bin/clrsnap")" || fail "the test itself: the ordinary command does not ask for more than $floor"
  [ -n "$(needs "$1/bin/clrsnap")" ] || fail "the test itself: the ordinary command needs no library"
  [ -n "$(lacking "$1/lib/libclrsnap.so")" ] || fail "the test itself: the ordinary library has all it needs in musl"
  for file in libclrsnap.so libclrsnap-takeover.so; do
    [ -z "$(lacking "$files/$file")" ] || fail "$files/$file needs of musl $(lacking "$files/$file")"
    ! "$objdump" -p "$files/$file" | grep 'NEEDED.*ld-linux' || fail "$files/$file needs glibc's loader"
  done
  ! "$objdump" -p "$files/clrsnap-static" | grep -E 'INTERP|NEEDED' || fail "the command for musl is not static"
  for file in clrsnap libclrsnap.so libclrsnap-takeover.so clrsnap-static; do
    path=$files/$file
    [ -z "$(needs "$path")" ] || fail "$path needs $(needs "$path")"
    [[ $file != *static ]] || continue
    ! too_new "$(newest "$path")" || fail "$path needs glibc $(newest "$path"): package/glibc.c has to define what is new in it"
    ! strings -a "$path" | grep -qF "$root/" || fail "$path has the path of the build in it"
  done
}
check_files "$build"
objdump=aarch64-linux-gnu-objdump
check_files "$build/aarch64"

# records COMMAND...: it is the right version, and records a program, of which it names the hottest method.
records() {
  "$@" --version | grep -qx "clrsnap [0-9.]*" || fail "$* --version"
  local ms
  for ms in 500 2000 8000; do
    "$@" record --top 3 -o "$work/x.html" -- dotnet "$app" hot $ms > "$work/log" 2>&1 || [ $? = 42 ] || { cat "$work/log"; fail "$* record"; }
    ! grep -q 'Rec\.' "$work/log" || break
  done
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
(
  cd "$work" # dnx reads the tools of the folder it is run in
  dotnet dnx --yes --configfile "$work/nuget.config" clrsnap record -d 1 -o "$work/x.html" $$ > "$work/log" 2>&1 &&
    fail "dnx records a shell"
  grep -q "^clrsnap: process $$ has no diagnostics port" "$work/log" || { cat "$work/log"; fail "dnx"; }
)

for rid in linux-x64 linux-musl-x64; do
  mkdir "$work/$rid"
  tar -C "$work/$rid" -xzf "$packages"/clrsnap-*-$rid.tar.gz
  records "$work/$rid"/*/clrsnap
done
"$work"/linux-musl-x64/*/clrsnap record --push otlp+http://127.0.0.1:1 -- dotnet "$app" hot 100 > "$work/log" 2>&1 || true
grep -q 'linked statically' "$work/log" || { cat "$work/log"; fail "the static command does not say why it cannot push"; }
python3 "$root/tests/package/image.py" "$packages"/clrsnap-*-image-x64.tar.gz amd64 "$work/image"
records "$work/image/usr/bin/clrsnap"

dpkg-deb -x "$packages"/*_amd64.deb "$work/deb"
records "$work/deb/usr/bin/clrsnap"
python3 -m json.tool "$work/deb/usr/lib/clrsnap/clrsnap.spdx.json" > /dev/null || fail "the SBOM is not JSON"

# ---- The packages for arm64 ----
for rid in linux-arm64 linux-musl-arm64; do
  mkdir "$work/$rid"
  tar -C "$work/$rid" --strip-components=1 -xzf "$packages"/clrsnap-*-$rid.tar.gz
  rm -r "$work/$rid"/{man,completion}
done
# same RID FOLDER WHAT: the folder has the files of that tarball, but for what only its kind of package has.
same() {
  diff -r --exclude=DotnetToolSettings.xml --exclude=licences "$work/$1" "$2" || fail "$3 for arm64 has other files than the tarball"
}
# The SDK installs tools for its own architecture only, so the packages are unpacked.
for rid in linux-arm64 linux-musl-arm64; do
  python3 -m zipfile -e "$packages"/clrsnap.$rid.*.nupkg "$work/tool-$rid"
  same $rid "$work/tool-$rid/tools/any/$rid" "the .NET tool"
  cmp "$work/tool-$rid"/tools/any/$rid/DotnetToolSettings.xml "$(find "$work/tools" -path '*/linux-x64/DotnetToolSettings.xml')" ||
    fail "the .NET tool for $rid is started in another way than that for linux-x64"
done
dpkg-deb -x "$packages"/*_arm64.deb "$work/deb-arm64"
same linux-arm64 "$work/deb-arm64/usr/lib/clrsnap" "the Debian package"
python3 "$root/tests/package/image.py" "$packages"/clrsnap-*-image-arm64.tar.gz arm64 "$work/image-arm64"
same linux-musl-arm64 "$work/image-arm64/usr/lib/clrsnap" "the image"
for file in "$work"/linux-*arm64/{clrsnap,*.so}; do
  readelf -h "$file" | grep -q AArch64 || fail "$file is not for arm64"
done
echo "ok: packages for glibc $floor and for musl, installed in five ways; those for arm64 have its files"
