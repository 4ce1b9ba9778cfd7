# An overlay port that builds the clone it lies in: vcpkg install openbnns --overlay-ports=packaging/vcpkg
# (a port of a registry would fetch a release with vcpkg_from_github instead).
get_filename_component(SOURCE_PATH "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)

vcpkg_cmake_configure(
  SOURCE_PATH "${SOURCE_PATH}"
  OPTIONS -DBNNS_TESTS=OFF -DBNNS_TOOLS=OFF -DBNNS_MPI=OFF)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(PACKAGE_NAME OpenBNNS CONFIG_PATH lib/cmake/OpenBNNS)
vcpkg_fixup_pkgconfig()
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include" "${CURRENT_PACKAGES_DIR}/debug/share")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
