# Runs the programs C and OVERLAY and compares the hashes of weights they print.

foreach(program IN ITEMS C OVERLAY)
  execute_process(COMMAND ${${program}} OUTPUT_VARIABLE output RESULT_VARIABLE result)
  if(NOT result EQUAL 0 OR NOT output MATCHES "weights ([0-9a-f]+)")
    message(FATAL_ERROR "${${program}} ended with ${result}:\n${output}")
  endif()
  set(${program}_hash ${CMAKE_MATCH_1})
endforeach()
if(NOT C_hash STREQUAL OVERLAY_hash)
  message(FATAL_ERROR "the weights differ: C ${C_hash}, overlay ${OVERLAY_hash}")
endif()
message(STATUS "weights ${C_hash} both ways")
