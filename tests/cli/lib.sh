# SPDX-License-Identifier: MIT
# Shared by the command's tests. Sourced by bash. CTest sets CLRSNAP, CLRSNAP_LIB and FAKE.
set -u
shopt -s lastpipe # so that `... | same FILE` counts its failures in this shell, not in a subshell.
: "${CLRSNAP:?}" "${CLRSNAP_LIB:?}" "${FAKE:?}"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch" || exit 1
failures=0
unset CORECLR_ENABLE_PROFILING CORECLR_PROFILER CORECLR_PROFILER_PATH CORECLR_PROFILER_PATH_64 \
  CORECLR_NOTIFICATION_PROFILERS CORECLR_ENABLE_NOTIFICATION_PROFILERS DOTNET_EnableDiagnostics \
  DOTNET_ENABLE_PROFILING DOTNET_PROFILER DOTNET_PROFILER_PATH DOTNET_PROFILER_PATH_64 \
  DOTNET_NOTIFICATION_PROFILERS DOTNET_ENABLE_NOTIFICATION_PROFILERS

fail() {
  echo "FAIL: $*"
  failures=$((failures + 1))
}

# run EXIT_CODE COMMAND...: stdout and stderr go to the files out and err.
run() {
  local want=$1 got=0
  shift
  "$@" >out 2>err </dev/null || got=$?
  [ "$got" = "$want" ] || { fail "$* ended with $got, not $want"; cat err; }
}

# same FILE: the content of FILE must be the standard input.
same() {
  diff -u - "$1" >difference || { fail "$1 is not what it should be:"; cat difference; }
}

# same_summary: like `same err`, without what depends on time or place.
same_summary() {
  sed -E 's/ in [0-9]+\.[0-9] s \(/ in T s (/; s#'"$FAKE"'#FAKE#' err >summary
  same summary
}

# have PROGRAM: part of a test needs PROGRAM. Without it that part is left out, and the test counts as skipped.
have() {
  command -v "$1" >/dev/null || { lacking="${lacking:-} $1" && false; }
}

done_testing() {
  [ "$failures" = 0 ] && [ -n "${lacking:-}" ] && { echo "skipped: in part, without$lacking"; exit 77; }
  [ "$failures" = 0 ] && echo ok
  exit $((failures > 0))
}
