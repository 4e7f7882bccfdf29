#!/bin/bash
# SPDX-License-Identifier: MIT
# The unit tests, built with sanitizers in a folder of their own: with address,undefined all tests that do not measure
# rates of samples, with thread those that have several threads. The island is not instrumented, as in a handler;
# tests/fuzz instruments it with the first two sanitizers.
#
#   sanitized.sh SANITIZERS SOURCE BUILD CMAKE COMPILER
set -uo pipefail
sanitizers=$1 source=$2 build=$3/sanitized-${1%%,*} cmake=$4 compiler=$5
export UBSAN_OPTIONS=print_stacktrace=1

"$cmake" -S "$source" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_COMPILER="$compiler" \
  -DCLRSNAP_SANITIZE="$sanitizers" -DCLRSNAP_MATERIAL="$3" > "$build.log" 2>&1 &&
  "$cmake" --build "$build" --target unit_tests >> "$build.log" 2>&1 || {
  tail -50 "$build.log"
  echo "the unit tests could not be built with -fsanitize=$sanitizers (above)"
  exit 1
}
if ! nm "$build/bin/test_producer" | grep -E '__(asan|tsan)_' > /dev/null; then
  echo "the unit tests were built without -fsanitize=$sanitizers, so they would find nothing"
  exit 1
fi
# The output of passing tests is dropped: a case that is skipped here is skipped in the ordinary build as well, which
# reports it.
if ! "${cmake%cmake}ctest" --test-dir "$build" -L '^sanitized$' -j2 --no-tests=error --output-on-failure \
  --test-output-size-failed 100000 > "$build.log" 2>&1; then
  grep -v ' Passed ' "$build.log"
  # The last lines of a failed test are repeated at the end of a run.
  grep -aE '^\[ +(ERROR|LINE|FAILED) +\]|^SUMMARY: ' "$build.log" | head -10
  exit 1
fi
grep 'tests passed' "$build.log"
