#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# check-install.sh BUILD SOURCE CMAKE CC: `cmake --install` installs all that users need, and the installed files work
# in place: the command finds its agent, and a program is built against the header and the library.
set -euo pipefail
BUILD=$1 SOURCE=$2 CMAKE=$3 CC=$4
fail() { echo "FAIL: $*"; exit 1; }
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT
"$CMAKE" --install "$BUILD" --prefix "$WORK/usr" > "$WORK/log" || { cat "$WORK/log"; fail "cmake --install"; }
cd "$WORK/usr"
lib=$(dirname "$(find lib* -name libclrsnap.so)")
for file in bin/clrsnap "$lib/libclrsnap.so" "$lib/libclrsnap-takeover.so" \
  share/bash-completion/completions/clrsnap share/zsh/site-functions/_clrsnap share/man/man1/clrsnap.1; do
  [ -s "$file" ] || fail "$file is not installed"
done
if [ -f "$BUILD/lib/ClrsnapLabels.dll" ]; then # where there is an SDK
  [ -s "$lib/ClrsnapLabels.dll" ] || fail "$lib/ClrsnapLabels.dll is not installed"
fi
for header in "$SOURCE"/include/clrsnap/*.h; do
  cmp "$header" "include/clrsnap/${header##*/}" || fail "$header is not installed"
done
# Each verb has a manual page, except version and help, which are in clrsnap(1).
for verb in $(bin/clrsnap help | sed -n 's/^  \([a-z-]*\)  *.*/\1/p'); do
  case $verb in help | version) continue ;; esac
  [ -s "share/man/man1/clrsnap-$verb.1" ] || fail "clrsnap $verb has no manual page"
done
[ "$(bin/clrsnap --version)" = "clrsnap $(sed -n 's/^project(clrsnap VERSION \([0-9.]*\).*/\1/p' "$SOURCE/CMakeLists.txt")" ] ||
  fail "--version says $(bin/clrsnap --version)"

# The command can say without .NET that there is none in `true`, and its saying so shows that it has found the agent.
env -u CLRSNAP_LIB bin/clrsnap record -o "$WORK/x.html" -- true 2> "$WORK/err" || true
grep -q 'nothing was recorded: no .NET runtime in true' "$WORK/err" || { cat "$WORK/err"; fail "the agent is not found"; }
bash -n share/bash-completion/completions/clrsnap

printf '#include <clrsnap/clrsnap.h>\nint main(void) { return clrsnap_version()[0] == 0; }\n' > "$WORK/user.c"
"$CC" -Iinclude "$WORK/user.c" -L"$lib" -lclrsnap -Wl,-rpath,"$WORK/usr/$lib" -o "$WORK/user" ||
  fail "a program cannot be built against the installed header and library"
"$WORK/user" || fail "a program cannot use the installed library"
echo "pass: $(find . -type f | wc -l) files"
