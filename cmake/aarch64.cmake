# The toolchain of Debian's gcc-aarch64-linux-gnu (./dev build --target aarch64), with the libraries of
# scripts/fetch-aarch64.sh.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++) # for the guest of tests/guest only
set(CMAKE_ASM_COMPILER aarch64-linux-gnu-gcc)
if(CLRSNAP_MATERIAL) # not in CMake's own checks of the compiler
  set(root ${CLRSNAP_MATERIAL}/aarch64-root)
  set(folders ${root}/usr/lib/aarch64-linux-gnu ${root}/lib/aarch64-linux-gnu)
  set(ENV{PKG_CONFIG_SYSROOT_DIR} ${root})
  set(ENV{PKG_CONFIG_LIBDIR} ${root}/usr/lib/aarch64-linux-gnu/pkgconfig)
  list(TRANSFORM folders REPLACE "(.+)" "-L\\1 -Wl,-rpath-link,\\1" OUTPUT_VARIABLE options)
  list(JOIN options " " CMAKE_EXE_LINKER_FLAGS_INIT)
  set(CMAKE_SKIP_RPATH ON) # of that folder, which no other machine has
endif()
