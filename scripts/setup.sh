# SPDX-License-Identifier: MIT
# Finds what the project needs and installs what is missing. Sourced by ./dev. After an installation
# the same checks run again and decide whether it has succeeded.
#
#   setup_build_tools   C compiler, CMake, Ninja, pkg-config and the C libraries
#   setup_readers       programs that only tests need, such as readers of the output formats and a browser; optional
#   setup_format        clang-format 14
#   setup_package       what packages are made with
#   setup_cross         a cross compiler for arm64
#   setup_load          wrk, which loads a server, for tests and benchmarks
#   setup_others        gdb, strace and perf, which observe a program while it is recorded
#   setup_perf          perf, to compare with
#   setup_dotnet        a .NET SDK of version 10 or later, put on PATH

DOTNET_HOME=$HOME/.dotnet
DOTNET_SCRIPT=https://dot.net/v1/dotnet-install.sh
NEEDED_CMAKE=3.25

die() {
  echo "dev: $*" >&2
  exit 1
}

# ---- checks: each succeeds when the thing is there ----
have_compiler() { echo '#include <stdio.h>' | cc -E -o /dev/null - 2> /dev/null; }
have_cxx() { echo '#include <vector>' | c++ -x c++ -E -o /dev/null - 2> /dev/null; }
have_python() { command -v python3 > /dev/null; }
have_cmake() {
  local version
  version=$(cmake --version 2> /dev/null | awk 'NR == 1 { print $3 }') && [ -n "$version" ] &&
    [ "$(printf '%s\n' $NEEDED_CMAKE "$version" | sort -V | head -1)" = $NEEDED_CMAKE ]
}
have_ninja() { command -v ninja > /dev/null; }
have_pkg_config() { command -v pkg-config > /dev/null; }
have_cmocka() { pkg-config --exists cmocka 2> /dev/null; }
have_libelf() { pkg-config --exists libelf 2> /dev/null; }
have_libdw() { pkg-config --exists libdw 2> /dev/null; }
have_ncurses() { pkg-config --exists ncursesw 2> /dev/null; }
have_pyte() {
  local python
  for python in python3 /usr/bin/python3; do "$python" -c 'import pyte' 2> /dev/null && return; done
  return 1
}
have_zlib() { pkg-config --exists zlib 2> /dev/null; }
have_curl_headers() { pkg-config --exists libcurl 2> /dev/null; }
have_protobuf_c() { pkg-config --exists libprotobuf-c 2> /dev/null && command -v protoc-c > /dev/null; }
have_chromium() { command -v chromium > /dev/null || command -v chromium-browser > /dev/null || command -v google-chrome > /dev/null; }
have_node() { command -v node > /dev/null; }
have_npm() { command -v npm > /dev/null; }
have_protoc() { command -v protoc > /dev/null; }
have_openssl() { command -v openssl > /dev/null; }
have_objdump() { command -v objdump > /dev/null; }
have_processes() { command -v pgrep > /dev/null; }
have_spaces() { command -v unshare > /dev/null && command -v nsenter > /dev/null && command -v setpriv > /dev/null; }
have_seccomp() { [ -f /usr/share/containers/seccomp.json ] && /usr/bin/python3 -c "import seccomp" 2> /dev/null; }
have_libxml2() { ldconfig -p | grep -q 'libxml2\.so\.2 '; }
have_zsh() { command -v zsh > /dev/null; }
have_go() { command -v go > /dev/null; }
have_jsonschema() {
  local python
  for python in python3 /usr/bin/python3; do "$python" -c 'import jsonschema' 2> /dev/null && return; done
  return 1
}
have_capstone() { pkg-config --exists capstone 2> /dev/null; }
have_libunwind() { pkg-config --exists libunwind 2> /dev/null; }
have_jsmn() { echo '#include <jsmn.h>' | cc -E -o /dev/null - 2> /dev/null; }
have_static() { [ -f "$(cc -print-file-name=liblzma.a)" ] && [ -f "$(cc -print-file-name=libbz2.a)" ]; }
have_musl() { command -v musl-gcc > /dev/null; }
have_cross() { command -v aarch64-linux-gnu-gcc > /dev/null && [ -f /usr/aarch64-linux-gnu/include/stdio.h ]; }
have_cross_cxx() { command -v aarch64-linux-gnu-g++ > /dev/null; }
have_qemu() { command -v qemu-aarch64 > /dev/null; }
have_machine() { command -v qemu-system-aarch64 > /dev/null && command -v cpio > /dev/null; }
have_zip() { command -v zip > /dev/null; }
have_wrk() { command -v wrk > /dev/null; }
have_clang() { command -v clang > /dev/null && [ -n "$(find /usr/lib/llvm-*/lib/clang -name "libclang_rt.fuzzer-*" -print -quit 2> /dev/null)" ]; }
have_gdb() { command -v gdb > /dev/null; }
have_strace() { command -v strace > /dev/null; }
have_perf() { command -v perf > /dev/null; }
have_clang_format() { scripts/format.sh --which > /dev/null; }
have_download() { command -v curl > /dev/null || command -v wget > /dev/null; }

