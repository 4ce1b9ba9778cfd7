# Decides whether the CUDA device is built: BNNS_CUDA = AUTO (where nvcc is found), ON (must be there) or OFF.
# Sets BNNS_HAVE_CUDA. The library runs with and without a driver; only the CPU device is offered without.

set(BNNS_CUDA AUTO CACHE STRING "Build the CUDA device: AUTO, ON or OFF")
set_property(CACHE BNNS_CUDA PROPERTY STRINGS AUTO ON OFF)

set(BNNS_HAVE_CUDA OFF)
if(BNNS_SANITIZE AND BNNS_CUDA STREQUAL "AUTO")
  message(STATUS "CUDA: off, the sanitizers check the host's code")
elseif(NOT BNNS_CUDA STREQUAL "OFF")
  include(CheckLanguage)
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    # PTX for what is older or newer, machine code for Hopper.
    if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
      set(CMAKE_CUDA_ARCHITECTURES 80-virtual 90-real)
    endif()
    enable_language(CUDA)
    find_package(CUDAToolkit)
    # nvcc has C++20 since 12.0; CMake 3.25 does not know.
    if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION AND CMAKE_CUDA_COMPILER_VERSION VERSION_GREATER_EQUAL 12)
      set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
      set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
    endif()
  endif()
  if(CMAKE_CUDA_COMPILER AND TARGET CUDA::cudart_static AND CMAKE_CUDA_COMPILER_VERSION VERSION_GREATER_EQUAL 12)
    set(BNNS_HAVE_CUDA ON)
    if(BNNS_CCACHE)
      set(CMAKE_CUDA_COMPILER_LAUNCHER ${BNNS_CCACHE})
    endif()
  elseif(NOT BNNS_CUDA STREQUAL "AUTO")
    message(FATAL_ERROR "BNNS_CUDA=${BNNS_CUDA}, but nvcc 12 or the static CUDA runtime was not found")
  endif()
endif()
