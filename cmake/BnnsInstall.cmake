# Installs headers, libraries, CMake package (OpenBNNS::bnns, ::overlay, ::mps, ::Accelerate and ::mpi), pkg-config files
# (openbnns, openbnns-mps, openbnns-accelerate, openbnns-mpi) and the documents, which keep their places relative to each other so that their links hold.

include(CMakePackageConfigHelpers)

install(TARGETS bnns bnns_overlay bnns_mps EXPORT OpenBNNSTargets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime NAMELINK_COMPONENT devel
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT devel)
include(BnnsInstallAccelerate)
set(BNNS_HAVE_MPI FALSE)
if(TARGET bnns_mpi)
  set(BNNS_HAVE_MPI TRUE)
  install(TARGETS bnns_mpi EXPORT OpenBNNSTargets
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime NAMELINK_COMPONENT devel
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT devel)
endif()
install(DIRECTORY include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT devel)
install(EXPORT OpenBNNSTargets NAMESPACE OpenBNNS:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/OpenBNNS COMPONENT devel)
install(FILES README.md CHANGELOG.md CONTRIBUTING.md DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT doc)
if(NOT BNNS_DEB)   # Debian has the text once for all packages
  install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT doc)
endif()
install(DIRECTORY docs examples DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT doc PATTERN CMakeLists.txt EXCLUDE PATTERN docs/site EXCLUDE)
install(DIRECTORY build/docs/html DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT doc OPTIONAL)   # the site, where `make docs` ran
file(GLOB readmes RELATIVE ${PROJECT_SOURCE_DIR} src/*/README.md src/engine/*/README.md src/ops/*/README.md)
foreach(readme IN LISTS readmes)
  get_filename_component(folder ${readme} DIRECTORY)
  install(FILES ${readme} DESTINATION ${CMAKE_INSTALL_DOCDIR}/${folder} COMPONENT doc)
endforeach()

# A static library leaves to its users what the shared one has linked.
set(BNNS_DEPENDENCIES "")
set(BNNS_PC_LIBS "")
set(BNNS_PC_MPS_LIBS "")
set(BNNS_PC_MPI_LIBS "")
if(NOT BNNS_SHARED)
  set(BNNS_DEPENDENCIES "include(CMakeFindDependencyMacro)\nfind_dependency(Threads)\n")
  set(BNNS_PC_LIBS " -lstdc++ -lm -pthread")
  if(BNNS_HAVE_MPI)
    string(APPEND BNNS_DEPENDENCIES "find_dependency(MPI COMPONENTS C)\n")
    foreach(library IN LISTS MPI_C_LIBRARIES)
      string(APPEND BNNS_PC_MPI_LIBS " ${library}")
    endforeach()
  endif()
  if(BNNS_HAVE_CUDA)
    string(APPEND BNNS_DEPENDENCIES "find_dependency(CUDAToolkit)\n")
    set(BNNS_PC_MPS_LIBS " -L${CUDAToolkit_LIBRARY_DIR} -lcudart_static -ldl -lrt")
  endif()
endif()

configure_package_config_file(cmake/OpenBNNSConfig.cmake.in ${PROJECT_BINARY_DIR}/OpenBNNSConfig.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/OpenBNNS)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/OpenBNNSConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/OpenBNNSConfig.cmake ${PROJECT_BINARY_DIR}/OpenBNNSConfigVersion.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/OpenBNNS COMPONENT devel)

# The way up is longer where the library folder is a multiarch one (lib/x86_64-linux-gnu, Debian with the prefix /usr).
file(RELATIVE_PATH pkgconfig_to_prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" pkgconfig_to_prefix "${pkgconfig_to_prefix}")
configure_file(cmake/openbnns.pc.in ${PROJECT_BINARY_DIR}/openbnns.pc @ONLY)
configure_file(cmake/openbnns-mps.pc.in ${PROJECT_BINARY_DIR}/openbnns-mps.pc @ONLY)
if(BNNS_HAVE_MPI)
  configure_file(cmake/openbnns-mpi.pc.in ${PROJECT_BINARY_DIR}/openbnns-mpi.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/openbnns-mpi.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT devel)
endif()
if(BNNS_HAVE_ACCELERATE)
  configure_file(cmake/openbnns-accelerate.pc.in ${PROJECT_BINARY_DIR}/openbnns-accelerate.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/openbnns-accelerate.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT devel)
endif()
install(FILES ${PROJECT_BINARY_DIR}/openbnns.pc ${PROJECT_BINARY_DIR}/openbnns-mps.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT devel)

# A project around this one installs by its own rules, and says what it likes.
if(PROJECT_IS_TOP_LEVEL)
  install(CODE "set(BNNS_BUILD \"${PROJECT_BINARY_DIR}\")")
  install(CODE "set(BNNS_LIBDIR \"${CMAKE_INSTALL_LIBDIR}\")")
  install(CODE "set(BNNS_SHARED ${BNNS_SHARED})")
  install(SCRIPT cmake/BnnsInstalled.cmake)
endif()
