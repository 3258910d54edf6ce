# cuda_codes.cmake - tectum_codes(RESULT): nvcc's options for the devices in TECTUM_CUDA_ARCHITECTURES.
#
#   cmake "-DTECTUM_CUDA_ARCHITECTURES=80;90a-real" -P cmake/cuda_codes.cmake     prints them
#
# Machine code for a device is made of the PTX of the oldest device that has what the kernels use:
# 9.0 can overlap kernels, 9.0a multiplies by warp groups, all else is that of 8.0. So a release
# compiles C++ to PTX three times, not once for each device, which is half of what a file takes.

function(tectum_codes result)
  foreach(name ${TECTUM_CUDA_ARCHITECTURES})
    if(NOT name MATCHES "^([0-9]+)([af]?)(-real|-virtual)?$" OR CMAKE_MATCH_1 LESS 80)
      message(FATAL_ERROR "TECTUM_CUDA_ARCHITECTURES: '${name}' is no device from 80 on, as 80, 87-real and 90a-real are")
    endif()
    set(virtual 80)
    if(CMAKE_MATCH_2)
      set(virtual ${CMAKE_MATCH_1}${CMAKE_MATCH_2})
    elseif(CMAKE_MATCH_1 GREATER_EQUAL 90)
      set(virtual 90)
    endif()
    if(NOT CMAKE_MATCH_3 STREQUAL "-virtual")
      list(APPEND codes_${virtual} sm_${CMAKE_MATCH_1}${CMAKE_MATCH_2})
    endif()
    if(NOT CMAKE_MATCH_3 STREQUAL "-real")
      list(APPEND codes_${virtual} compute_${virtual})
    endif()
    list(APPEND virtuals ${virtual})
  endforeach()
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
