# A compiler in another mode than C++20 says so in the first line, for <bnns/bnns.hpp> and for each header alone.
# -DCXX=compiler -DINCLUDE=include folder -DWORK=folder for the one-line program

file(GLOB headers RELATIVE ${INCLUDE} ${INCLUDE}/bnns/bnns.hpp ${INCLUDE}/bnns/overlay/*.hpp)
foreach(header IN LISTS headers)
  file(WRITE ${WORK}/needs_cxx20.cc "#include <${header}>\nint main() {}\n")
  set(first_only -Wfatal-errors)  # the first line is all that counts
  if(header STREQUAL "bnns/bnns.hpp")
    set(first_only)
  endif()
  execute_process(COMMAND ${CXX} -std=c++17 -fsyntax-only ${first_only} -I${INCLUDE} ${WORK}/needs_cxx20.cc
    RESULT_VARIABLE status OUTPUT_VARIABLE text ERROR_VARIABLE text)
  string(REGEX MATCHALL "[^\n]*error:[^\n]*" errors "${text}")
  list(LENGTH errors count)
  if(status EQUAL 0 OR count EQUAL 0)
    message(FATAL_ERROR "${header}: C++17 was accepted")
  endif()
  list(GET errors 0 first)
  if(NOT first MATCHES "needs C\\+\\+20: compile with -std=c\\+\\+20")
    message(FATAL_ERROR "${header}: the first error is ${first}")
  endif()
  if(header STREQUAL "bnns/bnns.hpp" AND NOT count EQUAL 1)
    message(FATAL_ERROR "${header}: ${count} errors, expected one")
  endif()
endforeach()
