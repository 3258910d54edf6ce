# client.cmake - libtectum_client, as an archive and as a shared library: tectum_client.h with what of
# base/ and of the wire's code it needs, and nothing of the engine.
option(TECTUM_CLIENT_TLS "libtectum_client speaks TLS, by OpenSSL; off: it links without and refuses wss://" ON)
set(client_secure tools/client/no_tls.c)
set(client_tls "")
set(client_requires "")
if(TECTUM_CLIENT_TLS)
  set(client_secure tools/client/secure.c tools/serve/key.c)
  set(client_tls OpenSSL::SSL OpenSSL::Crypto)
  set(client_requires ", libssl, libcrypto")
endif()
set(client_objects "")
# client_objects(NAME FILE...): position-independent objects, for the libraries here.
function(client_objects name)
  add_library(tectum_client_${name} OBJECT ${ARGN})
  set_target_properties(tectum_client_${name} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_link_libraries(tectum_client_${name} PRIVATE tectum_flags PkgConfig::utf8proc
    PkgConfig::msgpack ${client_tls})
  set(client_objects ${client_objects} $<TARGET_OBJECTS:tectum_client_${name}> PARENT_SCOPE)
endfunction()
client_objects(base base/alloc.c base/clock.c base/error.c base/escape.c base/number.c)
client_objects(above tools/record/buffer.c tools/serve/msgpack_read.c tools/client/link.c
  tools/client/message.c tools/client/plan.c tools/client/queue.c tools/client/socket.c
  tools/client/tectum_client.c tools/client/times.c tools/client/values.c tools/client/wire.c
  ${client_secure})
add_library(tectum_client STATIC ${client_objects})
add_library(tectum_client_shared SHARED ${client_objects})
set_target_properties(tectum_client_shared PROPERTIES OUTPUT_NAME tectum_client
  VERSION ${PROJECT_VERSION} SOVERSION 0)
# What tectum_client.h declares is all that it exports.
target_link_options(tectum_client_shared PRIVATE -Wl,--no-undefined
  -Wl,--version-script=${CMAKE_SOURCE_DIR}/cmake/python.map)
foreach(library tectum_client tectum_client_shared)
  set_target_properties(${library} PROPERTIES LINKER_LANGUAGE C)
  target_include_directories(${library} INTERFACE ${CMAKE_SOURCE_DIR})
  target_link_libraries(${library} PRIVATE PkgConfig::utf8proc ${client_tls} m Threads::Threads)
endforeach()
add_executable(follow tools/examples/follow.c)
target_link_libraries(follow PRIVATE tectum_client)
# Builds for tests have the same files in tectum_tools; sanitizers are not in shared libraries.
if(CMAKE_BUILD_TYPE STREQUAL Debug)
  set_target_properties(tectum_client tectum_client_shared tectum_client_base tectum_client_above follow
    PROPERTIES EXCLUDE_FROM_ALL ON)
endif()