# check | description for the user | Debian and Ubuntu packages
needs() {
  cat << 'TABLE'
compiler|a C compiler and the C library's headers|gcc libc6-dev
cxx|a C++ compiler, for the tests' guest profiler|g++
python|Python 3, for tests|python3
cmake|CMake 3.25 or later|cmake
ninja|Ninja|ninja-build
pkg_config|pkg-config|pkg-config
cmocka|cmocka, for the unit tests|libcmocka-dev
libelf|libelf of elfutils, with headers|libelf-dev
libdw|libdw of elfutils, with headers|libdw-dev
ncurses|ncurses with wide characters, with headers|libncurses-dev
zsh|zsh, whose completion is tested|zsh
pyte|pyte, a terminal emulator in Python, for tests|python3-pyte
zlib|zlib, with headers|zlib1g-dev
protobuf_c|protobuf-c and its compiler|libprotobuf-c-dev protobuf-c-compiler
curl_headers|libcurl, with headers|libcurl4-openssl-dev
go|Go, whose pprof reads our profiles in tests|golang-go
jsonschema|a JSON schema validator for Python, for tests|python3-jsonschema
capstone|capstone, a disassembler for the tests|libcapstone-dev
libunwind|libunwind, for tests and to compare with|libunwind-dev
wrk|wrk, which loads a server|wrk
chromium|Chromium, in which the page is tested|chromium
node|node, which drives Chromium|nodejs
npm|npm, which fetches speedscope for tests|npm
protoc|protobuf's compiler, which reads our profiles in tests|protobuf-compiler
openssl|openssl, for a server with TLS in tests|openssl
objdump|objdump, for tests|binutils
processes|pgrep, for tests|procps
spaces|unshare, nsenter and setpriv, for tests|util-linux
seccomp|the seccomp profile of containers, and libseccomp for Python, for tests|golang-github-containers-common python3-seccomp
libxml2|libxml2, for Microsoft's profiler in tests|libxml2
perf|perf, to compare with|linux-perf
gdb|gdb, beside which a program is recorded in tests|gdb
strace|strace, beside which a program is recorded in tests|strace
static|the static libraries of liblzma and bzip2, for packages|liblzma-dev libbz2-dev
zip|zip, which makes NuGet packages|zip
musl|musl, for which there is a package|musl-tools
cross|a cross compiler for arm64|gcc-aarch64-linux-gnu libc6-dev-arm64-cross
cross_cxx|a C++ cross compiler for arm64, for packages and the tests' guest profiler|g++-aarch64-linux-gnu
qemu|qemu-user, which runs arm64 programs in tests|qemu-user
machine|an emulated arm64 machine for tests|qemu-system-arm ipxe-qemu cpio
jsmn|jsmn, a JSON parser in a header|libjsmn-dev
clang|clang and its libFuzzer, for the fuzz targets|clang libclang-rt-14-dev
clang_format|clang-format 14|clang-format-14
download|curl or wget|curl ca-certificates
TABLE
}

# missing CHECK...: the lines of the table whose check fails.
missing() {
  local check what packages
  needs | while IFS='|' read -r check what packages; do
    [[ " $* " == *" $check "* ]] || continue
    "have_$check" || echo "$check|$what|$packages"
  done
}

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

