# aarch64.cmake - the toolchain file of the preset `aarch64`: Debian's cross compiler, the libraries
# that tools/aarch64_root.sh has put into build/aarch64-root, and qemu to run what is built.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)

set(TECTUM_AARCH64_ROOT ${CMAKE_CURRENT_LIST_DIR}/../build/aarch64-root CACHE PATH
  "where libraries and headers of the other machine are: of Debian 12, or a copy of a robot's")
set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES TECTUM_AARCH64_ROOT)
get_filename_component(root ${TECTUM_AARCH64_ROOT} ABSOLUTE)
if(NOT EXISTS ${root}/usr/include)
  message(FATAL_ERROR "no headers in ${root}/usr/include: run sh tools/setup.sh --aarch64")
endif()

set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_SYSROOT ${root})
set(CMAKE_FIND_ROOT_PATH ${root})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${root})
set(ENV{PKG_CONFIG_LIBDIR} ${root}/usr/lib/aarch64-linux-gnu/pkgconfig:${root}/usr/share/pkgconfig)

find_program(TECTUM_QEMU NAMES qemu-aarch64-static qemu-aarch64)
if(TECTUM_QEMU)
  set(CMAKE_CROSSCOMPILING_EMULATOR ${TECTUM_QEMU} -L ${root})
endif()
