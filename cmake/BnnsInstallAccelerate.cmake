# Installs libAccelerate, where the machine has BLAS and LAPACK (src/veclib).
#
# A program that is linked with -lAccelerate alone calls functions of libbnns, BLAS and LAPACK too, and the linker looks for
# them only in libraries that it was given. So libAccelerate.so is a linker script that gives it all of them, by the names
# of their files at run time: users need no -dev packages.

if(NOT TARGET bnns_accelerate)
  set(BNNS_HAVE_ACCELERATE FALSE)
  return()
endif()
set(BNNS_HAVE_ACCELERATE TRUE)
set(BNNS_PC_ACCELERATE_LIBS "")
if(NOT BNNS_SHARED)
  install(TARGETS bnns_accelerate EXPORT OpenBNNSTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT devel)
  set(BNNS_PC_ACCELERATE_LIBS " -llapack -lblas -lbnns -lstdc++ -lm -pthread")
  return()
endif()

function(bnns_soname file result)
  execute_process(COMMAND ${CMAKE_OBJDUMP} -p ${file} OUTPUT_VARIABLE text ERROR_QUIET)
  if(NOT text MATCHES "SONAME +([^\n]+)")
    message(FATAL_ERROR "${file} is no shared library; libAccelerate needs the shared BLAS and LAPACK")
  endif()
  set(${result} ${CMAKE_MATCH_1} PARENT_SCOPE)
endfunction()
bnns_soname(${BNNS_BLAS} blas)
bnns_soname(${BNNS_LAPACK} lapack)
file(WRITE ${PROJECT_BINARY_DIR}/linker-script/libAccelerate.so
  "/* Accelerate is these libraries (GNU ld script). */\n"
  "GROUP ( libAccelerate.so.0 AS_NEEDED ( libbnns.so.0 -l:${lapack} -l:${blas} -lm ) )\n")
install(TARGETS bnns_accelerate EXPORT OpenBNNSTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime NAMELINK_SKIP)
install(FILES ${PROJECT_BINARY_DIR}/linker-script/libAccelerate.so DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT devel)
