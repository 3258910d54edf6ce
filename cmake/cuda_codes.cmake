# cuda_codes.cmake - tectum_codes(RESULT): nvcc's options for the devices in TECTUM_CUDA_ARCHITECTURES.
#
#   cmake "-DTECTUM_CUDA_ARCHITECTURES=80;90a-real" -P cmake/cuda_codes.cmake     prints them
#   cmake -DTECTUM_CUDA_ARCHITECTURES=all -DCMAKE_CUDA_COMPILER=nvcc -P ...       as far as that nvcc can
#
# Machine code for a device is made of the PTX of the oldest device that has what the kernels use:
# 9.0 can overlap kernels, 9.0a multiplies by warp groups, all else is that of 8.0. So a release
# compiles C++ to PTX three times, not once for each device, which is half of what a file takes.
# 100a and the like are no exception: of their own PTX, which nvcc 13 makes with another compiler,
# products of 33 to 64 rows spill registers.

cmake_minimum_required(VERSION 3.25) # alone, too

# `all`: a program that goes to other machines (doc/gpu.md).
set(tectum_all_devices 80-real 87-real 90a-real 100-real 110-real 120)

# The numbers of the devices that nvcc makes code for; empty where it cannot be asked.
function(tectum_known result)
  set(known)
  if(CMAKE_CUDA_COMPILER)
    execute_process(COMMAND ${CMAKE_CUDA_COMPILER} --list-gpu-code
      OUTPUT_VARIABLE text ERROR_QUIET RESULT_VARIABLE status)
    string(REGEX MATCHALL "sm_[0-9]+" known "${text}")
    list(TRANSFORM known REPLACE "sm_" "")
  endif()
  set(${result} ${known} PARENT_SCOPE)
endfunction()

function(tectum_codes result)
  set(names ${TECTUM_CUDA_ARCHITECTURES})
  if(names STREQUAL all)
    set(names ${tectum_all_devices})
  endif()
  tectum_known(known)
  foreach(name ${names})
    if(NOT name MATCHES "^([0-9]+)(a?)(-real|-virtual)?$" OR CMAKE_MATCH_1 LESS 80)
      message(FATAL_ERROR "TECTUM_CUDA_ARCHITECTURES: '${name}' is no device from 80 on, as 80, 87-real and 90a-real are")
    endif()
    set(number ${CMAKE_MATCH_1})
    set(own "${CMAKE_MATCH_2}")
    set(kind "${CMAKE_MATCH_3}")
    # What this nvcc is too old for gets PTX, of which the driver makes code on the device.
    if(known AND NOT number IN_LIST known)
      list(APPEND unknown ${number})
      set(own "")
      set(kind -virtual)
    endif()
    set(virtual 80)
    if(number EQUAL 90)
      set(virtual 90${own})
    elseif(number GREATER 90)
      set(virtual 90)
    endif()
    if(NOT kind STREQUAL "-virtual")
      list(APPEND codes_${virtual} sm_${number}${own})
    endif()
    if(NOT kind STREQUAL "-real")
      list(APPEND codes_${virtual} compute_${virtual})
    endif()
    list(APPEND virtuals ${virtual})
  endforeach()
  if(unknown)
    list(JOIN unknown " " unknown)
    message(STATUS "${CMAKE_CUDA_COMPILER} makes no code for ${unknown}: the driver does at the first start there")
  endif()
  list(REMOVE_DUPLICATES virtuals)
  foreach(virtual ${virtuals})
    list(REMOVE_DUPLICATES codes_${virtual})
    list(JOIN codes_${virtual} "," codes)
    list(APPEND options "--generate-code=arch=compute_${virtual},code=[${codes}]")
  endforeach()
  set(${result} ${options} PARENT_SCOPE)
endfunction()

if(CMAKE_SCRIPT_MODE_FILE STREQUAL CMAKE_CURRENT_LIST_FILE)
  tectum_codes(options)
  execute_process(COMMAND ${CMAKE_COMMAND} -E echo ${options})
endif()
