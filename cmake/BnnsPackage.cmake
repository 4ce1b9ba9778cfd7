# Debian packages (make deb) and the relocatable archive (make dist) by CPack, from the components that BnnsInstall.cmake and
# BnnsTool.cmake install: runtime, devel, tools, doc. The Python package has its own wheel and is in neither.

set(BNNS_DEB_MAINTAINER "OpenBNNS authors <maintainers@openbnns.invalid>" CACHE STRING "Who made the packages, for their control files")

set(CPACK_PACKAGE_NAME openbnns)
set(CPACK_PACKAGE_VENDOR "the OpenBNNS authors")
set(CPACK_PACKAGE_CONTACT "${BNNS_DEB_MAINTAINER}")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "classic BNNS neural-network interface on Linux")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_COMPONENTS_ALL runtime devel tools doc)
set(CPACK_STRIP_FILES ON)
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_THREADS 0)

# The archive: everything in one, nothing in it knows where it lies.
set(CPACK_ARCHIVE_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING ALL_COMPONENTS_IN_ONE)
set(CPACK_COMPONENT_INCLUDE_TOPLEVEL_DIRECTORY ON)
string(TOLOWER "openbnns-${PROJECT_VERSION}-linux-${CMAKE_SYSTEM_PROCESSOR}" CPACK_PACKAGE_FILE_NAME)

if(BNNS_DEB)
  set(CPACK_DEB_COMPONENT_INSTALL ON)
  set(CPACK_COMPONENTS_GROUPING ONE_PER_GROUP)
  set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
  set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
  set(CPACK_DEBIAN_PACKAGE_SECTION libs)
  set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR}/src ${PROJECT_BINARY_DIR}/src/mps ${PROJECT_BINARY_DIR}/src/veclib)

  set(version "= ${PROJECT_VERSION}-1")
  set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME libbnns0)
  # Which package a program that is linked with these libraries needs, and that the loader's cache is made anew.
  file(WRITE ${PROJECT_BINARY_DIR}/packaging/shlibs "libbnns 0 libbnns0 (>= ${PROJECT_VERSION})\n"
    "libbnns_mps 0 libbnns0 (>= ${PROJECT_VERSION})\nlibAccelerate 0 libbnns0 (>= ${PROJECT_VERSION})\n")
  file(WRITE ${PROJECT_BINARY_DIR}/packaging/triggers "activate-noawait ldconfig\n")
  set(CPACK_DEBIAN_RUNTIME_PACKAGE_CONTROL_EXTRA ${PROJECT_BINARY_DIR}/packaging/shlibs ${PROJECT_BINARY_DIR}/packaging/triggers)
  set(CPACK_DEBIAN_DEVEL_PACKAGE_NAME libbnns-dev)
  set(CPACK_DEBIAN_DEVEL_PACKAGE_SECTION libdevel)
  set(CPACK_DEBIAN_DEVEL_PACKAGE_SHLIBDEPS OFF)
  set(CPACK_DEBIAN_DEVEL_PACKAGE_DEPENDS "libbnns0 (${version})")
  if(BNNS_HAVE_ACCELERATE)   # CMake's target of it names their libraries
    string(APPEND CPACK_DEBIAN_DEVEL_PACKAGE_DEPENDS ", libblas-dev, liblapack-dev")
  endif()
  set(CPACK_DEBIAN_TOOLS_PACKAGE_NAME bnns-tools)
  set(CPACK_DEBIAN_TOOLS_PACKAGE_SECTION science)
  set(CPACK_DEBIAN_TOOLS_PACKAGE_DEPENDS "libbnns0 (${version})")
  set(CPACK_DEBIAN_DOC_PACKAGE_NAME libbnns-doc)
  set(CPACK_DEBIAN_DOC_PACKAGE_SECTION doc)
  set(CPACK_DEBIAN_DOC_PACKAGE_ARCHITECTURE all)
  set(CPACK_DEBIAN_DOC_PACKAGE_SHLIBDEPS OFF)
  set(CPACK_DEBIAN_RUNTIME_DESCRIPTION "Layers of neural networks that run forward and backward, with losses and\noptimizers, under the names of the classic BNNS interface; libAccelerate and\nthe pooling classes of MPS beside it.")
  set(CPACK_DEBIAN_DEVEL_DESCRIPTION "Headers for C, C++ and the MPS pooling classes, and what CMake and pkg-config\nneed.")
  set(CPACK_DEBIAN_TOOLS_DESCRIPTION "The command bnns: trains a classifier of digits, writes a report, says what\npictures show.")
  set(CPACK_DEBIAN_DOC_DESCRIPTION "Guides, a page for each operator, the reference and the examples.")

  # Each package has its copyright and changelog, as Debian's policy asks.
  find_program(BNNS_GZIP gzip REQUIRED)
  string(TIMESTAMP now "%a, %d %b %Y %H:%M:%S +0000" UTC)
  set(changelog ${PROJECT_BINARY_DIR}/packaging/changelog.Debian)
  foreach(pair IN ITEMS runtime/libbnns0 devel/libbnns-dev tools/bnns-tools doc/libbnns-doc)
    string(REPLACE "/" ";" pair ${pair})
    list(GET pair 0 component)
    list(GET pair 1 package)
    install(FILES packaging/debian/copyright DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${package} COMPONENT ${component})
    install(FILES ${changelog}.gz DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${package} COMPONENT ${component})
  endforeach()
  file(WRITE ${changelog} "openbnns (${PROJECT_VERSION}-1) unstable; urgency=medium\n\n  * See CHANGELOG.md of libbnns-doc.\n\n"
    " -- ${BNNS_DEB_MAINTAINER}  ${now}\n")
  execute_process(COMMAND ${BNNS_GZIP} -9nf ${changelog} COMMAND_ERROR_IS_FATAL ANY)
endif()
include(CPack)
