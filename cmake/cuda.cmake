# cuda.cmake - the CUDA device: `tectum_cuda`, the kernels, and `tectum_cuda_device`, the C of
# kernels/cuda/ that starts them; `cuda_kernel_objects`, with those of the emulator where that is the
# runtime, `cuda_libraries`, and for what uses the runtime or the emulator by itself `cuda_includes`
# and `cuda_definitions`.
#
# TECTUM_CUDA auto or on: compiled by nvcc, with the runtime linked statically; the program needs
# no driver to start. emulator: the same files as C++, with tests/cuda_emulator/ in place of the
# toolkit: slow, exact about barriers, lanes and copies. Without any of it the program has a CPU.

file(GLOB cuda_kernels CONFIGURE_DEPENDS kernels/cuda/*.cu)
file(GLOB cuda_host CONFIGURE_DEPENDS kernels/cuda/*.c)

if(TECTUM_CUDA STREQUAL auto OR TECTUM_CUDA STREQUAL on)
  include(CheckLanguage)
  if(NOT CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX} AND EXISTS /usr/local/cuda/bin/nvcc)
    set(ENV{CUDACXX} /usr/local/cuda/bin/nvcc)
  endif()
  if(NOT CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES ${TECTUM_CUDA_ARCHITECTURES})
  endif()
  check_language(CUDA) # whether it works, with this compiler behind it
  set(why "there is no nvcc that works")
  if(CMAKE_CUDA_COMPILER)
    enable_language(CUDA)
    find_package(CUDAToolkit)
    set(why "the toolkit is ${CMAKE_CUDA_COMPILER_VERSION}; 13.0 is the oldest that will do")
  endif()
  if(CUDAToolkit_FOUND AND CMAKE_CUDA_COMPILER_VERSION VERSION_GREATER_EQUAL 13.0)
    set(CMAKE_CUDA_STANDARD 17)
    add_library(tectum_cuda OBJECT ${cuda_kernels})
    set(cuda_includes ${CUDAToolkit_INCLUDE_DIRS})
    # No C++ library behind a C program.
    target_compile_options(tectum_cuda PRIVATE
      "$<$<COMPILE_LANGUAGE:CUDA>:-fmad=false;-Xcompiler=-fno-exceptions,-fno-rtti,-fno-threadsafe-statics;-Xptxas=-v>")
    set_target_properties(tectum_cuda PROPERTIES
      RULE_LAUNCH_COMPILE "sh ${CMAKE_SOURCE_DIR}/cmake/ptxas_report.sh <OBJECT>")
    if(CMAKE_CUDA_ARCHITECTURES MATCHES "90a") # products by warp groups
      target_compile_definitions(tectum_cuda PRIVATE TECTUM_CUDA_90A)
    endif()
    set(cuda_libraries ${CUDAToolkit_LIBRARY_DIR}/libcudart_static.a ${CMAKE_DL_LIBS} rt)
  elseif(TECTUM_CUDA STREQUAL on)
    message(FATAL_ERROR "TECTUM_CUDA is on, but ${why}")
  else()
    message(STATUS "without CUDA: ${why}")
  endif()
elseif(TECTUM_CUDA STREQUAL emulator)
  enable_language(CXX)
  set(CMAKE_CXX_STANDARD 17)
  file(GLOB emulator CONFIGURE_DEPENDS tests/cuda_emulator/*.cpp)
  set_source_files_properties(${cuda_kernels} PROPERTIES LANGUAGE CXX COMPILE_OPTIONS "-xc++")
  add_library(tectum_cuda OBJECT ${cuda_kernels})
  add_library(cuda_emulator OBJECT ${emulator}) # in the place of the runtime
  set(cuda_includes ${CMAKE_SOURCE_DIR}/tests/cuda_emulator/include)
  set(cuda_definitions TECTUM_CUDA_EMULATED)
  set(emulator_flags -Wall -Wextra -ffp-contract=off -march=native) # native: fma() is one instruction
  foreach(part tectum_cuda cuda_emulator)
    target_compile_options(${part} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:${emulator_flags}>")
  endforeach()
  set(cuda_libraries stdc++)
endif()

if(TARGET tectum_cuda)
  add_library(tectum_cuda_device OBJECT ${cuda_host})
  set(cuda_parts tectum_cuda tectum_cuda_device)
  set(cuda_kernel_objects $<TARGET_OBJECTS:tectum_cuda>)
  if(TARGET cuda_emulator)
    list(APPEND cuda_parts cuda_emulator)
    list(APPEND cuda_kernel_objects $<TARGET_OBJECTS:cuda_emulator>)
  endif()
  foreach(part ${cuda_parts})
    target_link_libraries(${part} PRIVATE tectum_flags)
    target_include_directories(${part} SYSTEM PRIVATE ${cuda_includes})
  endforeach()
endif()
