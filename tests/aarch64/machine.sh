#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# machine.sh ROOT SECONDS COMMAND FILE...: runs a shell command in an emulated arm64 machine with a Linux kernel of its own, so
# that signals come at any instruction, and system calls are the kernel's. The FILEs are in /app, where the command begins;
# the libraries are those of ROOT (scripts/fetch-aarch64.sh). The exit code is the command's, which ends after SECONDS at
# the latest.
set -euo pipefail
root=$1 seconds=$2 command=$3
shift 3
for tool in qemu-system-aarch64 cpio; do
  command -v $tool > /dev/null || { echo "skipped: there is no $tool"; exit 77; }
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/root/"{app,bin,proc,sys,dev,tmp,lib,usr/lib}
cp -a "$root/lib/." "$work/root/lib"
cp -a "$root/usr/lib/aarch64-linux-gnu" "$work/root/usr/lib"
rm -f "$work"/root/usr/lib/aarch64-linux-gnu/*.a
cp "$root/bin/busybox" "$work/root/bin"
cp "$@" "$work/root/app"
cat > "$work/root/init" << INIT
#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/bin HOME=/tmp
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t devtmpfs dev /dev; mount -t tmpfs tmp /tmp
mkdir -p /dev/shm; mount -t tmpfs shm /dev/shm
cd /app
($command)
echo "machine: code \$?"
poweroff -f
INIT
chmod +x "$work/root/init"
(cd "$work/root" && find . | cpio -o -H newc --quiet | gzip -1) > "$work/initrd"
timeout "$seconds" qemu-system-aarch64 -M virt -cpu max,pauth-impdef=on -smp 2 -m 2048 -nographic -no-reboot -nic none \
  -kernel "$root"/boot/vmlinuz* -initrd "$work/initrd" -append "console=ttyAMA0 quiet panic=-1" < /dev/null |
  tr -d '\r' | tee "$work/log" | grep -v '^machine: code' || true
code=$(sed -n 's/^machine: code //p' "$work/log")
[ -n "$code" ] || { echo "machine.sh: the machine did not end the command within $seconds s"; exit 1; }
exit "$code"
