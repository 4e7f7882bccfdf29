#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# fetch-aarch64.sh OUT: fetches Debian's arm64 packages that clrsnap for arm64 is linked with, and that its tests need
# (a kernel, busybox), and unpacks them in OUT/aarch64-root, only once; .versions there says which versions they have. The
# machine's own packages are left alone. Exit 77: they cannot be had.
set -euo pipefail
[ $# -eq 1 ] || { echo "usage: fetch-aarch64.sh OUT" >&2; exit 2; }
packages=(libc6 libgcc-s1 libstdc++6 libcmocka0 libcmocka-dev libdw1 libdw-dev libelf1 libelf-dev zlib1g zlib1g-dev
  liblzma5 liblzma-dev libbz2-1.0 libbz2-dev libzstd1 libncursesw6 libtinfo6 libncurses-dev libprotobuf-c1 libprotobuf-c-dev
  libcurl4-openssl-dev busybox-static)
command -v apt-get > /dev/null || { echo "skipped: there is no apt-get, which fetches arm64 packages"; exit 77; }
mkdir -p "$1"
out=$(cd "$1" && pwd)/aarch64-root
exec 9> "$out.lock"
flock 9
[ "$(cat "$out/.complete" 2> /dev/null)" = "${packages[*]} kernel versions" ] && { echo "there: arm64 libraries"; exit 0; }
rm -rf "$out"
work=$(mktemp -d "$out.XXXXXX")
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"
mkdir -p "$work/lists/partial" "$work/debs" "$work/root"
options=(-oAPT::Architecture=arm64 -oAPT::Architectures::=arm64 -oDir::State::Lists="$work/lists" -oDir::Cache::pkgcache=
  -oDir::Cache::srcpkgcache= -oAPT::Sandbox::User=root)
cd "$work/debs"
if ! { apt-get "${options[@]}" update && apt-get "${options[@]}" download "${packages[@]}" \
  "$(apt-cache "${options[@]}" depends linux-image-arm64 | awk '/Depends/ { print $2; exit }')"; } > "$work/log" 2>&1; then
  echo "skipped: arm64 packages cannot be had: $(grep -m1 -E '^(E|W|Err)' "$work/log")"
  exit 77
fi
for package in *.deb; do
  dpkg-deb -W --showformat='${Package} ${Version}\n' "$package" >> "$work/root/.versions"
  case $package in
    linux-image*) dpkg-deb --fsys-tarfile "$package" | tar -xC "$work/root" --wildcards './boot/vmlinuz*' ;; # not its modules
    *) dpkg-deb -x "$package" "$work/root" ;;
  esac
done
find "$work/root" -type l -lname '/*' -printf '%p %l\n' | while read -r link to; do ln -sfr "$work/root$to" "$link"; done
echo "${packages[*]} kernel versions" > "$work/root/.complete"
mv "$work/root" "$out"
echo "fetched: arm64 libraries"
