# Installs headers, libraries, CMake package (OpenBNNS::bnns, OpenBNNS::mps) and pkg-config files (openbnns, openbnns-mps).

include(CMakePackageConfigHelpers)

install(TARGETS bnns bnns_mps EXPORT OpenBNNSTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT OpenBNNSTargets NAMESPACE OpenBNNS:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/OpenBNNS)

configure_package_config_file(cmake/OpenBNNSConfig.cmake.in ${PROJECT_BINARY_DIR}/OpenBNNSConfig.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/OpenBNNS)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/OpenBNNSConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/OpenBNNSConfig.cmake ${PROJECT_BINARY_DIR}/OpenBNNSConfigVersion.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/OpenBNNS)

# The way up is longer where the library folder is a multiarch one (lib/x86_64-linux-gnu, Debian with the prefix /usr).
file(RELATIVE_PATH pkgconfig_to_prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" pkgconfig_to_prefix "${pkgconfig_to_prefix}")
configure_file(cmake/openbnns.pc.in ${PROJECT_BINARY_DIR}/openbnns.pc @ONLY)
configure_file(cmake/openbnns-mps.pc.in ${PROJECT_BINARY_DIR}/openbnns-mps.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/openbnns.pc ${PROJECT_BINARY_DIR}/openbnns-mps.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
