# python.cmake - what the Python package holds beside its Python files (TECTUM_PYTHON; python/):
# libtectum.so, the declarations of tectum.h and tectum_client.h for cffi, the files that the engine reads. All of it
# is the component `python`, which `cmake --install` leaves out unless it is named.

find_package(Python3 COMPONENTS Interpreter)
if(NOT Python3_FOUND)
  message(STATUS "no Python: there is no target tectum_python")
  return()
endif()

# The floors' objects and the robot's client, as position-independent code. What the headers declare is all that the library
# exports, whatever the CUDA compiler makes visible.
add_library(tectum_python SHARED EXCLUDE_FROM_ALL)
set_target_properties(tectum_python PROPERTIES OUTPUT_NAME tectum LINKER_LANGUAGE C)
foreach(floor base kernels ops graph policies api)
  target_sources(tectum_python PRIVATE $<TARGET_OBJECTS:tectum_${floor}>)
endforeach()
target_sources(tectum_python PRIVATE $<TARGET_OBJECTS:tectum_client_above>)
if(TARGET tectum_cuda)
  target_sources(tectum_python PRIVATE $<TARGET_OBJECTS:tectum_cuda>
    $<TARGET_OBJECTS:tectum_cuda_device>)
endif()
target_link_libraries(tectum_python PRIVATE ${base_needs} ${graph_needs} ${client_tls} ${cuda_libraries} m
  Threads::Threads)
target_link_options(tectum_python PRIVATE -Wl,--no-undefined
  -Wl,--version-script=${CMAKE_SOURCE_DIR}/cmake/python.map)

set(binding ${CMAKE_BINARY_DIR}/_binding.py)
add_custom_command(OUTPUT ${binding} VERBATIM
  COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/python/binding.py ${PROJECT_VERSION} ${binding}
    ${CMAKE_SOURCE_DIR}/tectum.h ${CMAKE_SOURCE_DIR}/tectum_client.h
  DEPENDS ${CMAKE_SOURCE_DIR}/python/binding.py ${CMAKE_SOURCE_DIR}/tectum.h
    ${CMAKE_SOURCE_DIR}/tectum_client.h)
add_custom_target(tectum_python_binding DEPENDS ${binding})
add_dependencies(tectum_python tectum_python_binding)

set(component COMPONENT python EXCLUDE_FROM_ALL)
install(TARGETS tectum_python LIBRARY DESTINATION tectum ${component})
install(FILES ${binding} DESTINATION tectum ${component})
install(FILES LICENSE DESTINATION tectum ${component})
install(DIRECTORY pipelines policies DESTINATION tectum/share ${component}
  FILES_MATCHING PATTERN "*.lua" PATTERN host EXCLUDE)
# The two trained models that are tried most; their recorded episodes and training stay behind.
install(DIRECTORY pipelines/checkpoints/metaworld pipelines/checkpoints/planner
  DESTINATION tectum/share/pipelines/checkpoints ${component}
  PATTERN episodes EXCLUDE PATTERN train EXCLUDE PATTERN questions.jsonl EXCLUDE)
