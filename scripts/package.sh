#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# package.sh BUILD: makes the packages in BUILD/package from the files of the target `package_files`: three NuGet packages
# (a .NET tool), two tarballs, a Debian package, and a container image. Two runs of one commit make the same bytes: times
# are the commit's, names are sorted, and no path of the machine is in any file.
set -euo pipefail
[ $# = 1 ] || { echo "usage: package.sh BUILD" >&2; exit 2; }
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
out=$(cd "$1" && pwd)/package
files=$out/files
version=$(sed -n 's/^project(clrsnap VERSION \([0-9.]*\).*/\1/p' "$root/CMakeLists.txt")
# The command for glibc can load libcurl; the one that is linked statically runs anywhere.
rids=(linux-x64 linux-musl-x64)
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git -C "$root" log -1 --format=%ct 2> /dev/null || echo 1700000000)}
export TZ=UTC LC_ALL=C
umask 022
cd "$out"
rm -rf work ./*.nupkg ./*.tar.gz ./*.deb
mkdir work
trap 'rm -rf "$out/work"' EXIT

# linked RID: what is linked into the command, by Debian's packages: name, licence.
linked() {
  cat << 'TABLE'
libdw-dev|LGPL-3.0-or-later OR GPL-2.0-or-later
libelf-dev|LGPL-3.0-or-later OR GPL-2.0-or-later
libncurses-dev|X11-distribute-modifications-variant
libprotobuf-c-dev|BSD-2-Clause
zlib1g-dev|Zlib
liblzma-dev|0BSD
libbz2-dev|bzip2-1.0.6
TABLE
  [ "$1" = linux-x64 ] || cat << TABLE
libc6-dev|LGPL-2.1-or-later
libstdc++-$(cc -dumpversion)-dev|GPL-3.0-or-later WITH GCC-exception-3.1
TABLE
}

# payload RID FOLDER: the program itself, its licences, and what it is made of.
payload() {
  local name licence rid=$1 command=clrsnap
  shift
  [ "$rid" = linux-x64 ] || command=clrsnap-static
  mkdir -p "$1/licences"
  strip --strip-unneeded -o "$1/clrsnap" "$files/$command"
  strip --strip-unneeded -o "$1/libclrsnap.so" "$files/libclrsnap.so"
  strip --strip-unneeded -o "$1/libclrsnap-takeover.so" "$files/libclrsnap-takeover.so"
  cp "$out/../lib/ClrsnapLabels.dll" "$1/"
  cp "$root/LICENSE" "$1/licences/clrsnap"
  while IFS='|' read -r name licence; do
    cp "/usr/share/doc/$name/copyright" "$1/licences/${name%-dev}"
  done < <(linked "$rid")
  sbom "$rid" > "$1/clrsnap.spdx.json"
  chmod 755 "$1/clrsnap"
  chmod 644 "$1"/*.so "$1"/*.dll "$1"/*.json "$1"/licences/*
}

sbom() {
  local name licence
  {
    echo "clrsnap|$version|MIT"
    while IFS='|' read -r name licence; do
      echo "${name%-dev}|$(dpkg-query -W -f '${Version}' "$name")|$licence"
    done < <(linked "$1")
  } | python3 "$root/scripts/sbom.py"
}

# times FOLDER: every file's time is the commit's.
times() { find "$1" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +; }

# nuget ID TYPE DESCRIPTION: zips the folder work/ID.
nuget() {
  local id=$1 type=$2 folder=$out/work/$1
  mkdir -p "$folder/_rels"
  cp "$root/LICENSE" "$root/package/README.md" "$folder/"
  cat > "$folder/$id.nuspec" << XML
<?xml version="1.0" encoding="utf-8"?>
<package xmlns="http://schemas.microsoft.com/packaging/2013/05/nuspec.xsd">
  <metadata>
    <id>$id</id>
    <version>$version</version>
    <authors>the authors of clrsnap</authors>
    <license type="file">LICENSE</license>
    <readme>README.md</readme>
    <description>$3</description>
    <tags>profiler linux stack flamegraph</tags>
    <packageTypes>
      <packageType name="$type" />
    </packageTypes>
  </metadata>
</package>
XML
  cat > "$folder/[Content_Types].xml" << 'XML'
<?xml version="1.0" encoding="utf-8"?>
<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">
  <Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml" />
  <Default Extension="nuspec" ContentType="application/octet" />
  <Default Extension="xml" ContentType="application/octet" />
  <Default Extension="md" ContentType="application/octet" />
  <Default Extension="so" ContentType="application/octet" />
  <Default Extension="dll" ContentType="application/octet" />
  <Default Extension="json" ContentType="application/octet" />
</Types>
XML
  cat > "$folder/_rels/.rels" << XML
<?xml version="1.0" encoding="utf-8"?>
<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">
  <Relationship Type="http://schemas.microsoft.com/packaging/2010/07/manifest" Target="/$id.nuspec" Id="manifest" />
</Relationships>
XML
  times "$folder"
  (cd "$folder" && find . -type f | sort | sed 's/^\.\///' | zip -q -X -9 "$out/$id.$version.nupkg" -@)
}

# ---- The .NET tool: a package that names one package for each platform ----
mkdir -p work/clrsnap/tools/any/any
{
  cat << 'XML'
<?xml version="1.0" encoding="utf-8"?>
<DotNetCliTool Version="2">
  <Commands>
    <Command Name="clrsnap" />
  </Commands>
  <RuntimeIdentifierPackages>
XML
  for rid in "${rids[@]}"; do
    echo "    <RuntimeIdentifierPackage RuntimeIdentifier=\"$rid\" Id=\"clrsnap.$rid\" />"
  done
  cat << 'XML'
  </RuntimeIdentifierPackages>
</DotNetCliTool>
XML
} > work/clrsnap/tools/any/any/DotnetToolSettings.xml
nuget clrsnap DotnetTool "Stacks of any thread of a .NET program on Linux: a profiler without stops of the runtime"
for rid in "${rids[@]}"; do
  tool=work/clrsnap.$rid/tools/any/$rid
  payload "$rid" "$tool"
  cat > "$tool/DotnetToolSettings.xml" << 'XML'
<?xml version="1.0" encoding="utf-8"?>
<DotNetCliTool Version="2">
  <Commands>
    <Command Name="clrsnap" EntryPoint="clrsnap" Runner="executable" />
  </Commands>
</DotNetCliTool>
XML
  nuget "clrsnap.$rid" DotnetToolRidPackage "clrsnap for $rid"
done

# ---- Tarballs: the folder can be anywhere ----
for rid in "${rids[@]}"; do
  folder=clrsnap-$version-$rid
  payload "$rid" "work/$folder"
  mkdir "work/$folder/man" "work/$folder/completion"
  cp "$root"/docs/man/*.1 "work/$folder/man/"
  cp "$root"/completion/* "work/$folder/completion/"
  times "work/$folder"
  tar -C work --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" -cf - "$folder" |
    gzip -9n > "$folder.tar.gz"
done

# ---- A container image FROM scratch: the command, and the terminals that `clrsnap top` knows ----
image=work/image
payload linux-musl-x64 $image/usr/lib/clrsnap
mkdir -p $image/usr/bin $image/usr/share/terminfo $image/tmp
chmod 1777 $image/tmp
ln -s ../lib/clrsnap/clrsnap $image/usr/bin/clrsnap
(cd /lib/terminfo && cp --parents l/linux s/screen s/screen-256color t/tmux t/tmux-256color v/vt100 x/xterm \
  x/xterm-256color "$out/$image/usr/share/terminfo/")
python3 "$root/scripts/image.py" $image "clrsnap-$version-image.tar.gz" "$version"

# ---- Debian's ----
deb=work/deb
payload linux-x64 "$deb/usr/lib/clrsnap"
mkdir -p "$deb/usr/bin" "$deb/usr/share/doc" "$deb/usr/share/man/man1" "$deb/usr/share/bash-completion/completions" \
  "$deb/usr/share/zsh/vendor-completions" "$deb/DEBIAN"
ln -s ../lib/clrsnap/clrsnap "$deb/usr/bin/clrsnap"
mv "$deb/usr/lib/clrsnap/licences" "$deb/usr/share/doc/clrsnap"
cp "$root"/docs/man/*.1 "$deb/usr/share/man/man1/"
gzip -9n "$deb"/usr/share/man/man1/*.1
cp "$root/completion/clrsnap.bash" "$deb/usr/share/bash-completion/completions/clrsnap"
cp "$root/completion/_clrsnap" "$deb/usr/share/zsh/vendor-completions/_clrsnap"
cat > "$deb/DEBIAN/control" << TEXT
Package: clrsnap
Version: $version
Architecture: amd64
Section: devel
Priority: optional
Maintainer: the authors of clrsnap
Depends: libc6 (>= 2.27), libgcc-s1 | libgcc1
Recommends: libcurl4 | libcurl4t64
Description: where a .NET program on Linux spends its time
 Stacks of any thread of a running .NET program, without stopping its runtime.
TEXT
times "$deb"
dpkg-deb --root-owner-group -Zgzip -b "$deb" "clrsnap_${version}_amd64.deb" > /dev/null
sha256sum ./*.nupkg ./*.tar.gz ./*.deb