# require CHECK...: installs what is missing of these; ends the command if that fails.
require() {
  local lines packages=() say=""
  lines=$(missing "$@")
  [ -z "$lines" ] && return 0
  echo "dev: missing on this machine:" >&2
  cut -d'|' -f2 <<< "$lines" | sed 's/^/  - /' >&2
  read -ra packages <<< "$(cut -d'|' -f3 <<< "$lines" | tr '\n' ' ')"

  if ! command -v apt-get > /dev/null; then
    die "only apt-get is known here. Please install the above with your system's package manager" \
      "(the Debian packages are ${packages[*]}; yours have similar names), then run this again."
  fi
  [ "$(id -u)" = 0 ] || say="sudo "
  echo "dev: installing with: ${say}apt-get install -y --no-install-recommends ${packages[*]}" >&2
  [ -z "${CLRSNAP_NO_INSTALL:-}" ] || die "not installed, because CLRSNAP_NO_INSTALL is set."
  [ -z "$say" ] || command -v sudo > /dev/null ||
    die "you are not root and there is no sudo: please run that command as root, then this again."
  as_root apt-get update -q >&2 || die "apt-get update failed (above); is the network there?"
  as_root env DEBIAN_FRONTEND=noninteractive \
    apt-get install -q -y --no-install-recommends "${packages[@]}" >&2 ||
    die "apt-get install failed (above)."
  lines=$(missing "$@")
  [ -z "$lines" ] || die "installed, but still not usable:" \
    "$(cut -d'|' -f2 <<< "$lines" | paste -sd, | sed 's/,/, /g')." \
    "This system's packages are too old, or another program of that name comes first in PATH."
}

setup_build_tools() {
  require compiler cxx python cmake ninja pkg_config cmocka libelf libdw ncurses zlib protobuf_c curl_headers \
    jsmn capstone libunwind
}
# What only tests need. Without it those tests are skipped, with a message. A package that this system lacks does not
# keep the others from being installed.
setup_readers() {
  local one
  for one in go jsonschema pyte zsh chromium node npm protoc openssl objdump processes spaces seccomp libxml2 wrk perf gdb strace static zip musl cross cross_cxx qemu machine; do
    [ -z "$(missing $one)" ] || (require $one) || echo "dev: the tests that need the above will be skipped" >&2
  done
}
setup_fuzz() {
  setup_build_tools
  require clang
}
setup_format() { require clang_format; }
setup_package() {
  setup_build_tools
  require objdump static zip cross cross_cxx
}
setup_load() { require wrk; }
setup_cross() { require cross; }
setup_others() { require gdb strace perf; }
setup_perf() { require perf; }

# ---- .NET ----
# find_dotnet: the path of a `dotnet` that has an SDK of version 10 or later.
find_dotnet() {
  local candidate
  for candidate in "$(command -v dotnet || true)" "${DOTNET_ROOT:-}/dotnet" "$DOTNET_HOME/dotnet"; do
    if [ -x "$candidate" ] && "$candidate" --list-sdks 2> /dev/null | grep -qE '^[1-9][0-9]+\.'; then
      echo "$candidate"
      return 0
    fi
  done
  return 1
}

install_dotnet() {
  local script
  echo "dev: missing on this machine: a .NET SDK of version 10 or later" >&2
  echo "dev: installing with: $DOTNET_SCRIPT --channel 10.0 --install-dir $DOTNET_HOME" >&2
  [ -z "${CLRSNAP_NO_INSTALL:-}" ] || die "not installed, because CLRSNAP_NO_INSTALL is set."
  require download
  script=$(mktemp)
  if command -v curl > /dev/null; then
    curl -fsSL -o "$script" $DOTNET_SCRIPT
  else
    wget -qO "$script" $DOTNET_SCRIPT
  fi || die "$DOTNET_SCRIPT could not be downloaded; is the network there? An SDK that you install" \
    "yourself (https://dotnet.microsoft.com/download) is found on PATH or by DOTNET_ROOT."
  bash "$script" --channel 10.0 --install-dir "$DOTNET_HOME" >&2 || die "dotnet-install.sh failed (above)."
  rm -f "$script"
}

setup_dotnet() {
  local dotnet
  if ! dotnet=$(find_dotnet); then
    install_dotnet
    dotnet=$(find_dotnet) || die "the SDK was installed into $DOTNET_HOME but does not run; try" \
      "$DOTNET_HOME/dotnet --info"
  fi
  DOTNET_ROOT=$(dirname "$(readlink -f "$dotnet")")
  export DOTNET_ROOT PATH="$DOTNET_ROOT:$PATH"
  # Without ICU a .NET program exits at once unless globalization is set to invariant.
  if ! ldconfig -p 2> /dev/null | grep -q libicuuc; then
    export DOTNET_SYSTEM_GLOBALIZATION_INVARIANT=1
  fi
}
