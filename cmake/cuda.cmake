# cuda.cmake - the CUDA device: `tectum_cuda`, the kernels, and `tectum_cuda_device`, the C of
# kernels/cuda/ that starts them; their `cuda_libraries`, and `cuda_includes` for what uses the
# runtime by itself.
#
# TECTUM_CUDA auto or on: compiled by nvcc, with the runtime linked statically; the program needs
# no driver to start. Without it the program has a CPU alone. The same files as C++ on the CPU, for
# tests: tests/cuda_emulator/CMakeLists.txt.

file(GLOB cuda_kernels CONFIGURE_DEPENDS kernels/cuda/*.cu)
file(GLOB cuda_host CONFIGURE_DEPENDS kernels/cuda/*.c)

# The architectures that TECTUM_CUDA_ARCHITECTURES names. `auto` becomes those of the GPUs that are
# here when the build is first configured: their own code alone, with what 9.0 can do beyond others
# (90a). Without a GPU of 8.0 or newer it becomes 80, whose code runs on 8.0, 8.6 and 8.9 and of
# which the driver makes code for newer ones (doc/gpu.md).
function(tectum_architectures)
  if(TECTUM_CUDA_ARCHITECTURES STREQUAL auto)
    execute_process(COMMAND nvidia-smi --query-gpu=compute_cap --format=csv,noheader
      OUTPUT_VARIABLE found ERROR_QUIET RESULT_VARIABLE status)
    string(REGEX MATCHALL "[0-9]+\\.[0-9]" list "${found}")
    list(TRANSFORM list REPLACE "\\." "")
    list(TRANSFORM list APPEND "-real")
    list(TRANSFORM list REPLACE "^90-" "90a-")
    list(REMOVE_DUPLICATES list)
    list(FILTER list EXCLUDE REGEX "^[1-7][0-9]-")
    if(NOT list)
      set(list 80)
    endif()
    set_property(CACHE TECTUM_CUDA_ARCHITECTURES PROPERTY VALUE "${list}")
  endif()
  set(CMAKE_CUDA_ARCHITECTURES OFF PARENT_SCOPE) # tectum_codes names them
endfunction()

include(${CMAKE_CURRENT_LIST_DIR}/cuda_codes.cmake)

if(TECTUM_CUDA STREQUAL auto OR TECTUM_CUDA STREQUAL on)
  include(CheckLanguage)
  if(NOT CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX} AND EXISTS /usr/local/cuda/bin/nvcc)
    set(ENV{CUDACXX} /usr/local/cuda/bin/nvcc)
  endif()
  tectum_architectures()
  check_language(CUDA) # whether it works, with this compiler behind it
  set(why "there is no nvcc that works")
  if(CMAKE_CUDA_COMPILER)
    enable_language(CUDA)
    find_package(CUDAToolkit)
    set(why "the toolkit is ${CMAKE_CUDA_COMPILER_VERSION}; 12.4 is the oldest that will do")
  endif()
  if(CUDAToolkit_FOUND AND CMAKE_CUDA_COMPILER_VERSION VERSION_GREATER_EQUAL 12.4)
    set(CMAKE_CUDA_STANDARD 17)
    add_library(tectum_cuda OBJECT ${cuda_kernels})
    set(cuda_includes ${CUDAToolkit_INCLUDE_DIRS})
    # No C++ library behind a C program.
    tectum_codes(codes)
    target_compile_options(tectum_cuda PRIVATE
      "$<$<COMPILE_LANGUAGE:CUDA>:${codes};-fmad=false;-Xcompiler=-fno-exceptions,-fno-rtti,-fno-threadsafe-statics;-Xptxas=-v>")
    set_target_properties(tectum_cuda PROPERTIES
      RULE_LAUNCH_COMPILE "sh ${CMAKE_SOURCE_DIR}/cmake/ptxas_report.sh <OBJECT>")
    if(codes MATCHES "(sm|compute)_90a") # products by warp groups
      target_compile_definitions(tectum_cuda PRIVATE TECTUM_CUDA_90A)
    endif()
    # That of the compiler: find_package may have come upon another one, which does not go together with it.
    find_library(TECTUM_CUDART cudart_static NO_DEFAULT_PATH REQUIRED
      HINTS ${CMAKE_CUDA_IMPLICIT_LINK_DIRECTORIES} ${CUDAToolkit_LIBRARY_DIR})
    mark_as_advanced(TECTUM_CUDART)
    set(cuda_libraries ${TECTUM_CUDART} ${CMAKE_DL_LIBS} rt)
  elseif(TECTUM_CUDA STREQUAL on)
    message(FATAL_ERROR "TECTUM_CUDA is on, but ${why}")
  else()
    message(STATUS "without CUDA: ${why}")
  endif()
endif()

if(TARGET tectum_cuda)
  add_library(tectum_cuda_device OBJECT ${cuda_host})
  foreach(part tectum_cuda tectum_cuda_device)
    target_link_libraries(${part} PRIVATE tectum_flags)
    target_include_directories(${part} SYSTEM PRIVATE ${cuda_includes})
  endforeach()
endif()
