# SPDX-License-Identifier: MIT
# What the command's tests share. Sourced by bash. CLRSNAP, CLRSNAP_LIB and FAKE come from CTest.
set -u
shopt -s lastpipe # `... | same FILE` counts its failures in this shell, not in one of its own
: "${CLRSNAP:?}" "${CLRSNAP_LIB:?}" "${FAKE:?}"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch" || exit 1
failures=0
unset CORECLR_ENABLE_PROFILING CORECLR_PROFILER CORECLR_PROFILER_PATH CORECLR_PROFILER_PATH_64 \
  CORECLR_NOTIFICATION_PROFILERS CORECLR_ENABLE_NOTIFICATION_PROFILERS DOTNET_EnableDiagnostics

fail() {
  echo "FAIL: $*"
  failures=$((failures + 1))
}

# run EXIT_CODE command...: stdout and stderr go to files out and err.
run() {
  local want=$1 got=0
  shift
  "$@" >out 2>err </dev/null || got=$?
  [ "$got" = "$want" ] || { fail "$* ended with $got, not $want"; cat err; }
}

# same FILE: its content is what stands on stdin.
same() {
  diff -u - "$1" >difference || { fail "$1 is not what it should be:"; cat difference; }
}

# same_summary: as same err, with what depends on time or place taken out.
same_summary() {
  sed -E 's/ in [0-9]+\.[0-9] s \(/ in T s (/; s#'"$FAKE"'#FAKE#' err >summary
  same summary
}

# have PROGRAM: part of a test needs it. Without it, what has passed is not the whole test, which then is skipped.
have() {
  command -v "$1" >/dev/null || { lacking="${lacking:-} $1" && false; }
}

done_testing() {
  [ "$failures" = 0 ] && [ -n "${lacking:-}" ] && { echo "skipped: in part, without$lacking"; exit 77; }
  [ "$failures" = 0 ] && echo ok
  exit $((failures > 0))
}
