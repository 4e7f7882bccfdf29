#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# package.sh BUILD: makes the packages in BUILD/package from the files of the target `package_files` in BUILD, which are
# for x86-64, and in BUILD/aarch64: a .NET tool (five NuGet packages), and for each architecture two tarballs, a Debian
# package, and a container image. Two runs of one commit make the same bytes: times are the commit's, names are sorted, and
# no path of the machine is in any file.
set -euo pipefail
[ $# = 1 ] || { echo "usage: package.sh BUILD" >&2; exit 2; }
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=$(cd "$1" && pwd)
out=$build/package
version=$(sed -n 's/^project(clrsnap VERSION \([0-9.]*\).*/\1/p' "$root/CMakeLists.txt")
# The command for glibc can load libcurl; the one that is linked statically runs anywhere.
rids=(linux-x64 linux-musl-x64 linux-arm64 linux-musl-arm64)
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git -C "$root" log -1 --format=%ct 2> /dev/null || echo 1700000000)}
export TZ=UTC LC_ALL=C
umask 022
cd "$out"
rm -rf work ./*.nupkg ./*.tar.gz ./*.deb
mkdir work
trap 'rm -rf "$out/work"' EXIT

# of ARCHITECTURE X64 ARM64: that one of the two.
of() { if [ "$1" = arm64 ]; then echo "$3"; else echo "$2"; fi; }

# linked RID: what is linked into the command: name, licence, version and the folder of its documents, by Debian's packages.
linked() {
  local rid=$1 arch=${1##*-} name licence suffix root compiler
  root=$(of "$arch" "" "$build/aarch64-root")
  while IFS='|' read -r name licence; do
    echo "${name%-dev}|$licence|$(linked_version "$arch" "$name")|$root/usr/share/doc/$name"
  done << 'TABLE'
libdw-dev|LGPL-3.0-or-later OR GPL-2.0-or-later
libelf-dev|LGPL-3.0-or-later OR GPL-2.0-or-later
libncurses-dev|X11-distribute-modifications-variant
libprotobuf-c-dev|BSD-2-Clause
zlib1g-dev|Zlib
liblzma-dev|0BSD
libbz2-dev|bzip2-1.0.6
TABLE
  [[ $rid == *-musl-* ]] || return 0
  # These are the compiler's own, also for arm64, where it is a cross compiler.
  suffix=$(of "$arch" "" -arm64-cross)
  compiler=$(of "$arch" cc aarch64-linux-gnu-gcc)
  while IFS='|' read -r name licence; do
    echo "${name%-dev}|$licence|$(dpkg-query -W -f '${Version}' "$name$suffix")|/usr/share/doc/$name$suffix"
  done << TABLE
libc6-dev|LGPL-2.1-or-later
libstdc++-$($compiler -dumpversion | cut -d. -f1)-dev|GPL-3.0-or-later WITH GCC-exception-3.1
TABLE
}

# linked_version ARCHITECTURE NAME: that of Debian's package that is linked with.
linked_version() {
  if [ "$1" = arm64 ]; then
    awk -v name="$2" '$1 == name { print $2 }' "$build/aarch64-root/.versions"
  else
    dpkg-query -W -f '${Version}' "$2"
  fi
}

# payload RID FOLDER: copies the program itself, its licences, and what it is made of.
payload() {
  mkdir -p "$2"
  cp -a "work/payload-$1/." "$2"
}

make_payload() {
  local rid=$1 to=work/payload-$1 arch=${1##*-} command=clrsnap files strip name _ documents
  files=$(of "$arch" "$build" "$build/aarch64")/package/files
  strip=$(of "$arch" strip aarch64-linux-gnu-strip)
  [[ $rid != *-musl-* ]] || command=clrsnap-static
  mkdir -p "$to/licences"
  "$strip" --strip-unneeded -o "$to/clrsnap" "$files/$command"
  "$strip" --strip-unneeded -o "$to/libclrsnap.so" "$files/libclrsnap.so"
  "$strip" --strip-unneeded -o "$to/libclrsnap-takeover.so" "$files/libclrsnap-takeover.so"
  cp "$build/lib/ClrsnapLabels.dll" "$to/"
  cp "$root/LICENSE" "$to/licences/clrsnap"
  linked "$rid" > linked
  while IFS='|' read -r name _ _ documents; do
    cp "$documents/copyright" "$to/licences/$name"
  done < linked
  {
    echo "clrsnap|$version|MIT"
    awk -F'|' -v OFS='|' '{ print $1, $3, $2 }' linked
  } | python3 "$root/scripts/sbom.py" > "$to/clrsnap.spdx.json"
  rm linked
  chmod 755 "$to/clrsnap"
  chmod 644 "$to"/*.so "$to"/*.dll "$to"/*.json "$to"/licences/*
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

for rid in "${rids[@]}"; do make_payload "$rid"; done

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
for arch in x64 arm64; do
  image=work/image-$arch
  payload linux-musl-$arch $image/usr/lib/clrsnap
  mkdir -p $image/usr/bin $image/usr/share/terminfo $image/tmp
  chmod 1777 $image/tmp
  ln -s ../lib/clrsnap/clrsnap $image/usr/bin/clrsnap
  (cd /lib/terminfo && cp --parents l/linux s/screen s/screen-256color t/tmux t/tmux-256color v/vt100 x/xterm \
    x/xterm-256color "$out/$image/usr/share/terminfo/")
  python3 "$root/scripts/image.py" $image "clrsnap-$version-image-$arch.tar.gz" "$version" "$(of $arch amd64 arm64)"
done

# ---- Debian's ----
for arch in x64 arm64; do
  deb=work/deb-$arch
  payload linux-$arch "$deb/usr/lib/clrsnap"
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
Architecture: $(of $arch amd64 arm64)
Section: devel
Priority: optional
Maintainer: the authors of clrsnap
Depends: libc6 (>= 2.27), libgcc-s1 | libgcc1
Recommends: libcurl4 | libcurl4t64
Description: where a .NET program on Linux spends its time
 Stacks of any thread of a running .NET program, without stopping its runtime.
TEXT
  times "$deb"
  dpkg-deb --root-owner-group -Zgzip -b "$deb" "clrsnap_${version}_$(of $arch amd64 arm64).deb" > /dev/null
done
sha256sum ./*.nupkg ./*.tar.gz ./*.deb
