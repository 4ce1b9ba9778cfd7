# What the dynamic loader knows of a library folder. For scripts run with cmake -P and at installation.

cmake_minimum_required(VERSION 3.22)
find_program(BNNS_LDCONFIG ldconfig PATHS /sbin /usr/sbin)

# Sets `result` to whether the loader finds libraries in `folder` once ldconfig has run.
function(bnns_loader_searches folder result)
  set(${result} OFF PARENT_SCOPE)
  if(NOT BNNS_LDCONFIG)
    return()
  endif()
  execute_process(COMMAND ${BNNS_LDCONFIG} -N -X -v OUTPUT_VARIABLE folders ERROR_QUIET)
  file(REAL_PATH "${folder}" folder)
  string(REGEX MATCHALL "(^|\n)/[^:\n]*:" folders "${folders}")
  foreach(searched IN LISTS folders)
    string(REGEX REPLACE "[\n:]" "" searched "${searched}")
    file(REAL_PATH "${searched}" searched)
    if(searched STREQUAL folder)
      set(${result} ON PARENT_SCOPE)
    endif()
  endforeach()
endfunction()

# Makes the loader's cache anew; only root can.
function(bnns_run_ldconfig)
  execute_process(COMMAND ${BNNS_LDCONFIG} RESULT_VARIABLE status ERROR_VARIABLE text)
  if(NOT status EQUAL 0)
    string(STRIP "${text}" text)
    message("OpenBNNS: ldconfig failed (${text}); run it as root so that programs see the change")
  endif()
endfunction()
