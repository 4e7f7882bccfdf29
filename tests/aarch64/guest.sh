# SPDX-License-Identifier: MIT
# guest.sh: runs in the emulated machine of machine.sh: a profiler in C++ (tests/guest) watches a program (tests/apps/Guest),
# plainly and through the drop-in of arm64. /tmp/made gets what it noted, for tests/guest/compare.py. Busybox's shell
# runs it.
export LD_LIBRARY_PATH=/app DOTNET_SYSTEM_GLOBALIZATION_INVARIANT=1 DOTNET_TieredCompilation=0
export DOTNET_EnableWriteXorExecute=0 # docs/oracles.md: old code of dynamic methods
export CORECLR_ENABLE_PROFILING=1 CORECLR_PROFILER={6D2B1C44-9A57-4F0E-B318-5C7E20D941AF}
export CLRSNAP_PROFILER_PATH=/app/libguest.so GUEST_ROUNDS=30
ln -s libc.so.6 /lib/aarch64-linux-gnu/libc.so
wrong=0

# guest NAME MODE PROGRAM LIBRARY: one run, in which the runtime loads LIBRARY.
guest() {
  local name=$1.$2 code=0
  CORECLR_PROFILER_PATH=/app/$4 GUEST_MODE=$2 GUEST_OUT=/tmp/made/$name timeout 300 ./guest $3 > /tmp/out 2> /tmp/err || code=$?
  echo "$name: code $code, after $(cut -d. -f1 /proc/uptime) s"
  [ $code = 0 ] && [ "$(cat /tmp/out)" = done ] && [ ! -s /tmp/err ] || { cat /tmp/out /tmp/err; wrong=1; }
}
for run in suspend:stacks cross:stacks sites:sites detach:stacks; do
  guest plain ${run%:*} ${run#*:} libguest.so
  guest drop-in ${run%:*} ${run#*:} libclrsnap.so
done
# Without clrsnap, a walk in a signal handler is not safe.
guest drop-in handler stacks libclrsnap.so
exit $wrong
