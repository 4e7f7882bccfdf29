# SPDX-License-Identifier: MIT
# package.sh: runs in the emulated machine of machine.sh: each tarball for arm64 is unpacked, and its command records a program
# (program/Recorded.cs) and finds all that it needs in its own folder. Busybox's shell runs it.
export DOTNET_SYSTEM_GLOBALIZATION_INVARIANT=1
ln -s libc.so.6 /lib/aarch64-linux-gnu/libc.so
wrong=0
bad() { echo "FAIL: $*"; wrong=1; }

for tarball in clrsnap-*.tar.gz; do
  folder=/tmp/${tarball%.tar.gz}
  command=$folder/clrsnap
  tar -xzf "$tarball" -C /tmp
  "$command" --version | grep -qx 'clrsnap [0-9.]*' || bad "$tarball: version"
  "$command" record --top 5 -o /tmp/x.html -- ./proofs recorded shares 3000 7 > /tmp/out 2> /tmp/said
  code=$?
  [ $code = 7 ] || { cat /tmp/said; bad "$tarball: the program's exit code is $code"; }
  grep -q 'Proofs\.Recorded\.Work' /tmp/out /tmp/said || { cat /tmp/out /tmp/said; bad "$tarball names no method of the program"; }
  [ "$(wc -c < /tmp/x.html)" -gt 100000 ] || { cat /tmp/said; bad "$tarball: no page"; }
  ./proofs recorded stand > /tmp/stand &
  while ! grep -q ready /tmp/stand; do sleep 1; done
  "$command" stack $! | grep -q 'Recorded\.Spins' || bad "$tarball: stack"
  "$command" record -d 2 -o /tmp/y.clrsnap $! > /tmp/said 2>&1 || { cat /tmp/said; bad "$tarball: attach"; }
  grep -q "$folder/libclrsnap.so" /proc/$!/maps || bad "$tarball: another agent was loaded"
  kill $! || bad "$tarball: the program has not survived"
  echo "run: $tarball"
done
exit $wrong
