#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# pictures.sh [NAME...]: makes the pictures of docs/symptoms.md anew, docs/symptom-NAME.png, from recordings of the service in
# tests/apps/Soa: cpu, lock, wait, alloc, exception, gc, disk (default: all). It needs Chromium, node and pngquant, and build/bin/clrsnap.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
die() { echo "pictures.sh: $*" >&2; exit 1; }
chromium=$(command -v chromium || command -v chromium-browser || command -v google-chrome) || die "there is no Chromium"
for tool in node pngquant dotnet; do command -v $tool > /dev/null || die "there is no $tool: apt-get install $tool"; done
clrsnap=$root/build/bin/clrsnap
[ -x "$clrsnap" ] || die "there is no build/bin/clrsnap: ./dev build"
"$root/scripts/build-apps.sh" "$root/build" "$root/tests/apps/Soa"
work=$(mktemp -d)
trap 'exec 3>&-; rm -rf "$work"' EXIT
cd "$work"

# A fault, what is recorded, and what of the page is looked at.
declare -A fault=([cpu]=search [lock]=stock [wait]=profile [alloc]=export [exception]=parse [gc]=cache [disk]=audit)
declare -A mode=([gc]=wall,gc [disk]=wall)  # the others have their modes' names
declare -A look=([cpu]="search=Search.Score" [lock]="search=held by" [wait]="zoom=Soa.Profile.Load (Faults.cs:102)"
  [alloc]="search=System.String$" [exception]="search=Parser.Number" [gc]="zoom=Soa.Cache.Get (Faults.cs:237)"
  [disk]="zoom=Soa.Audit.Append (Faults.cs:259)")

# said TEXT: waits until the service says it.
said() {
  for _ in $(seq 600); do
    grep -qx "$1" out && return
    sleep 0.1
  done
  die "the service does not say '$1': $(cat out)"
}

# The service is started in its folder, so that its command line has no path of this machine.
picture() {
  rm -f in && mkfifo in
  (cd "$root/build/apps/Soa" && exec dotnet Soa.dll) < in > out &
  local service=$!
  exec 3> in
  said "ready health"
  echo "${fault[$1]}" >&3
  said "ready ${fault[$1]}"
  "$clrsnap" record --mode "${mode[$1]:-$1}" --lines --labels -d 5 -o "$1.html" $service 2> err || die "$(cat err)"
  exec 3>&-
  wait $service
  node "$root/tests/tools/picture.js" "$chromium" "$work/$1.html" "${look[$1]}&theme=light" "$1.png" || die "no picture"
  pngquant --force --speed 1 --strip --output "$root/docs/symptom-$1.png" 48 "$1.png"
  ls -l "$root/docs/symptom-$1.png"
}

if [ $# = 0 ]; then set -- cpu lock wait alloc exception gc disk; fi
for name in "$@"; do
  [ -n "${fault[$name]:-}" ] || die "there is no picture $name"
  picture "$name"
done
