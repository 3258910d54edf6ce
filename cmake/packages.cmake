# packages.cmake - tectum for programs and systems that do not know this tree: files for pkg-config and
# find_package, and a Debian package (`cpack -G DEB` in the build's folder).
include(CMakePackageConfigHelpers)

# Paths within tectum.pc are relative to it, so that what is installed can be moved.
set(pkgconfig ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
file(RELATIVE_PATH to_include /${pkgconfig} /${CMAKE_INSTALL_INCLUDEDIR})
set(cuda_flags "")
foreach(library ${cuda_libraries}) # by name: find_package sorts paths before the libraries that need them
  get_filename_component(folder ${library} DIRECTORY)
  get_filename_component(name ${library} NAME_WE)
  string(REGEX REPLACE "^lib" "" name ${name})
  if(folder)
    string(APPEND cuda_flags "-L${folder} ")
  endif()
  string(APPEND cuda_flags "-l${name} ")
endforeach()
configure_file(cmake/tectum.pc.in tectum.pc @ONLY)
configure_file(cmake/tectum_client.pc.in tectum_client.pc @ONLY)
configure_file(cmake/tectumConfig.cmake.in tectumConfig.cmake @ONLY)
write_basic_package_version_file(tectumConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/tectum.pc ${CMAKE_BINARY_DIR}/tectum_client.pc DESTINATION ${pkgconfig})
install(FILES ${CMAKE_BINARY_DIR}/tectumConfig.cmake ${CMAKE_BINARY_DIR}/tectumConfigVersion.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/tectum)

# The Debian package has the units where systemd looks for them.
install(DIRECTORY tools/systemd/ DESTINATION lib/systemd/system COMPONENT debian EXCLUDE_FROM_ALL)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/tectum RENAME copyright
  COMPONENT debian EXCLUDE_FROM_ALL)
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_CONTACT "the authors of tectum <tectum@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "vision-language-action models on robots, under deadlines")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
if(CMAKE_CROSSCOMPILING) # dpkg knows the libraries of this machine alone: those of Debian 12, by name
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS OFF)
  set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE arm64)
  set(CPACK_DEBIAN_PACKAGE_DEPENDS "libc6 (>= 2.36), libhiredis0.14, libjansson4, libjpeg62-turbo, \
liblua5.4-0, libmicrohttpd12, libmsgpackc2, libpng16-16, libssl3, libutf8proc2, libwebsockets17, zlib1g")
endif()
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "graphviz")
set(CPACK_INSTALL_CMAKE_PROJECTS "${CMAKE_BINARY_DIR};tectum;ALL;/"
  "${CMAKE_BINARY_DIR};tectum;debian;/")
include(CPack)
